"""One PNG with many labelled screens."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from game_rl.emulator.emulator import SCREEN_HEIGHT, SCREEN_WIDTH
from game_rl.errors import UsageError

_COLUMNS = 4
_GAP = 8
_LABEL_HEIGHT = 16
_BACKGROUND, _INK = (32, 32, 32), (224, 224, 224)


@dataclass(frozen=True, eq=False)
class LabelledScreen:
    label: str
    screen: NDArray[np.uint8]  # [144, 160, 3] RGB


def write_contact_sheet(screens: Sequence[LabelledScreen], path: Path) -> None:
    """Write the screens, four in a row, as a PNG to `path`.

    Raises:
        UsageError: the file cannot be written.
    """
    columns = min(_COLUMNS, max(1, len(screens)))
    rows = -(-len(screens) // columns)
    tile_width, tile_height = SCREEN_WIDTH + _GAP, SCREEN_HEIGHT + _LABEL_HEIGHT + _GAP
    sheet = Image.new("RGB", (columns * tile_width + _GAP, rows * tile_height + _GAP), _BACKGROUND)
    draw = ImageDraw.Draw(sheet)
    for index, labelled in enumerate(screens):
        left = _GAP + index % columns * tile_width
        top = _GAP + index // columns * tile_height
        draw.text((left, top), labelled.label, fill=_INK)
        sheet.paste(Image.fromarray(labelled.screen), (left, top + _LABEL_HEIGHT))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sheet.save(path, format="PNG")
    except OSError as error:
        raise UsageError(
            f"the contact sheet {path} cannot be written ({error.strerror}); name another file"
        ) from None
