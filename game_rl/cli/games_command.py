"""`game-rl games`: the games that are known, and which ROMs are among them."""

import argparse
from pathlib import Path

from game_rl.cli.printing import (
    SafeConsole,
    add_json,
    print_facts,
    print_table,
    print_words,
    working,
)
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
    print_table(console, ("bundled", "title"), [(game.name, game.title) for game in listed.bundled])
    console.print()
    if listed.examples:
        rows = [(Path(game.name).parent.name, game.title) for game in listed.examples]
        print_table(console, ("example", "title"), rows)
        folder = Path(listed.examples[0].name).parents[1]
        print_words(console, f"examples are in {folder}, without their ROMs")
    else:
        print_words(console, "the repository of game_rl has more, in its folder examples")
    console.print()
    if listed.own:
        rows = [(game.name, game.title) for game in listed.own]
        print_table(console, ("local game file", "title"), rows)
        console.print()
    if listed.retro:
        print_words(console, f"of stable-retro: {', '.join(listed.retro)}", indent=2)
        console.print()
    if listed.roms:
        found = [(str(rom.path), rom.title, _words(rom)) for rom in listed.roms]
        print_table(console, ("ROM", "title", "known to"), found)
    else:
        print_words(console, f"no ROM in {' or '.join(rom_places())}", indent=2)
    if any(rom.sources for rom in listed.roms) and not is_quiet:
        print("game-rl new-game ROM writes a game.yaml from what stable-retro or PyBoy know")


def _words(rom: FoundRom) -> str:
    return rom.problem or ", ".join((*rom.games, *rom.sources)) or "nobody"
