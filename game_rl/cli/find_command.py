"""`game-rl find`."""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Console

from game_rl.cli.arguments import game_word, not_negative, positive
from game_rl.cli.outputs import PNG, add_output
from game_rl.cli.printing import (
    PROGRESS,
    SafeConsole,
    add_json,
    from_here,
    print_facts,
    print_table,
    print_words,
    working,
)
from game_rl.emulator.emulator import BUTTONS, Button
from game_rl.errors import UsageError
from game_rl.games.start_state import ScriptStep
from game_rl.ram_search.moment_search import choose_name, find_in_moments
from game_rl.ram_search.moments import MOMENTS_FILE, KnownMoment, read_moments
from game_rl.ram_search.number_search import end_of_episode, find_number
from game_rl.ram_search.position_search import find_position
from game_rl.ram_search.ranking import KnownPlaces, RankedPlace, verdict_words
from game_rl.ram_search.searched_game import SearchedGame, searched_game
from game_rl.ram_search.shown_numbers import parse_statement
from game_rl.ram_search.symbol_words import find_symbols
from game_rl.ram_search.written_entry import (
    check_variable_name,
    entry_text,
    evidence_text,
    keep_moments,
    suggestions,
    write_entry,
)
from game_rl.statistics import percent

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN = 8
_SEARCH_S = 60
_STEP = re.compile(r"(wait|[a-z]+(?:\+[a-z]+)*)\s+(\d+)")
_EXAMPLES = """\
more examples:
  game-rl find my_game --number 28 --name health
      the screen shows 28 where this number stands: which bytes always equal it?
  game-rl find my_game --number "row 1 column 5 is 3" --name lives --write
      a single digit needs its position (tiles of 8 pixels, from 0); add the result to game.yaml
  game-rl find my_game --number 1200 --recorded played/my_game_1.json
      the screen shows 1200 where you stopped playing: follow the number through your recording
  game-rl find my_game --screen screen.png
      draw the screen with the numbers of its rows and columns of tiles
  game-rl find my_game --moments health.yaml
      search by what is known at some moments, such as `health: decreased`
  game-rl find my_game --position
      hold left, right, up and down: which bytes say where the player is?
  game-rl find my_game --symbols health
      search the game's symbol file by words
  game-rl find roms/game.gb --script "wait 180, start 4, wait 60" --number 28
      a ROM without a game.yaml: what to press from power-on"""


def add_find(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_find)
    parser.epilog = f"{parser.epilog}\n\n{_EXAMPLES}"
    parser.add_argument(
        "game",
        type=game_word,
        metavar="GAME|ROM",
        help="a game.yaml or its folder, the name of a bundled game, or a ROM alone",
    )
    how = parser.add_argument_group("how to search (choose one)").add_mutually_exclusive_group()
    how.add_argument(
        "--number",
        metavar="TEXT",
        help='a number on the screen: 28, or "row 1 column 5 is 28". Random play shows which '
        "bytes always equal it",
    )
    how.add_argument(
        "--moments", type=Path, metavar="FILE", help="a YAML file of moments with what is known"
    )
    how.add_argument(
        "--position", action="store_true", help="bytes that follow the direction buttons"
    )
    how.add_argument("--symbols", metavar="WORDS", help="names in the symbol file, by words")
    add_output(
        parser,
        "--screen",
        PNG,
        text="PNG for the screen where the search starts, with the numbers of its rows and columns",
    )
    parser.add_argument("--name", metavar="NAME", help="name of the variable")
    parser.add_argument(
        "--recorded",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="with --number: read the number along these recorded episodes, such as "
        "played/duel_1.json, instead of random play. TEXT is the number on the screen at the end "
        "of the first of them; --screen draws that screen, too",
    )
    where = parser.add_argument_group("where the search starts")
    where.add_argument(
        "--start-state", metavar="NAME", help="start state of the game (default: its first one)"
    )
    where.add_argument(
        "--script",
        type=_script,
        metavar="STEPS",
        help='buttons and frames from power-on, or from --start-state: "wait 180, start 4, right+a '
        '30"',
    )
    where.add_argument("--wait", type=positive, metavar="N", help="frames to wait there")
    parser.add_argument(
        "--symbol-file",
        type=Path,
        metavar="FILE",
        help="a .sym, .noi or .map file (default: the game's, or the one next to the ROM)",
    )
    parser.add_argument(
        "--why",
        type=_address,
        metavar="ADDRESS",
        help="with --moments: show which moment rules out this address, such as 0xC0A5",
    )
    parser.add_argument(
        "--seconds",
        type=positive,
        default=_SEARCH_S,
        metavar="N",
        help=f"longest time to play for --number (default: {_SEARCH_S})",
    )
    parser.add_argument(
        "--seed", type=not_negative, default=0, metavar="N", help="seed of random play (default: 0)"
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="add the most likely address to game.yaml as NAME, and keep the moments in "
        "moments.yaml next to it, which check-game tests again",
    )
    add_json(parser)


