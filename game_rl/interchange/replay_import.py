"""Import replay buffers of Stable-Baselines3 into a Lake: pictures, parts or arrays."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from game_rl.envs.observation import Observation, ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.files.durable_files import new_directory
from game_rl.interchange.sb3_replay import (
    Array,
    Progress,
    SavedReplay,
    has_checksum,
    opened_replay,
    quiet,
)
from game_rl.lake.array_lake import RowWriter
from game_rl.lake.block import FIRST, JUMP, LATE_TIMEOUT, TERMINATED, TRUNCATED
from game_rl.lake.lake import Lake
from game_rl.lake.lake_schema import ArrayKind, LakeSchema, PartsKind
from game_rl.lake.sampler import observation_format_of
from game_rl.lake.writer import LakeWriter

_FOUR_SHADES = [0, 85, 170, 255]
_PART_BYTES = 1 << 20  # part of a buffer that is examined at once; counting takes 8 times as much


@dataclass(frozen=True)
class ImportedReplay:
    """The result of an import.

    Attributes:
        observations: description of an observation, for people.
        bits: bits that the Lake stores for a pixel, or for a byte in a Lake of arrays.
        had_checksum: whether the file has a checksum, so that damage to it would have been found; a
            pickle has none.
    """

    n_transitions: int
    observations: str
    frame_stack: int
    bits: int
    file_bytes: int
    raw_bytes: int
    lake_bytes: int
    had_checksum: bool


def import_replay(
    path: Path,
    output: Path,
    *,
    frame_stack: int | None = None,
    observation_format: ObservationFormat | None = None,
    progress: Progress = quiet,
) -> ImportedReplay:
    """Convert a replay buffer to a Lake at `output`, which appears only once it is complete.

    Each frame, and each row of a window, is stored once, and frames take as few bits as the file's
    frames allow. Every transition can be restored bit for bit. Memory does not grow with the file.

    Args:
        path: file that SB3's `save_replay_buffer` wrote, plain or compressed.
        output: folder of the new Lake.
        frame_stack: frames in an observation of pictures; None finds it by comparing observations.
        observation_format: what the dicts of a DictReplayBuffer are. Its arrays do not tell:
            categories and grids are numbers there, and flags are floats.

    Raises:
        LakeError: the file is not such a buffer, or is damaged or unsafe, or `output` exists.
    """
    if output.exists():
        raise LakeError(f"{output} exists; name a new folder, or delete it")
    output.parent.mkdir(parents=True, exist_ok=True)
    with opened_replay(path, scratch=output.parent, progress=progress) as replay:
        schema = _schema(replay, path, frame_stack, observation_format, progress)
        with new_directory(output) as folder:
            lake = Lake.create(folder, schema)
            _fill(lake, replay, path, progress)
            n = len(lake.view())
            return ImportedReplay(
                n_transitions=n,
                observations=schema.description,
                frame_stack=schema.frame_stack,
                bits=schema.packing.bits,
                file_bytes=path.stat().st_size,
                raw_bytes=n * schema.raw_bytes,
                lake_bytes=lake.n_bytes(),
                had_checksum=has_checksum(path),
            )


# ---------------------------------------------------------------------- what the rows look like


def _schema(
    replay: SavedReplay,
    path: Path,
    frame_stack: int | None,
    observation_format: ObservationFormat | None,
    progress: Progress,
) -> LakeSchema:
    if replay.are_dicts or observation_format is not None:
        return _parts_schema(replay, path, frame_stack, observation_format)
    if not replay.are_pictures:
        if frame_stack is not None:
            raise LakeError(
                f"{path}: its observations are {replay.observations.dtype} "
                f"{replay.observations.shape[2:]}, not pictures; leave --frame-stack out: windows "
                "are found by comparing observations"
            )
        try:
            return array_schema(replay)
        except LakeError as error:
            raise LakeError(f"{path}: {error}") from None
    channels = replay.observations.shape[2]
    if frame_stack is not None and channels % frame_stack:
        raise LakeError(f"{path}: {channels} channels cannot be a stack of {frame_stack} frames")
    candidates = [n for n in range(channels, 0, -1) if channels % n == 0 and n <= 16]
    stack = frame_stack or next(n for n in candidates if n == 1 or _is_stack(replay, n))
    if stack > 1 and frame_stack and not _is_stack(replay, stack):
        raise LakeError(f"{path}: its observations are not stacks of {stack} frames; try 1")
    return LakeSchema(
        _packing(replay, channels // stack, progress),
        frame_stack=stack,
        block_frames=max(64, stack + 2),
        **_action(replay.actions),
    )


def _parts_schema(
    replay: SavedReplay,
    path: Path,
    frame_stack: int | None,
    observation_format: ObservationFormat | None,
) -> LakeSchema:
    """Return the schema of a Lake of parts; the buffer's arrays must be of the format's space."""
    if observation_format is None:
        raise LakeError(
            f"{path}: its observations are dicts of arrays ({', '.join(sorted(_forms(replay)))}), "
            "and numbers do not distinguish flags from categories; name the config of a run with "
            "these parts, with --config"
        )
    if frame_stack is not None:
        raise LakeError(f"{path}: the config says how many frames are stacked; leave --frame-stack")
    if not observation_format.is_dict:
        raise LakeError(f"{path}: the config has no env.observation.parts; leave --config out")
    found = _forms(replay) if replay.are_dicts else {}
    space = observation_format.space
    assert isinstance(space, spaces.Dict)
    wanted = {name: (box.shape, box.dtype) for name, box in space.items()}
    for name in sorted({*wanted, *found}):
        if found.get(name) != wanted.get(name):
            theirs, ours = (
                f"{forms[name][1]} {list(forms[name][0] or ())}" if name in forms else "missing"
                for forms in (found, wanted)
            )
            raise LakeError(
                f"{path}: the part {name} of its observations is {theirs}, and {ours} by the "
                "config; name the config of the run that wrote the buffer"
            )
    parts = PartsKind(observation_format.screen, observation_format.parts)
    return LakeSchema(
        parts.row_packing,
        frame_stack=observation_format.stack,
        block_frames=max(64, 4 * observation_format.stack),
        parts=parts,
        **_action(replay.actions),
    )


_Form = tuple[tuple[int, ...] | None, np.dtype[Any] | None]


def _forms(replay: SavedReplay) -> dict[str, _Form]:
    arrays = replay.observations.arrays
    return {name: (array.shape[2:], array.dtype) for name, array in arrays.items()}


def _is_stack(replay: SavedReplay, n: int) -> bool:
    """Whether every next observation is the one before, shifted by a frame."""
    channels = replay.observations.shape[2] // n
    for row in replay.rows.tolist():
        for env in range(replay.observations.shape[1]):
            before = replay.observations[row, env]
            after = replay.next_of(row, env)
            is_moved = np.array_equal(before[channels:], after[:-channels])
            if not is_moved and replay.knows_next_of(row, env):
                return False
    return True


def _action(actions: Array) -> dict[str, Any]:
    shape = () if actions.shape[2] == 1 and actions.dtype.kind in "iu" else actions.shape[2:]
    if actions.dtype.kind == "f":
        return {"action_dtype": "float32", "action_shape": shape}
    is_small = not actions.size or (actions.min() >= 0 and actions.max() < 256)
    return {"action_dtype": "uint8" if is_small else "int64", "action_shape": shape}


def _packing(replay: SavedReplay, channels: int, progress: Progress) -> FramePacking:
    """Return the smallest packing that can hold all frames of the file."""
    shape = (channels, *replay.observations.shape[3:])
    levels = np.zeros(256, np.bool_)
    is_one_plane = channels == 3
    arrays = [replay.observations, replay.next_observations]
    size = min(len(replay.observations), int(replay.rows.max(initial=0)) + 2)
    step = max(1, _PART_BYTES // max(1, replay.observations[0].nbytes))
    for array in (array for array in arrays if array is not None):
        for start in range(0, size, step):
            part = array[start : min(start + step, size)]
            levels |= np.bincount(part.ravel(), minlength=256) > 0
            frames = part.reshape(-1, channels, *shape[1:])
            is_one_plane = is_one_plane and bool((frames == frames[:, :1]).all())
            progress("reading", min(start + step, size), size)
    found = set(np.flatnonzero(levels).tolist())
    if found <= set(_FOUR_SHADES):
        return FramePacking(shape, bits=2, is_one_plane=is_one_plane)
    roundings: tuple[Literal[2, 3], ...] = (3, 2)
    for rounding in roundings:
        if found <= {(85 * q + rounding) // 4 for q in range(13)}:
            return FramePacking(shape, bits=4, rounding=rounding, is_one_plane=is_one_plane)
    return FramePacking(shape, is_one_plane=is_one_plane)


# ---------------------------------------------------------------------- in


def _fill(lake: Lake, replay: SavedReplay, path: Path, progress: Progress) -> None:
    if lake.schema.arrays is not None:
        fill_arrays(lake, replay, progress)
        return
    observation_format = observation_format_of(lake.schema)
    n_envs = replay.dones.shape[1]
    total = n_envs * len(replay.rows)
    for env in range(n_envs):
        with LakeWriter(lake, f"env{env:03d}", n_envs=1) as writer:
            try:
                for done in _appended(lake.schema, observation_format, writer, replay, env):
                    progress("writing", env * len(replay.rows) + done, total)
            except ValueError as error:
                raise LakeError(f"{path}: {error}") from None
            if not writer.seal():
                raise OSError(28, f"no space left for the Lake at {lake.path}")


def _appended(
    schema: LakeSchema,
    observation_format: ObservationFormat,
    writer: LakeWriter,
    replay: SavedReplay,
    env: int,
) -> Iterator[int]:
    """Append the transitions of an env one by one; yield the count so far."""

    def batch_of_one(observation: Observation) -> Observation:
        if isinstance(observation, Mapping):
            return {name: array[None] for name, array in observation.items()}
        return observation[None]

    # which bytes of a row belong to what an observation has of earlier timesteps
    moving = np.zeros(observation_format.row_bytes, np.bool_)
    for name, n in observation_format.stacks.items():
        moving[observation_format.columns[name]] = n == observation_format.stack
    current = None  # the rows of the newest observation of the episode
    for done, row in enumerate(replay.rows.tolist()):
        observations = batch_of_one(replay.observations[row, env])
        stack = observation_format.pack_stacks(observations)[0]
        if current is not None and not np.array_equal(current, stack):
            writer.leave_gap()
        following = observation_format.pack_stacks(batch_of_one(replay.next_of(row, env)))[0]
        is_stack = np.array_equal(stack[1:, moving], following[:-1, moving])
        action = replay.actions[row, env].astype(schema.action_dtype)
        terminated = replay.terminated[row, env]
        truncated = replay.truncated[row, env]
        writer.append(
            observations=observations,
            frames=stack[-1:],
            actions=action.reshape(1, *schema.action_shape),
            rewards=replay.rewards[row, env].reshape(1),
            next_frames=following[-1:],
            terminated=np.array([terminated]),
            truncated=np.array([truncated]),
            jumps=np.array([not is_stack]),
        )
        current = None if terminated or truncated else following
        yield done + 1


_Rows = NDArray[np.void]
_MOST_COMPARED = 256  # transitions that are examined to detect windows
_MOST_ROWS = 1 << 16  # limit of the rows of a window


def array_schema(replay: SavedReplay) -> LakeSchema:
    """Return the schema of the Lake that stores this replay in the least space.

    Raises:
        LakeError: an observation has no values, or rewards are not float32.
    """
    observations = replay.observations
    actions = replay.actions
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
    n = 0
    n_moved = 0
    for row in replay.rows[chosen.astype(int)].tolist():
        for env in range(replay.observations.shape[1]):
            if replay.knows_next_of(row, env):
                before = replay.observations[row, env]
                after = replay.next_of(row, env)
                n += 1
                n_moved += _moves_on(_as_rows(before, len(before)), _as_rows(after, len(after)))
    return 2 * n_moved > n


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
        ending = LATE_TIMEOUT if replay.timeouts[row, env] else 0
        if replay.dones[row, env]:
            ending = TRUNCATED if replay.timeouts[row, env] else TERMINATED
        flags = FIRST * begins | JUMP * (not moves_on) | ending
        action = replay.actions[row, env].reshape(schema.action_shape)
        writer.add_transition(action, replay.rewards[row, env], flags)
        writer.add_rows(known[-1:] if moves_on else known)
        begins = bool(replay.dones[row, env])
        del before
        yield done + 1
