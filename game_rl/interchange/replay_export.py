"""A Lake as a replay buffer that Stable-Baselines3 loads."""

import pickle
import tempfile
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer

from game_rl.errors import LakeError
from game_rl.interchange.replay_files import quiet
from game_rl.interchange.sb3_replay import Array, Progress
from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Batch, Sampler
from game_rl.lake.schema import LakeSchema
from game_rl.lake.view import LakeView


def export_sb3(
    lake: Lake, output: Path, *, n_actions: int | None = None, progress: Progress = quiet
) -> int:
    """Write a pickle that SB3's `load_replay_buffer` reads; returns its transitions.

    It is a buffer of one env that is just full. An episode that the Lake does not have to its end
    counts as truncated, so that the buffer's targets are those of the Lake. The arrays are made in
    files beside `output`, whose disk must hold them twice for a while; memory does not grow.

    Args:
        n_actions: of a Discrete action space; the largest action + 1 if None.

    Raises:
        LakeError: the Lake is empty or damaged.
    """
    view = lake.view()
    if not len(view):
        raise LakeError(f"{lake.path} has no sealed transitions to export")
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".export-") as folder:
        arrays = _arrays(Path(folder), lake.schema, len(view))
        done = 0
        for number, batch in enumerate(blocks_in_order(view)):
            rows = slice(done, done + len(batch.rewards))
            _copy_batch(arrays, rows, batch, _ends(view, number))
            done = rows.stop
            progress("exporting", done, len(view))
        buffer = _buffer(lake.schema, arrays, n_actions)
        temporary = Path(folder) / "replay.pkl"
        with temporary.open("wb") as file:
            pickle.dump(buffer, file, protocol=5)
        temporary.replace(output)
    return len(view)


def blocks_in_order(view: LakeView) -> Iterator[Batch]:
    """All transitions, block by block."""
    sampler = Sampler(view, gamma=1, cache_bytes=0)
    for n, end in zip(view.n_transitions.tolist(), view.edges.tolist(), strict=True):
        yield sampler.take(np.arange(end - n, end))


def _ends(view: LakeView, number: int) -> NDArray[np.bool_]:
    """Where an episode ended, or the Lake knows no more of it."""
    columns = view.columns(number)
    ends = columns.ended[columns.rows].copy()
    if not view.continued[number] or view.columns(number + 1).is_first[0]:
        ends[-1] = True
    return ends


def _arrays(folder: Path, schema: LakeSchema, n: int) -> dict[str, Array]:
    """Files for the attributes of a ReplayBuffer of n rows and one env."""
    action = np.dtype(np.float32 if schema.action_dtype == "float32" else np.int64)
    kinds: dict[str, tuple[tuple[int, ...], Any]] = {
        "observations": (schema.observation_shape, np.uint8),
        "next_observations": (schema.observation_shape, np.uint8),
        "actions": ((max(1, prod(schema.action_shape)),), action),
        "rewards": ((), np.float32),
        "dones": ((), np.float32),
        "timeouts": ((), np.float32),
    }
    return {
        name: np.memmap(folder / name, dtype, "w+", shape=(n, 1, *shape))
        for name, (shape, dtype) in kinds.items()
    }


def _copy_batch(
    arrays: dict[str, Array], rows: slice, batch: Batch, ends: NDArray[np.bool_]
) -> None:
    terminated = batch.discounts == 0
    arrays["observations"][rows, 0] = batch.stacks
    arrays["next_observations"][rows, 0] = batch.next_stacks
    arrays["actions"][rows, 0] = batch.actions.reshape(len(batch.rewards), -1)
    arrays["rewards"][rows, 0] = batch.rewards
    arrays["dones"][rows, 0] = ends
    arrays["timeouts"][rows, 0] = ends & ~terminated


def _buffer(schema: LakeSchema, arrays: dict[str, Array], n_actions: int | None) -> ReplayBuffer:
    actions = arrays["actions"][:, 0]
    observation_space = spaces.Box(0, 255, schema.observation_shape, np.uint8)
    space = action_space(schema, actions.min(axis=0), actions.max(axis=0), n_actions)
    buffer = ReplayBuffer(1, observation_space, space, device="cpu")
    for name, array in arrays.items():
        setattr(buffer, name, np.asarray(array))
    buffer.buffer_size = len(actions)
    buffer.pos, buffer.full = 0, True
    return buffer


def action_space(
    schema: LakeSchema, low: Array, high: Array, n_actions: int | None
) -> spaces.Space[Any]:
    """The smallest space with actions from `low` to `high`, both [action_dim]."""
    if schema.action_dtype == "float32":
        return spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
    if schema.action_shape == ():
        return spaces.Discrete(n_actions or int(high[0]) + 1)
    return spaces.MultiDiscrete(high + 1)
