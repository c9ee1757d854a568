"""How long training stands still for a checkpoint, beside SB3's `model.save`.

    python -m benchmarks.checkpoint_stall [--n-envs 16] [--repeats 30]

A real PPO (NatureCNN, half-size grey x 4) with real emulators of the bundled game. Between two
checkpoints it plays a rollout and learns from it. Ours saves weights, optimiser, random numbers,
curves and every emulator, syncs all to disk, reads it back and deletes the one before the last
three; SB3's saves weights and optimiser without syncing. The share is of the time that the default
interval of the config takes at the speed measured here.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median

import numpy as np
from stable_baselines3 import PPO

from game_rl.algorithms.make_algorithm import make_algorithm
from game_rl.checkpoints.checkpoint import Checkpoint, CheckpointState
from game_rl.checkpoints.store import CheckpointStore
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_frame_format
from game_rl.games.definition import load_game
from game_rl.run_dir import RunDir
from game_rl.system.machine import effective_cpus
from game_rl.system.threads import torch_threads
from game_rl.vec_env.make_vec_env import make_training_env
from game_rl.vec_env.saved_vec_env import save_vec_env

_CONFIG = Path(__file__).parents[1] / "configs" / "duel_ppo.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-envs", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=30)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="game_rl_", dir=".") as folder:  # a disk, no tmpfs
        overrides = [f"env.n_envs={arguments.n_envs}", f"run_dir={folder}/run"]
        config = load_config(_CONFIG, overrides)
        measure(config, arguments.repeats)


def measure(config: RunConfig, repeats: int) -> None:
    game = load_game(config.game)
    run_dir = RunDir(config.run_dir)
    run_dir.root.mkdir()
    store = CheckpointStore(run_dir, keep_last=3, keep_every_timesteps=None)
    packing = make_frame_format(config.env.observation, game).packing
    parts: dict[str, list[float]] = {"emulators": [], "whole": [], "SB3's model.save": []}
    rates: list[float] = []
    with (
        torch_threads(effective_cpus()),
        closing(make_training_env(config.env, game, seed=0)) as vec_env,
    ):
        model = make_algorithm(config, vec_env, run_dir, packing=packing, stream="stall")
        assert isinstance(model, PPO)
        for _ in range(repeats + 1):
            started = time.perf_counter()
            model.learn(config.rollout_timesteps, reset_num_timesteps=False)
            rates.append(config.rollout_timesteps / (time.perf_counter() - started))
            started = time.perf_counter()
            assert isinstance(model._last_obs, np.ndarray)
            envs = save_vec_env(vec_env, model._last_obs)
            saved_envs = time.perf_counter()
            path = store.save(model, _state(config, game.rom.sha256, model), envs)
            parts["emulators"].append(saved_envs - started)
            parts["whole"].append(time.perf_counter() - started)
            started = time.perf_counter()
            model.save(run_dir.root / "sb3.zip")
            parts["SB3's model.save"].append(time.perf_counter() - started)
        model.logger.close()
    n_bytes = Checkpoint(path).nbytes
    print(f"{config.env.n_envs} emulators, {n_bytes / 1e6:.1f} MB; {repeats} checkpoints")
    for name, seconds in parts.items():
        print(f"{name:<18}{_spread(seconds[1:])}")
    interval_s = config.checkpoints.every_timesteps / median(rates)
    share = median(parts["whole"][1:]) / interval_s
    print(f"{share:.2%} of the time at {config.checkpoints.every_timesteps:,} timesteps apart")


def _spread(seconds: Sequence[float]) -> str:
    low, high = np.percentile(seconds, (10, 90))
    return f"median {median(seconds) * 1e3:6.0f} ms   ({low * 1e3:.0f} to {high * 1e3:.0f})"


def _state(config: RunConfig, rom_sha256: str, model: PPO) -> CheckpointState:
    return CheckpointState(
        num_timesteps=model.num_timesteps,
        n_updates=model._n_updates,
        schedule_timesteps=config.total_timesteps,
        best=None,
        rom_sha256=rom_sha256,
        config=config.model_dump(mode="json"),
        game={},
        versions={},
        computing={},
    )


if __name__ == "__main__":
    main()
