"""The contact sheet of `game-rl check-game`: screens of the start states and of play."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from game_rl.emulator.emulator import SCREEN_HEIGHT, SCREEN_WIDTH
from game_rl.errors import UsageError

BACKGROUND = (32, 32, 32)
INK = (224, 224, 224)

_COLUMNS = 4
_GAP = 8
_LABEL_HEIGHT = 16


@dataclass(frozen=True, eq=False)
class Moment:
    """What is seen at a moment of play: the whole screen, and all parts that the game defines."""

    label: str
    screen: NDArray[np.uint8]  # [144, 160, 3] RGB
    parts: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def write_contact_sheet(moments: Sequence[Moment], path: Path) -> None:
    """Write the screens, four in a row, as a PNG to `path`.

    Raises:
        UsageError: the file cannot be written.
    """
    columns = min(_COLUMNS, max(1, len(moments)))
    rows = -(-len(moments) // columns)
    tile_width = SCREEN_WIDTH + _GAP
    tile_height = SCREEN_HEIGHT + _LABEL_HEIGHT + _GAP
    sheet = Image.new("RGB", (columns * tile_width + _GAP, rows * tile_height + _GAP), BACKGROUND)
    draw = ImageDraw.Draw(sheet)
    for index, moment in enumerate(moments):
        left = _GAP + index % columns * tile_width
        top = _GAP + index // columns * tile_height
        draw.text((left, top), moment.label, fill=INK)
        sheet.paste(Image.fromarray(moment.screen), (left, top + _LABEL_HEIGHT))
    save_sheet(sheet, path, "contact sheet")


def save_sheet(sheet: Image.Image, path: Path, what: str) -> None:
    """Save a sheet as a PNG.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sheet.save(path, format="PNG", optimize=True)
    except OSError as error:
        raise UsageError(
            f"the {what} {path} cannot be written ({error.strerror}); name another file"
        ) from None
