"""`game-rl check-game`."""

import argparse
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from game_rl.cli.arguments import game_word, not_negative, positive
from game_rl.cli.outputs import PNG, TRACE, add_output
from game_rl.cli.printing import PROGRESS, SafeConsole, add_json, from_here, numbers, print_facts
from game_rl.config.loader import game_path
from game_rl.config.schema import EnvConfig
from game_rl.errors import GameFileError, UsageError
from game_rl.explore.potentials import with_potentials
from game_rl.game_check.env_checks import courses_text
from game_rl.game_check.game_trace import game_trace
from game_rl.games.definition import Game, load_game
from game_rl.statistics import percent
from game_rl.system.output import visible
from game_rl.system.units import counted

if TYPE_CHECKING:
    from game_rl.game_check.game_check import GameCheck, GameFileCheck
    from game_rl.game_check.play_log import PlaySums
    from game_rl.game_check.seed_search import SeedsFound
    from game_rl.ram_search.kept_moments import RepeatedMoments


_WRONG_GAME = GameFileError.exit_code
_WRITTEN = {
    "sheet": "contact sheet",
    "scripts_sheet": "start scripts, step by step",
    "parts_sheet": "parts",
    "trace": "trace",
}
_TIMESTEPS = 2_000
_OF_PLAY = ("recorded", "timesteps", "seed", "sheet", "parts_sheet", "trace")
_SEARCH_S = 120
_SHOWN_CANDIDATES = 5


def add_check_game(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_check_game)
    parser.add_argument(
        "game",
        type=game_word,
        metavar="GAME",
        help="a game.yaml or its folder, or the name of a bundled game",
    )
    parser.add_argument(
        "--recorded",
        type=Path,
        metavar="FILE",
        help='JSON of one more episode: {"start_state": ..., "seed": 0, "actions": [names]}',
    )
    parser.add_argument(
        "--timesteps",
        type=positive,
        metavar="N",
        help=f"random timesteps to play (default: {_TIMESTEPS:,})",
    )
    parser.add_argument(
        "--seed", type=not_negative, metavar="N", help="seed of the random buttons (default: 0)"
    )
    parser.add_argument(
        "--without-rom",
        action="store_true",
        help="check everything except the ROM, the files of start states and play; list the files "
        "that are missing",
    )
    parser.add_argument(
        "--find-seed",
        type=positive,
        nargs="?",
        const=_SEARCH_S,
        metavar="SECONDS",
        help="search work RAM and high RAM for the game's random numbers, for `random_seed`, and "
        f"check nothing else; takes at most about this long (default: {_SEARCH_S})",
    )
    add_output(
        parser,
        "--sheet",
        PNG,
        text="PNG for screens of the start states and of play (default: contact_sheet.png in the "
        "folder of game.yaml, or in the current one for a bundled game)",
    )
    add_output(
        parser,
        "--parts-sheet",
        PNG,
        text="PNG for the parts that the agent can see next to the screen, at some moments of "
        "play, if game.yaml defines any (default: parts.png, next to contact_sheet.png)",
    )
    add_output(
        parser,
        "--trace",
        TRACE,
        text="CSV for variables, parts, rewards and conditions at each timestep of the recorded "
        "episode, or of the random ones if there is none",
    )
    add_json(parser)


def _check_game(arguments: argparse.Namespace) -> int:
    from game_rl.game_check.game_check import check_game, check_game_file
    from game_rl.game_check.recorded_episode import read_recorded_episode
    from game_rl.ram_search.kept_moments import repeat_moments

    if arguments.without_rom:
        _refuse_options(arguments, (*_OF_PLAY, "find_seed"), "--without-rom plays nothing")
        file_check = check_game_file(arguments.game)
        if arguments.json:
            print_facts(file_check.to_json())
        else:
            _print_file_check(file_check, SafeConsole())
        return 0
    if arguments.find_seed is not None:
        return _find_seed(arguments)
    game = with_potentials(load_game(arguments.game), EnvConfig())
    if arguments.parts_sheet and not game.definition.parts:
        raise UsageError(
            f"--parts-sheet: {game.name} has no parts to draw; define some under `parts` in its "
            "game.yaml, or leave the option out"
        )
    recorded = read_recorded_episode(arguments.recorded, game) if arguments.recorded else None
    with game_trace(arguments.trace, game) if arguments.trace else nullcontext() as trace:
        check = check_game(
            game,
            seed=arguments.seed or 0,
            timesteps=arguments.timesteps or _TIMESTEPS,
            recorded=recorded,
            trace=trace,
        )
    repeated = repeat_moments(game)
    written = _write_sheets(arguments, game, check)
    if arguments.trace:
        written["trace"] = arguments.trace
    if arguments.json:
        moments = {} if repeated is None else {"moments": asdict(repeated)}
        paths = {what: str(path) for what, path in written.items()}
        print_facts({**check.to_json(), **moments, **paths})
    else:
        _print_check(check, SafeConsole())
        _print_repeated(repeated, SafeConsole())
        for what, path in written.items():
            print(visible(f"{_WRITTEN[what]}: {from_here(path)}"))
    is_wrong = check.errors or (repeated is not None and repeated.disagreements)
    return _WRONG_GAME if is_wrong else 0


