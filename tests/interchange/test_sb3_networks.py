"""Networks in zips of Stable-Baselines3: its own where it has them, ours where it does not."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import DummyVecEnv

from game_rl.algorithms.make_algorithm import make_policy
from game_rl.checkpoints.model_state import load_module_tensors, module_tensors
from game_rl.config.schema import RunConfig
from game_rl.interchange.sb3_zip import needed_package, plain_model, write_zip
from tests.algorithms.observations import (
    ACTIONS,
    AS_SB3,
    EVERYTHING,
    SCREENS,
    VECTORS,
    dict_space,
    drawn,
)

PICTURES = spaces.Box(0, 255, (2, *SCREENS.shape[1:]), np.uint8)
PLAY = """\
import sys
sys.modules["game_rl"] = None  # as where it is not installed
import numpy as np
from stable_baselines3 import DQN, PPO
for name in sys.argv[1:]:
    model = {"ppo": PPO, "dqn": DQN}[name[:3]].load(name + ".zip", device="cpu")
    seen = dict(np.load(name + ".npz"))
    actions = model.predict(seen["alone"] if "alone" in seen else seen, deterministic=True)[0]
    np.save(name + ".npy", actions)
"""
OWN = """\
import torch
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

class Mean(BaseFeaturesExtractor):
    def __init__(self, observation_space, n=3):
        super().__init__(observation_space, n)
        self.layer = torch.nn.Linear(observation_space.shape[0], n)

    def forward(self, observations):
        return self.layer(observations.mean(dim=(2, 3)))
"""


class Spaces(gymnasium.Env[Any, Any]):
    """An env that has spaces and plays nothing."""

    action_space = ACTIONS

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.observation_space = space


def config_of(algorithm: str, network: object) -> RunConfig:
    section = {"name": algorithm, **({} if network is None else {"network": network})}
    head = {"game": "duel", "total_timesteps": 100_000, "run_dir": "runs/x"}
    return RunConfig.model_validate(head | {"algorithm": section})


def pictures(n: int) -> NDArray[np.uint8]:
    """Pictures at random, some of them darker than others."""
    rng = np.random.default_rng(2)
    light = rng.random((n, 1, 1, 1))
    return (rng.random((n, *PICTURES.shape)) * light * 255).astype(np.uint8)


def exported(name: str, algorithm: str, network: object, space: spaces.Space[Any]) -> Any:
    """Save our policy as NAME.zip of SB3 and observations in NAME.npz; return our actions."""
    config = config_of(algorithm, network)
    ours = make_policy(config.algorithm, space, ACTIONS)
    ours.set_training_mode(False)
    observations: Any = pictures(200)
    if isinstance(space, spaces.Dict):
        form = next(each for each in (AS_SB3, VECTORS, EVERYTHING) if each.space == space)
        observations = drawn(form, 200, seed=2)
    actions = varied_actions(ours, observations)
    model = plain_model(config, DummyVecEnv([lambda: Spaces(space)]))
    load_module_tensors(model.policy, module_tensors(ours), "ours")
    write_zip(model, Path(f"{name}.zip"))
    seen = observations if isinstance(observations, dict) else {"alone": observations}
    np.savez(f"{name}.npz", **seen)
    return actions, model, observations


def varied_actions(policy: BasePolicy, observations: Any) -> NDArray[Any]:
    """Draw weights with which the policy does not always do the same, and return its actions."""
    torch.manual_seed(1)
    for _ in range(100):
        for parameter in policy.parameters():
            parameter.data.normal_(std=0.1 if parameter.ndim > 1 else 0.01)
        policy.set_training_mode(False)  # discards weights that are kept for small batches
        actions = policy.predict(observations, deterministic=True)[0]
        if len(set(actions.tolist())) > 1:
            return actions
    raise AssertionError("always the same action")


@pytest.mark.slow
def test_sb3_alone_plays_what_it_has_a_network_for_and_a_persons_own_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_net.py").write_text(OWN, encoding="utf-8")
    cases: list[tuple[object, spaces.Space[Any]]] = [
        (None, dict_space(AS_SB3)),
        ({"hidden": [7], "features": 24}, dict_space(AS_SB3)),
        (None, dict_space(VECTORS)),
        ({"hidden": [8, 8], "features": 40}, PICTURES),
        ({"my_net:Mean": {"n": 5}}, PICTURES),
    ]
    expected = {}
    for algorithm in ("ppo", "dqn"):
        for number, (network, space) in enumerate(cases):
            name = f"{algorithm}{number}"
            expected[name], model, _ = exported(name, algorithm, network, space)
            assert needed_package(model) is None
    Path("my_net.py").unlink()
    subprocess.run([sys.executable, "-c", PLAY, *expected], check=True)
    for name, actions in expected.items():
        np.testing.assert_array_equal(np.load(f"{name}.npy"), actions, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
@pytest.mark.parametrize(
    ("network", "space"),
    [
        (None, dict_space(EVERYTHING)),
        ({"screen": "impala", "features": 16}, PICTURES),
        ({"screen": "small", "hidden": [8], "features": 16}, dict_space(AS_SB3)),
    ],
)
def test_sb3_plays_our_networks_where_game_rl_is_installed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    algorithm: str,
    network: object,
    space: spaces.Space[Any],
) -> None:
    monkeypatch.chdir(tmp_path)
    expected, model, observations = exported("one", algorithm, network, space)
    assert needed_package(model) == "game_rl"
    loaded = type(model).load("one.zip", device="cpu")
    actions = loaded.predict(observations, deterministic=True)[0]
    np.testing.assert_array_equal(actions, expected)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_sb3s_usual_network_is_not_named_in_the_zip(algorithm: str) -> None:
    model = plain_model(config_of(algorithm, None), DummyVecEnv([lambda: Spaces(PICTURES)]))
    assert model.policy_kwargs == {}
