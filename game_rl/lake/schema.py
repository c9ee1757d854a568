"""What every row of a Lake looks like; fixed when the Lake is created."""

from dataclasses import asdict, dataclass
from typing import Literal

from game_rl.envs.packing import FramePacking
from game_rl.lake.checked_json import from_document, to_document

_KIND = "lake of format 1"


@dataclass(frozen=True)
class LakeSchema:
    """The rows of a Lake.

    Attributes:
        packing: of one frame.
        frame_stack: frames in an observation; a block repeats as many of its neighbours' frames.
        action_dtype: uint8 for up to 256 discrete actions.
        action_shape: of one timestep's action.
        block_frames: the most frames that are compressed together.
        level: zstd's. On frames of `duel`, 9 takes 5 % less than 1 and still compresses 40,000 of
            them a second on one core; above 9 it takes ten times as long.
    """

    packing: FramePacking
    frame_stack: int = 4
    action_dtype: Literal["uint8", "int64", "float32"] = "uint8"
    action_shape: tuple[int, ...] = ()
    block_frames: int = 64
    level: int = 9

    def __post_init__(self) -> None:
        if self.block_frames < self.frame_stack + 2:
            raise ValueError(
                f"block_frames is {self.block_frames}; a stack of {self.frame_stack} needs at "
                f"least {self.frame_stack + 2}"
            )

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        channels, height, width = self.packing.shape
        return (self.frame_stack * channels, height, width)

    def to_json(self) -> str:
        return to_document(_KIND, asdict(self))

    @classmethod
    def from_json(cls, text: str, *, source: object) -> "LakeSchema":
        """The reverse of `to_json`.

        Raises:
            LakeError: `source`, which the text is from, is of another format or damaged.
        """
        values = from_document(text, _KIND, source=source)
        packing = values.pop("packing")
        packing["shape"] = tuple(packing["shape"])
        values["action_shape"] = tuple(values["action_shape"])
        return cls(packing=FramePacking(**packing), **values)
