"""What a search gives: an entry of `variables`, with its evidence, and lines to think about."""

import re
from collections.abc import Sequence
from pathlib import Path

import yaml

from game_rl.config.loader import load_yaml_model
from game_rl.config.yaml_tree import parse_document
from game_rl.errors import GameFileError, UsageError
from game_rl.files.durable_files import write_atomic
from game_rl.games.definition import load_game
from game_rl.ram_search.moments import KnownMoment, MomentsFile
from game_rl.ram_search.ranking import RankedPlace, verdict_words

_KEY = re.compile(r"^(\s*)([A-Za-z_]\w*):")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_variable_name(name: str) -> str:
    """Return the name; raise UsageError if no variable can have it."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--name {name!r}: a variable's name has letters, digits and `_`, and starts with a "
            "letter; choose another"
        )
    return name


def entry_text(name: str, place: RankedPlace, evidence: str) -> str:
    """Return an entry of `variables`: `health: {address: 0xC0A5, type: u8}  # …`."""
    bank = "" if place.bank is None or place.address < 0xA000 else f", bank: {place.bank}"
    keys = f"address: 0x{place.address:04X}{bank}, {place.candidate.encoding.keys}"
    return f"{name}: {{{keys}}}  # {evidence}"


def evidence_text(place: RankedPlace, seen: str) -> str:
    """Return what speaks for a place, in half a line.

    Args:
        seen: where the number comes from, such as "row 1, column 9: 90 numbers".
    """
    found = [f"found by {seen}"]
    if place.proof is not None:
        found.append(f"written: {verdict_words(place)}")
    if place.candidate.shown.in_words:
        found.append(place.candidate.shown.in_words)
    return "; ".join(found)


_GOES_DOWN = ("health", "hp", "lives", "life", "energy", "hearts", "time", "timer")


def suggestions(name: str, numbers: Sequence[int]) -> list[str]:
    """Return lines of game.yaml that a number may be good for.

    Args:
        numbers: those that were seen, in their order.
    """
    words = name.lower().split("_")
    goes_down = any(word in _GOES_DOWN for word in words)
    if goes_down:
        is_timed = any(word in ("time", "timer") for word in words)
        if is_timed:
            return [f"endings: {{time_up: {{variable: {name}, equals: 0}}}}"]
        return [
            f"rewards: {{{name}_lost: {{variable: {name}, on: decrease, weight: -0.1}}}}",
            f"endings: {{{name}_gone: {{variable: {name}, equals: 0}}}}",
        ]
    if len(set(numbers)) > 1 and list(numbers) == sorted(numbers):
        return [f"rewards: {{{name}: {{variable: {name}, on: increase, weight: 0.1}}}}"]
    return []


def with_entry(text: str, name: str, entry: str, comments: Sequence[str] = ()) -> str:
    """Return the text of a game.yaml with an entry more, all else as it was.

    An entry of this name becomes a comment.

    Args:
        comments: lines without `#` that go below the entry.

    Raises:
        ValueError: the section `variables` is not written as one line a variable.
    """
    lines = text.splitlines(keepends=True)
    newline = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    begin = next(
        (n for n, line in enumerate(lines) if re.match(r"variables:\s*(#.*)?$", line)), None
    )
    if begin is None:
        raise ValueError("has no section `variables:` with a line for each variable")
    end = begin + 1
    last = begin
    indent = "  "
    old: list[int] = []
    is_old = False
    while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t#"):
        if lines[end].strip() and lines[end][0] in " \t":
            key = _KEY.match(lines[end])
            if key and (last == begin or len(key[1]) <= len(indent)):
                indent = key[1]
                is_old = key[2] == name
            if not lines[end].lstrip().startswith("#") or len(lines[end]) > len(
                lines[end].lstrip()
            ):
                last = end
            if is_old and not lines[end].lstrip().startswith("#"):
                old.append(end)
        end += 1
    for number in old:
        lines[number] = f"{indent}# before: {lines[number].strip()}{newline}"
    if not lines[last].endswith(("\n", "\r\n")):
        lines[last] += newline
    added = [f"{indent}{entry}{newline}", *(f"{indent}# {line}{newline}" for line in comments)]
    at = last + 1 if not old else old[0]
    return "".join((*lines[:at], *added, *lines[at:]))


def write_entry(file: Path, name: str, entry: str, comments: Sequence[str] = ()) -> None:
    """Add an entry to a game.yaml, which must be valid afterwards; otherwise it stays as it is.

    Raises:
        GameFileError: it cannot be read or written, or would not be valid.
    """
    try:
        before = file.read_bytes().decode("utf-8")
        after = with_entry(before, name, entry, comments)
        parse_document(after)
        write_atomic(file, after.encode())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise GameFileError(f"{file}: {reason}; add the entry by hand: {entry}") from None
    try:
        load_game(str(file))
    except GameFileError as error:
        write_atomic(file, before.encode())
        raise GameFileError(
            f"{file} is unchanged, because the entry does not fit it: {error}"
        ) from None


_HEADER = """\
# Moments of the game, and what is known there of its variables. game-rl check-game plays them and
# says where a variable disagrees; game-rl find GAME --moments searches by them.
"""
_NUMBERED = re.compile(r"(same as|different from)( moment)? (\d+)")


def keep_moments(file: Path, moments: Sequence[KnownMoment]) -> int:
    """Add moments to a file of them, and return how many were added; none that are there already.

    Raises:
        GameFileError: the file is there and is no file of moments, or cannot be written.
    """
    kept: tuple[KnownMoment, ...] = ()
    text = _HEADER + "moments:\n"
    if file.exists():
        kept = load_yaml_model(file, MomentsFile, error=GameFileError).moments
        text = file.read_text(encoding="utf-8")
    shifted = [_shifted(moment, len(kept)) for moment in moments]
    is_chain = any(moment.at.is_played_on for moment in moments)
    added = [m for m, new in zip(moments, shifted, strict=True) if is_chain or m not in kept]
    last = [_shifted(moment, len(kept) - len(moments)) for moment in moments]
    if not added or list(kept[-len(moments) :]) == last:
        return 0
    rows = [_shifted(moment, len(kept)) for moment in added]
    lines = "".join(f"  - {_flow(moment)}\n" for moment in rows)
    after = f"{text.rstrip()}\n{lines}"
    try:
        is_list = MomentsFile.model_validate(yaml.safe_load(after)).moments == (*kept, *rows)
    except (ValueError, yaml.YAMLError):
        is_list = False
    if not is_list:
        raise GameFileError(
            f"{file}: its moments are not one per line at the end of the file, so none can be "
            "added; move them there, or move the file away"
        )
    try:
        write_atomic(file, after.encode())
    except OSError as error:
        raise GameFileError(f"{file} cannot be written ({error.strerror or error})") from None
    return len(rows)


def _shifted(moment: KnownMoment, by: int) -> KnownMoment:
    """Return a moment whose numbers of other moments are so many higher."""
    known = {
        name: _NUMBERED.sub(lambda m: f"{m[1]}{m[2] or ''} {int(m[3]) + by}", fact)
        if isinstance(fact, str)
        else fact
        for name, fact in moment.known.items()
    }
    at = moment.at
    if at.moment is not None:
        at = at.model_copy(update={"moment": at.moment + by})
    return moment.model_copy(update={"known": known, "at": at})


def _flow(moment: KnownMoment) -> str:
    """Return a moment in one line of YAML."""
    found = moment.model_dump(mode="json", exclude_defaults=True)
    for key in ("script", "then"):
        if key in found.get("at", {}):
            found["at"][key] = [
                {name: value for name, value in step.items() if value is not None}
                for step in found["at"][key]
            ]
    text: str = yaml.dump(found, default_flow_style=True, sort_keys=False, width=10**9)
    return text.strip()
