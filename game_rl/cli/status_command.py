"""`game-rl status`."""

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from game_rl.checkpoints.named import find_run
from game_rl.cli.arguments import add_command
from game_rl.cli.printing import add_json, print_facts, print_words
from game_rl.cli.progress_line import left_words
from game_rl.events.event_log import read_events
from game_rl.events.time_left import EndClock
from game_rl.experiments.experiment_dir import ExperimentDir, find_experiment
from game_rl.files.run_dir import RunDir
from game_rl.storage.run_status import run_status
from game_rl.system.units import format_bytes, format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from game_rl.cli.arguments import Commands
    from game_rl.events.milestone_rows import MilestoneRow
    from game_rl.storage.run_status import RunStatus, StoredPart


_NAMES_WIDTH = 12
_S_IN_HOUR = 3_600


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
    run_dir = find_run(arguments.run)
    status = run_status(run_dir)
    if arguments.json:
        print_facts(status.to_json())
        return 0
    console = Console(highlight=False)
    for name, text in _lines(status, _left(run_dir) if status.is_training else ""):
        print_words(console, f"{name:<{_NAMES_WIDTH}} {text}", indent=_NAMES_WIDTH + 1)
    if status.milestones:
        print()
        console.print(milestone_table(status.milestones))
    return 0


def milestone_table(milestones: "Sequence[MilestoneRow]") -> Table:
    """Return the milestones as a table, the earliest first."""
    table = Table(box=None, pad_edge=False)
    table.add_column("milestone")
    for heading in ("timestep", "frame", "after"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in milestones:
        frame = "" if row.frame is None else f"{row.frame:,}"
        after = format_duration(_S_IN_HOUR * row.hours)
        table.add_row(escape(row.text), f"{row.timesteps:,}", frame, after)
    return table


def _left(run_dir: RunDir) -> str:
    """Return the time that a run that is training still takes, as text."""
    clock = EndClock()
    for event in read_events(run_dir):
        clock.hear(event)
    return left_words(clock.time_left(datetime.now(UTC)))[0]


def _lines(status: "RunStatus", left: str) -> list[tuple[str, str]]:
    """Return what people want to know, the most important first, each with its name.

    Args:
        left: the time that is left; empty if it is unknown.
    """
    state = ", ".join(filter(None, (_state(status), left)))
    lines = [("state", state), ("timesteps", _how_far(status))]
    if (evaluation := status.evaluation) is not None:
        lines.append(("evaluation", _evaluation_words(evaluation)))
    lines += [("baseline", text) for text in status.baselines]
    if status.ended_by:
        lines.append(("ended early", status.ended_by))
    elif status.stop_when and status.ended != "completed":
        lines.append(("ends early", f"after {', or '.join(status.stop_when)}"))
    lines.append(("checkpoint", _timesteps(status.last_checkpoint)))
    lines += [] if status.uploads is None else _upload_lines(status.uploads)
    lines += [("changed game", change) for change in status.game_changes]
    if status.stuck_episodes:
        lines.append(("stuck", _stuck_line(status.stuck_episodes)))
    lines += [("hint", text) for text in status.hints]
    lines += [] if status.frames is None else [("frames", f"{status.frames:,}")]
    return [*lines, ("id", status.run)]


def _how_far(status: "RunStatus") -> str:
    total = ""
    speed = ""
    if status.total_timesteps:
        is_open = status.stop_when and not status.ended_by
        at_most = "at most " if is_open and status.timesteps < status.total_timesteps else ""
        share = min(1.0, status.timesteps / status.total_timesteps)
        total = f" of {at_most}{status.total_timesteps:,} ({share:.0%})"
    if status.timesteps_per_s is not None:
        speed = f", {status.timesteps_per_s:,.0f}/s"
    return f"{status.timesteps:,}{total}{speed}"


def _evaluation_words(evaluation: "Mapping[str, float | int | bool | None]") -> str:
    success = evaluation["success_rate"]
    rate = "" if success is None else f"success {success:.0%}, "
    final = "final, " if evaluation["is_final"] else ""
    return (
        f"{rate}reward {evaluation['mean_reward']:.2f} "
        f"({final}policy of timestep {evaluation['policy_timesteps']:,})"
    )


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
