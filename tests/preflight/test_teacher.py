"""What a teacher adds to a forecast: its weights, its copy on the disk, the episodes at the end."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from game_rl.algorithms.policies import PQNPolicy
from game_rl.preflight.footprint import estimate
from game_rl.preflight.workload import MeasuredSpeed, forecast_speed
from tests.preflight.conftest import FACTS, make_config

DQN: dict[str, Any] = {"name": "dqn", "layer_norm": "channels"}
TAUGHT = DQN | {"teacher": {"run": "runs/pqn"}}
MEASURED = MeasuredSpeed(
    inference_s=0.001,
    emulation_s=0.001,
    gradient_step_s=0.01,
    evaluation_vec_step_s=0.003,
    checkpoint_s=0.1,
    start_s=1.0,
)


def teacher_weights() -> list[int]:
    """The numbers in each tensor of a real one."""
    space = spaces.Box(0, 255, (4, 72, 80), np.uint8)
    policy = PQNPolicy(space, spaces.Discrete(9), lambda _: 0.0)
    return [weight.numel() for weight in policy.parameters()]


@pytest.mark.parametrize("phase", ["collect", "update"])
def test_a_teachers_weights_are_in_memory(phase: str) -> None:
    sizes = []
    for algorithm in (DQN, TAUGHT):
        ram = estimate(make_config(algorithm=algorithm), FACTS).ram
        sizes.append(next(p.bytes for p in ram.phases if p.name == phase))
    weights = teacher_weights()
    prepared = max(weights)  # the largest layer, kept as it is multiplied
    assert sizes[1] - sizes[0] == 4 * (sum(weights) + prepared)


def test_a_teacher_is_on_the_gpu_where_the_network_is() -> None:
    facts = replace(FACTS, uses_gpu=True)
    found = [
        estimate(make_config(algorithm=algorithm, device="cuda"), facts)
        for algorithm in (DQN, TAUGHT)
    ]
    assert found[0].vram is not None
    assert found[1].vram is not None
    assert found[1].vram.peak.bytes - found[0].vram.peak.bytes >= 4 * sum(teacher_weights())
    assert found[1].ram.peak.bytes == found[0].ram.peak.bytes


def test_its_copy_is_on_the_disk_unless_it_can_be_linked(tmp_path: Path) -> None:
    linked = DQN | {"teacher": {"run": str(tmp_path)}}
    plain, copied, here = (
        estimate(make_config(algorithm=a, run_dir=str(tmp_path / "run")), FACTS).disk
        for a in (DQN, TAUGHT, linked)
    )
    assert copied.bytes - plain.bytes >= 4 * sum(teacher_weights())
    assert here.bytes == plain.bytes


@pytest.mark.parametrize(("final_episodes", "episodes"), [(100, 200), (300, 300)])
def test_the_episodes_at_the_end_are_in_the_forecast(final_episodes: int, episodes: int) -> None:
    seconds = []
    for algorithm in (DQN, TAUGHT, TAUGHT | {"teacher": {"run": "a", "keep_if_better": False}}):
        config = make_config(
            algorithm=algorithm, evaluation={"final_episodes": final_episodes, "n_envs": 4}
        )
        training = estimate(config, FACTS).training
        forecast = forecast_speed(config, training, MEASURED, episode_timesteps=50)
        seconds.append(forecast.seconds["evaluation"])
    both = 2 * (episodes // 4) * 50 * MEASURED.evaluation_vec_step_s
    assert seconds[1] - seconds[0] == pytest.approx(both)
    assert seconds[2] == seconds[0]
