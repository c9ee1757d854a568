"""`game-rl status`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from game_rl.checkpoints.named import find_run
from game_rl.cli.arguments import add_command
from game_rl.cli.printing import add_json, print_facts
from game_rl.experiments.experiment_dir import ExperimentDir, find_experiment
from game_rl.milestone_rows import MilestoneHeading
from game_rl.storage.run_status import run_status
from game_rl.system.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from game_rl.cli.arguments import Commands
    from game_rl.milestone_rows import MilestoneRow
    from game_rl.storage.run_status import RunStatus, StoredPart


def add_status(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "status",
        _status,
        summary=summary,
        example="game-rl status runs/duel_ppo",
    )
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="run directory, or the directory of an experiment"
    )
    add_json(parser)


def _status(arguments: argparse.Namespace) -> int:
    if ExperimentDir(arguments.run).exists():
        return show_status(arguments.run, as_json=arguments.json)
    status = run_status(find_run(arguments.run))
    if arguments.json:
        print_facts(status.to_json())
        return 0
    for name, text in _lines(status):
        print(f"{name:<12} {text}")
    if status.milestones:
        print()
        Console().print(milestone_table(status.milestones))
    return 0


def milestone_table(milestones: "Sequence[MilestoneRow]") -> Table:
    """Return the milestones as a table, the earliest first."""
    table = Table(box=None, pad_edge=False)
    for heading in MilestoneHeading:
        is_text = heading == MilestoneHeading[0]
        table.add_column(heading, justify="left" if is_text else "right", no_wrap=not is_text)
    for row in milestones:
        table.add_row(*map(escape, row.cells))
    return table


def _lines(status: "RunStatus") -> list[tuple[str, str]]:
    at_most = "at most " if status.stop_when and not status.ended_by else ""
    total = "" if status.total_timesteps is None else f" of {at_most}{status.total_timesteps:,}"
    speed = "" if status.timesteps_per_s is None else f", {status.timesteps_per_s:,.0f}/s"
    lines = [
        ("run", status.run),
        ("state", _state(status)),
        ("timesteps", f"{status.timesteps:,}{total}{speed}"),
        *([] if status.frames is None else [("frames", f"{status.frames:,}")]),
        ("checkpoint", _timesteps(status.last_checkpoint)),
    ]
    if status.ended_by:
        lines.insert(2, ("ended early", status.ended_by))
    elif status.stop_when:
        lines.append(("ends early", f"after {', or '.join(status.stop_when)}"))
    lines += [("changed game", change) for change in status.game_changes]
    if (evaluation := status.evaluation) is not None:
        success = evaluation["success_rate"]
        rate = "" if success is None else f", success {success:.0%}"
        lines.append(
            (
                "evaluation",
                f"reward {evaluation['mean_reward']:.2f}{rate} "
                f"(policy of timestep {evaluation['policy_timesteps']:,})",
            )
        )
    if status.stuck_episodes:
        lines.append(("stuck", _stuck_line(status.stuck_episodes)))
    lines += [("hint", text) for text in status.hints]
    return lines + ([] if status.uploads is None else _upload_lines(status.uploads))


def _state(status: "RunStatus") -> str:
    if status.is_training:
        return "training"
    if status.ended is not None:
        return status.ended
    if status.is_training is None:
        return "unknown: this user may not read the file `lock` of the run"
    return "not training now"


def _stuck_line(share: float) -> str:
    return (
        f"{share:.0%} of the last episodes repeat the same states for long; `same_place_for` or "
        "`no_reward_for` in game.yaml's `endings` truncates them"
    )


def _upload_lines(uploads: "StoredPart") -> list[tuple[str, str]]:
    newest = "" if not uploads.is_newest_safe else ", the newest one"
    safe = f"checkpoint {_timesteps(uploads.newest)}{newest}, at {uploads.address}"
    lines = [("safe", safe if uploads.newest is not None else f"nothing yet at {uploads.address}")]
    if uploads.waiting:
        waiting = ", ".join(f"{timesteps:,}" for timesteps in uploads.waiting[:6])
        size = format_bytes(uploads.waiting_bytes)
        lines.append(("waiting", f"{waiting} (up to {size})"))
    return lines


def _timesteps(timesteps: int | None) -> str:
    return "none yet" if timesteps is None else f"{timesteps:,}"


def show_status(root: Path, *, as_json: bool) -> int:
    """Print the status of the experiment at `root`."""
    from game_rl.experiments.experiment_status import experiment_status
    from game_rl.experiments.experiment_tables import status_table

    status = experiment_status(find_experiment(root))
    if as_json:
        print_facts(status.to_json())
    else:
        Console().print(status_table(status))
    return 0
