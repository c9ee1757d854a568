"""The file that places the maps of a game beside each other, as one world."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from game_rl.config.loader import load_yaml_model
from game_rl.config.strict_model import StrictModel
from game_rl.errors import GameFileError

Offsets = dict[int, tuple[int, int]]
_Offset = Annotated[int, Field(ge=-(2**31), lt=2**31)]


class MapOffsets(StrictModel):
    """`maps: {0: [0, 0], 12: [10, -36]}`: the x and y in the world of each map's place 0, 0."""

    maps: Annotated[dict[int, tuple[_Offset, _Offset]], Field(min_length=1)]


def read_map_offsets(path: Path) -> Offsets:
    """Return the offset of each map.

    Raises:
        GameFileError: there is no such file, or it is none of this form.
    """
    return load_yaml_model(path, MapOffsets, error=GameFileError).maps
