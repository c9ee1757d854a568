"""Parse and format sizes and durations for people."""

import re

from game_rl.errors import UsageError
from game_rl.statistics import percentage

KIB = 2**10
MIB = 2**20
GIB = 2**30

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", start=1):
    _UNITS |= {f"{_letter}IB": 2 ** (10 * _power), f"{_letter}B": 10 ** (3 * _power)}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def parse_bytes(text: str) -> int:
    """Parse "32GiB", "1.5 GB" or "4096" as bytes; KiB..TiB are powers of 1024, KB..TB of 1000.

    Raises:
        UsageError: the text is not a number with one of these units.
    """
    match = _SIZE.fullmatch(text.strip())
    factor = _UNITS.get(match[2].upper()) if match else None
    if match is None or factor is None:
        raise UsageError(f"{text!r} is not a size; write a number and a unit, such as 32GiB")
    return round(float(match[1]) * factor)


def format_bytes(size: int) -> str:
    """Format a size: "4.22 GiB", "90.0 MiB", "512 B"."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(size) >= unit:
            value = size / unit
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {name}"
    return f"{size} B"


def counted(number: int, noun: str) -> str:
    """Return a number with a noun, such as "1 core" or "2,000 cores"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def with_frames(timesteps: int, frame_skip: int, waited_frames: int = 0) -> str:
    """Format timesteps with their emulator frames: "200,000 (800,000 frames)".

    Args:
        waited_frames: frames beyond `frame_skip` in each of them.
    """
    return f"{timesteps:,} ({timesteps * frame_skip + waited_frames:,} frames)"


def format_duration(seconds: float) -> str:
    """Format a duration in two units: "5 min 20 s", "3 h 10 min"; "4.2 s" below ten seconds."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    for size, name, small, small_name in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        # rounded in the smaller unit first, so that it never says "1 h 60 min"
        count, rest = divmod(round(seconds / small), size // small)
        if count:
            return f"{count} {name} {rest} {small_name}" if rest else f"{count} {name}"
    return f"{seconds:.0f} s"


def format_deviation(error: float) -> str:
    """Say how far a prediction is from the measurement.

    Args:
        error: predicted / measured - 1.
    """
    percent = percentage(abs(error), 1)
    if float(percent) == 0:
        return "as measured"
    return f"{percent} % {'more' if error > 0 else 'less'} than measured"
