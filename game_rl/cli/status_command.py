"""`game-rl status`."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from game_rl.checkpoints.named import find_run
from game_rl.cli.arguments import add_command
from game_rl.cli.printing import add_json, print_facts, print_words
from game_rl.cli.progress_line import left_words
from game_rl.events import Evaluated
from game_rl.events.run_view import STATE_WORDS, milestone_rows, read_view
from game_rl.experiments.experiment_dir import ExperimentDir, find_experiment
from game_rl.files.run_dir import RunDir
from game_rl.storage.journal import stored_part
from game_rl.system.units import format_bytes, format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from game_rl.cli.arguments import Commands
    from game_rl.events.run_view import MilestoneRow, RunView
    from game_rl.storage.journal import StoredPart


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
    run = read_view(run_dir)
    stored = stored_part(run_dir)
    milestones = milestone_rows(run.events, is_newest=True)
    checkpoint = _last_checkpoint(run, run_dir)
    run_id = run_dir.identity().id
    if arguments.json:
        uploads = None if stored is None else asdict(stored)
        rows = [asdict(row) for row in milestones]
        facts = {"run": run_id, **_facts(run), "last_checkpoint": checkpoint}
        print_facts({**facts, "milestones": rows, "uploads": uploads})
        return 0
    console = Console(highlight=False)
    lines = [
        *_lines_of_progress(run),
        ("checkpoint", _timesteps(checkpoint)),
        *([] if stored is None else _upload_lines(stored)),
        *_lines_of_notes(run),
        ("id", run_id),
    ]
    for name, text in lines:
        print_words(console, f"{name:<{_NAMES_WIDTH}} {text}", indent=_NAMES_WIDTH + 1)
    if milestones:
        print()
        console.print(milestone_table(milestones))
    return 0


def _last_checkpoint(run: "RunView", run_dir: RunDir) -> int | None:
    """Return the timesteps of the newest checkpoint, which another process may be writing."""
    here = [int(path.name) for path in run_dir.checkpoints_newest_first()[:1]]
    saved = [] if run.checkpoint is None else [run.checkpoint.timesteps]
    return max([*here, *saved], default=None)


def _facts(run: "RunView") -> dict[str, Any]:
    evaluation = run.newest(Evaluated)
    played = {"policy_timesteps", "mean_reward", "success_rate", "is_final"}
    return {
        "is_training": run.is_training,
        "timesteps": run.timesteps,
        "frames": run.frames,
        "total_timesteps": run.total_timesteps,
        "timesteps_per_s": run.timesteps_per_s,
        "evaluation": None if evaluation is None else evaluation.model_dump(include=played),
        "baselines": [event.in_words for event in run.baselines],
        "ended": None if run.end is None else run.end.reason,
        "stop_when": run.stop_when,
        "game_changes": run.game_changes,
        "ended_by": run.ended_by,
        "hints": [hint.text for hint in run.hints],
        "stuck_episodes": run.stuck_episodes,
    }


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


def _lines_of_progress(run: "RunView") -> list[tuple[str, str]]:
    """Return what people want to know first, each with its name."""
    state = STATE_WORDS[run.state]
    if run.state == "unknown":
        state = "unknown: this user may not read the file `lock` of the run"
    left = left_words(run.time_left()[1])[0]
    lines = [("state", ", ".join(filter(None, (state, left)))), ("timesteps", _how_far(run))]
    if (evaluation := run.newest(Evaluated)) is not None:
        lines.append(("evaluation", _evaluation_words(evaluation)))
    lines += [("baseline", event.in_words) for event in run.baselines]
    if run.ended_by:
        lines.append(("ended early", run.ended_by))
    elif run.stop_when and run.state != "completed":
        lines.append(("ends early", f"after {', or '.join(run.stop_when)}"))
    return lines


def _lines_of_notes(run: "RunView") -> list[tuple[str, str]]:
    lines = [("changed game", change) for change in run.game_changes]
    if run.stuck_episodes:
        lines.append(("stuck", _stuck_line(run.stuck_episodes)))
    lines += [("hint", hint.text) for hint in run.hints]
    if run.frames is not None:
        lines.append(("frames", f"{run.frames:,}"))
    return lines


def _how_far(run: "RunView") -> str:
    total = ""
    speed = ""
    if run.total_timesteps:
        is_open = run.stop_when and not run.ended_by
        at_most = "at most " if is_open and run.timesteps < run.total_timesteps else ""
        share = min(1.0, run.timesteps / run.total_timesteps)
        total = f" of {at_most}{run.total_timesteps:,} ({share:.0%})"
    if run.timesteps_per_s is not None:
        speed = f", {run.timesteps_per_s:,.0f}/s"
    return f"{run.timesteps:,}{total}{speed}"


def _evaluation_words(event: Evaluated) -> str:
    rate = "" if event.success_rate is None else f"success {event.success_rate:.0%}, "
    final = "final, " if event.is_final else ""
    reward = f"{rate}reward {event.mean_reward:.2f}"
    return f"{reward} ({final}policy of timestep {event.policy_timesteps:,})"


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
