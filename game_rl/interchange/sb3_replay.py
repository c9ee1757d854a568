"""The arrays of a replay buffer that SB3 saved, read without SB3."""

import gzip
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import zstandard
from numpy.typing import NDArray

from game_rl.errors import LakeError, NoLakeError
from game_rl.interchange.replay_pickle import PickledArray, Record, read_pickle
from game_rl.system.machine import disk_free_bytes
from game_rl.system.units import format_bytes

Array = NDArray[Any]
Progress = Callable[[str, int, int], None]
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_MOST_HEADER = 18  # bytes of a zstd frame, by RFC 8878
_OTHERS = {
    b"PK": "a zip, perhaps of a model; give the file that save_replay_buffer wrote",
    b"BZ": "compressed with bzip2; unpack it first",
    b"\xfd7zXZ": "compressed with xz; unpack it first",
    b"\x89HDF": "HDF5; a Minari data set cannot be imported",
}


@dataclass(frozen=True)
class SavedReplay:
    """A buffer as it was saved, with large arrays mapped from the file.

    Attributes:
        rows: rows of the transitions, from the oldest to the newest.
        is_full: whether the ring was full, so older transitions were lost.
        are_pictures: whether observations are uint8 [size, n_envs, C, H, W] and not other arrays.
        observations: [size, n_envs, ...]; a FileArray unless they are pictures, and FileDicts in a
            DictReplayBuffer.
        next_observations: same form as `observations`, or None if they are the observations of the
            next row.
        actions: [size, n_envs, action_dim].
        rewards: [size, n_envs].
        dones, timeouts: [size, n_envs]; SB3 also keeps timeouts of transitions that are not done.
    """

    rows: NDArray[np.int64]
    is_full: bool
    are_pictures: bool
    observations: Any
    next_observations: Any
    actions: Array
    rewards: Array
    dones: NDArray[np.bool_]
    timeouts: NDArray[np.bool_]

    @property
    def are_dicts(self) -> bool:
        """Whether an observation is a dict of arrays."""
        return isinstance(self.observations, FileDicts)

    @cached_property
    def terminated(self) -> NDArray[np.bool_]:
        return self.dones & ~self.timeouts

    @cached_property
    def truncated(self) -> NDArray[np.bool_]:
        return self.dones & self.timeouts

    def knows_next_of(self, row: int, env: int) -> bool:
        """Whether the observation after the transition belongs to the same episode."""
        return self.next_observations is not None or not self.terminated[row, env]

    def next_of(self, row: int, env: int) -> Any:  # noqa: ANN401 - an array, or a dict of them
        """Return the observation after the transition of this row.

        If next observations were not saved, the last one of an episode is lost, and this returns
        the first of the next episode, as SB3 does when it samples. Targets do not use it.
        """
        later = self.next_observations
        if later is None:
            return self.observations[(row + 1) % len(self.observations), env]
        return later[row, env]


