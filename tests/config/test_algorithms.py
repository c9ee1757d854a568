import inspect
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3 import DQN

from game_rl.config.algorithms import (
    DQNConfig,
    ExplorationConfig,
    PPOConfig,
    PQNConfig,
    RestartConfig,
)
from game_rl.config.experiments.mixture_config import MixtureConfig
from game_rl.config.experiments.population_config import PopulationConfig
from game_rl.config.experiments.study_config import StudyConfig
from game_rl.config.loader import dump_config, load_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import StrictModel
from game_rl.errors import ConfigError

HEAD = {"game": "duel", "total_timesteps": 1_000_000, "run_dir": "runs/x"}


@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [
        ({}, PPOConfig),
        ({"n_steps": 64}, PPOConfig),
        ({"name": "ppo"}, PPOConfig),
        ({"name": "dqn"}, DQNConfig),
        ({"name": "pqn"}, PQNConfig),
    ],
)
def test_the_name_decides_and_a_file_that_was_written_says_the_same(
    algorithm: dict[str, object], kind: type[object], tmp_path: Path
) -> None:
    config = RunConfig.model_validate(HEAD | {"algorithm": algorithm})
    assert type(config.algorithm) is kind
    path = tmp_path / "run.yaml"
    path.write_text(dump_config(config), encoding="utf-8")
    assert load_config(path) == config
    assert (
        yaml.safe_load(path.read_text(encoding="utf-8"))["algorithm"]["name"]
        == config.algorithm.name
    )


@pytest.mark.parametrize(("name", "end"), [("pqn", 0.001), ("dqn", 0.05)])
@pytest.mark.parametrize("is_override", [True, False])
def test_a_section_in_part_keeps_the_other_defaults_of_its_algorithm(
    name: str, end: float, is_override: bool, tmp_path: Path
) -> None:
    algorithm = {"name": name} if is_override else {"name": name, "exploration": {"start": 0.9}}
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(HEAD | {"algorithm": algorithm}), encoding="utf-8")
    config = load_config(path, ["algorithm.exploration.start=0.9"] if is_override else [])
    assert isinstance(config.algorithm, DQNConfig | PQNConfig)
    assert config.algorithm.exploration.model_dump() == {
        "start": 0.9, "end": end, "fraction": 0.1, "restarts": ()
    }  # fmt: skip


@pytest.mark.parametrize("top", [RunConfig, PopulationConfig, MixtureConfig, StudyConfig])
def test_a_section_that_is_left_out_is_as_one_that_is_empty(top: type[StrictModel]) -> None:
    for model in sections(top):
        for name, field in model.model_fields.items():
            default = field.get_default(call_default_factory=True)
            if isinstance(default, StrictModel):
                assert default == type(default)(), f"{model.__name__}.{name}"


def sections(top: type[StrictModel]) -> set[type[StrictModel]]:
    """Return the model and all models that its fields may hold."""
    found: set[type[StrictModel]] = set()
    todo: list[Any] = [top]
    while todo:
        one = todo.pop()
        todo += get_args(one)
        if isinstance(one, type) and issubclass(one, StrictModel) and one not in found:
            found.add(one)
            todo += [field.annotation for field in one.model_fields.values()]
    return found


def test_what_dqn_shares_with_sb3_has_its_names() -> None:
    ours = set(DQNConfig.model_fields) - {
        "name", "replay", "n_step", "double_q", "exploration", "precision", "layer_norm",
        "teacher", "learn_from", "network", "reward",
    }  # fmt: skip
    assert ours <= set(inspect.signature(DQN).parameters)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{n_steps: 96, batch_size: 64, memory: {sequence: 64}}",
            "algorithm.memory.sequence: 64 does not divide n_steps, 96, and only whole sequences "
            "are learned; use 48 or 96, or another n_steps",
        ),
        (
            "{n_steps: 64, batch_size: 48, memory: {sequence: 32}}",
            "algorithm.memory.sequence: 32 does not divide batch_size, 48, and only whole "
            "sequences are learned; use 24 or 48, or another batch_size",
        ),
        (
            "{n_steps: 64, memory: {}, learn_from: {played: {episodes: [p.json]}}}",
            "algorithm.memory: an agent with a memory cannot learn from played episodes, of which "
            "single timesteps are drawn; remove memory or learn_from",
        ),
        ("{memory: {}, teacher: {run: runs/x}}", "algorithm.teacher"),
        ("{name: dqn, memory: {}}", "algorithm.memory"),
        ("{name: pqn, memory: {}}", "algorithm.memory"),
        ("{name: dqn, curiosity: {}}", "algorithm.curiosity"),
        ("{name: pqn, curiosity: {}}", "algorithm.curiosity"),
        ("{curiosity: {gamma: 1}}", "algorithm.curiosity.gamma"),
        ("{curiosity: {coef: 0}}", "algorithm.curiosity.coef"),
        ("{curiosity: {kind: icm}}", "algorithm.curiosity.kind"),
    ],
)
def test_what_does_not_go_with_a_memory_or_curiosity_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "run.yaml"
    head = "game: duel\ntotal_timesteps: 100_000\nrun_dir: runs/x\n"
    file.write_text(f"{head}algorithm: {text}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(file, [])
    assert message in " ".join(str(caught.value).split())


@given(n_envs=st.integers(1, 64), n_steps=st.integers(1, 64), batch=st.integers(1, 512))
def test_a_pqn_config_is_valid_if_batches_divide_the_rollout(
    n_envs: int, n_steps: int, batch: int
) -> None:
    config = PQNConfig(name="pqn", n_steps=n_steps, batch_size=batch)
    problems = list(config.problems_in_run(n_envs=n_envs, total_timesteps=10**6))
    assert (problems == []) == ((n_envs * n_steps) % batch == 0)


@given(
    n_envs=st.integers(1, 8),
    n_step=st.integers(1, 5),
    batch=st.integers(1, 64),
    capacity=st.integers(1, 100),
    starts=st.integers(0, 200),
)
def test_a_dqn_config_is_valid_if_there_is_enough_to_learn_from(
    n_envs: int, n_step: int, batch: int, capacity: int, starts: int
) -> None:
    config = DQNConfig.model_validate(
        {
            "name": "dqn",
            "replay": {"capacity": capacity},
            "n_step": n_step,
            "batch_size": batch,
            "learning_starts": starts,
        }
    )
    problems = list(config.problems_in_run(n_envs=n_envs, total_timesteps=100))
    enough = batch <= capacity and capacity // n_envs >= n_step + 1 and starts <= 100
    assert (problems == []) == enough


@given(
    restarts=st.lists(
        st.builds(
            RestartConfig, at=st.integers(1, 60), start=st.just(0.5), over=st.integers(1, 30)
        ),
        max_size=4,
    )
)
def test_restarts_are_valid_if_each_is_in_the_run_and_after_the_one_before(
    restarts: list[RestartConfig],
) -> None:
    config = ExplorationConfig(restarts=tuple(restarts))
    problems = list(config.problems_in_run(total_timesteps=50))
    in_force = [timestep for each in restarts for timestep in range(each.at, each.at + each.over)]
    is_good = in_force == sorted(set(in_force)) and all(each.at < 50 for each in restarts)
    assert (problems == []) == is_good
    assert all(problem.key[1:3] == ("exploration", "restarts") for problem in problems)
