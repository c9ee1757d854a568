"""What a folder says of a run or a population, and whose timesteps count."""

from pathlib import Path

import pytest

from game_rl.config.experiments import dump_population
from game_rl.errors import UsageError
from game_rl.event_log import EventFile
from game_rl.events import Ended
from game_rl.experiments.compare.outcome import Score
from game_rl.experiments.compare.runs import read_folder
from game_rl.experiments.descent import read_records
from game_rl.experiments.experiment_dir import copied_after
from game_rl.lineage import Lineage, Source, write_lineage
from game_rl.run_dir import RunDir
from tests.experiments.compare.fake_runs import EPISODES, write_run
from tests.experiments.conftest import MakePopulation, make_population  # noqa: F401 - a fixture
from tests.experiments.test_population import carry_out


def test_a_complete_run_has_its_final_score_and_its_curve(tmp_path: Path) -> None:
    write_run(tmp_path / "run", seed=4, final=0.9)
    found = read_folder(tmp_path / "run")
    assert (found.seed, found.failure) == (4, "")
    assert found.final == Score(0.9, 0.9, EPISODES)
    assert found.last == Score(0.8, 0.8, EPISODES)
    assert [(p.timesteps, p.success_rate) for p in found.curve] == [
        (64, 0.1),
        (128, 0.5),
        (192, 0.8),
    ]
    assert (found.timesteps, found.total_timesteps, found.total_frames) == (192, 192, 192 * 8)


def test_a_run_that_was_stopped_has_no_final_score_and_one_that_failed_says_why(
    tmp_path: Path,
) -> None:
    write_run(tmp_path / "stopped", seed=0, final=None)
    write_run(tmp_path / "failed", seed=0, final=None, failure="a loss became NaN\nand more")
    stopped, failed = read_folder(tmp_path / "stopped"), read_folder(tmp_path / "failed")
    assert (stopped.final, stopped.failure) == (None, "")
    assert (failed.final, failed.failure) == (None, "a loss became NaN")


def test_what_a_run_comes_from_counts_and_what_it_has_of_its_parent_is_not_its_curve(
    tmp_path: Path,
) -> None:
    run_dir = write_run(tmp_path / "run", seed=0, final=0.9)
    parent = Source(kind="fork", run="p", path="p", timesteps=100, frame_skip=4, sha256="")
    lake = Source(kind="lake", run="l", path="l", timesteps=1_000, frame_skip=8, sha256="")
    write_lineage(run_dir, Lineage(began_at=100, sources=(parent, lake)))
    found = read_folder(tmp_path / "run")
    assert found.timesteps == 92
    assert found.total_timesteps == 92 + 100 + 1_000
    assert found.total_frames == 92 * 8 + 100 * 4 + 1_000 * 8
    assert [(p.timesteps, p.total_timesteps) for p in found.curve] == [(128, 1_128), (192, 1_192)]


def test_of_a_population_every_member_counts_and_the_champion_has_the_score(
    make_population: MakePopulation,  # noqa: F811
) -> None:
    population = make_population()
    folder = carry_out(population)
    folder.config.write_text(dump_population(population))
    for path in folder.members.iterdir():
        # members on paper write no account; the real ones say how far they have come
        records = [r for r in read_records(folder) if path.name in {m.folder for m in r.members}]
        last = max((record.timesteps for record in records), default=0)
        stretch = population.config.timesteps_per_generation
        pretend_to_have_trained(path, (copied_after(path.name) or 0) * stretch, last)
    found = read_folder(folder.root)
    config = population.config
    assert found.total_timesteps == (
        config.members * config.generations * config.timesteps_per_generation
    )
    assert found.total_frames == found.total_timesteps * population.run.env.frame_skip
    assert found.timesteps == config.total_timesteps
    assert found.final is not None
    assert found.final.episodes == config.champion.episodes


def pretend_to_have_trained(path: Path, began_at: int, timesteps: int) -> None:
    run_dir = RunDir(path)
    run_dir.identity()
    write_lineage(run_dir, Lineage(began_at=began_at))
    with EventFile(run_dir.events) as events:
        events.add(Ended(timesteps=timesteps, reason="until", exit_code=0))


def test_a_folder_that_is_no_run_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not a run directory: it has no config\.yaml; name"):
        read_folder(tmp_path)
