"""A training on a GPU, for machines that have one."""

import json
from pathlib import Path

import pytest

from game_rl.cli.main import main

_CONFIG = """\
game: duel
total_timesteps: 512
run_dir: {run_dir}
device: cuda
env: {{n_envs: 4, max_episode_timesteps: 50}}
algorithm: {algorithm}
evaluation: {{every_timesteps: 512, episodes: 2, final_episodes: 2}}
checkpoints: {{every_timesteps: 256}}
recording: {{episodes: 0}}
"""


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize(
    "algorithm",
    [
        "n_steps: 64, batch_size: 64",
        "name: pqn, n_steps: 64, batch_size: 64",
        "name: dqn, learning_starts: 128, batch_size: 32, replay: {capacity: 500, device: cuda}",
    ],
    ids=["ppo", "pqn", "dqn"],
)
def test_a_training_on_a_gpu_comes_to_its_end(
    algorithm: str, precision: str, tmp_path: Path
) -> None:
    run_dir, config = tmp_path / "run", tmp_path / "run.yaml"
    section = f"{{{algorithm}, precision: {precision}}}"
    config.write_text(_CONFIG.format(run_dir=run_dir, algorithm=section), encoding="utf-8")
    assert main(["train", str(config)]) == 0
    footprint = json.loads((run_dir / "footprint.json").read_text(encoding="utf-8"))
    assert footprint["vram_reserved_bytes"]["measured"] > 0
