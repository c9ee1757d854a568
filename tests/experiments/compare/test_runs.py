"""What a folder says of a run or a population, and whose timesteps count."""

from pathlib import Path

import pytest

from game_rl.config.experiments.population_files import dump_population
from game_rl.errors import UsageError
from game_rl.experiments.compare.compared_folders import read_folder
from game_rl.experiments.compare.comparison_arms import Score
from game_rl.experiments.records import read_records
from game_rl.lineage import Lineage, Source, write_lineage
from tests.experiments.compare.fake_runs import EPISODES, write_run
from tests.experiments.compare.paper_accounts import write_accounts
from tests.experiments.conftest import (  # noqa: F401 - fixtures
    MakeMixture,
    MakePopulation,
    make_mixture,
    make_population,
)
from tests.experiments.plans.test_mixture import carry_out as carry_out_mixture
from tests.experiments.plans.test_population import carry_out


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
    folder.config.write_text(dump_population(population), encoding="utf-8")
    write_accounts(folder)
    found = read_folder(folder.root)
    config = population.config
    assert found.total_timesteps == (
        config.members * config.generations * config.timesteps_per_generation
    )
    assert found.total_frames == found.total_timesteps * population.run.env.frame_skip
    assert found.timesteps == found.total_timesteps
    assert found.final is not None
    assert found.final.episodes == config.champion.episodes


def test_of_a_mixture_the_learner_counts_too_and_its_curve_is_the_champions(
    make_mixture: MakeMixture,  # noqa: F811
) -> None:
    mixture = make_mixture()
    folder = carry_out_mixture(mixture)
    write_accounts(folder)
    found, records = read_folder(folder.root), read_records(folder)
    played = [4 * 128 * r + 64 * r for r in range(1, 5)]  # 4 members, and the learner
    assert found.timesteps == found.total_timesteps == played[-1]
    assert found.total_frames == played[-1] * mixture.run.env.frame_skip
    assert found.final is not None
    for point in found.curve:  # a member's, before the learner of its round has played, or that's
        assert point.total_timesteps in played or point.total_timesteps + 64 in played
        fitness = [m.fitness for r in records for m in r.members if m.fitness]
        assert point.mean_reward in [each.mean_reward for each in fitness]
    assert [p.total_timesteps for p in found.curve] == sorted(
        {p.total_timesteps for p in found.curve}
    )


def test_mixtures_that_differ_by_seed_and_place_are_one_arm(
    make_mixture: MakeMixture,  # noqa: F811
) -> None:
    found = []
    for name, override in (("a", "seed=1"), ("b", "seed=2"), ("c", "clone.to=worst")):
        mixture = make_mixture(name, override, "rounds=1", "members=2")
        found.append(read_folder(carry_out_mixture(mixture).root))
    one, two, other = (each.settings for each in found)
    assert one == two
    assert one != other
    assert [each.seed for each in found] == [1, 2, 0]


def test_a_folder_that_is_no_run_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not a run directory: it has no config\.yaml; name"):
        read_folder(tmp_path)
