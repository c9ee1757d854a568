"""`game-rl games`: the games that are known, and which ROMs are among them."""

import argparse
from collections.abc import Iterable

from rich.table import Column, Table
from rich.text import Text

from game_rl.cli.printing import SafeConsole, add_json, print_facts, print_words, working
from game_rl.emulator.rom_search import rom_places
from game_rl.interchange.known_games import (
    DescribedGame,
    FoundRom,
    ListedGames,
    listed_games,
)


def add_games(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_games)
    add_json(parser)


def _games(arguments: argparse.Namespace) -> int:
    with working("reading game files and ROMs"):
        listed = listed_games()
    if arguments.json:
        print_facts(_facts(listed))
    else:
        _print_games(listed, SafeConsole(), is_quiet=arguments.quiet)
    return 0


def _facts(listed: ListedGames) -> dict[str, object]:
    return {
        "bundled": [_game_facts(game) for game in listed.bundled],
        "examples": [_game_facts(game) for game in listed.examples],
        "own": [_game_facts(game) for game in listed.own],
        "stable_retro": list(listed.retro),
        "roms": [
            {
                "file": str(rom.path),
                "title": rom.title,
                "games": list(rom.games),
                "sources": list(rom.sources),
                "problem": rom.problem,
            }
            for rom in listed.roms
        ],
    }


def _game_facts(game: DescribedGame) -> dict[str, object]:
    hashes = {name: game.hashes.get(name) for name in ("sha256", "sha1")}
    return {"name": game.name, "title": game.title, **hashes}


def _print_games(listed: ListedGames, console: SafeConsole, *, is_quiet: bool) -> None:
    for heading, games in (
        ("bundled", listed.bundled),
        ("examples, whose ROMs you bring", listed.examples),
        ("game files here", listed.own),
    ):
        if games:
            console.print(f"[bold]{heading}[/]")
            _print_rows(console, ((game.name, game.title) for game in games))
    if listed.retro:
        console.print("[bold]of stable-retro[/], for new-game --from retro:NAME")
        print_words(console, "  " + ", ".join(listed.retro), indent=2)
    here, elsewhere = rom_places()
    console.print("[bold]ROMs[/]")
    if listed.roms:
        _print_rows(console, ((str(rom.path), _words(rom)) for rom in listed.roms))
    else:
        print_words(console, f"  none in {here} and {elsewhere}", indent=2)
    if any(rom.sources for rom in listed.roms) and not is_quiet:
        print("game-rl new-game ROM writes a game.yaml of what stable-retro or PyBoy know")


def _words(rom: FoundRom) -> str:
    if rom.problem is not None:
        return rom.problem
    known = ", ".join((*rom.games, *rom.sources)) or "not known"
    return f"{rom.title}: {known}" if rom.title else known


def _print_rows(console: SafeConsole, rows: Iterable[tuple[str, str]]) -> None:
    first = Column(no_wrap=True)
    table = Table(first, Column(overflow="fold"), box=None, show_header=False, pad_edge=True)
    for name, text in rows:
        table.add_row(Text(name), Text(text))
    console.print(table)
