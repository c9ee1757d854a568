"""Which runs belong together."""

from pathlib import Path

import pytest

from game_rl.errors import UsageError
from game_rl.experiments.compare.compared_folders import read_folder
from game_rl.experiments.compare.comparison import ComparedFolder, arms_of, grouped
from tests.experiments.compare.fake_runs import write_run


def found(
    tmp_path: Path, name: str, seed: int, *overrides: str, final: float | None = 0.5
) -> ComparedFolder:
    write_run(tmp_path / name, seed=seed, final=final, overrides=overrides)
    return read_folder(tmp_path / name)


def test_runs_that_differ_by_the_seed_alone_are_an_arm(tmp_path: Path) -> None:
    groups = grouped(
        [
            found(tmp_path, "plain_seed1", 1),
            found(tmp_path, "fast_0", 0, "algorithm.learning_rate=1e-2"),
            found(tmp_path, "plain_seed0", 0, "env.n_workers=2", "recording.episodes=0"),
            found(tmp_path, "fast_1", 1, "algorithm.learning_rate=1e-2"),
        ],
        {},
    )
    assert {name: [each.seed for each in members] for name, members in groups.items()} == {
        "plain": [1, 0],
        "fast": [0, 1],
    }
    arms, is_final = arms_of(groups)
    assert is_final
    assert [arm.seeds for arm in arms] == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("override", "is_same"),
    [
        ("checkpoints.keep_last=9", True),
        ("episodes.limit_mb=7", True),
        ("algorithm.stats_window_size=7", True),
        ("evaluation.seed=7", False),
        ("checkpoints.every_timesteps=50_000", False),
    ],
)
def test_what_is_written_makes_no_other_arm(tmp_path: Path, override: str, is_same: bool) -> None:
    runs = [found(tmp_path, "0", 0), found(tmp_path, "1", 1, override)]
    assert (len(grouped(runs, {})) == 1) == is_same


def test_arms_whose_folders_say_nothing_get_different_names(tmp_path: Path) -> None:
    runs = [
        found(tmp_path, "0", 0),
        found(tmp_path, "1", 1),
        found(tmp_path, "a/0", 0, "algorithm.gamma=0.9"),
        found(tmp_path, "a/1", 1, "algorithm.gamma=0.9"),
    ]
    assert list(grouped(runs, {})) == ["0", "0 (2)"]


def test_a_pattern_gathers_runs_of_different_configs(tmp_path: Path) -> None:
    runs = [found(tmp_path, f"x{seed}", seed, f"algorithm.gamma=0.{seed}") for seed in (1, 2)]
    assert list(grouped(runs, {"all": "x*"})) == ["all"]
    with pytest.raises(UsageError, match="none of the folders named matches the pattern"):
        grouped(runs, {"all": "y*"})


def test_where_one_run_is_not_at_its_end_all_count_by_their_newest_evaluation(
    tmp_path: Path,
) -> None:
    runs = [found(tmp_path, "x0", 0, final=0.9), found(tmp_path, "x1", 1, final=None)]
    arms, is_final = arms_of(grouped(runs, {}))
    assert not is_final
    assert [o.score.success_rate for o in arms[0].outcomes if o.score is not None] == [0.8, 0.8]


def test_a_seed_counts_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="seed 3 more than once"):
        arms_of(grouped([found(tmp_path, "x0", 3), found(tmp_path, "x1", 3)], {}))


def test_a_run_that_was_never_evaluated_is_named(tmp_path: Path) -> None:
    write_run(tmp_path / "young", seed=0, final=None, curve=())
    with pytest.raises(UsageError, match="young has no evaluation yet"):
        arms_of(grouped([read_folder(tmp_path / "young")], {}))
