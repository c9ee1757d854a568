"""The bytes of a gradient step against torch's own account of a training's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor

from game_rl.algorithms.automatic import resolved_on
from game_rl.algorithms.make_algorithm import make_algorithm
from game_rl.preflight.memory import frame_format_of, gradient_step_bytes, network_of, together
from game_rl.run_dir import RunDir
from game_rl.system.placement import Hardware
from game_rl.system.threads import torch_threads
from tests.precisions import PRECISIONS
from tests.preflight.conftest import FACTS, make_config
from tests.preflight.torch_account import peak_of_tensors
from tests.tiny_env import TinyEnv

FRAME = (1, 72, 80)
N_ENVS, BATCH = 16, 512
ROLLOUT = {"n_steps": BATCH // N_ENVS, "n_epochs": 1, "batch_size": BATCH}
REPLAY = {"batch_size": BATCH, "learning_starts": BATCH, "replay": {"capacity": 2 * BATCH}}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo": {"name": "ppo", "micro_batch_size": None, **ROLLOUT},
    "ppo, auto": {"name": "ppo", "micro_batch_size": "auto", **ROLLOUT},
    "pqn": {"name": "pqn", "layer_norm": "none", **ROLLOUT},
    "pqn, channels": {"name": "pqn", "layer_norm": "channels", **ROLLOUT},
    "pqn, picture": {"name": "pqn", "layer_norm": "picture", **ROLLOUT},
    "dqn": {"name": "dqn", **REPLAY},
    "dqn, channels": {"name": "dqn", "layer_norm": "channels", **REPLAY},
    "dqn, picture": {"name": "dqn", "layer_norm": "picture", **REPLAY},
    "dqn, double_q": {"name": "dqn", "layer_norm": "channels", "double_q": True, **REPLAY},
    "dqn, n_step 3": {"name": "dqn", "n_step": 3, **REPLAY},
}
FAST = ("ppo, auto", "pqn, channels")  # others run with the slow tests


class Dark(TinyEnv):
    observation_space = spaces.Box(0, 255, FRAME, np.uint8)

    def _frame(self) -> NDArray[np.uint8]:
        return np.zeros(FRAME, np.uint8)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "algorithm",
    [
        pytest.param(values, marks=() if name in FAST else pytest.mark.slow, id=name)
        for name, values in ALGORITHMS.items()
    ],
)
def test_a_trainings_gradient_step_is_what_torch_allocates(
    algorithm: dict[str, Any], precision: str, tmp_path: Path
) -> None:
    config = make_config(
        algorithm=algorithm | {"precision": precision},
        env__n_envs=N_ENVS,
        device="cpu",
    )
    facts = replace(FACTS, cpus=1, uses_bf16=precision == "bf16", n_actions=2)
    predicted = gradient_step_bytes(config, facts)
    hardware = Hardware(has_gpu=False, cpu_has_bf16=False, cpus=1)
    config = resolved_on(config, (4, 72, 80), hardware)
    assert gradient_step_bytes(config, facts) == predicted
    assert network_of(config, facts).observation == 4 * 72 * 80
    stacked = VecFrameStack(DummyVecEnv([Dark] * N_ENVS), 4, channels_order="first")
    model = make_algorithm(
        config,
        VecMonitor(stacked),
        RunDir(tmp_path),
        packing=frame_format_of(config, facts).packing,
        stream="training",
    )
    arguments = (1, BATCH) if algorithm["name"] == "dqn" else ()  # gradient steps; samples in each
    with torch_threads(1):
        model.learn(2 * BATCH)
        model.policy.optimizer.zero_grad()  # what was there before is none of the step's
        model.policy.train()
        found = peak_of_tensors(lambda: model.train(*arguments))  # type: ignore[attr-defined]
    # bf16 gradients take the place of their weights; parts leave the sum of those before, which
    # the estimate counts among the holes between blocks
    n_gradients = (0 if facts.uses_bf16 else 1) + (together(config, facts) < BATCH)
    gradients = n_gradients * network_of(config, facts).weights_bytes
    assert found == pytest.approx(gradient_step_bytes(config, facts) + gradients, rel=0.01)
