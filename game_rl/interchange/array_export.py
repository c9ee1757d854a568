"""Write the transitions of a Lake of arrays to the file of a replay buffer."""

import numpy as np
from numpy.typing import NDArray

from game_rl.interchange.buffer_file import BufferFile
from game_rl.interchange.sb3_replay import Array, Progress
from game_rl.lake.array_lake import sequences_of, windows
from game_rl.lake.block import LATE_TIMEOUT, TERMINATED, TRUNCATED
from game_rl.lake.view import LakeView


def n_envs_of(view: LakeView) -> int:
    """Return the number of sequences if they are equally long, else 1."""
    lengths = {int(view.n_transitions[numbers].sum()) for numbers in sequences_of(view)}
    return len(sequences_of(view)) if len(lengths) == 1 else 1


def export_arrays(view: LakeView, file: BufferFile, progress: Progress) -> None:
    """Write all transitions to their places in a buffer with `n_envs_of(view)` envs.

    Raises:
        LakeError: a block is damaged or missing.
    """
    n_envs = n_envs_of(view)
    done = 0
    for env, numbers in enumerate(sequences_of(view)):
        n = int(view.n_transitions[numbers].sum())
        places = range(env, env + n * n_envs, n_envs) if n_envs > 1 else range(done, done + n)
        _put_columns(file, view, numbers, places)
        _put_windows(file, view, numbers, places)
        done += n
        progress("exporting", done, len(view))


def _put_windows(file: BufferFile, view: LakeView, numbers: list[int], places: range) -> None:
    kind = view.schema.arrays
    assert kind is not None
    for window in windows(view, numbers):
        values = window.rows.reshape(-1).view(kind.dtype)
        name = "next_observations" if window.is_next else "observations"
        file.put(name, values, place=places[window.place] * len(values))


def _put_columns(file: BufferFile, view: LakeView, numbers: list[int], places: range) -> None:
    done = 0
    for number in numbers:
        columns = view.columns(number)
        rows = columns.rows
        flags = columns.flags[rows]
        here = places[done : done + len(rows)]
        _put_at(file, "actions", columns.actions[rows], here)
        _put_at(file, "rewards", columns.rewards[rows], here)
        _put_at(file, "dones", _has(flags, TERMINATED | TRUNCATED), here)
        _put_at(file, "timeouts", _has(flags, TRUNCATED | LATE_TIMEOUT), here)
        done += len(rows)


def _has(flags: NDArray[np.uint8], which: int) -> NDArray[np.float32]:
    return ((flags & which) > 0).astype(np.float32)


def _put_at(file: BufferFile, name: str, values: Array, places: range) -> None:
    if not len(values):
        return
    size = values.size // len(values)
    if places.step == 1:
        file.put(name, values, place=places[0] * size)
        return
    for place, value in zip(places, values, strict=True):
        file.put(name, value, place=place * size)
