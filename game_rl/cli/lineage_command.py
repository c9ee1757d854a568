"""`game-rl lineage`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from game_rl.checkpoints.named import find_run, kept_path
from game_rl.cli.arguments import add_command, named_checkpoint
from game_rl.cli.printing import add_json, print_facts
from game_rl.config.experiments.experiment import load_experiment
from game_rl.config.loader import load_config
from game_rl.events.lineage import (
    Source,
    all_sources,
    counted_once,
    lineage_json,
    played_in_all,
    run_as_source,
)
from game_rl.experiments.experiment_dir import ExperimentDir, find_experiment
from game_rl.experiments.records import read_records

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands


_ID_SHOWN = 8


def add_lineage(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "lineage",
        _lineage,
        summary=summary,
        example="game-rl lineage runs/duel_fork",
    )
    parser.add_argument(
        "run",
        metavar="RUN[@T]",
        help="run directory, or an experiment's; T is a timestep (default: the newest checkpoint)",
    )
    add_json(parser)


def _lineage(arguments: argparse.Namespace) -> int:
    root, timesteps = named_checkpoint(arguments.run)
    if ExperimentDir(root).exists():
        return show_lineage(root, as_json=arguments.json)
    run_dir = find_run(root)
    if timesteps is None:
        saved = run_dir.checkpoints_newest_first()
        timesteps = int(saved[0].name) if saved else 0
    else:
        kept_path(run_dir, timesteps)
    config = load_config(run_dir.config, is_saved=True)
    run = run_as_source(run_dir, timesteps, frame_skip=config.env.frame_skip)
    if arguments.json:
        print_facts(lineage_json(run))
    else:
        _print(run)
    return 0


def _print(own: Source) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("", "run", "timesteps", "frames"):
        table.add_column(name, justify="right" if name in ("timesteps", "frames") else "left")
    table.add_column("")
    table.add_row(
        Text(f"{own.path} at timestep {own.timesteps:,}"), own.run[:_ID_SHOWN], *_numbers(own)
    )
    counted = {id(source) for source in counted_once([own])}
    for depth, source in all_sources(own.sources):
        note = "" if id(source) in counted else "counted above or below"
        words = f"{'  ' * (depth + 1)}{source.kind} of {source.path} at {source.timesteps:,}"
        table.add_row(Text(words), source.run[:_ID_SHOWN], *_numbers(source), note)
    total = [f"{number:,}" for number in played_in_all(own)]
    table.add_row("all that was played", "", *total, style="bold")
    Console().print(table, soft_wrap=True)


def _numbers(source: Source) -> tuple[str, str]:
    return f"{source.played_timesteps:,}", f"{source.frames:,}"


def show_lineage(root: Path, *, as_json: bool) -> int:
    """Print which runs descend from which in the experiment at `root`."""
    from game_rl.experiments.descent import descent, descent_json, descent_tree

    folder = find_experiment(root)
    records = read_records(folder)
    branches = descent(records)
    if as_json:
        print_facts([descent_json(branch) for branch in branches])
    else:
        experiment = load_experiment(folder.config, is_saved=True)
        kind = experiment.config.kind
        frame_skip = experiment.run.env.frame_skip
        waited_frames = records[-1].waited_frames_of_all if records else 0
        tree = descent_tree(
            str(root), branches, kind=kind, frame_skip=frame_skip, waited_frames=waited_frames
        )
        Console().print(tree)
    return 0
