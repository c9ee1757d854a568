"""Arms that are experiments: what a study decides of them, what they come to, what is refused."""

from pathlib import Path

import pytest

from game_rl.config.experiments.experiment import Experiment, dump_experiment, load_experiment
from game_rl.config.experiments.study_config import ExperimentArm, load_study
from game_rl.config.loader import load_config
from game_rl.errors import ConfigError, GameRLError, UsageError
from tests.experiments.study.conftest import with_erl, write_study, write_study_of_experiments


@pytest.fixture
def arms_file(tmp_path: Path) -> Path:
    return write_study_of_experiments(tmp_path / "study")


def arm(arms_file: Path, name: str) -> ExperimentArm:
    found = load_study(arms_file).arms[name]
    assert isinstance(found, ExperimentArm)
    return found


def test_the_study_decides_place_seed_and_executor_and_members_keep_their_file(
    arms_file: Path,
) -> None:
    four, mixed = (
        arm(arms_file, "four").of(6, arms_file.parent / "x"),
        arm(arms_file, "mixed").of(7, Path("y")),
    )
    assert isinstance(four, Experiment)
    assert isinstance(mixed, Experiment)
    for experiment, seed, place in ((four, 6, arms_file.parent / "x"), (mixed, 7, Path("y"))):
        config = experiment.config
        assert (config.seed, config.run_dir, config.cpus_per_member) == (seed, place, 1)
        assert config.executor.model_dump() == {"kind": "local", "parallel": 1}
    assert four.run.env.max_episode_timesteps == 33  # of the arm, over the population's own member
    assert four.run.total_timesteps == 2 * 32 + 16
    assert mixed.run.lake is not None
    assert mixed.run.lake.path == (Path("y") / "lake").absolute()


def test_an_arms_experiment_is_the_one_that_its_saved_file_describes(
    arms_file: Path, tmp_path: Path
) -> None:
    for name in ("four", "mixed"):
        made, path = arm(arms_file, name).of(5, tmp_path / name), tmp_path / f"{name}.yaml"
        path.write_text(dump_experiment(made), encoding="utf-8")
        assert dump_experiment(load_experiment(path, is_saved=True)) == path.read_text(
            encoding="utf-8"
        )


def test_everybody_counts(arms_file: Path) -> None:
    arms = load_study(arms_file).arms
    assert arms["four"].timesteps == 3 * 2 * 32 + 16
    assert arms["mixed"].timesteps == 2 * 2 * 32 + 2 * 16
    assert arms["alone"].timesteps == 192


def test_the_files_of_an_arm_are_its_own_and_its_members_and_its_learners(arms_file: Path) -> None:
    names = {name: {p.name for p in a.files} for name, a in load_study(arms_file).arms.items()}
    assert names == {
        "alone": {"arm.yaml"},
        "four": {"four.yaml", "arm.yaml"},
        "mixed": {"pqn.yaml", "dqn.yaml"},
    }


def test_of_a_population_with_a_learner_both_sorts_of_runs_and_their_files_count(
    arms_file: Path,
) -> None:
    found = arm(with_erl(arms_file), "four")
    assert {path.name for path in found.files} == {"erl.yaml", "pqn.yaml", "learner.yaml"}
    assert [run.algorithm.name for run in found.players] == ["pqn", "dqn"]
    assert found.players[1].env.max_episode_timesteps == 33
    assert found.timesteps == 2 * 2 * 32 + 2 * 16
    # an update of two emulators is 32 timesteps of a member and 2 of the learner
    assert found.rounding_timesteps == 2 * 2 * 32 + 2 * found.players[1].rollout_timesteps


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("members: 3", "members: 4", "4 members x 2 generations x 32 + 16 of the best, trained on"),
        ("members: 3", "members: 4", "= 272 timesteps together, more than budget.timesteps, 208"),
        ("rounds: 2", "rounds: 2\n    mode: live", "trains all its runs at once"),
        (
            "rounds: 2",
            "rounds: 3",
            "2 members x 3 rounds x 32 + 3 rounds x 16 of the learner",
        ),
        ("members: 3", "executor: {parallel: 2}", "members of an arm train one after the other"),
        ("members: 3", "executor: {kind: ray}", "members of an arm train one after the other"),
        ("members: 3", "cpus_per_member: 2", "it is cpus_per_run of the study"),
        ("members: 3", "seed: 2", "every arm has the seeds of the study"),
        ("members: 3", "run_dir: z", "runs are in run_dir of the study"),
        ("max_episode_timesteps: 33}", "n_env: 2}", "study.yaml line 8  env.n_env: unknown key"),
        ("{env: {max_", "{upload: {to: 'file:///x'}, env: {max_", "write member: {upload: null}"),
        ("rounds: 2", "rounds: two", "study.yaml: 1 problem"),
    ],
)
def test_what_cannot_be_an_arm_is_refused_in_words(
    arms_file: Path, old: str, new: str, said: str
) -> None:
    text = arms_file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    arms_file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load_study(arms_file)
    assert said in str(error.value)


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
        ("arm: fast", "arm: quick", "primary.arm: quick is not an arm; the arms are slow, fast"),
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
