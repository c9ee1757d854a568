"""Export a Lake's transitions as a replay buffer of Stable-Baselines3, a piece at a time."""

import os
import pickle
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer

from game_rl.buffers.layout import ArrayLayout
from game_rl.envs.observation import Observation
from game_rl.errors import LakeError
from game_rl.files.durable_files import BINARY, write_at
from game_rl.interchange.sb3_replay import Array, Progress, quiet
from game_rl.lake.array_lake import sequences_of, windows
from game_rl.lake.block import LATE_TIMEOUT, TERMINATED, TRUNCATED
from game_rl.lake.lake import Lake
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.sampler import Batch, Sampler, observation_format_of
from game_rl.lake.view import LakeView


def export_replay(
    lake: Lake, output: Path, *, n_actions: int | None = None, progress: Progress = quiet
) -> int:
    """Write a pickle that SB3's `load_replay_buffer` reads, and return its number of transitions.

    It is a ReplayBuffer, or a DictReplayBuffer of a Lake of parts, and exactly full. A buffer of
    pictures or parts has one env, and an episode whose end the Lake does not have counts as
    truncated, so the buffer's targets are those of the Lake. A buffer of arrays has the envs, the
    order and every bit of the buffer that was imported. Memory does not grow with the Lake.

    Args:
        lake: Lake to export.
        output: file to write.
        n_actions: size of a Discrete action space, or None for the largest action + 1.
        progress: function that is called with the progress.

    Raises:
        LakeError: the Lake is empty or damaged.
    """
    view = lake.view()
    if not len(view):
        raise LakeError(f"{lake.path} has no sealed transitions to export")
    output.parent.mkdir(parents=True, exist_ok=True)
    n_envs = 1 if lake.schema.arrays is None else n_envs_of(view)
    space = action_space(lake.schema, *action_bounds(view), n_actions)
    buffer = _buffer(lake.schema, space, n_rows=len(view) // n_envs, n_envs=n_envs)
    layouts = _layouts(lake.schema, len(view) // n_envs, n_envs)
    export = _export_pictures if lake.schema.arrays is None else export_arrays
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".export-") as folder:
        temporary = Path(folder) / "replay.pkl"
        with closing(BufferFile(temporary, buffer, layouts)) as file:
            export(view, file, progress)
        temporary.replace(output)
    return len(view)


def blocks_in_order(view: LakeView) -> Iterator[Batch]:
    """Yield all transitions of a Lake of pictures, block by block."""
    sampler = Sampler(view, gamma=1, cache_bytes=0)
    for n, end in zip(view.n_transitions.tolist(), view.edges.tolist(), strict=True):
        yield sampler.take(np.arange(end - n, end))


def action_bounds(view: LakeView) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the smallest and the largest action, [action_dim] each, in the actions' dtype."""
    low: list[Array] = []
    high: list[Array] = []
    for block in range(len(view.heads)):
        columns = view.columns(block)
        if len(columns.rows):
            actions = columns.actions[columns.rows].reshape(len(columns.rows), -1)
            low.append(np.fmin.reduce(actions, axis=0))
            high.append(np.fmax.reduce(actions, axis=0))
    return np.fmin.reduce(low, axis=0), np.fmax.reduce(high, axis=0)


def action_space(
    schema: LakeSchema, low: Array, high: Array, n_actions: int | None
) -> spaces.Space[Any]:
    """Return the smallest space with all actions from `low` to `high`, both [action_dim]."""
    if low.dtype.kind == "f":
        low = np.where(np.isnan(low), -np.inf, low)
        high = np.where(np.isnan(high), np.inf, high)
        return spaces.Box(low.astype(schema.action_dtype), high.astype(schema.action_dtype))
    if low.min() < 0:
        return spaces.Box(low, high, dtype=low.dtype.type)
    if schema.action_shape == ():
        return spaces.Discrete(n_actions or int(high[0]) + 1)
    return spaces.MultiDiscrete(high.astype(np.int64) + 1)


class BufferFile:
    """The file that `pickle.dump(buffer)` would write, with arrays that are filled part by part.

    An array "observations/NAME" becomes the entry NAME of the attribute `observations`, a dict.

    The pickle is made with a marker in place of each array's bytes. Protocol 3 has no frames around
    its instructions, so bytes of any length can replace a marker. As their length needs an
    instruction of protocol 4, the file declares protocol 4.

    Args:
        path: new file to write.
        buffer: buffer without its arrays.
        arrays: arrays that become attributes of the buffer; zeros where `put` writes nothing.
    """

    def __init__(self, path: Path, buffer: ReplayBuffer, arrays: Iterable[ArrayLayout]) -> None:
        places = {layout.name: _ArrayInFile(layout) for layout in arrays}
        for name, place in places.items():
            attribute, _, key = name.partition("/")
            if key:
                vars(buffer).setdefault(attribute, {})[key] = place
            else:
                setattr(buffer, name, place)
        rest = pickle.dumps(buffer, protocol=3).replace(_PROTOCOL_3, _PROTOCOL_4, 1)
        self._layouts = {name: place.layout for name, place in places.items()}
        self._offsets: dict[str, int] = {}
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o644)
        end = 0
        for name, place in sorted(places.items(), key=lambda item: rest.index(item[1].marker)):
            before, rest = rest.split(_BYTES + place.marker)
            nbytes = place.layout.nbytes
            self._write(before + _LONG_BYTES + nbytes.to_bytes(8, "little"), end)
            self._offsets[name] = end + len(before) + 9
            end = self._offsets[name] + nbytes
        self._write(rest, end)

    def put(self, name: str, values: NDArray[Any], *, place: int) -> None:
        """Write values into an array, from its flat element number `place` on."""
        dtype = np.dtype(self._layouts[name].dtype)
        data = np.ascontiguousarray(values, dtype).reshape(-1).view(np.uint8)
        self._write(data, self._offsets[name] + place * dtype.itemsize)

    def _write(self, data: Any, offset: int) -> None:  # noqa: ANN401 - bytes or an array of them
        left = memoryview(data)
        while left:
            n = write_at(self._file, left, offset)
            left = left[n:]
            offset = offset + n

    def close(self) -> None:
        os.close(self._file)