def _script(text: str) -> tuple[ScriptStep, ...]:
    """Parse `wait 180, start 4, right+a 30`."""
    found = []
    for part in filter(None, (part.strip() for part in text.lower().split(","))):
        match = _STEP.fullmatch(part)
        buttons = tuple(match[1].split("+")) if match else ()
        if match is None or (match[1] != "wait" and not set(buttons) <= set(BUTTONS)):
            raise argparse.ArgumentTypeError(
                f'{part!r} is not a step; write "wait 180, start 4, right+a 30", with the buttons '
                f"{', '.join(BUTTONS)}"
            )
        frames = int(match[2])
        if not 0 < frames <= 36_000:
            raise argparse.ArgumentTypeError(f"{part!r}: a step has 1 to 36000 frames")
        held: tuple[Button, ...] = buttons
        is_wait = match[1] == "wait"
        found.append(ScriptStep(wait=frames) if is_wait else ScriptStep(hold=held, frames=frames))
    if not found:
        raise argparse.ArgumentTypeError('there are no steps; write "wait 180, start 4, wait 60"')
    return tuple(found)


def _address(text: str) -> int:
    try:
        found = int(text, 16)
    except ValueError:
        found = -1
    if not 0 <= found <= 0xFFFF:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address; write it as 0xC0A5")
    return found


def _find(arguments: argparse.Namespace) -> int:
    start = arguments.script or ()
    if arguments.wait is not None:
        start = (*start, ScriptStep(wait=arguments.wait))
    name = arguments.start_state
    from_power_on = name is None and bool(arguments.script)
    searched = searched_game(
        arguments.game, start_state=name, start=start, from_power_on=from_power_on
    )
    if arguments.name is not None:
        check_variable_name(arguments.name)
    _check(arguments, searched)
    if arguments.symbols is not None:
        return _symbols(arguments, searched)
    if arguments.screen is not None:
        return _screen(arguments, searched)
    if arguments.number is not None:
        return _number(arguments, searched)
    if arguments.position:
        return _position(arguments, searched)
    if arguments.moments is not None:
        return _moments(arguments, searched)
    raise UsageError(
        "say what to search for: --number 28 for a number on the screen, --moments FILE for what "
        "is known at some moments, --position, or --symbols WORDS\nsee game-rl find --help"
    )


def _check(arguments: argparse.Namespace, searched: SearchedGame) -> None:
    modes = (arguments.number, arguments.moments, arguments.symbols, arguments.position or None)
    if arguments.screen is not None and any(mode is not None for mode in modes):
        raise UsageError("--screen only draws the screen and does not search; leave one out")
    if arguments.recorded is not None:
        if arguments.number is None and arguments.screen is None:
            raise UsageError("--recorded needs --number or --screen; add one of them")
        if searched.start or arguments.start_state is not None:
            raise UsageError(
                "--recorded already sets where the search starts; leave out --start-state, "
                "--script and --wait"
            )
    if arguments.why is not None and arguments.moments is None:
        raise UsageError("--why explains a search with --moments; add --moments FILE")
    if not arguments.write:
        return
    if searched.file is None:
        what = "a bundled game's game.yaml stays as it is" if searched.game else "a ROM has none"
        raise UsageError(
            f"--write adds to a game.yaml, and {what}; game-rl new-game ROM writes one, which you "
            "then name in place of it"
        )
    if arguments.number is None and arguments.moments is None:
        raise UsageError(
            "--write works with --number and --moments only; copy the printed lines instead"
        )
    if arguments.number is not None and arguments.name is None:
        raise UsageError("--write needs a name for the variable, such as --name score")


