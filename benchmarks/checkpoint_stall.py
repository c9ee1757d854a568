"""The time that training pauses for a checkpoint, compared with SB3's `model.save`.

    python -m benchmarks.checkpoint_stall [--n-envs 16] [--repeats 30]

A real PPO (NatureCNN, half-size grey x 4) runs with real emulators of the bundled game. Between two
checkpoints it plays a rollout and learns from it. Our checkpoint saves weights, optimiser, random
numbers, curves and every emulator, syncs all files to disk, reads them back and deletes the fourth
newest checkpoint. SB3 saves weights and optimiser without syncing. The printed share is relative to
the time between two checkpoints, at the default interval and the speed measured here.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from game_rl.config.loader import load_config
from game_rl.config.schema import CheckpointsConfig, RunConfig
from game_rl.events import CheckpointSaved
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.training.session import TrainingSession, training_process

_EVERY_TIMESTEPS = CheckpointsConfig().every_timesteps
_NEVER = 10**9
_CONFIG = Path(__file__).parents[1] / "configs" / "duel_ppo.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-envs", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=30)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="game_rl_", dir=".") as folder:  # a disk, not a tmpfs
        overrides = [
            f"env.n_envs={arguments.n_envs}",
            f"run_dir={folder}/run",
            f"total_timesteps={_NEVER}",
            f"evaluation.every_timesteps={_NEVER}",
            f"checkpoints.every_timesteps={_NEVER}",
        ]
        config = load_config(_CONFIG, overrides)
        measure(config, arguments.repeats)


def measure(config: RunConfig, repeats: int) -> None:
    run_dir = RunDir(config.run_dir)
    run_dir.root.mkdir()
    saved: list[CheckpointSaved] = []
    events = EventLog(
        listeners=[lambda event: saved.append(event) if event.event == "checkpoint_saved" else None]
    )
    sb3_s: list[float] = []
    rates: list[float] = []
    game = load_game(config.game)
    with training_process(), TrainingSession(config, game, run_dir, events=events) as session:
        for _ in range(repeats + 1):
            started, begun = time.perf_counter(), session.num_timesteps
            session.learn_until(begun + config.rollout_timesteps)
            rates.append((session.num_timesteps - begun) / (time.perf_counter() - started))
            session.save()
            started = time.perf_counter()
            session.model.save(run_dir.root / "sb3.zip")
            sb3_s.append(time.perf_counter() - started)
    ours_s = [event.seconds for event in saved]
    print(f"{config.env.n_envs} emulators, {saved[-1].n_bytes / 1e6:.1f} MB; {repeats} checkpoints")
    print(f"{'ours':<18}{_spread(ours_s[1:])}")
    print(f"{'SB3 model.save':<18}{_spread(sb3_s[1:])}")
    interval_s = _EVERY_TIMESTEPS / median(rates)
    share = median(ours_s[1:]) / interval_s
    print(f"{share:.2%} of the time at {_EVERY_TIMESTEPS:,} timesteps apart")


def _spread(seconds: Sequence[float]) -> str:
    low, high = np.percentile(seconds, (10, 90))
    return f"median {median(seconds) * 1e3:6.0f} ms   ({low * 1e3:.0f} to {high * 1e3:.0f})"


if __name__ == "__main__":
    main()