# ---------------------------------------------------------------------- the buffer


def _export_pictures(view: LakeView, file: BufferFile, progress: Progress) -> None:
    done = 0
    for number, batch in enumerate(blocks_in_order(view)):
        block = view.columns(number)
        ends = block.ended[block.rows].copy()
        if not view.continued[number] or view.columns(number + 1).is_first[0]:
            ends[-1] = True  # where the Lake's part of the episode ends
        columns = {
            **_named("observations", batch.stacks),
            **_named("next_observations", batch.next_stacks),
            "actions": batch.actions,
            "rewards": batch.rewards,
            "dones": ends,
            "timeouts": ends & (batch.discounts != 0),
        }
        for name, values in columns.items():
            file.put(name, values, place=done * (values.size // len(values)))
        done += len(batch.rewards)
        progress("exporting", done, len(view))


def _named(attribute: str, observations: Observation) -> dict[str, NDArray[Any]]:
    """Return the arrays of a batch of observations by their names in a BufferFile."""
    if isinstance(observations, Mapping):
        return {f"{attribute}/{name}": array for name, array in observations.items()}
    return {attribute: observations}


def _layouts(schema: LakeSchema, n_rows: int, n_envs: int) -> list[ArrayLayout]:
    """Return the layouts of a ReplayBuffer's arrays."""
    observation = _observation(schema)
    is_kept_as_is = schema.arrays is not None or schema.action_dtype == "float32"
    kinds: dict[str, tuple[tuple[int, ...], Any]] = {
        **{f"observations{key}": kind for key, kind in observation.items()},
        **{f"next_observations{key}": kind for key, kind in observation.items()},
        "actions": (
            (max(1, prod(schema.action_shape)),),
            schema.action_dtype if is_kept_as_is else np.int64,
        ),
        "rewards": ((), np.float32),
        "dones": ((), np.float32),
        "timeouts": ((), np.float32),
    }
    return [
        ArrayLayout(name, (n_rows, n_envs, *shape), dtype) for name, (shape, dtype) in kinds.items()
    ]


def _observation(schema: LakeSchema) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Return shape and dtype of an observation, or of each part by "/" and its name."""
    if schema.arrays is not None:
        return {"": (schema.arrays.shape, np.dtype(schema.arrays.dtype))}
    if schema.parts is None:
        return {"": (schema.observation_shape, np.dtype(np.uint8))}
    boxes = cast("Mapping[str, spaces.Box]", _dict_space(schema).spaces)
    return {f"/{name}": (box.shape, box.dtype) for name, box in boxes.items()}


def _dict_space(schema: LakeSchema) -> spaces.Dict:
    space = observation_format_of(schema).space
    assert isinstance(space, spaces.Dict)
    return space


def _buffer(
    schema: LakeSchema, space: spaces.Space[Any], *, n_rows: int, n_envs: int
) -> ReplayBuffer:
    """Return a buffer that is exactly full and has no arrays yet."""
    one = spaces.Box(0, 1, (1,))
    kinds = _observation(schema)
    if schema.parts is None:
        shape, dtype = kinds[""]
        buffer = ReplayBuffer(n_envs, one, space, device="cpu", n_envs=n_envs)
        buffer.obs_shape = shape
        buffer.observation_space = Call(spaces.Box, *_bounds(dtype), shape, dtype.type)  # type: ignore[assignment]
    else:
        alone = spaces.Dict({"part": one})
        buffer = DictReplayBuffer(n_envs, alone, space, device="cpu", n_envs=n_envs)
        buffer.obs_shape = {key[1:]: shape for key, (shape, _) in kinds.items()}
        buffer.observation_space = _dict_space(schema)
        del buffer.observations, buffer.next_observations
    buffer.buffer_size = n_rows
    buffer.pos = 0
    buffer.full = True
    return buffer


def _bounds(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind == "f":
        return -np.inf, np.inf
    if dtype.kind == "b":
        return 0, 1
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def n_envs_of(view: LakeView) -> int:
    """Return the number of sequences if they are equally long, else 1."""
    lengths = {int(view.n_transitions[numbers].sum()) for numbers in sequences_of(view)}
    return len(sequences_of(view)) if len(lengths) == 1 else 1


def export_arrays(view: LakeView, file: BufferFile, progress: Progress) -> None:
    """Write all transitions to their places in a buffer with `n_envs_of(view)` envs.

    Raises:
        LakeError: a block is damaged or missing.
    """
    kind = view.schema.arrays
    assert kind is not None
    n_envs = n_envs_of(view)
    done = 0
    for env, numbers in enumerate(sequences_of(view)):
        n = int(view.n_transitions[numbers].sum())
        places = range(env, env + n * n_envs, n_envs) if n_envs > 1 else range(done, done + n)
        _put_columns(file, view, numbers, places)
        for window in windows(view, numbers):
            values = window.rows.reshape(-1).view(kind.dtype)
            name = "next_observations" if window.is_next else "observations"
            file.put(name, values, place=places[window.place] * len(values))
        done += n
        progress("exporting", done, len(view))


def _put_columns(file: BufferFile, view: LakeView, numbers: list[int], places: range) -> None:
    done = 0
    for number in numbers:
        columns = view.columns(number)
        rows = columns.rows
        flags = columns.flags[rows]
        here = places[done : done + len(rows)]
        _put_at(file, "actions", columns.actions[rows], here)
        _put_at(file, "rewards", columns.rewards[rows], here)
        dones = (flags & (TERMINATED | TRUNCATED)) > 0
        timeouts = (flags & (TRUNCATED | LATE_TIMEOUT)) > 0
        _put_at(file, "dones", dones.astype(np.float32), here)
        _put_at(file, "timeouts", timeouts.astype(np.float32), here)
        done += len(rows)


def _put_at(file: BufferFile, name: str, values: Array, places: range) -> None:
    if not len(values):
        return
    size = values.size // len(values)
    if places.step == 1:
        file.put(name, values, place=places[0] * size)
        return
    for place, value in zip(places, values, strict=True):
        file.put(name, value, place=place * size)


_PROTOCOL_3 = b"\x80\x03"
_PROTOCOL_4 = b"\x80\x04"
_MARKER_BYTES = 32
_BYTES = b"C" + bytes([_MARKER_BYTES])  # instruction of protocol 3, with the length in one byte
_LONG_BYTES = b"\x8e"  # instruction of protocol 4, with the length in eight bytes


class Call:
    """A stand-in for a large object: it is pickled as a call that makes the object."""

    def __init__(self, function: Any, *arguments: Any) -> None:  # noqa: ANN401
        self._call = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self._call


class _ArrayInFile:
    """A stand-in for an array: it is pickled like the array, with a marker for its bytes."""

    def __init__(self, layout: ArrayLayout) -> None:
        self.layout = layout
        self.marker = secrets.token_bytes(_MARKER_BYTES)

    def __reduce__(self) -> tuple[Any, ...]:
        made: Any = np.empty(0, self.layout.dtype).__reduce__()
        function, arguments, (version, _, dtype, is_fortran, _) = made
        return function, arguments, (version, self.layout.shape, dtype, is_fortran, self.marker)
