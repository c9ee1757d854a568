"""A replay's storage computed from plain numbers, for observations that no Game Boy gives.

`game-rl preflight --storage shape=504x108x9,dtype=float32,capacity=200_000,…` answers for any
replay what the preflight of a config answers for a Game Boy's: how many bytes a timestep takes,
when a disk is full, and how much of the capacity is ever filled.
"""

from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from game_rl.errors import UsageError
from game_rl.preflight.disk_plan import number_table, sizes_table
from game_rl.statistics import percent
from game_rl.system.units import GIB, format_bytes, parse_bytes

_DTYPES = {"uint8": 1, "int8": 1, "bool": 1, "float16": 2, "int16": 2, "float32": 4, "float64": 8}
_REWARD_BYTES = 4
_DONE_BYTES = 1
_MARGIN_FRACTION = 0.1
_MOST_ROWS = 6
_EXAMPLE = (
    "shape=504x108x9,dtype=float32,capacity=200_000,per_generation=2_000,generations=25,"
    "members=16,weights=15MB,action=864,saved=0.65,installation=20GB,disk=250GB"
)


@dataclass(frozen=True, kw_only=True)
class PlainStorage:
    """A replay and the checkpoints beside it, in plain numbers.

    Attributes:
        shape: of an observation.
        dtype: of its numbers.
        capacity: number of timesteps that the replay holds.
        per_generation: timesteps that all members together add in a generation.
        members: number of checkpoints beside the replay.
        weights_bytes: size of each of them.
        action_bytes: size of an action.
        saved: share of the bytes that compression saves on disk, 0..1; 0 without compression.
        installation_bytes: system, Python and libraries, if they are on the same disk.
        disk_bytes: size of the disk; None if it is not known.
    """

    shape: tuple[int, ...]
    dtype: str
    capacity: int
    per_generation: int
    generations: int = 1
    members: int = 1
    weights_bytes: int = 0
    action_bytes: int = 1
    saved: float = 0.0
    installation_bytes: int = 0
    disk_bytes: int | None = None

    @property
    def observation_bytes(self) -> int:
        return prod(self.shape) * _DTYPES[self.dtype]

    @property
    def _scalars_bytes(self) -> int:
        return self.action_bytes + _REWARD_BYTES + _DONE_BYTES

    @property
    def pair_bytes(self) -> int:
        """Bytes of a timestep with its observation and the next one, as SB3's ReplayBuffer has."""
        return 2 * self.observation_bytes + self._scalars_bytes

    @property
    def single_bytes(self) -> int:
        """Bytes of a timestep whose next observation is stored with the next timestep alone."""
        return self.observation_bytes + self._scalars_bytes

    def filled(self, generation: int) -> int:
        """Return how many timesteps the replay holds after a generation, counted from 1."""
        return min(self.capacity, generation * self.per_generation)

    def replay_bytes(self, generation: int) -> int:
        """Return the size of the replay's file, with pairs of observations, after a generation."""
        return round(self.filled(generation) * self.pair_bytes * (1 - self.saved))

    def at_end_bytes(self, generation: int) -> int:
        """Return what is on the disk after a generation."""
        checkpoints = self.members * self.weights_bytes
        return self.installation_bytes + checkpoints + self.replay_bytes(generation)

    @property
    def total_bytes(self) -> int:
        """What is on the disk at the end."""
        return self.at_end_bytes(self.generations)

    def needed_bytes(self, generation: int) -> int:
        """Return the most that is on the disk up to the end of a generation.

        A file is replaced by writing the new one beside it, so the replay is there twice.
        """
        before = self.replay_bytes(generation - 1) if generation > 1 else 0
        return self.at_end_bytes(generation) + before

    @property
    def minimum_bytes(self) -> int:
        return self.needed_bytes(self.generations)

    @property
    def recommended_bytes(self) -> int:
        """The minimum, with room for other programs' files and for frames that compress less."""
        return round(self.minimum_bytes * (1 + _MARGIN_FRACTION)) + GIB

    @property
    def comfortable_bytes(self) -> int:
        """The recommended size, with the checkpoints of every generation kept."""
        earlier = (self.generations - 1) * self.members * self.weights_bytes
        return self.recommended_bytes + earlier

    @property
    def full_at(self) -> int | None:
        """The generation at whose end the disk is full; None if all fit, or it is not known."""
        if self.disk_bytes is None:
            return None
        every = range(1, self.generations + 1)
        return next((g for g in every if self.needed_bytes(g) > self.disk_bytes), None)

    def to_json(self) -> dict[str, Any]:
        every = range(1, self.generations + 1)
        rows = [
            {
                "generation": g,
                "timesteps": self.filled(g),
                "pairs_bytes": self.filled(g) * self.pair_bytes,
                "single_bytes": self.filled(g) * self.single_bytes,
                "on_disk_bytes": self.replay_bytes(g),
            }
            for g in every
        ]
        return asdict(self) | {
            "pair_bytes": self.pair_bytes,
            "single_bytes": self.single_bytes,
            "total_bytes": self.total_bytes,
            "minimum_bytes": self.minimum_bytes,
            "recommended_bytes": self.recommended_bytes,
            "comfortable_bytes": self.comfortable_bytes,
            "full_at_generation": self.full_at,
            "rows": rows,
        }


