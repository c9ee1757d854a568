"""A wrong config, and what its user must be told: cause and fix, key and line."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WrongConfig:
    """One mistake.

    Attributes:
        name: of the test.
        content: of the file.
        told: fragments of one line of the message: the place, the dotted key, cause and fix.
        overrides: given with --set.
    """

    name: str
    content: str | bytes
    told: tuple[str, ...]
    overrides: tuple[str, ...] = ()


VALID = "game: duel\ntotal_timesteps: 400_000\nrun_dir: runs/test\n"


def valid_and(lines: str) -> str:
    """Return a valid config and these lines, the first of which is line 4."""
    return VALID + lines


def overridden(name: str, override: str, *told: str) -> WrongConfig:
    return WrongConfig(name, VALID, told, (override,))