def _known(arguments: argparse.Namespace, searched: SearchedGame, name: str) -> KnownPlaces:
    symbols, _ = searched.symbols(arguments.symbol_file)
    addresses = []
    if searched.game is not None:
        for variable in searched.game.variables:
            addresses += [number.address for number in variable.numbers]
    return KnownPlaces(name, addresses, symbols)


@contextmanager
def _telling() -> "Iterator[Callable[[str], None]]":
    with PROGRESS.status("searching …", spinner="line") as status:
        yield lambda text: status.update(f"searching: {text} …")


def _number(arguments: argparse.Namespace, searched: SearchedGame) -> int:
    statement = parse_statement(arguments.number)
    name = arguments.name or "number"
    with _telling() as tell:
        found = find_number(
            searched,
            statement,
            _known(arguments, searched, arguments.name or ""),
            seed=arguments.seed,
            limit_s=arguments.seconds,
            recorded=arguments.recorded or (),
            progress=tell,
        )
    numbers = found.numbers
    seen = f"the screen's {found.where.in_words}: {len(numbers)} numbers"
    moments = [
        moment.model_copy(update={"known": {name: moment.known["number"]}})
        for moment in _movable(found.moments, Path(), searched)
    ]
    how = "recorded" if arguments.recorded else "random"
    story = (
        f"{found.where.in_words} showed {len(numbers)} different numbers from {numbers[0]} to "
        f"{numbers[-1]} in {found.frames:,} frames of {how} play; {found.samples} moments compared"
    )
    return _tell(
        arguments, searched, name, found.places, story, seen, moments, sorted(numbers, reverse=True)
    )


def _moments(arguments: argparse.Namespace, searched: SearchedGame) -> int:
    path: Path = arguments.moments
    file = read_moments(path, searched)
    name = choose_name(arguments.name, file, path)
    with working("playing the moments and searching"):
        found = find_in_moments(
            searched, file, path.parent, name, _known(arguments, searched, name)
        )
    if arguments.why is not None:
        return _why(arguments, searched, found)
    counts = ", ".join(f"{n:,} after moment {moment}" for moment, n in found.left.items())
    story = (
        f"{found.n_places:,} addresses agree with everything that is known about {name} (bytes "
        f"left: {counts})"
    )
    seen = f"{len(found.left)} moments"
    numbers = found.search.numbers_of(found.places[0].candidate).tolist() if found.places else []
    is_kept = searched.file is not None and _is_kept_file(path, searched)
    moments = [] if is_kept else _movable(file.moments, path.parent, searched)
    return _tell(arguments, searched, name, found.places, story, seen, moments, numbers)


def _is_kept_file(path: Path, searched: SearchedGame) -> bool:
    return path.resolve() == (searched.folder / MOMENTS_FILE).resolve()


def _movable(
    moments: Sequence[KnownMoment], folder: Path, searched: SearchedGame
) -> list[KnownMoment]:
    """Return moments as a file beside game.yaml has them: paths are relative to its folder."""
    import os

    found = []
    for number, moment in enumerate(moments):
        at = moment.at
        changed: dict[str, object] = {}
        for key in ("state", "recorded"):
            path = getattr(at, key)
            if path is not None:
                changed[key] = Path(os.path.relpath((folder / path).resolve(), searched.folder))
        if number == 0 and at.is_played_on:
            if searched.start_state is not None:
                changed |= {"start_state": searched.start_state}
                changed["then"] = (*searched.start, *at.then)
            elif searched.start:
                changed["script"] = searched.start
        found.append(moment.model_copy(update={"at": at.model_copy(update=changed)}))
    return found


