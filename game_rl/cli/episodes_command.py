"""`game-rl episodes`."""

import argparse
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from game_rl.checkpoints.named import open_run
from game_rl.cli.arguments import add_command, positive
from game_rl.cli.logged_choice import add_logged_choice, logged_choice, logged_of, refuse_empty
from game_rl.cli.printing import add_json, print_facts
from game_rl.episodes.logged_episodes import LoggedEpisode, LoggedEpisodes
from game_rl.experiments.experiment_dir import run_of
from game_rl.files.durable_files import folder_bytes
from game_rl.system.output import as_printed
from game_rl.system.units import format_bytes

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands

_SHOWN = 20


def add_episodes(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "episodes",
        _episodes,
        summary=summary,
        example="game-rl episodes runs/duel_ppo --best --from 100000",
    )
    parser.add_argument(
        "run",
        type=Path,
        metavar="RUN",
        help="run directory, or the directory of an experiment, which stands for its champion",
    )
    add_logged_choice(parser)
    parser.add_argument(
        "--start-states",
        nargs="+",
        metavar="NAME",
        help="those that began in one of these start states",
    )
    parser.add_argument(
        "--episodes",
        type=positive,
        metavar="N",
        help="how many, of best and worst each; without these the newest "
        f"(default: {_SHOWN}; all with --json)",
    )
    add_json(parser, "list")


def _episodes(arguments: argparse.Namespace) -> int:
    run_dir, config = open_run(run_of(arguments.run))
    logged = logged_of(run_dir)
    most = arguments.episodes or (None if arguments.json else _SHOWN)
    choice = logged_choice(arguments, of_all=True)
    if choice.best or choice.worst:
        chosen = replace(choice, most=most).of(logged)
    else:
        chosen = choice.of(logged)
        chosen = chosen[-most:] if most else chosen
    refuse_empty(chosen, logged, run_dir)
    if arguments.json:
        print_facts([episode.to_json() for episode in chosen])
        return 0
    Console().print(_table(chosen))
    limit = "" if config.episodes is None else f" of at most {config.episodes.limit_mb:,} MB"
    print(
        f"{len(logged):,} episodes are logged, {logged[0].number:,} to {logged[-1].number:,}, in "
        f"{format_bytes(folder_bytes(run_dir.episodes))}{limit}"
    )
    if not arguments.quiet:
        example = f"game-rl record {quote(str(run_dir.root))} --logged {chosen[0].number}"
        print(f"a clip of one: {example}")
    return 0


def _table(episodes: LoggedEpisodes) -> Table:
    table = Table(box=None, pad_edge=False, collapse_padding=True)  # fits 80 columns
    for name in ("episode", "env", "timestep", "length", "reward", "success"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    for name in ("start state", "ending"):
        table.add_column(name, overflow="fold")
    for episode in episodes:
        table.add_row(
            f"{episode.number:,}",
            f"{episode.env}",
            f"{episode.timesteps:,}",
            f"{episode.length:,}",
            f"{episode.reward:.2f}",
            "" if episode.success is None else ("yes" if episode.success else "no"),
            _kind(episode),
            Text(as_printed(episode.start_state)),
            Text(as_printed(_end(episode))),
        )
    return table


def _kind(episode: LoggedEpisode) -> str:
    is_drawn = episode.kind != "training" and not episode.deterministic
    return f"{episode.kind}, drawn" if is_drawn else episode.kind


def _end(episode: LoggedEpisode) -> str:
    return episode.ending + (f"; no clip: {episode.fault}" if episode.fault else "")