@contextmanager
def opened_replay(path: Path, *, scratch: Path, progress: Progress) -> Iterator[SavedReplay]:
    """Open a buffer that may be compressed with gzip or zstd, as its first bytes show.

    A compressed buffer is unpacked to a file in `scratch`, which may be as large as the buffer was
    in memory. Memory does not grow with it.

    Raises:
        LakeError: the file is not such a buffer, or is damaged or unsafe, or the disk is too small.
    """
    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"\x80"):
        yield _replay(path, path)
        return
    open_stream = _decompressor(path, magic)
    with tempfile.TemporaryDirectory(dir=scratch, prefix=".unpacked-") as folder:
        plain = Path(folder) / "replay.pkl"
        try:
            with open_stream(path) as stream, plain.open("wb") as out:
                _copy(stream, out, path, progress)
        except (OSError, EOFError, zstandard.ZstdError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise LakeError(f"{path}: its compression is damaged or cut off ({error})") from None
        yield _replay(plain, path)


def has_checksum(path: Path) -> bool:
    """Whether damage to the file is found when it is read: by gzip's checksum, or zstd's if any."""
    with path.open("rb") as file:
        start = file.read(_MOST_HEADER)
    if start.startswith(_ZSTD):
        return zstandard.get_frame_parameters(start).has_checksum
    return start.startswith(_GZIP)


def _decompressor(path: Path, magic: bytes) -> Callable[[Path], IO[bytes]]:
    if magic.startswith(_GZIP):
        return lambda p: cast("IO[bytes]", gzip.open(p, "rb"))
    if magic.startswith(_ZSTD):
        return lambda p: zstandard.open(p, "rb")
    for start, what in _OTHERS.items():
        if magic.startswith(start):
            raise NoLakeError(f"{path} is {what}")
    raise NoLakeError(
        f"{path} is not a replay buffer of Stable-Baselines3: it begins with {magic.hex(' ')}, not "
        "with a pickle, gzip or zstd; name a file that save_replay_buffer wrote"
    )


def _copy(stream: IO[bytes], out: IO[bytes], path: Path, progress: Progress) -> None:
    """Copy, but leave a twentieth of the free disk space: a small file may unpack to a huge one."""
    limit = disk_free_bytes(Path(out.name).parent) * 19 // 20
    done = 0
    while data := stream.read(_CHUNK):
        done += len(data)
        if done > limit:
            raise LakeError(
                f"{path}: unpacked, it has more than {format_bytes(limit)}, which is too much for "
                "this disk; name an --output on another one"
            )
        out.write(data)
        progress("unpacking", done, 0)
    shutil.copystat(path, out.name)


def _replay(file: Path, path: Path) -> SavedReplay:
    """Read the pickle in `file`; error messages name `path`, which the user knows."""
    try:
        found = read_pickle(file)
    except LakeError as error:
        raise LakeError(str(error).replace(str(file), str(path))) from None
    if not isinstance(found, Record) or "observations" not in found.attributes:
        what = found.name if isinstance(found, Record) else type(found).__name__
        raise LakeError(f"{path} holds a {what}, not a ReplayBuffer of Stable-Baselines3")
    saved = _Attributes(file, path, found.attributes)
    observations = saved.observations("observations")
    are_pictures = isinstance(observations, np.ndarray)
    dones = saved.flags("dones", are_checked=not are_pictures)
    timeouts = np.zeros_like(dones)
    if "timeouts" in saved.values:
        timeouts = saved.flags("timeouts", are_checked=not are_pictures)
    is_full = bool(saved.values["full"])
    lean = bool(saved.values.get("optimize_memory_usage"))
    replay = SavedReplay(
        _rows(path, int(saved.values["pos"]), is_full=is_full, size=len(dones), lean=lean),
        is_full,
        are_pictures,
        observations,
        None if lean else saved.observations("next_observations"),
        saved.array("actions"),
        saved.array("rewards"),
        dones,
        timeouts,
    )
    _check_lengths(replay, path)
    return replay


def _check_lengths(replay: SavedReplay, path: Path) -> None:
    for name in ("observations", "next_observations", "actions", "rewards", "timeouts"):
        value = getattr(replay, name)
        arrays = value.arrays if isinstance(value, FileDicts) else {"": value}
        for key, each in arrays.items():
            if each is not None and each.shape[:2] != replay.dones.shape:
                what = f"{name} {key}".rstrip()
                raise LakeError(
                    f"{path}: {what} are {each.shape}, but dones are {replay.dones.shape}"
                )


@dataclass(frozen=True)
class _Attributes:
    """The attributes of a pickled buffer, whose arrays are in `file`."""

    file: Path
    path: Path
    values: dict[str, Any]

    def array(self, name: str) -> Array:
        return self._loaded(name, self.values.get(name))

    def observations(self, name: str) -> Any:  # noqa: ANN401 - an array, or dicts of them
        value = self.values.get(name)
        if isinstance(value, dict) and value:
            return FileDicts(
                {key: FileArray(self._loaded(name, each)) for key, each in value.items()}
            )
        found = self.array(name)
        if found.dtype != np.uint8 or found.ndim != 5:
            return FileArray(found)
        has_channels_last = found.shape[-1] < min(found.shape[2:4])
        return np.moveaxis(found, -1, 2) if has_channels_last else found

    def flags(self, name: str, *, are_checked: bool) -> NDArray[np.bool_]:
        found = self.array(name)
        if are_checked and not np.isin(found, (0, 1)).all():
            raise LakeError(f"{self.path}: its {name} are not all 0 or 1")
        return found > 0

    def _loaded(self, name: str, value: object) -> Array:
        if not isinstance(value, PickledArray):
            raise LakeError(f"{self.path}: its {name} are neither an array nor a dict of arrays")
        return value.load(self.file)


def _rows(path: Path, pos: int, *, is_full: bool, size: int, lean: bool) -> NDArray[np.int64]:
    """Return the rows of transitions, oldest first.

    A lean buffer has each next observation in the next row. If it is full, row `pos` was
    overwritten by the next observation of the newest transition.
    """
    if not 0 <= pos <= size:
        raise LakeError(f"{path}: the position {pos} is outside the buffer, which has {size} rows")
    if not is_full:
        return np.arange(pos)
    return (np.arange(pos + lean, pos + size)) % size


_LEAST_BYTES = 1 << 16  # smaller elements are views of the mapped file instead of reads


class FileArray:
    """An array [size, n_envs, ...] whose `array[row, env]` is read from the file on each access.

    The pages of a mapped file would stay in the process's memory, and the kernel may make them
    2 MiB large. An element that is read takes only its own size, while it is used.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, place: tuple[int, int]) -> NDArray[Any]:
        view: NDArray[Any] = self._array[place]
        array = self._array
        is_in_order = isinstance(array, np.memmap) and array.flags.c_contiguous
        if view.nbytes < _LEAST_BYTES or not is_in_order:
            return view
        assert isinstance(array, np.memmap)
        values = np.empty(view.shape, view.dtype)
        number = place[0] * self.shape[1] + place[1]
        left = memoryview(values.data).cast("B")
        with Path(str(array.filename)).open("rb", buffering=0) as file:
            file.seek(array.offset + number * view.nbytes)
            while left:
                n = file.readinto(left)
                if not n:
                    raise LakeError(f"{file.name} became shorter while it was read")
                left = left[n:]
        return values


@dataclass(frozen=True)
class FileDicts:
    """Dicts of arrays: `[row, env]` is a dict of one array of each of `arrays`."""

    arrays: Mapping[str, FileArray]

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def __getitem__(self, place: tuple[int, int]) -> dict[str, NDArray[Any]]:
        return {name: array[place] for name, array in self.arrays.items()}


def quiet(_what: str, _done: int, _total: int) -> None:
    """Report no progress."""