def _why(arguments: argparse.Namespace, searched: SearchedGame, found: "object") -> int:
    from game_rl.ram_search.moment_search import PlacesFound
    from game_rl.ram_search.search import RamCandidate

    assert isinstance(found, PlacesFound)
    index = searched.ram.index_of(arguments.why)
    if index is None:
        raise UsageError(
            f"--why 0x{arguments.why:04X} is not in RAM that is searched: work RAM (0xC000 to "
            "0xDFFF), high RAM (0xFF80 to 0xFFFE) and the cartridge's RAM"
        )
    rows = []
    facts = []
    for encoding in found.search.encodings[:10]:
        if (
            searched.ram.region_numbers[index]
            != searched.ram.region_numbers[
                min(index + encoding.n_bytes - 1, searched.ram.n_bytes - 1)
            ]
        ):
            continue
        candidate = RamCandidate(index, encoding)
        against = found.search.first_against(candidate, found.facts)
        numbers = found.search.numbers_of(candidate).tolist()
        said = "agrees" if against is None else f"moment {against.moment + 1}"
        rows.append((encoding.name, " ".join(map(str, numbers[:8])), said))
        facts.append({"type": encoding.name, "numbers": numbers, "against": said})
    if arguments.json:
        print_facts(facts)
    else:
        console = SafeConsole()
        print_words(console, f"0x{arguments.why:04X}, and the first moment that rules it out:")
        print_table(console, ("type", "at the moments", "against it"), rows)
    return 0


def _position(arguments: argparse.Namespace, searched: SearchedGame) -> int:
    with working("holding left, right, up and down"):
        found = find_position(searched, _known(arguments, searched, ""), seed=arguments.seed)
    groups = {**found.axes, "room": found.rooms}
    lines = [
        entry_text(axis, places[0], evidence_text(places[0], "--position"))
        for axis, places in groups.items()
        if places
    ]
    if arguments.json:
        shown = {axis: [_facts(each) for each in places] for axis, places in groups.items()}
        print_facts({**shown, "place": found.place, "entries": lines})
        return 0
    console = SafeConsole()
    for axis, places in groups.items():
        if places:
            print_words(console, f"{axis}:")
            _print_places(console, places)
    _print_lines(console, ["variables:", *(f"  {line}" for line in lines)])
    _print_lines(console, [f"place: [{', '.join(found.place)}]"])
    return 0


def _symbols(arguments: argparse.Namespace, searched: SearchedGame) -> int:
    symbols, file = searched.symbols(arguments.symbol_file)
    if file is None:
        raise UsageError(
            f"there is no symbol file next to {searched.rom.path}; put game.sym, game.noi or "
            "game.map there, or name one: --symbol-file FILE"
        )
    found = find_symbols(arguments.symbols, symbols, searched.ram)[: 2 * _SHOWN]
    if arguments.json:
        print_facts(
            [
                {"symbol": e.name, "address": e.location.address, "bank": e.location.bank}
                for e in found
            ]
        )
        return 0
    if not found:
        raise UsageError(
            f"{file} has no symbol in RAM like {arguments.symbols!r}; try another word, such as "
            "health, lives, score, level or time"
        )
    console = SafeConsole()
    rows = [(each.name, f"0x{each.location.address:04X}", percent(each.likeness)) for each in found]
    print_table(console, ("symbol", "address", "likeness"), rows)
    best = found[0]
    name = arguments.name or re.sub(r"\W+", "_", arguments.symbols.strip().lower())
    is_named = searched.game is not None and searched.game.definition.symbols is not None
    key = f"symbol: {best.name}" if is_named else f"address: 0x{best.location.address:04X}"
    _print_lines(console, ["variables:", f"  {name}: {{{key}, type: u8}}  # {best.name}"])
    print_words(console, "the type is a guess; game-rl check-game shows its values")
    return 0


