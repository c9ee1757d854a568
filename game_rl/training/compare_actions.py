"""Compare the actions of trained runs on the same observations."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Sampler
from game_rl.playback.trained_run import open_own_run
from game_rl.run_dir import write_atomic
from game_rl.system.threads import torch_threads
from game_rl.training.action_differences import ActionDifferences

_AT_ONCE = 64  # observations; with the network's activations they take some tens of megabytes


def compare_actions(
    members: Path,
    checkpoints: Mapping[str, int],
    *,
    lake: Path,
    observations: int,
    seed: int,
    result: Path,
) -> ActionDifferences:
    """Draw observations from a Lake, and write how often the runs act differently on them.

    The same Lake, checkpoints and seed give the same bytes, whatever else this machine does.

    Args:
        members: folder of the run directories.
        checkpoints: timestep of each run's checkpoint, by the name of its run directory.
        observations: number of observations to draw.
        result: file to write.

    Raises:
        LakeError: the Lake is missing or damaged.
        CheckpointError: a checkpoint is missing or damaged.
    """
    stacks = _drawn(lake, observations, seed)
    shares: list[list[float]] = []
    if len(stacks):  # one network at a time: there may be many, of 60 MB each
        actions = [_best_actions(members / name, at, stacks) for name, at in checkpoints.items()]
        shares = [[float(np.mean(one != other)) for other in actions] for one in actions]
    found = ActionDifferences(
        seed=seed,
        observations=len(stacks),
        runs=tuple(checkpoints),
        shares=tuple(map(tuple, shares)),
    )
    result.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(result, found.model_dump_json(indent=2) + "\n")
    return found


def _drawn(lake: Path, n: int, seed: int) -> NDArray[np.uint8]:
    """Draw stacks [n, frame_stack * C, H, W], uint8, uniformly; an empty Lake gives none."""
    view, rng = Lake.open(lake).view(), np.random.default_rng(seed)
    stacks = np.empty((n if len(view) else 0, *view.schema.observation_shape), np.uint8)
    if not len(view):
        return stacks
    sampler = Sampler(view)
    for start in range(0, n, _AT_ONCE):  # in parts, because a batch also has the next stacks
        part = stacks[start : start + _AT_ONCE]
        part[:] = sampler.sample(rng, len(part)).stacks
    return stacks


def _best_actions(root: Path, timesteps: int, stacks: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the deterministic actions of a run's checkpoint, int64 [n]."""
    run = open_own_run(root, str(timesteps))
    actions = spaces.Discrete(len(run.game.action_names))
    policy = run.policy(spaces.Box(0, 255, stacks.shape[1:], np.uint8), actions)
    with torch_threads(1):
        found = [
            policy.predict(stacks[start : start + _AT_ONCE], deterministic=True)[0]
            for start in range(0, len(stacks), _AT_ONCE)
        ]
    return np.concatenate(found).astype(np.int64)
