"""The schema of a Lake's rows, which is fixed when the Lake is created.

A row of a Lake of pictures has a frame: a screen, or the parts of a timestep. A row of a Lake of
arrays has any numbers, as bytes. An observation is the newest `frame_stack` rows: a window that
moves by one row, or, with a stack of one, a whole array.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from game_rl.envs.packing import FramePacking
from game_rl.files.saved import document_kind, from_document, to_document
from game_rl.games.parts.part_format import PartFormat, Stretch

if TYPE_CHECKING:  # it loads gymnasium, which the uploader's process would hold in memory
    from game_rl.envs.observation import ObservationFormat

_KIND = "lake of format 1"
_KIND_OF_ARRAYS = "lake of format 2"
_KIND_OF_PARTS = "lake of format 3"
_SCREEN = "screen"  # as in `envs.observation`, which is not imported here
_BLOCK_BYTES = 256 << 10  # of a Lake of arrays, before compression
_MOST_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class ArrayKind:
    """Dtype and shape of an observation in a Lake of arrays.

    Attributes:
        dtype: in NumPy's notation, such as "<f4".
        shape: shape of a whole observation.
    """

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class PartsKind:
    """The parts of an observation in a Lake whose observations are dicts: see ObservationFormat."""

    screen: FramePacking | None
    parts: tuple[tuple[str, PartFormat], ...]

    @property
    def packings(self) -> dict[str, FramePacking | PartFormat]:
        """How each part is packed, the screen included, in the order of a row."""
        screens = {} if self.screen is None else {_SCREEN: self.screen}
        return screens | dict(self.parts)

    @property
    def row_packing(self) -> FramePacking:
        """The bytes of one row."""
        return FramePacking((1, 1, sum(each.nbytes for each in self.packings.values())))

    def observation_bytes(self, stack: int) -> int:
        """Return the bytes of an observation as the network gets it."""
        screens = 0 if self.screen is None else stack * prod(self.screen.shape)
        return screens + sum(
            prod(part.stacked_shape(stack)) * part.dtype.itemsize for _, part in self.parts
        )

    def difference(self, ours: "PartsKind") -> str | None:
        """Return the first part that differs, with both forms; None if there is none."""
        there = self.packings
        here = ours.packings
        for name in sorted({*there, *here}):
            if name not in there:
                return f"the part {name} is missing there, and this run has it"
            if name not in here:
                return f"the part {name} is there, and this run does not have it"
            if what := packing_difference(there[name], here[name]):
                return f"the part {name}: {what}"
        return None

    @classmethod
    def parsed(cls, values: Any) -> "PartsKind":  # noqa: ANN401 - from JSON
        """The reverse of `asdict`, after a round trip through JSON."""
        screen = values["screen"]
        return cls(
            None if screen is None else _frame_packing(screen),
            tuple((name, _part_format(part)) for name, part in values["parts"]),
        )


@dataclass(frozen=True)
class LakeSchema:
    """The form of a Lake's rows.

    Attributes:
        packing: how one frame is packed; in a Lake of arrays or of parts, the bytes of one row.
        frame_stack: frames in an observation. A block repeats up to this many frames of its
            neighbours, but not in a Lake of arrays.
        action_dtype: uint8 for up to 256 discrete actions, else int64 or float32; in a Lake of
            arrays, the dtype of the original actions.
        action_shape: shape of one timestep's action.
        block_frames: the most frames that are compressed together.
        level: compression level of zstd. On frames of `duel`, level 9 takes 5 % less space than 1
            and still compresses 40,000 frames a second on one core; higher levels take ten times
            as long.
        arrays: form of an observation in a Lake of arrays; None in a Lake of pictures.
        parts: the parts of an observation where it has parts; None where it is a stack of screens.
    """

    packing: FramePacking
    frame_stack: int = 4
    action_dtype: str = "uint8"
    action_shape: tuple[int, ...] = ()
    block_frames: int = 64
    level: int = 9
    arrays: ArrayKind | None = None
    parts: PartsKind | None = None

    @classmethod
    def of(
        cls, observation_format: "ObservationFormat", *, n_actions: int, level: int = 9
    ) -> "LakeSchema":
        """Make the schema of a Lake that a run creates."""
        parts = None
        packing = observation_format.screen
        if observation_format.is_dict:
            parts = PartsKind(observation_format.screen, observation_format.parts)
            packing = parts.row_packing
        assert packing is not None
        return cls(
            packing,
            frame_stack=observation_format.stack,
            action_dtype="uint8" if n_actions <= 256 else "int64",
            block_frames=max(64, 4 * observation_format.stack),  # so blocks share few frames
            level=level,
            parts=parts,
        )

    @classmethod
    def of_arrays(
        cls, kind: ArrayKind, *, rows: int, action_dtype: str, action_shape: tuple[int, ...]
    ) -> "LakeSchema":
        """Make the schema of a Lake of arrays.

        Args:
            kind: dtype and shape of an observation.
            rows: rows along the first axis of an observation, which is then a window of that many
                rows; 1 to store whole observations.
            action_dtype: dtype of the actions.
            action_shape: shape of one timestep's action.
        """
        row_bytes = prod(kind.shape) * np.dtype(kind.dtype).itemsize // rows
        return cls(
            FramePacking((1, 1, row_bytes)),
            frame_stack=rows,
            action_dtype=action_dtype,
            action_shape=action_shape,
            block_frames=max(1, min(_BLOCK_BYTES // row_bytes, _MOST_BLOCK_ROWS)),
            level=3,  # numbers compress little, and level 9 needs megabytes of memory
            arrays=kind,
        )

    def __post_init__(self) -> None:
        if self.arrays is None and self.block_frames < self.frame_stack + 2:
            raise ValueError(
                f"block_frames is {self.block_frames}; a stack of {self.frame_stack} needs at "
                f"least {self.frame_stack + 2}"
            )

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        """Shape of a stack of screens; of bytes in a Lake of arrays or of parts."""
        channels, height, width = self.packing.shape
        return (self.frame_stack * channels, height, width)

    @property
    def context_rows(self) -> int:
        """The most rows that a block repeats of the one before: what the longest stack needs."""
        if self.parts is None or self.parts.screen is not None:
            return self.frame_stack
        return self.frame_stack if any(part.is_stacked for _, part in self.parts.parts) else 1

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of a block in memory."""
        action = np.dtype((self.action_dtype, self.action_shape))
        return self.packing.nbytes + action.itemsize + 9

    @property
    def raw_bytes(self) -> int:
        """Bytes that SB3's ReplayBuffer takes for a transition.

        It stores two stacks, an action, a reward, a done and a timeout.
        """
        action = max(1, prod(self.action_shape))
        is_kept_as_is = self.arrays is not None or self.action_dtype == "float32"
        kind = np.dtype(self.action_dtype if is_kept_as_is else np.int64)
        observation = prod(self.observation_shape)
        if self.parts is not None:
            observation = self.parts.observation_bytes(self.frame_stack)
        return 2 * observation + action * kind.itemsize + 3 * 4

    @property
    def description(self) -> str:
        """Description of an observation for people."""
        if self.parts is not None:
            names = ", ".join(sorted(self.parts.packings))
            return (
                f"the parts {names} in {self.packing.nbytes:,} bytes, stacks of {self.frame_stack}"
            )
        if self.arrays is None:
            return f"stacks of {self.frame_stack} frames, {self.packing.bits} bits a pixel"
        what = f"{np.dtype(self.arrays.dtype).name} {self.arrays.shape}"
        is_window = self.frame_stack > 1
        return f"windows of {self.frame_stack} rows, {what}" if is_window else f"arrays of {what}"

    def difference(self, ours: "LakeSchema") -> str | None:
        """Return the first difference of a Lake's rows from `ours` with both values.

        None if the two agree, whatever their blocks and compression levels are.
        """
        if (self.parts is None) != (ours.parts is None):
            return f"observations are {self.description} there, {ours.description} in this run"
        if self.parts is not None and ours.parts is not None:
            what = self.parts.difference(ours.parts)
        else:
            what = packing_difference(self.packing, ours.packing)
            what = None if what is None else f"packing.{what}"
        return what or _difference(self, ours, _COMPARED)

    def to_json(self) -> str:
        values = asdict(self)
        if self.arrays is not None:
            del values["parts"]
            return to_document(_KIND_OF_ARRAYS, values)
        del values["arrays"]
        if self.parts is not None:
            del values["packing"]
            return to_document(_KIND_OF_PARTS, values)
        del values["parts"]
        return to_document(_KIND, values)

    @classmethod
    def from_json(cls, text: str, *, source: object) -> "LakeSchema":
        """The reverse of `to_json`.

        Raises:
            LakeError: the text, which is from `source`, has another format or is damaged.
        """
        kind = document_kind(text)
        if kind not in (_KIND_OF_ARRAYS, _KIND_OF_PARTS):
            kind = _KIND
        values = from_document(text, kind, source=source)
        values["action_shape"] = tuple(values["action_shape"])
        if kind == _KIND_OF_PARTS:
            parts = PartsKind.parsed(values.pop("parts"))
            return cls(parts.row_packing, parts=parts, **values)
        if kind == _KIND_OF_ARRAYS:
            arrays = values["arrays"]
            values["arrays"] = ArrayKind(arrays["dtype"], tuple(arrays["shape"]))
        return cls(packing=_frame_packing(values.pop("packing")), **values)


_COMPARED = ("arrays", "frame_stack", "action_dtype", "action_shape")


def packing_difference(
    theirs: FramePacking | PartFormat, ours: FramePacking | PartFormat
) -> str | None:
    """Return the first attribute that differs with both values; None if the two are equal."""
    return _difference(theirs, ours, [field.name for field in fields(theirs)])


def _difference(theirs: object, ours: object, names: Iterable[str]) -> str | None:
    for name in names:
        there = getattr(theirs, name)
        here = getattr(ours, name)
        if there != here:
            return f"{name}: {there} there, {here} in this run"
    return None


def _frame_packing(values: Any) -> FramePacking:  # noqa: ANN401 - from JSON
    return FramePacking(**{**values, "shape": tuple(values["shape"])})


def _part_format(values: Any) -> PartFormat:  # noqa: ANN401 - from JSON
    stretches = tuple(Stretch(**each) for each in values["stretches"])
    return PartFormat(**{**values, "shape": tuple(values["shape"]), "stretches": stretches})
