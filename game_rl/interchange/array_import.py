"""Import replay of Stable-Baselines3 with vectors, windows or other arrays into a Lake."""

from collections.abc import Iterator
from math import prod

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError
from game_rl.interchange.sb3_replay import Array, Progress, SavedReplay
from game_rl.lake.array_lake import RowWriter
from game_rl.lake.block import FIRST, JUMP, LATE_TIMEOUT, TERMINATED, TRUNCATED
from game_rl.lake.lake import Lake
from game_rl.lake.lake_schema import ArrayKind, LakeSchema

_Rows = NDArray[np.void]
_MOST_COMPARED = 256  # transitions that are examined to detect windows
_MOST_ROWS = 1 << 16  # limit of the rows of a window


def array_schema(replay: SavedReplay) -> LakeSchema:
    """Return the schema of the Lake that stores this replay in the least space.

    Raises:
        LakeError: an observation has no values, or rewards are not float32.
    """
    observations, actions = replay.observations, replay.actions
    shape = observations.shape[2:]
    if not prod(shape):
        raise LakeError(f"its observations are {observations.dtype} {shape}, which have no values")
    if replay.rewards.dtype != np.float32:
        raise LakeError(f"its rewards are {replay.rewards.dtype}, not float32")
    is_discrete = actions.shape[2:] == (1,) and actions.dtype.kind in "iu"
    return LakeSchema.of_arrays(
        ArrayKind(observations.dtype.str, shape),
        rows=shape[0] if _has_windows(replay) else 1,
        action_dtype=actions.dtype.name,
        action_shape=() if is_discrete else actions.shape[2:],
    )


def _has_windows(replay: SavedReplay) -> bool:
    """Whether most next observations are the ones before, shifted by a row.

    The answer affects the size of the Lake but not its content: a transition that does not shift
    its window by a row is stored whole.
    """
    shape = replay.observations.shape[2:]
    if not shape or not 1 < shape[0] < _MOST_ROWS or not len(replay.rows):
        return False
    chosen = np.linspace(0, len(replay.rows) - 1, min(len(replay.rows), _MOST_COMPARED))
    pairs = [
        (row, env)
        for row in replay.rows[chosen.astype(int)].tolist()
        for env in range(replay.observations.shape[1])
        if replay.knows_next_of(row, env)
    ]
    return 2 * sum(_is_moved_on(replay, row, env) for row, env in pairs) > len(pairs)


def _is_moved_on(replay: SavedReplay, row: int, env: int) -> bool:
    before, after = replay.observations[row, env], replay.next_of(row, env)
    return _moves_on(_as_rows(before, len(before)), _as_rows(after, len(after)))


def _as_rows(observation: Array, n: int) -> _Rows:
    """Return the rows as raw bytes, V[row bytes] [n], so NaNs and signs of zeros are compared."""
    flat = np.ascontiguousarray(observation).reshape(-1)
    rows: _Rows = flat.view(f"V{flat.nbytes // n}")
    return rows


def _moves_on(before: _Rows, after: _Rows) -> bool:
    return np.array_equal(before[1:], after[:-1])


def fill_arrays(lake: Lake, replay: SavedReplay, progress: Progress) -> None:
    """Write each env's transitions to a stream of its own, oldest first and bit for bit.

    Raises:
        OSError: the disk is full.
    """
    n_envs = replay.observations.shape[1]
    total = n_envs * len(replay.rows)
    width = max(3, len(str(n_envs - 1)))  # stream names then sort in the order of the envs
    for env in range(n_envs):
        with RowWriter(lake, f"env{env:0{width}d}") as writer:
            for done in _written(lake.schema, writer, replay, env):
                progress("writing", env * len(replay.rows) + done, total)


def _written(schema: LakeSchema, writer: RowWriter, replay: SavedReplay, env: int) -> Iterator[int]:
    """Write the transitions of an env; yield the count so far.

    Two windows of the file are in memory at a time.
    """
    n = schema.frame_stack
    known: _Rows | None = None  # the newest window of the sequence
    begins = not replay.is_full
    for done, row in enumerate(replay.rows.tolist()):
        before = _as_rows(replay.observations[row, env], n)
        if known is None or not np.array_equal(known, before):
            writer.add_rows(before)
        known = None  # frees its memory before the next window is read
        known = _as_rows(replay.next_of(row, env), n)
        moves_on = _moves_on(before, known)
        flags = FIRST * begins | JUMP * (not moves_on) | _ending(replay, row, env)
        action = replay.actions[row, env].reshape(schema.action_shape)
        writer.add_transition(action, replay.rewards[row, env], flags)
        writer.add_rows(known[-1:] if moves_on else known)
        begins = bool(replay.dones[row, env])
        del before
        yield done + 1


def _ending(replay: SavedReplay, row: int, env: int) -> int:
    if replay.dones[row, env]:
        return TRUNCATED if replay.timeouts[row, env] else TERMINATED
    return LATE_TIMEOUT if replay.timeouts[row, env] else 0
