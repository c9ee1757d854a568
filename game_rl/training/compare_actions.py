"""Asking trained runs what they would do on the same observations."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy

from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Sampler
from game_rl.lake.view import LakeView
from game_rl.playback.policy import open_own_run
from game_rl.run_dir import write_atomic
from game_rl.system.threads import torch_threads
from game_rl.training.action_differences import ActionDifferences

_AT_ONCE = 64  # observations: they and the network's activations are some tens of megabytes


def compare_actions(
    members: Path,
    checkpoints: Mapping[str, int],
    *,
    lake: Path,
    observations: int,
    seed: int,
    result: Path,
) -> ActionDifferences:
    """Draw observations from all rows of a Lake, and leave how often runs act differently there.

    The same Lake, checkpoints and seed give the same bytes, whatever else this machine does.

    Args:
        members: the folder of the run directories.
        checkpoints: timestep of each, by the name of its run directory.

    Raises:
        LakeError: the Lake is missing or damaged.
        CheckpointError: a checkpoint is.
    """
    view = Lake.open(lake).view()
    shares: list[list[float]] = []
    if len(view):
        shape = view.schema.observation_shape
        policies = [_policy(members / name, at, shape) for name, at in checkpoints.items()]
        with torch_threads(1):
            shares = _differing(_best_actions(policies, view, observations, seed))
    found = ActionDifferences(
        seed=seed,
        observations=observations if shares else 0,
        runs=tuple(checkpoints),
        shares=tuple(map(tuple, shares)),
    )
    result.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(result, found.model_dump_json(indent=2) + "\n")
    return found


def _policy(root: Path, timesteps: int, observation_shape: tuple[int, ...]) -> BasePolicy:
    """Of a run's checkpoint, on the CPU."""
    run = open_own_run(root, str(timesteps))
    actions = spaces.Discrete(len(run.game.action_names))
    return run.policy(spaces.Box(0, 255, observation_shape, np.uint8), actions)


def _best_actions(
    policies: Sequence[BasePolicy], view: LakeView, n: int, seed: int
) -> NDArray[np.int64]:
    """The likeliest action of each, or the one that it values most: [policies, n].

    All rows of the view are as likely to be drawn.
    """
    sampler, rng = Sampler(view), np.random.default_rng(seed)
    found = []
    for start in range(0, n, _AT_ONCE):
        stacks = sampler.sample(rng, min(_AT_ONCE, n - start)).stacks
        found.append([policy.predict(stacks, deterministic=True)[0] for policy in policies])
    return np.concatenate(found, axis=1).astype(np.int64)


def _differing(actions: NDArray[np.int64]) -> list[list[float]]:
    """Of each pair of rows, the share of columns in which they differ."""
    return [[float(np.mean(one != other)) for other in actions] for one in actions]
