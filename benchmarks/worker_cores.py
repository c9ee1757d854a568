"""Rollouts with the workers on all cores and on all but one, between which `WorkerCores` chooses.

    python -m benchmarks.worker_cores [--n-envs 8 16] [--precisions float32 bf16] [--rounds 10]

The work is that of `benchmarks.training`. Both places are used in turns by the same training,
whose rollouts have a thousand timesteps; ratios are taken within a round. The last column is what
a run keeps to after its trials, with how many of five runs do so.
"""

import argparse
import functools
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import get_args

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.vec_env import VecEnv

from benchmarks.trainings.ours import CONFIG
from benchmarks.trainings.work import Work
from game_rl.algorithms.make_algorithm import make_algorithm
from game_rl.algorithms.networks import Precision
from game_rl.callbacks.cores import CoresCallback
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_frame_format
from game_rl.games.definition import load_game
from game_rl.resources import effective_cpus, own_cores
from game_rl.run_dir import RunDir
from game_rl.vec_env.make_vec_env import make_training_env

_ROLLOUT_TIMESTEPS = 1_024
_RUNS = 5


class Rollouts:
    """A training that only collects."""

    def __init__(self, config: RunConfig, stack: ExitStack) -> None:
        game = load_game(config.game)
        self._env: VecEnv = make_training_env(config.env, game, seed=config.seed)
        stack.enter_context(closing(self._env))
        run_dir = RunDir(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        packing = make_frame_format(config.env.observation, game).packing
        model = make_algorithm(config, self._env, run_dir, packing=packing, stream="algorithm")
        assert isinstance(model, PPO)
        stack.callback(model.logger.close)
        model._setup_learn(config.total_timesteps, CallbackList([]))
        self._model = model

    def seconds(self, callback: BaseCallback) -> float:
        """Of one rollout."""
        torch.set_num_threads(1)
        started = time.perf_counter()
        model = self._model
        model.collect_rollouts(self._env, callback, model.rollout_buffer, model.n_steps)
        return time.perf_counter() - started

    def place(self, cores: Sequence[int]) -> None:
        """Put the workers on these cores."""
        for process in self._env.unwrapped.processes:  # type: ignore[attr-defined]  # ours
            os.sched_setaffinity(process.pid, cores)

    def choice(self) -> int:
        """How many cores a run's workers keep to."""
        callback = CoresCallback(effective_cpus())
        callback.init_callback(self._model)
        self.seconds(callback)
        while not callback.is_settled:
            self.seconds(callback)
        return len(os.sched_getaffinity(self._env.unwrapped.processes[0].pid))  # type: ignore[attr-defined]


def print_row(n_envs: int, precision: Precision, cores: Sequence[int], rounds: int) -> None:
    work = Work(n_envs=n_envs, n_steps=_ROLLOUT_TIMESTEPS // n_envs)
    config = load_config(CONFIG, [*work.overrides(), f"algorithm.precision={precision}"])
    with ExitStack() as stack:
        rollouts = Rollouts(config, stack)
        nothing = CallbackList([])
        nothing.init_callback(rollouts._model)
        seconds = functools.partial(rollouts.seconds, nothing)
        seconds()
        pairs = []
        for _ in range(rounds):
            rollouts.place(cores)
            on_all = seconds()
            rollouts.place(cores[1:])
            pairs.append((on_all, seconds()))
        choices = Counter(rollouts.choice() for _ in range(_RUNS))
    on_all_us, on_fewer_us = (
        median(column) / _ROLLOUT_TIMESTEPS * 1e6 for column in zip(*pairs, strict=True)
    )
    ((choice, count),) = choices.most_common(1)
    ratios = sorted(fewer / all_ for all_, fewer in pairs)
    print(
        f"{n_envs:>4} envs, {precision:<8} {on_all_us:>6,.0f} µs {on_fewer_us:>6,.0f} µs | "
        f"{median(ratios):.2f} ({ratios[0]:.2f} - {ratios[-1]:.2f}) | "
        f"{choice} of {len(cores)} cores ({count} of {_RUNS})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    precisions = get_args(Precision)
    parser.add_argument("--n-envs", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument("--precisions", nargs="+", choices=precisions, default=precisions)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    cores = own_cores()
    if len(cores) < 2:
        raise SystemExit("needs two cores that are this process's own")
    print("microseconds a timestep of rollouts on all cores, on one fewer | ratio | a run keeps to")
    for n_envs in arguments.n_envs:
        for precision in arguments.precisions:
            print_row(n_envs, precision, cores, arguments.rounds)


if __name__ == "__main__":
    main()
