"""Rollouts with the workers on all cores and on all but one, between which `WorkerCores` chooses.

    python -m benchmarks.worker_cores [--n-envs 8 16] [--precisions float32 bf16] [--rounds 10]

The work is that of `benchmarks.training`. Both places are used in turns by the same training,
whose rollouts have a thousand timesteps; ratios are taken within a round. The last column says how
many of five runs keep the workers off a core after their trials.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import get_args

from stable_baselines3 import PPO

from benchmarks.trainings.ours import CONFIG, built, settle
from benchmarks.trainings.work import Work
from game_rl.algorithms.networks import Precision
from game_rl.callbacks.cores import CoresCallback
from game_rl.config.loader import load_config
from game_rl.run_dir import RunDir
from game_rl.system.machine import effective_cpus, own_cores
from game_rl.system.threads import torch_threads
from game_rl.vec_env.halved_vec_env import HalvedVecEnv

_ROLLOUT_TIMESTEPS = 1_024
_RUNS = 5


def print_row(n_envs: int, precision: Precision, cores: Sequence[int], rounds: int) -> None:
    work = Work(n_envs=n_envs, n_steps=_ROLLOUT_TIMESTEPS // n_envs)
    config = load_config(CONFIG, [*work.overrides(), f"algorithm.precision={precision}"])
    with tempfile.TemporaryDirectory() as folder, built(config, RunDir(Path(folder))) as model:
        kept = [cores_that_a_run_keeps(model) for _ in range(_RUNS)]
        pairs = [
            (seconds_of_rollout(model, cores), seconds_of_rollout(model, cores[1:]))
            for _ in range(rounds)
        ]
    on_all_us, on_fewer_us = (
        median(column) / _ROLLOUT_TIMESTEPS * 1e6 for column in zip(*pairs, strict=True)
    )
    ratios = [fewer / all_ for all_, fewer in pairs]
    print(
        f"{n_envs:>4} envs, {precision:<8} {on_all_us:>6,.0f} µs {on_fewer_us:>6,.0f} µs | "
        f"{median(ratios):.2f} ({min(ratios):.2f} - {max(ratios):.2f}) | "
        f"{sum(n < len(cores) for n in kept)} of {_RUNS}",
        flush=True,
    )


def seconds_of_rollout(model: PPO, cores: Sequence[int]) -> float:
    """With the workers on these cores."""
    for worker in workers_of(model):
        os.sched_setaffinity(worker, cores)
    _, nothing = model._setup_learn(_ROLLOUT_TIMESTEPS, None)
    assert model.env is not None
    with torch_threads(1):
        started = time.perf_counter()
        model.collect_rollouts(model.env, nothing, model.rollout_buffer, model.n_steps)
        return time.perf_counter() - started


def cores_that_a_run_keeps(model: PPO) -> int:
    """On how many its workers stay."""
    settle(model, CoresCallback(effective_cpus()))
    return len(os.sched_getaffinity(workers_of(model)[0]))


def workers_of(model: PPO) -> list[int]:
    assert model.env is not None
    vec_env = model.env.unwrapped
    assert isinstance(vec_env, HalvedVecEnv)
    return [process.pid for process in vec_env.processes if process.pid]


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
    print("a timestep of rollouts, on all cores and on one fewer | ratio | runs that keep to fewer")
    for n_envs in arguments.n_envs:
        for precision in arguments.precisions:
            print_row(n_envs, precision, cores, arguments.rounds)


if __name__ == "__main__":
    main()