def _screen(arguments: argparse.Namespace, searched: SearchedGame) -> int:
    from game_rl.game_check.sheets import write_tile_grid

    with searched.emulator() as emulator:
        if arguments.recorded:
            emulator.load_state(end_of_episode(arguments.recorded[0], searched))
        else:
            searched.bring_to_start(emulator, emulator.save_state())
        emulator.tick(1, render=True)
        write_tile_grid(emulator.screen().copy(), arguments.screen)
    if arguments.json:
        print_facts({"screen": str(arguments.screen)})
    else:
        print_words(SafeConsole(), f"screen: {arguments.screen}")
    return 0


def _tell(
    arguments: argparse.Namespace,
    searched: SearchedGame,
    name: str,
    places: Sequence[RankedPlace],
    story: str,
    seen: str,
    moments: Sequence[KnownMoment],
    numbers: Sequence[int],
) -> int:
    entry = None
    hints: Sequence[str] = ()
    written: Mapping[str, str] = {}
    if places:
        entry = entry_text(name, places[0], evidence_text(places[0], seen))
        hints = suggestions(name, numbers)
    if arguments.write and entry is not None:
        written = _write(searched, name, entry, hints, moments)
    if arguments.json:
        facts = {"name": name, "story": story, "places": [_facts(p) for p in places[:100]]}
        print_facts({**facts, "entry": entry, "suggestions": list(hints), "written": dict(written)})
        return 0
    console = SafeConsole()
    print_words(console, story)
    if entry is None:
        print_words(console, _nothing(arguments, story))
        return 0
    _print_places(console, places)
    if not written:
        _print_lines(console, ["variables:", f"  {entry}", *(f"  # {hint}" for hint in hints)])
        if searched.file is not None:
            print_words(console, "--write adds it to game.yaml")
    for what, path in written.items():
        print_words(console, f"{what}: {from_here(Path(path))}")
    if written:
        print_words(console, f"next: game-rl check-game {quote(arguments.game)}")
    return 0


def _nothing(arguments: argparse.Namespace, story: str) -> str:
    if arguments.number is not None:
        return (
            "no byte always equals it; the game may keep it in another form. Describe what is "
            "known at some moments (--moments FILE) without numbers: increased, decreased, "
            "unchanged"
        )
    if story.startswith("0 places"):
        return (
            "no address agrees with all of it; --why 0xC0A5 shows which moment rules out an "
            "address, or leave out the fact that you are least sure of"
        )
    return "too many to rank; add moments, preferably one with another number or with `unchanged`"


def _write(
    searched: SearchedGame,
    name: str,
    entry: str,
    hints: Sequence[str],
    moments: Sequence[KnownMoment],
) -> dict[str, str]:
    assert searched.file is not None
    write_entry(searched.file, name, entry, hints)
    written = {"added to": str(searched.file)}
    kept = searched.folder / MOMENTS_FILE
    if moments and keep_moments(kept, moments):
        written["moments for check-game"] = str(kept)
    return written


def _facts(place: RankedPlace) -> dict[str, object]:
    return {
        "address": place.address,
        "bank": place.bank,
        "type": place.candidate.encoding.name,
        "entry": place.candidate.encoding.keys,
        "shown": place.candidate.shown.in_words,
        "written": verdict_words(place),
        "idle_changes": round(place.idle_changes, 3),
        "symbol": place.symbol,
        "also": [each.name for each in place.others],
    }


def _print_places(console: Console, places: Sequence[RankedPlace]) -> None:
    rows = []
    for place in places[:_SHOWN]:
        notes = [place.candidate.shown.in_words, place.symbol or ""]
        if place.mirrors_sprites:
            notes.append("copy of the sprites")
        if place.others:
            notes.append(f"or {', '.join(each.name for each in place.others[:2])}")
        idle = percent(place.idle_changes)
        note = "; ".join(filter(None, notes))
        rows.append((place.place, place.candidate.encoding.name, verdict_words(place), idle, note))
    print_table(console, ("address", "type", "when written", "idle changes", "notes"), rows)
    if len(places) > _SHOWN:
        print_words(console, f"and {len(places) - _SHOWN:,} more; --json has them")


def _print_lines(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
