"""States of older formats of PyBoy, completed so that PyBoy 2.8 can read them.

PyBoy reads states of every earlier format, but 2.8 (format 29) also expects some bytes in them that
only later formats have: of the LCD, and from format 14 on of the sound. It then takes all that
follows for something else. The missing bytes are put in here, with the values of a console at rest:
0, and for the volume register 0x77. Nothing is heard of the sound, and its registers read as 0 in a
PyBoy without sound. Tried with states of PyBoy 1.6, 2.2, 2.4, 2.5, 2.6 and 2.7, which have formats
9, 11, 12, 14, 15 and 17.
"""

from typing import NamedTuple

FORMAT_THAT_MISSES_BYTES = 29

_LCD_IN_STATES = 8  # the first format with each
_SOUND_IN_STATES = 14
_VOLUME_IN_STATES = 17
_VIDEO_RAM = 8_192
_SPRITES = 160
_SCANLINES = 5 * 144
_COLOUR_LCD = _VIDEO_RAM + 1 + 2 * (4 + 64)  # the other bank, its number, palettes
_TONE_CHANNEL = 57  # bytes of a channel, of the sweep before and after
_SWEEP = 11
_SWEEP_TAIL = 9
_WAVE_CHANNEL = 55
_SHIFT = 8
_VOLUME = b"\x77"


class _Gap(NamedTuple):
    """Bytes that are missing `after` bytes from the gap before it."""

    after: int
    missing: bytes


def completed(raw: bytes, *, colour: bool) -> bytes:
    """Return an older state with the bytes that it lacks; a short one comes back as it is."""
    done = bytearray()
    place = 0
    for gap in _gaps(raw, colour=colour):
        done += raw[place : place + gap.after] + gap.missing
        place += gap.after
    return bytes(done + raw[place:])


def _gaps(raw: bytes, *, colour: bool) -> list[_Gap]:
    version = raw[0]
    if version < _LCD_IN_STATES:
        return []
    gaps = [_Gap(_up_to_the_lcd(version, colour=colour), bytes(1))]
    if version >= _SOUND_IN_STATES:
        gaps += _gaps_of_sound(raw, gaps[0].after + (_COLOUR_LCD if colour else 0), colour=colour)
    return gaps


def _up_to_the_lcd(version: int, *, colour: bool) -> int:
    """Return how many bytes stand before the one that the LCD lacks."""
    console = 5 + (version >= 16) + (10 if colour else 0)
    cpu = 18 + 8 * (version >= 12)
    picture = _VIDEO_RAM + _SPRITES + 11 + (version >= 16) + _SCANLINES * (version >= 11)
    lcd = 19 + (version >= 17) + 3 * (version >= 13) + 8 * (version >= 12)
    return console + cpu + picture + lcd


def _gaps_of_sound(raw: bytes, start: int, *, colour: bool) -> list[_Gap]:
    """Return the gaps of the sound, which begins at `start`; the first counts from the LCD's."""
    samples = int.from_bytes(raw[start + 8 : start + 16], "little")
    mixer = 24 + 2 * (samples + 1) + 1 + 7 * 8 + 2 + 8  # buffer, speed, times, switches, sides
    before = mixer + (_COLOUR_LCD if colour else 0)
    gaps = []
    sweep = _TONE_CHANNEL + _SWEEP
    if raw[0] < _VOLUME_IN_STATES:
        gaps.append(_Gap(before, _VOLUME))
    else:
        sweep += before + len(_VOLUME)
    return [
        *gaps,
        _Gap(sweep, bytes(9)),
        _Gap(_SWEEP_TAIL + _TONE_CHANNEL + _WAVE_CHANNEL, bytes(1)),
        _Gap(_SHIFT, bytes(1)),
    ]
