"""`game-rl runs`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from game_rl.cli.arguments import add_command
from game_rl.cli.printing import add_json, print_facts, print_notes
from game_rl.errors import UsageError
from game_rl.events.run_view import STATE_WORDS
from game_rl.system.units import format_bytes

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands
    from game_rl.experiments.run_list import ListedRun


def add_runs(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "runs",
        _runs,
        summary=summary,
        example="game-rl runs runs --prune",
    )
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=Path("runs"),
        metavar="DIR",
        help="folder that has the run directories in it, at any depth (default: runs)",
    )
    parser.add_argument(
        "--prune",
        action="store_true",
        help="ask, then delete unneeded files of stopped runs: checkpoints other than the best and "
        "the newest, and what was set aside as damaged or when a run or an experiment went back",
    )
    parser.add_argument("--yes", action="store_true", help="with --prune: do not ask")
    add_json(parser, "list")


def _runs(arguments: argparse.Namespace) -> int:
    from game_rl.experiments.run_list import runs_below

    if arguments.yes and not arguments.prune:
        raise UsageError("--yes answers the question of --prune: add --prune, or leave --yes out")
    found = runs_below(arguments.folder)
    if arguments.prune:
        return _prune(found, arguments)
    if arguments.json:
        print_facts([run.to_json() for run in found])
    elif not found:
        print(f"there is no run in {arguments.folder} yet; start one with game-rl train")
    else:
        _show(found)
    return 0


def _show(runs: "Sequence[ListedRun]") -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("run", "kind", "state"):
        table.add_column(name, overflow="fold")
    for name in ("timesteps", "success", "reward", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        table.add_row(
            Text(str(run.root) if run.link_to is None else f"{run.root} (a link)"),
            run.kind,
            Text(STATE_WORDS.get(run.state, run.state)),
            _timesteps(run),
            "" if run.success_rate is None else f"{run.success_rate:.0%}",
            "" if run.mean_reward is None else f"{run.mean_reward:.2f}",
            format_bytes(run.n_bytes),
        )
    console = Console()
    console.print(table)
    for run in runs:
        if run.fault:
            console.print("[yellow]warning:[/]", Text(run.fault), soft_wrap=True)
    if spare := sum(run.spare_bytes for run in runs if run.link_to is None):
        print(f"{format_bytes(spare)} of this are no longer needed: --prune deletes them")


def _timesteps(run: "ListedRun") -> str:
    if run.timesteps is None:
        return ""
    total = "" if run.total_timesteps is None else f" / {run.total_timesteps:,}"
    return f"{run.timesteps:,}{total}"


def _prune(runs: "Sequence[ListedRun]", arguments: argparse.Namespace) -> int:
    from game_rl.experiments.run_list import delete_spare

    if arguments.json and not arguments.yes:
        raise UsageError("--prune asks before it deletes, and --json does not: add --yes")
    spare = [run for run in runs if run.spare and run.link_to is None]
    folders = [_place(path, run.root) for run in spare for path in run.spare]
    print_notes(
        f"{run.root} is a link to {run.link_to}, of which nothing is deleted here; game-rl runs "
        f"{quote(str(run.link_to))} --prune does it"
        for run in runs
        if run.spare and run.link_to is not None
    )
    if not arguments.json:
        print("\n".join(folders) or "there is nothing to delete")
    n_bytes = sum(run.spare_bytes for run in spare)
    these = f"{len(folders)} folders, {format_bytes(n_bytes)}"
    if folders and not arguments.yes and not _confirmed(f"delete these {these}? [y/N] "):
        print("nothing was deleted")
        return 0
    for run in spare:
        delete_spare(run)
    if arguments.json:
        print_facts(folders)
    elif folders:
        print(f"deleted {these}")
    return 0


def _place(path: Path, root: Path) -> str:
    """Return a path to delete, and where it is if a link within the run leads there."""
    real = path.resolve()
    is_inside = real == root.resolve() / path.relative_to(root)
    return str(path) if is_inside else f"{path} (in {real})"


def _confirmed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("--prune asks before it deletes; add --yes where nobody can answer")
    return input(question).strip().lower() in ("y", "yes")
