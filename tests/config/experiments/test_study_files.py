"""Study files: what they make of their arms, and what they refuse."""

from pathlib import Path

import pytest

from game_rl.config.experiments.study_config import load_study
from game_rl.config.loader import load_config
from game_rl.errors import ConfigError, GameRLError, UsageError
from tests.experiments.study.conftest import write_study


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_study(tmp_path / "study")


def refused(file: Path, old: str, new: str) -> str:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(GameRLError) as error:
        load_study(file)
    return str(error.value)


def test_an_arm_is_the_file_with_what_differs_and_the_budget(file: Path) -> None:
    study = load_study(file)
    slow, fast = study.arms["slow"].run, study.arms["fast"].run
    assert slow.algorithm.model_dump()["learning_rate"] != 1e-2
    assert fast.algorithm.model_dump()["learning_rate"] == 1e-2
    assert fast.env == slow.env
    assert {slow.total_timesteps, fast.total_timesteps} == {192}
    assert {arm.files for arm in study.arms.values()} == {(file.with_name("arm.yaml"),)}


def test_no_arm_ends_early(file: Path) -> None:
    arm = file.with_name("arm.yaml")
    arm.write_text(
        f"{arm.read_text(encoding='utf-8')}stop_when: {{success_rate: 0.95}}\n", encoding="utf-8"
    )
    assert load_config(arm).stop_when is not None
    assert all(study_arm.run.stop_when is None for study_arm in load_study(file).arms.values())


def test_an_arm_that_learns_from_others_may_play_less_than_the_budget(file: Path) -> None:
    file.write_text(
        file.read_text(encoding="utf-8").replace(
            "slow: {config", "slow: {total_timesteps: 96, config"
        ),
        encoding="utf-8",
    )
    study = load_study(file)
    assert [arm.timesteps for arm in study.arms.values()] == [96, 192]


@pytest.mark.parametrize(("line", "kind"), [("", "run"), ("kind: mixture", "mixture")])
def test_what_is_no_study_is_refused_for_that_alone(file: Path, line: str, kind: str) -> None:
    said = refused(file, "kind: study", line)
    assert f"is the config of a {kind}, not a study" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("arm: fast", "arm: quick", "primary.arm: quick is no arm; the arms are slow, fast"),
        ("against: slow", "against: fast", "fast is compared with itself"),
        ("[5, 6, 7, 8, 9, 10]", "[5, 6, 7, 7]", "7 is named twice"),
        ("[5, 6, 7, 8, 9, 10]", "[5, 6, 7, 8, 9]", "5 seeds can never give a p below 0.0625"),
        ("slow: {config", "slow: {seed: 3, config", "every arm has the seeds of the study"),
        ("slow: {config", "slow: {stop_when: {hours: 1}, config", "every run plays all its"),
        ("slow: {config", "slow: {run_dir: x, config", "runs are in run_dir"),
        ("slow: {config", "slow: {kind: population, config", "config names has its kind"),
        ("slow: {config: arm.yaml", "slow: {config: study.yaml", "a study cannot be an arm"),
        ("slow: {config: arm.yaml", "slow: {kind: tournament", "found tournament; allowed: pop"),
        ("slow: {config", "slow: {total_timesteps: 999, config", "more than budget.timesteps"),
        ("slow: {config: arm.yaml", "slow: {config: arms.yaml", "did you mean"),
        ("learning_rate", "learning_rat", "study.yaml line 7  algorithm.learning_rat: unknown key"),
        ("budget:", "total_timesteps: 5\nbudget:", "write budget: {timesteps: ...}"),
        ("metric:", "question: a\nmetric:", "question"),
    ],
)
def test_what_cannot_work_is_refused_in_words(file: Path, old: str, new: str, said: str) -> None:
    assert said in refused(file, old, new)


def test_results_do_not_live_where_runs_are_deleted(file: Path) -> None:
    place = file.parent
    said = refused(file, f"results: {place}/results", f"results: {place}/runs")
    assert "is run_dir, whose content may be deleted" in said


def test_nothing_that_changes_a_result_is_set_on_the_command_line(file: Path) -> None:
    assert load_study(file, ["executor.parallel=1"]).config.executor.parallel == 1
    with pytest.raises(UsageError, match="a study is what its file says"):
        load_study(file, ["test.episodes=3"])
    with pytest.raises(ConfigError):
        load_study(file, ["executor.parallel=0"])