def _write_sheets(arguments: argparse.Namespace, game: Game, check: "GameCheck") -> dict[str, Path]:
    from game_rl.game_check.sheets import write_contact_sheet, write_parts_sheet

    is_bundled = game_path(arguments.game, relative_to=Path()) is None
    sheet = arguments.sheet or (Path() if is_bundled else game.folder) / "contact_sheet.png"
    written = {"sheet": sheet}
    write_contact_sheet([*check.starts, *check.moments], sheet)
    if check.scripts:
        written["scripts_sheet"] = sheet.with_name("start_scripts.png")
        write_contact_sheet(check.scripts, written["scripts_sheet"])
    if check.parts:
        written["parts_sheet"] = arguments.parts_sheet or sheet.with_name("parts.png")
        write_parts_sheet(check.moments, game, written["parts_sheet"])
    return written


def _refuse_options(arguments: argparse.Namespace, names: Iterable[str], why: str) -> None:
    for name in names:
        if getattr(arguments, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} needs play, but {why}; leave out one of the two")


def _find_seed(arguments: argparse.Namespace) -> int:
    from game_rl.game_check.game_check import find_seed

    _refuse_options(arguments, _OF_PLAY, "--find-seed searches only")
    game = with_potentials(load_game(arguments.game), EnvConfig())
    with Progress(
        TextColumn("changing one byte at a time:"),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=PROGRESS,
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None)
        found = find_seed(
            game,
            limit_s=arguments.find_seed,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if arguments.json:
        print_facts({"title": game.definition.title, **asdict(found)})
    else:
        _print_seeds(found, SafeConsole())
    return 0


def _print_seeds(found: "SeedsFound", console: Console) -> None:
    tried = f"{found.tried:,} of {found.searched:,} bytes were tried in {found.seconds:,.0f} s"
    likely = [each for each in found.candidates if each.is_likely]
    if found.candidates:
        scores = numbers("score", "20 values give")
        title = "candidates for random_seed"
        table = Table("address", "type", *scores, "from", title=title, title_justify="left")
        for each in found.candidates[:_SHOWN_CANDIDATES]:
            place = f"0x{each.address:04X}"
            courses = courses_text(each.found.courses)
            name = escape(each.found.start_state)
            table.add_row(place, each.type, percent(each.score), courses, name)
        console.print(table)
    console.print(f"{tried}; the time was up" if found.is_cut_off else tried)
    if likely:
        variable = f"seed: {{address: 0x{likely[0].address:04X}, type: {likely[0].type}}}"
        console.print(
            f"write into game.yaml, then run check-game again:\n  random_seed: seed\n"
            f"  variables:\n    {variable}",
            markup=False,
            highlight=False,
        )
    elif found.is_cut_off:
        console.print("no likely candidate yet; give --find-seed more seconds")
    else:
        console.print(
            "no likely candidate: the game may draw no random numbers between its start states "
            "and the end of 80 seconds of play, or take them from the divider register (0xFF04), "
            "which env.max_idle_frames varies",
            soft_wrap=True,
        )


def _print_file_check(check: "GameFileCheck", console: Console) -> None:
    counts = (
        (len(check.variables), "variable"),
        (len(check.actions), "action"),
        (len(check.rewards), "reward term"),
        (len(check.endings), "ending"),
        (len(check.start_states), "start state"),
    )
    told = ", ".join(f"{n:,} {name}{'' if n == 1 else 's'}" for n, name in counts)
    own = "" if check.reward_class is None else f", reward class {check.reward_class}"
    console.print(f"[bold]{escape(check.title)}[/]: {told}{escape(own)}")
    console.print(f"its actions need env.frame_skip of at least {check.least_frame_skip}")
    if check.parts:
        headings = ("part", "kind", "shape")
        parts = Table(*headings, *numbers("bytes"), title="parts", title_justify="left")
        for part in check.parts:
            shape = " x ".join(map(str, part.shape))
            parts.add_row(part.name, part.kind, shape, f"{part.stored_bytes:,}")
        console.print(parts)
    if check.rom.path is not None:
        console.print(f"ROM: {escape(check.rom.path)}", soft_wrap=True)
    for missing in check.missing:
        console.print("[yellow]missing:[/]", escape(missing), soft_wrap=True)


def _print_check(check: "GameCheck", console: Console) -> None:
    successes = "success" if check.successes == 1 else "successes"
    console.print(
        f"[bold]{escape(check.title)}[/]: {counted(check.timesteps, 'timestep')}, "
        f"{counted(check.episodes, 'episode')} started, {check.ended} ended, {check.successes} "
        f"{successes}"
    )
    bounds = numbers("lowest", "highest", "changes")
    variables = Table("variable", *bounds, title="variables", title_justify="left")
    for v in check.variables:
        lowest = _in_digits(v.minimum)
        highest = _in_digits(v.maximum)
        variables.add_row(v.name, lowest, highest, f"{v.changes:,}")
    console.print(variables)
    if check.recorded is None:
        console.print(_reward_table("reward", check.at_random))
    else:
        for whose, sums in (("random play", check.at_random), ("recorded", check.recorded)):
            console.print(_reward_table(f"reward, {whose}", sums))
            console.print(f"{whose}: {_ends_text(sums)}", highlight=False)
    if check.parts:
        headings = ("part", "kind", "shape", "type")
        parts = Table(*headings, *numbers("bytes stored"), title="parts", title_justify="left")
        for part in check.parts:
            shape = " x ".join(map(str, part.shape))
            parts.add_row(part.name, part.kind, shape, part.dtype, f"{part.stored_bytes:,}")
        console.print(parts)
    for each in check.courses:
        played = f" within {each.frames:,} frames" if each.frames else ""
        counts = f"{each.seeds} seeds gave {courses_text(each.courses)}{played}"
        console.print(f"{escape(each.start_state)}: {counts}")
    for change in check.game_changes:
        console.print("the game is changed:", escape(change))
    _print_warnings(check.warnings, console)
    for error in check.errors:
        console.print("[red]error:[/]", escape(error))


def _reward_table(title: str, sums: "PlaySums") -> Table:
    terms = Table("term", *numbers("sum", "timesteps"), title=title, title_justify="left")
    for term in sums.reward_terms:
        terms.add_row(escape(term.name), f"{term.total:,.2f}", f"{term.times:,}")
    if len(sums.reward_terms) > 1:
        total = sum(term.total for term in sums.reward_terms)
        terms.add_row("all", f"{total:,.2f}", "", style="bold")
    return terms


def _ends_text(sums: "PlaySums") -> str:
    """Say how the episodes of a part of the play ended."""
    ended = [f"{count} by {name}" for name, count in sums.endings.items()]
    still = sums.episodes - sum(sums.endings.values())
    if still:
        ended.append(f"{still} not ended")
    successes = "1 success" if sums.successes == 1 else f"{sums.successes} successes"
    played = f"{counted(sums.timesteps, 'timestep')}, {counted(sums.episodes, 'episode')}"
    return f"{played} ({', '.join(ended)}), {successes}"


def _print_repeated(repeated: "RepeatedMoments | None", console: Console) -> None:
    from game_rl.ram_search.moments import MOMENTS_FILE

    if repeated is None:
        return
    for text in repeated.disagreements:
        console.print("[red]error:[/]", escape(text))
    for name in repeated.unknown:
        console.print(
            f"[yellow]warning:[/] {MOMENTS_FILE} has facts about {escape(name)}, but game.yaml "
            "has no variable in memory of this name; rename one of the two"
        )
    if not repeated.disagreements:
        console.print(
            f"{counted(repeated.facts, 'fact')} at {counted(repeated.moments, 'moment')} of "
            f"{MOMENTS_FILE} hold"
        )


def _in_digits(value: float) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}"


def _print_warnings(warnings: Iterable[str], console: Console) -> None:
    for warning in warnings:
        console.print("[yellow]warning:[/]", escape(warning))
