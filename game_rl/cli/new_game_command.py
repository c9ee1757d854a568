"""`game-rl new-game`: from a ROM to a game.yaml and a run.yaml that can be trained."""

import argparse
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from pydantic import BaseModel
from rich.markup import escape
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from game_rl.cli.arguments import not_negative
from game_rl.cli.printing import PROGRESS, SafeConsole, add_json, print_notes, print_result
from game_rl.config.loader import json_schema
from game_rl.config.schema import RunConfig
from game_rl.emulator.rom import Rom, read_rom
from game_rl.games.definition import GameDefinition, load_game
from game_rl.games.starter import check_new, in_one_line, quoted, write_new, write_starter
from game_rl.interchange.known_games import described_games, known_game

if TYPE_CHECKING:
    from game_rl.game_check.game_survey import GameSurvey
    from game_rl.game_check.menu_search import MenuSearchResult
    from game_rl.game_check.sheets import Moment

_SEARCH_S = 120
_FILES = ("game.yaml", "run.yaml", "contact_sheet.png")
_GUESS = "score_up"  # the reward that a starter has if nothing better is known
_SCHEMAS: dict[str, type[BaseModel]] = {
    "game.schema.json": GameDefinition,
    "run.schema.json": RunConfig,
}


def add_new_game(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_new_game)
    parser.add_argument("rom", type=Path, metavar="ROM", help="the game's ROM, .gb or .gbc")
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="folder for the files (default: the ROM's)"
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="SOURCE",
        help="source of what is known about the game: retro:FOLDER, a game of stable-retro, or "
        "its name if that package is installed; pyboy, PyBoy's wrapper for the cartridge's title; "
        "or nothing (default: the first of these that knows the ROM)",
    )
    parser.add_argument(
        "--no-play",
        action="store_true",
        help="write guesses instead of playing the game to find out how it starts, which buttons "
        "have an effect and what ends it",
    )
    parser.add_argument(
        "--seed", type=not_negative, default=0, metavar="N", help="seed of the play (default: 0)"
    )
    add_json(parser)


@dataclass(frozen=True)
class _Found:
    """What playing has found.

    Attributes:
        sections: of game.yaml, by key.
        told: sentences for the user.
    """

    sections: dict[str, str]
    told: tuple[str, ...]
    survey: "GameSurvey | None"
    moments: "tuple[Moment, ...]"


def _new_game(arguments: argparse.Namespace) -> int:
    rom = read_rom(arguments.rom, named_by="the path")
    folder: Path = arguments.folder or arguments.rom.parent
    check_new(folder, _FILES)
    known = known_game(rom, arguments.source)
    found = None
    if not arguments.no_play and (known is None or "start_states" not in known.sections):
        found = _play(rom, arguments.seed)
    sections = {} if found is None else found.sections
    path = write_starter(arguments.rom, folder, known, found=sections)
    run = _write_run(path, None if found is None else found.survey)
    written = [path, run]
    if found is not None:
        from game_rl.game_check.sheets import write_contact_sheet

        sheet = folder / "contact_sheet.png"
        write_contact_sheet(found.moments, sheet)
        written.append(sheet)
    for name, model in _SCHEMAS.items():
        if not (folder / name).exists():
            write_new(folder / name, json_schema(model))
    game = load_game(str(path))
    warnings = list(game.warnings)
    if known is not None:
        warnings += known.notes
    told = () if found is None else found.told
    games = described_games(rom)
    notes = []
    if games:
        notes.append(f"a game file for this ROM exists already: {', '.join(games)}")
    if known is not None and known.see_also is not None:
        notes.append(known.see_also)
    if not arguments.json:
        _print_found(warnings, notes, () if arguments.quiet else told)
    facts = {
        "file": str(path),
        "games": list(games),
        "from": None if known is None else known.source,
        "warnings": warnings,
        "run": str(run),
        "sheet": None if found is None else str(written[-1]),
        "found": list(told),
    }
    is_known = known is not None and "rewards" in known.sections
    is_guess = _GUESS in game.definition.rewards and not is_known
    names = " and ".join(map(str, written[1:]))
    source = "" if known is None else f"; it has what is known from {known.source}"
    text = f"{path} written, with {names}{source}; {_next(path, run, is_guess=is_guess)}"
    print_result(arguments, facts, text)
    return 0


def _print_found(warnings: Sequence[str], notes: Sequence[str], told: Sequence[str]) -> None:
    console = SafeConsole()
    for warning in warnings:
        console.print("[yellow]warning:[/]", escape(warning))
    print_notes(notes)
    for line in told:
        console.print(escape(line), highlight=False, soft_wrap=True)


def _next(path: Path, run: Path, *, is_guess: bool) -> str:
    """Return the next two commands, and what has to be done before the second."""
    before = ""
    if is_guess:
        before = "   # after you have replaced `rewards`: a guess teaches nothing"
    return (
        f"next:\n  game-rl check-game {quote(str(path))}\n  game-rl train {quote(str(run))}{before}"
    )


def _write_run(path: Path, survey: "GameSurvey | None") -> Path:
    from game_rl.game_check.proposed_game import proposed_run

    run = path.with_name("run.yaml")
    game = load_game(str(path))
    name = path.absolute().parent.name or "game"
    text = proposed_run(
        title=in_one_line(game.definition.title),
        file=in_one_line(quote(str(run))),
        run_dir=quoted(f"runs/{name}"),
        survey=survey,
    )
    write_new(run, text)
    return run


def _play(rom: Rom, seed: int) -> _Found:
    """Get through the menus, and find out what can be found from there."""
    from game_rl.emulator.pyboy_emulator import PyBoyEmulator
    from game_rl.game_check.game_survey import survey_game
    from game_rl.game_check.menu_search import MenuSearch
    from game_rl.game_check.proposed_game import proposed_sections, survey_lines

    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        closing(PyBoyEmulator(rom, colour=rom.supports_colour)) as emulator,
        Progress(*columns, console=PROGRESS, transient=True) as bar,
    ):
        task = bar.add_task("pressing START and A until the game starts:", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        search = MenuSearch(emulator, seed=seed, limit_s=_SEARCH_S, progress=show)
        result = search.run()
        if result.start is None:
            return _Found({}, (_nothing_found(result),), None, result.screens)
        bar.update(task, description="playing at random:", completed=0, total=None)
        survey = survey_game(emulator, result.start, seed=seed, progress=show)
    return _Found(
        proposed_sections(result.start, survey),
        tuple(survey_lines(result.start, survey)),
        survey,
        survey.moments,
    )


def _nothing_found(result: "MenuSearchResult") -> str:
    why = " and the time was up" if result.is_cut_off else ""
    return (
        f"no playable start was found: {result.presses:,} presses of START, A and others were tried"
        f"{why}, and the directions did too little after each of them; contact_sheet.png has the "
        "screens of the way that got furthest, with the frames: write the presses that lead on "
        "into start_states, as for a question that needs another answer"
    )