def parse_storage(text: str) -> PlainStorage:
    """Return what `--storage` describes.

    Raises:
        UsageError: a name is unknown or repeated, a value is invalid, or a needed one is missing.
    """
    given: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in _NAMES:
            raise UsageError(f"--storage: {part!r} is not one of {', '.join(_NAMES)}; {_help()}")
        if name in given:
            raise UsageError(f"--storage: {name} is given twice; {_help()}")
        given[name] = value
    for name in ("shape", "capacity"):
        if name not in given:
            raise UsageError(f"--storage: {name} is missing; {_help()}")
    capacity = _number("capacity", given["capacity"])
    dtype = given.get("dtype", "uint8")
    if dtype not in _DTYPES:
        raise UsageError(f"--storage: dtype is {dtype!r}; write one of {', '.join(_DTYPES)}")
    disk = given.get("disk")
    return PlainStorage(
        shape=tuple(_number("shape", side) for side in given["shape"].lower().split("x")),
        dtype=dtype,
        capacity=capacity,
        per_generation=_number("per_generation", given.get("per_generation", str(capacity))),
        generations=_number("generations", given.get("generations", "1")),
        members=_number("members", given.get("members", "1")),
        weights_bytes=parse_bytes(given.get("weights", "0")),
        action_bytes=parse_bytes(given.get("action", "1")),
        saved=_share(given.get("saved", "0")),
        installation_bytes=parse_bytes(given.get("installation", "0")),
        disk_bytes=None if disk is None else parse_bytes(disk),
    )


_NAMES = (
    *("shape", "dtype", "capacity", "per_generation", "generations", "members", "weights"),
    *("action", "saved", "installation", "disk"),
)


def _help() -> str:
    return f"write for example {_EXAMPLE}"


def _number(name: str, text: str) -> int:
    digits = text.replace("_", "")
    if not (digits.isascii() and digits.isdecimal() and int(digits)):
        raise UsageError(f"--storage: {name} must be a whole number above 0, found {text!r}")
    return int(digits)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise UsageError(
            f"--storage: saved is the share of bytes that compression saves, 0 to 1, not {text!r}"
        )
    return share


def render_storage(storage: PlainStorage) -> RenderableType:
    """Render the storage for people: a timestep, the growth, the disk, what is never filled."""
    sides = " x ".join(map(str, storage.shape))
    timestep = Text(
        f"timestep  {format_bytes(storage.pair_bytes)} with the next observation, "
        f"{format_bytes(storage.single_bytes)} without ({sides} {storage.dtype}: "
        f"{format_bytes(storage.observation_bytes)} each)"
    )
    sizes = sizes_table(
        ("in total", storage.total_bytes, "what is there at the end"),
        ("minimum", storage.minimum_bytes, "it ends: a new file is written next to the old one"),
        (
            "recommended",
            storage.recommended_bytes,
            f"a margin of {percent(_MARGIN_FRACTION)} and 1 GiB",
        ),
        ("comfortable", storage.comfortable_bytes, "checkpoints of all generations are kept"),
    )
    return Group(timestep, _growth(storage), sizes, *_notes(storage))


def _growth(storage: PlainStorage) -> Table:
    names = ("generation", "timesteps", "with next observations", "each once", "file")
    table = number_table(*names)
    step = max(1, -(-storage.generations // (_MOST_ROWS - 1)))
    for g in sorted({1, *range(step, storage.generations + 1, step), storage.generations}):
        filled = storage.filled(g)
        table.add_row(
            f"{g:,}",
            f"{filled:,}",
            format_bytes(filled * storage.pair_bytes),
            format_bytes(filled * storage.single_bytes),
            format_bytes(storage.replay_bytes(g)),
        )
    return table


def _notes(storage: PlainStorage) -> list[Text]:
    notes = []
    filled = storage.filled(storage.generations)
    if filled < storage.capacity:
        unused = (storage.capacity - filled) * storage.pair_bytes
        notes.append(
            Text(
                f"the replay is never full: {filled:,} of {storage.capacity:,} timesteps are ever "
                f"in it; capacity={filled:_} would be enough, and where memory is reserved at the "
                f"start it takes {format_bytes(unused)} less"
            )
        )
    if storage.disk_bytes is not None:
        full_at = storage.full_at
        disk = f"a disk of {format_bytes(storage.disk_bytes)}"
        if full_at is None:
            notes.append(Text(f"{disk} suffices"))
        else:
            notes.append(Text(f"{disk} is full at the end of generation {full_at:,}", "bold red"))
    return notes
