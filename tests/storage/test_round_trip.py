"""A run that trains, is uploaded, is fetched elsewhere and goes on."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from game_rl.events import read_events
from game_rl.run_dir import RunDir
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.remote import stored_runs

CONFIG = """\
game: duel
total_timesteps: 256
run_dir: {run_dir}
device: cpu
env: {{n_envs: 2, n_workers: 1, frame_skip: 8, max_episode_timesteps: 25, start_states: [level_1]}}
algorithm: {algorithm}
lake: {lake}
evaluation: {{every_timesteps: 64, episodes: 2, final_episodes: 2, n_envs: 2}}
checkpoints: {{every_timesteps: 64, keep_last: 1}}
recording: {{episodes: 1}}
upload: {upload}
"""
PPO = "{n_steps: 16, batch_size: 16, n_epochs: 1}"
DQN = (
    "{name: dqn, replay: {capacity: 256}, learning_starts: 64, train_freq: 8, gradient_steps: 2, "
    "batch_size: 32, target_update_interval: 64}"
)
COMPARED = ("policy.safetensors", "optimizer.safetensors", "arrays.safetensors")


def game_rl(*arguments: str, code: int = 0) -> str:
    """What the command prints, in a process of its own as a user's."""
    ended = subprocess.run(
        [sys.executable, "-m", "game_rl", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"COLUMNS": "1000"},
        check=False,
    )
    assert ended.returncode == code, ended.stdout
    return ended.stdout


def write_config(
    run_dir: Path, *, upload: str = "null", algorithm: str = PPO, lake: str = "null"
) -> str:
    path = run_dir.with_suffix(".yaml")
    path.write_text(CONFIG.format(run_dir=run_dir, upload=upload, algorithm=algorithm, lake=lake))
    return str(path)


def hashes(run_dir: Path, timesteps: int) -> dict[str, str]:
    """Of what must be the same, bit for bit."""
    folder = RunDir(run_dir).checkpoint(timesteps)
    found = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in COMPARED}
    return found | {"eval.csv": (run_dir / "eval.csv").read_text()}


@pytest.mark.slow  # trains twice, in seven processes
@pytest.mark.parametrize(("algorithm", "lake"), [(PPO, "null"), (DQN, "{}")], ids=["ppo", "dqn"])
def test_a_run_that_is_fetched_elsewhere_goes_on_as_the_one_that_stayed(
    tmp_path: Path, address: str, algorithm: str, lake: str
) -> None:
    stayed, elsewhere = tmp_path / "stayed", tmp_path / "elsewhere"
    config = write_config(stayed, upload=f"{{to: '{address}'}}", algorithm=algorithm, lake=lake)
    printed = game_rl("train", "--config", config, "--until", "128")
    assert "✓ checkpoint 128 uploaded" in printed
    kept = tmp_path / "kept"
    stayed.rename(kept)  # the machine is gone

    runs = stored_runs(ObjectStore(address))
    (run,) = runs
    url = f"{address}/runs/{run}"
    game_rl("train", "--resume", url, "--set", f"run_dir={elsewhere}")
    game_rl("train", "--resume", str(kept), "--set", "upload=null")

    assert hashes(elsewhere, 256) == hashes(kept, 256)
    assert any(event.event == "uploaded" for event in read_events(RunDir(elsewhere)))
    assert 256 in stored_runs(ObjectStore(address))[run]
    assert "every byte is as it was written" in game_rl("remote", "verify", address)
