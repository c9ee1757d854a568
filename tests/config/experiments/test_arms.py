"""Arms that are experiments: what a study decides of them, what they come to, what is refused."""

from pathlib import Path

import pytest

from game_rl.config.experiments.experiment import dump_experiment, load_experiment
from game_rl.config.experiments.mixture_files import Mixture
from game_rl.config.experiments.population_files import Population
from game_rl.config.experiments.study_config import ExperimentArm, load_study
from game_rl.errors import ConfigError
from tests.experiments.study.conftest import with_erl, write_study_of_experiments


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_study_of_experiments(tmp_path / "study")


def arm(file: Path, name: str) -> ExperimentArm:
    found = load_study(file).arms[name]
    assert isinstance(found, ExperimentArm)
    return found


def test_the_study_decides_place_seed_and_executor_and_members_keep_their_file(file: Path) -> None:
    four, mixed = arm(file, "four").of(6, file.parent / "x"), arm(file, "mixed").of(7, Path("y"))
    assert isinstance(four, Population)
    assert isinstance(mixed, Mixture)
    for experiment, seed, place in ((four, 6, file.parent / "x"), (mixed, 7, Path("y"))):
        config = experiment.config
        assert (config.seed, config.run_dir, config.cpus_per_member) == (seed, place, 1)
        assert config.executor.model_dump() == {"kind": "local", "parallel": 1}
    assert four.run.env.max_episode_timesteps == 33  # of the arm, over the population's own member
    assert four.run.total_timesteps == 2 * 32 + 16
    assert mixed.run.lake is not None
    assert mixed.run.lake.path == (Path("y") / "lake").absolute()


def test_an_arms_experiment_is_the_one_that_its_saved_file_describes(
    file: Path, tmp_path: Path
) -> None:
    for name in ("four", "mixed"):
        made, path = arm(file, name).of(5, tmp_path / name), tmp_path / f"{name}.yaml"
        path.write_text(dump_experiment(made), encoding="utf-8")
        assert dump_experiment(load_experiment(path, is_saved=True)) == path.read_text(
            encoding="utf-8"
        )


def test_everybody_counts(file: Path) -> None:
    arms = load_study(file).arms
    assert arms["four"].timesteps == 3 * 2 * 32 + 16
    assert arms["mixed"].timesteps == 2 * 2 * 32 + 2 * 16
    assert arms["alone"].timesteps == 192


def test_the_files_of_an_arm_are_its_own_and_its_members_and_its_learners(file: Path) -> None:
    names = {name: {p.name for p in a.files} for name, a in load_study(file).arms.items()}
    assert names == {
        "alone": {"arm.yaml"},
        "four": {"four.yaml", "arm.yaml"},
        "mixed": {"pqn.yaml", "dqn.yaml"},
    }


def test_of_a_population_with_a_learner_both_sorts_of_runs_and_their_files_count(
    file: Path,
) -> None:
    found = arm(with_erl(file), "four")
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
    file: Path, old: str, new: str, said: str
) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load_study(file)
    assert said in str(error.value)
