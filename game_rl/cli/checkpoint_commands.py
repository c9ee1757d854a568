"""`game-rl checkpoints`, `export`, `import`."""

import argparse
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from game_rl.checkpoints.named import kept_path, open_run
from game_rl.checkpoints.run_game import check_playable
from game_rl.cli.arguments import (
    add_command,
    add_config_arguments,
    add_run_arguments,
    named_checkpoint,
    named_policy,
)
from game_rl.cli.outputs import ZIP, add_output
from game_rl.cli.printing import add_json, print_facts, print_notes, print_result, working
from game_rl.config.loader import load_config
from game_rl.experiments.experiment_dir import run_of
from game_rl.games.definition import load_game
from game_rl.interchange.sb3_limits import check_zip_to_read, check_zip_to_write, exchangeable
from game_rl.playback.checkpoint_survey import survey
from game_rl.system.units import format_bytes

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands
    from game_rl.playback.checkpoint_survey import CheckpointFinding


def add_checkpoints(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "checkpoints",
        _checkpoints,
        summary=summary,
        example="game-rl checkpoints runs/duel_ppo",
    )
    parser.add_argument(
        "run",
        type=Path,
        metavar="RUN[@T]",
        help="run directory, or the directory of an experiment, which stands for its champion; "
        "@T: only the checkpoint of timestep T",
    )
    add_json(parser, "list")


def add_export(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "export",
        _export,
        summary=summary,
        example="game-rl export runs/duel_ppo --format sb3 --output duel.zip",
    )
    add_run_arguments(parser)
    parser.add_argument("--format", choices=["sb3"], default="sb3", help="format of the file")
    add_output(parser, "--output", ZIP, required=True, text="zip file to write")
    add_json(parser)


def add_import(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "import",
        _import,
        summary=summary,
        example="game-rl import model.zip --config duel_ppo --set run_dir=runs/mine",
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="zip file that PPO.save or DQN.save wrote"
    )
    add_config_arguments(parser, required=True)
    add_json(parser)


def _checkpoints(arguments: argparse.Namespace) -> int:
    root, timesteps = named_checkpoint(arguments.run)
    run_dir, config = open_run(run_of(root))
    frame_skip = config.env.frame_skip
    with working("reading and verifying the checkpoints"):
        found = survey(run_dir)
    if timesteps is not None:
        kept_path(run_dir, timesteps)
        found = [finding for finding in found if finding.timesteps == timesteps]
    if arguments.json:
        rows = [{**f.to_json(), "frames": f.frames(frame_skip)} for f in found]
        print_facts(rows)
    elif not found:
        print(f"{arguments.run} has no checkpoint yet")
    else:
        Console().print(_table(found, frame_skip))
    return 1 if any(finding.damage for finding in found) else 0


def _table(found: "list[CheckpointFinding]", frame_skip: int) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("timestep", "frames", "size", "written"):
        table.add_column(name, justify="right")
    table.add_column("")
    for finding in found:
        notes = [finding.damage or "whole"]
        if finding.is_best and finding.best_mean_reward is not None:
            way = "" if finding.best_deterministic else ", stochastic"
            notes.append(f"best so far, mean reward {finding.best_mean_reward:.2f}{way}")
        if finding.teacher_is_better:
            notes.append("its teacher was as good or better in the validation, and is the best")
        notes += finding.differences
        if finding.other_code:
            notes.append(finding.other_code)
        table.add_row(
            f"{finding.timesteps:,}",
            f"{finding.frames(frame_skip):,}",
            format_bytes(finding.nbytes),
            _time(finding.written_s),
            Text("; ".join(notes)),
        )
    return table


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def _export(arguments: argparse.Namespace) -> int:
    root, checkpoint = named_policy(arguments)
    check_zip_to_write(arguments.output)
    check_playable(root, checkpoint, arguments.game)
    exchangeable(open_run(root)[1])
    from game_rl.interchange.sb3_zip import export_policy
    from game_rl.playback.trained_run import open_trained_run

    run = open_trained_run(root, checkpoint, arguments.game)
    print_notes(run.game_notes(arguments.game))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    package = export_policy(run, arguments.output)
    way = "deterministic" if run.deterministic else "stochastic"
    needs = ""
    if package is not None:
        needs = f"\nits network is a class of {package}, which must be installed to load the file"
    print_result(
        arguments,
        {
            "file": str(arguments.output),
            "deterministic": run.deterministic,
            "needs_package": package,
            **run.policy_facts(),
        },
        f"{arguments.output}  (the policy: {run.name})",
        f"it is {way}: model.predict(observation, deterministic={run.deterministic}){needs}",
    )
    return 0


def _import(arguments: argparse.Namespace) -> int:
    config = load_config(arguments.config, arguments.set)
    load_game(config.game)
    exchangeable(config)
    check_zip_to_read(arguments.file, config.run_dir)
    from game_rl.checkpoints.checkpoint_store import newest_valid_checkpoint
    from game_rl.interchange.sb3_zip import import_policy

    run_dir = import_policy(arguments.file, config)
    timesteps = newest_valid_checkpoint(run_dir)[0].state.num_timesteps
    total = config.total_timesteps
    run = quote(str(run_dir.root))
    print_result(
        arguments,
        {"run": str(run_dir.root), "timesteps": timesteps, "total_timesteps": total},
        f"{run_dir.root} begins at timestep {timesteps:,} of {total:,}",
        f"train it: game-rl train --resume {run}\n"
        f"or watch it play: game-rl record {run} --checkpoint latest",
    )
    return 0
