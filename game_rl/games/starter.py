"""`game-rl new-game ROM`: writes a valid game.yaml to begin from."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from textwrap import TextWrapper

from game_rl.config.yaml_tree import has_half_character
from game_rl.emulator.rom import read_rom
from game_rl.errors import UsageError

_SYMBOL_SUFFIXES = (".sym", ".noi", ".map")

_HEAD = """\
# yaml-language-server: $schema=game.schema.json
# {title}. The walk through this file is docs/tutorials/your-own-game.md; after each change run
#   game-rl check-game {file}
{source}title: {title}
rom:
  path: {rom}
  sha256: "{sha256}"   # of this revision of the game: addresses differ between revisions
{symbols}
hardware: {hardware}   # dmg: four shades, which take less memory; cgb: Game Boy Color
"""

_SECTIONS = {
    "start_states": """\
# Where episodes start: what to press from power-on, in frames (60 a second). The logo takes about
# 80 of them. Look at the contact sheet of check-game, and continue until the player can act.
start_states:
  beginning:
    script:
      - {wait: 180}
      - {hold: [start], frames: 4}
      - {wait: 60}
""",
    "actions": """\
# The buttons held through a timestep (4 frames by default): a, b, start, select, up, down, left,
# right. {hold: [a], frames: 2} presses A and releases it, so that each time is a new press. Leave
# out what the agent does not need: it has to try every action.
actions:
  idle: []
  left: [left]
  right: [right]
  up: [up]
  down: [down]
  a: [a]
  b: [b]
""",
    "variables": """\
# Where the game keeps its numbers. Types: u8 u16 u24 u32 s8 s16 s24 s32, bcd and digits (with
# bytes: 3, say), bit (with bit: 0 to 7) and bits (an array, with bytes); longer ones have endian:
# little (the default) or big; banked RAM has bank.
# THIS ONE IS A GUESS: replace it by real addresses. They are in work RAM (0xC000 to 0xDFFF), high
# RAM (0xFF80 to 0xFFFE), or the cartridge's RAM (0xA000 to 0xBFFF).
variables:
  score: {address: 0xC000, type: u8}
  # lives: {address: 0xC0A1, type: u8}
  # points: {address: 0xC0A2, type: bcd, bytes: 3, endian: big}
""",
    "rewards": """\
# What the agent learns. on: increase or decrease (weight x amount), change (weight each time),
# equals (weight each timestep with value: n), value (weight x value). once: true, once an episode.
rewards:
  score_up: {variable: score, on: increase, weight: 0.01}
  # life_lost: {variable: lives, on: decrease, weight: -1.0}
""",
    "endings": """\
# What ends an episode: equals: n, in: [n, m], at_most: n, at_least: n, increases: true and more.
# endings:
#   game_over: {variable: lives, equals: 0}
""",
    "success": """\
# What counts as a success in the reports.
# success: {variable: score, at_least: 100}
""",
    "observation": """\
# The part of the screen that the agent sees; without it the whole one.
# observation: {crop: {top: 0, left: 0, height: 144, width: 160}}
""",
}
"""What a starter says under each key, unless it is known."""


@dataclass(frozen=True)
class KnownGame:
    """What others have found out about a game, for its game.yaml.

    Attributes:
        source: where it is from, as in "is from SOURCE".
        sections: the YAML text of each key that is known, which begins with its comments, and ends
            with a line break. It stands in place of what a starter says. Whoever gives `variables`
            gives `rewards`, too.
        notes: sentences on what could not be taken over.
        see_also: a sentence on what else there is.
        title: the game's name, if it is known better than the cartridge says it.
    """

    source: str
    sections: Mapping[str, str]
    notes: tuple[str, ...] = ()
    see_also: str | None = None
    title: str | None = None


def write_starter(
    rom_path: Path,
    folder: Path,
    known: KnownGame | None = None,
    *,
    found: Mapping[str, str] | None = None,
) -> Path:
    """Write `folder`/game.yaml for the ROM and return its path.

    Args:
        known: what stands there in place of guesses.
        found: sections that playing has found, in place of guesses. What is known goes first, and
            what names variables of another section goes with it.

    Raises:
        RomError: the file is not a ROM that game_rl can run.
        UsageError: there already is a game.yaml, or it cannot be written.
    """
    rom = read_rom(rom_path, named_by="the path")
    path = folder / "game.yaml"
    title = None if known is None else known.title
    source = ""
    if known is not None:
        source = _source_lines(known)
    head = _HEAD.format(
        source=source,
        title=quoted(title or rom.title.title() or rom.path.stem),
        file=in_one_line(quote(str(path))),
        rom=quoted(_relative(rom.path, folder)),
        sha256=rom.sha256,
        symbols=_symbols_line(rom.path, folder),
        hardware="cgb" if rom.supports_colour else "dmg",
    )
    sections = _SECTIONS | dict(found or {})
    if known is not None:
        if "variables" in known.sections:
            sections.update({key: _SECTIONS[key] for key in ("variables", "rewards", "endings")})
        sections.update(known.sections)
    text = "\n".join((head, *sections.values()))
    if has_half_character(text):
        raise UsageError(f"{rom_path} has a name that is not UTF-8, which YAML requires; rename it")
    write_new(path, text)
    return path


def check_new(folder: Path, names: Iterable[str]) -> None:
    """Refuse a folder that is a file, or that has one of the files already.

    Raises:
        UsageError: as said.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, not a folder; name another folder")
    for name in names:
        if (folder / name).exists():
            raise _exists(folder / name)


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, and its folder.

    Raises:
        UsageError: it is there already, or cannot be written.
    """
    check_new(path.parent, ())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise _exists(path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be written ({reason}); name another folder") from None


def _exists(path: Path) -> UsageError:
    return UsageError(f"{path} exists already; name another folder, or move the file away")


def _source_lines(known: KnownGame) -> str:
    """Return the comment that says where what is known is from, and what could not be taken."""
    lines = [f"# What is known of this game is from {in_one_line(known.source)}."]
    notes = known.notes if known.see_also is None else (*known.notes, known.see_also)
    for note in notes:
        wrap = TextWrapper(98, initial_indent="# - ", subsequent_indent="#   ")
        wrap.break_long_words = False
        lines += wrap.wrap(in_one_line(note))
    return "\n".join((*lines, ""))


def symbols_beside(rom_path: Path) -> Path | None:
    """Return the symbol file that has the ROM's name, if there is one next to it."""
    candidates = (rom_path.with_suffix(suffix) for suffix in _SYMBOL_SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)


def _symbols_line(rom_path: Path, folder: Path) -> str:
    path = symbols_beside(rom_path)
    if path is not None:
        return f"symbols: {quoted(_relative(path, folder))}"
    return "# symbols: game.sym   # lets variables say `symbol: name` instead of `address: 0xC000`"


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # on another drive
        return path.resolve().as_posix()


def quoted(text: str) -> str:
    """Return the text as a double-quoted YAML string."""
    return '"' + in_one_line(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def in_one_line(text: str) -> str:
    """Replace line breaks and other characters that are not printable by YAML escapes."""
    return "".join(
        c if c.isprintable() or has_half_character(c) else f"\\U{ord(c):08X}" for c in text
    )
