"""The schema of a Lake's rows, which is fixed when the Lake is created.

A row of a Lake of pictures has a frame. A row of a Lake of arrays has any numbers, as bytes. An
observation is the newest `frame_stack` rows: a window that moves by one row, or, with a stack of
one, a whole array.
"""

from dataclasses import asdict, dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from game_rl.envs.packing import FramePacking
from game_rl.saved import document_kind, from_document, to_document

if TYPE_CHECKING:  # it loads gymnasium, which the uploader's process would hold in memory
    from game_rl.envs.observation import ObservationFormat

_KIND = "lake of format 1"
_KIND_OF_ARRAYS = "lake of format 2"
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
class LakeSchema:
    """The form of a Lake's rows.

    Attributes:
        packing: how one frame is packed; in a Lake of arrays, the bytes of one row.
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
    """

    packing: FramePacking
    frame_stack: int = 4
    action_dtype: str = "uint8"
    action_shape: tuple[int, ...] = ()
    block_frames: int = 64
    level: int = 9
    arrays: ArrayKind | None = None

    @classmethod
    def of(
        cls, observation_format: "ObservationFormat", *, n_actions: int, level: int = 9
    ) -> "LakeSchema":
        """Make the schema of a Lake that a run creates."""
        return cls(
            observation_format.screen,
            frame_stack=observation_format.stack,
            action_dtype="uint8" if n_actions <= 256 else "int64",
            block_frames=max(64, 4 * observation_format.stack),  # so blocks share few frames
            level=level,
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
        channels, height, width = self.packing.shape
        return (self.frame_stack * channels, height, width)

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
        return 2 * prod(self.observation_shape) + action * kind.itemsize + 3 * 4

    @property
    def description(self) -> str:
        """Description of an observation for people."""
        if self.arrays is None:
            return f"stacks of {self.frame_stack} frames, {self.packing.bits} bits a pixel"
        what = f"{np.dtype(self.arrays.dtype).name} {self.arrays.shape}"
        is_window = self.frame_stack > 1
        return f"windows of {self.frame_stack} rows, {what}" if is_window else f"arrays of {what}"

    def to_json(self) -> str:
        values = asdict(self)
        if self.arrays is None:
            del values["arrays"]
            return to_document(_KIND, values)
        return to_document(_KIND_OF_ARRAYS, values)

    @classmethod
    def from_json(cls, text: str, *, source: object) -> "LakeSchema":
        """The reverse of `to_json`.

        Raises:
            LakeError: the text, which is from `source`, has another format or is damaged.
        """
        is_of_arrays = document_kind(text) == _KIND_OF_ARRAYS
        kind = _KIND_OF_ARRAYS if is_of_arrays else _KIND
        values = from_document(text, kind, source=source)
        if is_of_arrays:
            arrays = values["arrays"]
            values["arrays"] = ArrayKind(arrays["dtype"], tuple(arrays["shape"]))
        packing = values.pop("packing")
        packing["shape"] = tuple(packing["shape"])
        values["action_shape"] = tuple(values["action_shape"])
        return cls(packing=FramePacking(**packing), **values)
