"""An episode as a clip shows it: pictures, with an overlay of what the agent does, or in a grid."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, get_args

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from game_rl.emulator.emulator import FRAMES_PER_SECOND, picture_frames
from game_rl.playback.clip import KeptPictures, Picture

OverlayItem = Literal["action", "reward", "value"]
OVERLAY_ITEMS: tuple[OverlayItem, ...] = get_args(OverlayItem)

_END_S = 1.0  # for which the end of an episode stays visible
_PAPER = (24, 24, 24)
_INK = (240, 240, 240)
_FAINT = (160, 160, 160)
_LINE = 11  # pixels of a line of the font, and around the lines
_MARGIN = 2
_GAP = 2  # pixels between the screens of a grid


@dataclass(frozen=True, eq=False)
class ShownTimestep:
    """What is shown of a timestep.

    Attributes:
        pictures: each uint8 [144, 160, 3].
        action: name of the action that the game played.
        reward: sum of the rewards of the episode so far.
        value: what the policy expected before the action; None if nobody asked.
    """

    pictures: Sequence[Picture]
    action: str
    reward: float
    value: float | None = None


@dataclass(frozen=True, eq=False)
class ShownEpisode:
    """An episode that is shown while it is played.

    Attributes:
        label: a few words that tell it from others.
        timesteps: can be gone through once.
    """

    label: str
    timesteps: Iterable[ShownTimestep]


def hold_pictures(frame_skip: int) -> int:
    """Return the pictures for which the end of an episode stays visible."""
    return round(_END_S * FRAMES_PER_SECOND / picture_frames(frame_skip))


def in_a_row(
    episodes: Iterable[ShownEpisode], overlay: Collection[OverlayItem]
) -> Iterator[Picture]:
    """Yield the pictures of one episode after another."""
    for episode in episodes:
        yield from _pictures(episode, overlay)


def side_by_side(
    episodes: Iterable[ShownEpisode], overlay: Collection[OverlayItem]
) -> Iterator[Picture]:
    """Yield pictures of all episodes in a grid; one that has ended stays as it was at its end."""
    kept = []
    for episode in episodes:
        pictures = KeptPictures()
        for picture in _pictures(episode, overlay):
            pictures.add(picture)
        kept.append(pictures)
    columns = math.ceil(math.sqrt(len(kept)))
    last: list[Picture | None] = [None] * len(kept)
    for pictures_now in zip_longest(*kept):
        last = [old if new is None else new for old, new in zip(last, pictures_now, strict=True)]
        shown = [picture for picture in last if picture is not None]
        height, width = shown[0].shape[:2]
        rows = -(-len(shown) // columns)
        shape = (rows * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP, 3)
        grid = np.full(shape, _PAPER, np.uint8)
        for number, picture in enumerate(shown):
            top = (number // columns) * (height + _GAP)
            left = (number % columns) * (width + _GAP)
            grid[top : top + height, left : left + width] = picture
        yield grid


def _pictures(episode: ShownEpisode, overlay: Collection[OverlayItem]) -> Iterator[Picture]:
    for timestep in episode.timesteps:
        strip = _strip(episode.label, timestep, overlay) if overlay else None
        for picture in timestep.pictures:
            yield picture if strip is None else np.concatenate((picture, strip))


def _strip(label: str, timestep: ShownTimestep, overlay: Collection[OverlayItem]) -> Picture:
    """Return what stands below the screen: uint8 [26, 160, 3]."""
    action = timestep.action if "action" in overlay else ""
    reward = ""
    if "reward" in overlay:
        reward = f"reward {round(timestep.reward, 2) + 0.0:+.2f}"  # no -0.00
    value = "" if timestep.value is None else f"value {timestep.value:.2f}"
    strip = Image.new("RGB", (160, 2 * (_LINE + _MARGIN)), _PAPER)
    draw = ImageDraw.Draw(strip)
    font = ImageFont.load_default_imagefont()
    for line, (left, right, ink) in enumerate(((action, reward, _INK), (value, label, _FAINT))):
        top = _MARGIN // 2 + line * (_LINE + _MARGIN)
        end = 160 - _MARGIN - draw.textlength(_plain(right), font)
        draw.text((end, top), _plain(right), ink, font)
        shown = _plain(left)
        while shown and draw.textlength(shown, font) > end - 2 * _MARGIN:
            shown = shown[:-1]
        draw.text((_MARGIN, top), shown, _INK, font)
    return np.asarray(strip)


def _plain(text: str) -> str:
    """Return the text in the characters that the font has."""
    return text.encode("ascii", "replace").decode()
