"""`game-rl replay`: what a Lake holds, whether it is whole, and replay files of others."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from game_rl.cli.arguments import add_command

if TYPE_CHECKING:
    from game_rl.buffers.lake.statistics import LakeStatistics
    from game_rl.cli.arguments import Commands


def add_replay(commands: "Commands") -> None:
    parser = commands.add_parser(
        "replay",
        help="look into a Lake of replay, verify, compact, import or export it",
        description="Look into a Lake of replay, verify, compact, import or export it.",
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_info(actions)
    _add_verify(actions)


def _add_info(commands: "Commands") -> None:
    parser = add_command(
        commands,
        "info",
        _info,
        summary="transitions, bytes, streams and episodes of a Lake",
        example="game-rl replay info runs/duel_dqn/lake",
    )
    parser.add_argument("lake", type=Path, metavar="LAKE")
    parser.add_argument("--json", action="store_true", help="one JSON object, for scripts")


def _add_verify(commands: "Commands") -> None:
    parser = add_command(
        commands,
        "verify",
        _verify,
        summary="compare every byte of a Lake with its checksums",
        example="game-rl replay verify runs/duel_dqn/lake",
    )
    parser.add_argument("lake", type=Path, metavar="LAKE")
    parser.add_argument("--json", action="store_true", help="one JSON object, for scripts")


def _info(arguments: argparse.Namespace) -> int:
    from game_rl.buffers.lake.lake import Lake
    from game_rl.buffers.lake.statistics import statistics

    found = statistics(Lake.open(arguments.lake))
    if arguments.json:
        print(json.dumps(asdict(found), indent=2))
    else:
        _print_statistics(found, Console())
    return 0


def _print_statistics(found: "LakeStatistics", console: Console) -> None:
    console.print(
        f"[bold]{found.n_transitions:,} transitions[/], {_size(found.n_bytes)} on disk, "
        f"{found.n_segments} segments, {found.n_shelved} kept for checkpoints alone, "
        f"{found.n_open} being written"
    )
    if found.ratio and found.bytes_per_transition:
        console.print(
            f"{found.bytes_per_transition:,.0f} bytes a transition; SB3's ReplayBuffer takes "
            f"{found.raw_bytes_per_transition:,}, {found.ratio:,.0f} times as much"
        )
    if found.pins:
        console.print(f"kept for: {', '.join(found.pins)}")
    table = Table("stream", "agents", title="streams", title_justify="left")
    for heading in ("envs", "transitions", "updates", "episodes", "mean return", "mean length"):
        table.add_column(heading, justify="right")
    for stream in found.streams:
        table.add_row(
            stream.stream,
            ", ".join(str(agent) for agent in stream.agents),
            str(stream.n_envs),
            f"{stream.n_transitions:,}",
            f"{stream.versions[0]:,} to {stream.versions[1]:,}",
            f"{stream.n_episodes:,}",
            "-" if stream.mean_return is None else f"{stream.mean_return:,.2f}",
            "-" if stream.mean_length is None else f"{stream.mean_length:,.0f}",
        )
    console.print(table)


def _verify(arguments: argparse.Namespace) -> int:
    from game_rl.buffers.lake.integrity import verify

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("verifying", total=None)
        report = verify(
            arguments.lake,
            lambda done, total: progress.update(task, completed=done, total=total),
        )
    if arguments.json:
        print(json.dumps({"is_whole": not report.damaged, **asdict(report)}, indent=2))
        return 1 if report.damaged else 0
    for name, torn in report.open_files.items():
        print(f"{name}: being written, or left by a crash; {torn:,} bytes of it are torn")
    for text in report.damaged.values():
        print(f"damaged: {text}")
    print(
        f"{report.n_segments} segments with {report.n_transitions:,} transitions and "
        f"{_size(report.n_bytes)} are whole; {len(report.damaged)} files are damaged"
    )
    return 1 if report.damaged else 0


def _size(n_bytes: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes} bytes"
