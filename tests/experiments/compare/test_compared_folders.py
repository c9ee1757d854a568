"""The curve of a live mixture over what everybody had played, beside numbers by hand."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from game_rl.checkpoints.evaluation_files import EpisodeLists, write_episodes
from game_rl.config.experiments.experiment import dump_experiment
from game_rl.errors import UsageError
from game_rl.events import Ended, Evaluating
from game_rl.events.event_log import EventFile
from game_rl.events.lineage import Lineage, Source, write_lineage
from game_rl.experiments.compare.compared_folders import read_folder
from game_rl.experiments.compare.comparison import Score
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import ChampionRecord, read_record, read_records
from game_rl.files.durable_files import write_saved
from tests.experiments.compare.fake_runs import EPISODES, write_run
from tests.experiments.compare.paper_accounts import write_accounts
from tests.experiments.conftest import MakeMixture, MakePopulation
from tests.experiments.paper_executor import PaperExecutor
from tests.experiments.plans.test_mixture_plan import (
    carry_out_mixture,
)
from tests.experiments.plans.test_mixture_plan import (
    carry_out_mixture as carry_out_rounds,
)
from tests.experiments.plans.test_population_plan import carry_out

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def tell(folder: ExperimentDir, name: str, moments: Sequence[tuple[int, int]]) -> None:
    """Args: moments: second and timestep of each event."""
    with EventFile(folder.member(name).events) as events:
        for second, timesteps in moments:
            time = NOON + timedelta(seconds=second)
            events.add(
                Evaluating(time=time, timesteps=timesteps, policy_timesteps=timesteps, episodes=1)
            )
        events.add(Ended(time=time, timesteps=timesteps, reason="until", exit_code=0))


def test_each_evaluation_of_the_learner_counts_what_members_had_played_by_then(
    make_mixture: MakeMixture,
) -> None:
    mixture = make_mixture("mixture", "members=2", "champion.candidates=2", is_live=True)
    folder = carry_out_mixture(mixture, PaperExecutor(3))
    champion = read_record(folder.champion_record, ChampionRecord)
    assert champion is not None
    write_saved(folder.champion_record, champion.model_copy(update={"folder": "learner"}))
    tell(folder, "00", [(0, 0), (100, 512)])
    tell(folder, "01", [(0, 0), (20, 100), (60, 512)])  # has ended at 60 s
    tell(folder, "learner", [(0, 0), (20, 64), (50, 128), (200, 256)])
    write_episodes(
        folder.member("learner"),
        EpisodeLists([64, 128, 256], [[1.0], [2.0], [4.0]], [[5], [5], [5]], []),
    )
    found = read_folder(folder.root)
    by_hand = [
        64 + int(512 * 0.2) + 100,
        128 + 256 + int(100 + 412 * 30 / 40),
        256 + 512 + 512,
    ]
    assert [point.total_timesteps for point in found.curve] == by_hand
    frame_skip = mixture.run.env.frame_skip
    assert [point.total_frames for point in found.curve] == [n * frame_skip for n in by_hand]
    assert [point.timesteps for point in found.curve] == [64, 128, 256]
    assert [point.mean_reward for point in found.curve] == [1.0, 2.0, 4.0]
    assert found.total_timesteps == by_hand[-1]


def test_a_complete_run_has_its_final_score_and_its_curve(tmp_path: Path) -> None:
    write_run(tmp_path / "run", seed=4, final=0.9)
    found = read_folder(tmp_path / "run")
    assert (found.seed, found.failure) == (4, "")
    assert found.score == Score(0.9, 0.9, EPISODES)
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
    assert (stopped.score, stopped.failure) == (None, "")
    assert (failed.score, failed.failure) == (None, "a loss became NaN")


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
    make_population: MakePopulation,
) -> None:
    population = make_population()
    folder = carry_out(population)
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    write_accounts(folder)
    found = read_folder(folder.root)
    config = population.config
    assert found.total_timesteps == (
        config.members * config.generations * config.timesteps_per_generation
    )
    assert found.total_frames == found.total_timesteps * population.run.env.frame_skip
    assert found.timesteps == found.total_timesteps
    assert found.score is not None
    assert found.score.episodes == config.champion.episodes


def test_of_a_mixture_the_learner_counts_too_and_its_curve_is_the_champions(
    make_mixture: MakeMixture,
) -> None:
    mixture = make_mixture()
    folder = carry_out_rounds(mixture)
    write_accounts(folder)
    found, records = read_folder(folder.root), read_records(folder)
    played = [4 * 128 * r + 64 * r for r in range(1, 5)]  # 4 members, and the learner
    assert found.timesteps == found.total_timesteps == played[-1]
    assert found.total_frames == played[-1] * mixture.run.env.frame_skip
    assert found.score is not None
    for point in found.curve:  # a member's, before the learner of its round has played, or that's
        assert point.total_timesteps in played or point.total_timesteps + 64 in played
        fitness = [m.fitness for r in records for m in r.members if m.fitness]
        assert point.mean_reward in [each.mean_reward for each in fitness]
    assert [p.total_timesteps for p in found.curve] == sorted(
        {p.total_timesteps for p in found.curve}
    )


def test_mixtures_that_differ_by_seed_and_place_are_one_arm(
    make_mixture: MakeMixture,
) -> None:
    found = []
    for name, override in (("a", "seed=1"), ("b", "seed=2"), ("c", "clone.to=worst")):
        mixture = make_mixture(name, override, "rounds=1", "members=2")
        found.append(read_folder(carry_out_rounds(mixture).root))
    one, two, other = (each.settings for each in found)
    assert one == two
    assert one != other
    assert [each.seed for each in found] == [1, 2, 0]


def test_a_folder_that_is_no_run_is_refused_with_the_way_out(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(UsageError, match=r"is not a run directory: it has no config\.yaml; name"):
        read_folder(folder)
