"""`game-rl runs` and `status`."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.text import Text

from game_rl.checkpoints.named import find_run
from game_rl.cli.printing import (
    SafeConsole,
    add_json,
    print_facts,
    print_notes,
    print_table,
    print_words,
)
from game_rl.cli.progress_line import left_words
from game_rl.config.values import expanded_path
from game_rl.errors import UsageError
from game_rl.events import Evaluated, PoolLevel
from game_rl.events.run_view import STATE_WORDS, milestone_rows, read_view
from game_rl.experiments.experiment_dir import ExperimentDir, find_experiment
from game_rl.explore.explore_dir import ExploreDir
from game_rl.statistics import percent
from game_rl.storage.journal import stored_part
from game_rl.system.output import visible
from game_rl.system.units import counted, format_bytes, format_duration

if TYPE_CHECKING:
    from game_rl.events.run_view import RunView
    from game_rl.experiments.run_list import ListedRun
    from game_rl.storage.journal import StoredPart

_NAMES_WIDTH = 12
_S_IN_HOUR = 3_600
_OF_RUNS = ("run", "kind", "state", "timesteps", "success", "reward", "size")


def add_runs(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_runs)
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
    parser.add_argument("--yes", action="store_true", help="with --prune: delete without asking")
    add_json(parser, "list")


def add_status(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_status)
    parser.add_argument(
        "run",
        type=expanded_path,
        metavar="RUN",
        help="run directory, or the directory of an experiment or an exploration",
    )
    add_json(parser)


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
        text = f"there is no run in {arguments.folder} yet; start one with game-rl train"
        print(visible(text))
    else:
        _show_runs(found)
    return 0


def _show_runs(runs: "Sequence[ListedRun]") -> None:
    rows = list[list[str]]()
    for run in runs:
        total = "" if run.total_timesteps is None else f" / {run.total_timesteps:,}"
        rows.append(
            [
                str(run.root) if run.link_to is None else f"{run.root} (a link)",
                run.kind,
                STATE_WORDS.get(run.state, run.state),
                "" if run.timesteps is None else f"{run.timesteps:,}{total}",
                "" if run.success_rate is None else percent(run.success_rate),
                "" if run.mean_reward is None else f"{run.mean_reward:.2f}",
                format_bytes(run.n_bytes),
            ]
        )
    console = SafeConsole()
    print_table(console, _OF_RUNS, rows, first_apart=True)
    for run in runs:
        if run.fault:
            print_words(console, Text.assemble(("warning:", "yellow"), f" {run.fault}"))
    if spare := sum(run.spare_bytes for run in runs if run.link_to is None):
        print(f"{format_bytes(spare)} of this are no longer needed: --prune deletes them")


def _prune(runs: "Sequence[ListedRun]", arguments: argparse.Namespace) -> int:
    from game_rl.experiments.run_list import delete_spare

    if arguments.json and not arguments.yes:
        raise UsageError("--prune asks before it deletes, and --json does not: add --yes")
    spare = [run for run in runs if run.spare and run.link_to is None]
    folders = [_place(path, run.root) for run in spare for path in run.spare]
    print_notes(
        f"{run.root} is a link to {run.link_to}, and nothing is deleted through a link; game-rl "
        f"runs {quote(str(run.link_to))} --prune does it"
        for run in runs
        if run.spare and run.link_to is not None
    )
    if not arguments.json:
        print(visible("\n".join(folders)) or "there is nothing to delete")
    n_bytes = sum(run.spare_bytes for run in spare)
    these = f"{counted(len(folders), 'folder')}, {format_bytes(n_bytes)}"
    if folders and not arguments.yes:
        if not sys.stdin.isatty():
            raise UsageError(
                "--prune asks before it deletes, and there is no terminal to answer in; add --yes"
            )
        if input(f"delete these {these}? [y/N] ").strip().lower() not in ("y", "yes"):
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


def _status(arguments: argparse.Namespace) -> int:
    if ExperimentDir(arguments.run).exists():
        from game_rl.experiments.experiment_status import experiment_status
        from game_rl.experiments.experiment_tables import status_table

        status = experiment_status(find_experiment(arguments.run))
        if arguments.json:
            print_facts(status.to_json())
        else:
            SafeConsole().print(status_table(status))
        return 0
    if ExploreDir(arguments.run).exists():
        return _status_of_exploration(arguments)
    run_dir = find_run(arguments.run)
    run = read_view(run_dir)
    stored = stored_part(run_dir)
    milestones = milestone_rows(run.events, is_newest=True)
    saved = [int(path.name) for path in run_dir.checkpoints_newest_first()[:1]]
    if run.checkpoint is not None:  # which another process may be writing
        saved.append(run.checkpoint.timesteps)
    checkpoint = max(saved, default=None)
    run_id = run_dir.identity().id
    if arguments.json:
        evaluation = run.newest(Evaluated)
        played = {"policy_timesteps", "mean_reward", "success_rate", "is_final"}
        facts = {
            "run": run_id,
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
            "pool": None if run.pool is None else run.pool.as_json,
            "last_checkpoint": checkpoint,
            "milestones": [asdict(row) for row in milestones],
            "uploads": None if stored is None else asdict(stored),
        }
        print_facts(facts)
        return 0
    console = SafeConsole(highlight=False)
    lines = [
        *_lines_of_progress(run),
        ("checkpoint", _timesteps(checkpoint)),
        *([] if stored is None else _lines_of_uploads(stored)),
        *_lines_of_notes(run),
        ("id", run_id),
    ]
    for name, text in lines:
        print_words(console, f"{name:<{_NAMES_WIDTH}} {text}", indent=_NAMES_WIDTH + 1)
    if milestones:
        rows = [
            [
                row.text,
                f"{row.timesteps:,}",
                "" if row.frame is None else f"{row.frame:,}",
                format_duration(_S_IN_HOUR * row.hours),
            ]
            for row in milestones
        ]
        print()
        print_table(console, ("milestone", "timestep", "frame", "after"), rows)
    if run.pool is not None and run.pool.levels:
        print()
        head = ("reward at the state", "states", "episodes", "goal met", "mean reward")
        print_table(console, head, [_row_of_level(level) for level in run.pool.levels])
    return 0


def _row_of_level(level: PoolLevel) -> list[str]:
    rate = level.success_rate
    mean = level.mean_reward
    return [
        level.rewards,
        f"{level.states:,}",
        f"{level.episodes:,}",
        "" if rate is None else percent(rate),
        "" if mean is None else f"{mean:.2f}",
    ]


def _status_of_exploration(arguments: argparse.Namespace) -> int:
    from game_rl.explore.exploration_view import ExplorationView

    view = ExplorationView(ExploreDir(arguments.run))
    view.refresh()
    last = view.last
    if arguments.json:
        facts = {
            "is_exploring": view.is_exploring,
            "rounds": len(view.points),
            "timesteps": last.timesteps,
            "seconds": last.seconds,
            "cells": last.cells,
            "best_reward": last.reward,
            "has_success": view.has_success,
            "earned": {term.name: asdict(term) for term in view.terms},
        }
        print_facts(facts)
        return 0
    earned = (
        f"{term.name} after {counted(term.timesteps, 'timestep')}, {format_duration(term.seconds)}"
        for term in view.terms
    )
    lines = [
        ("state", view.state),
        ("timesteps", f"{last.timesteps:,}, {format_duration(last.seconds)}"),
        ("cells", f"{last.cells:,}"),
    ]
    if view.saved.settings.cell:
        success = ", with a success" if view.has_success else ""
        lines.append(("best reward", f"{last.reward:g}{success}"))
        lines.append(("earned", "; ".join(earned) or "nothing yet"))
    console = SafeConsole(highlight=False)
    for name, text in lines:
        print_words(console, f"{name:<{_NAMES_WIDTH}} {text}", indent=_NAMES_WIDTH + 1)
    return 0


def _lines_of_progress(run: "RunView") -> list[tuple[str, str]]:
    """Return what people want to know first, each with its name."""
    state = STATE_WORDS[run.state]
    if run.state == "unknown":
        state = "unknown: this user may not read the file `lock` of the run"
    left = left_words(run.time_left()[1])[0]
    how_far = f"{run.timesteps:,}"
    if run.total_timesteps:
        is_open = run.stop_when and not run.ended_by
        at_most = "at most " if is_open and run.timesteps < run.total_timesteps else ""
        share = min(1.0, run.timesteps / run.total_timesteps)
        how_far += f" of {at_most}{run.total_timesteps:,} ({percent(share)})"
    if run.timesteps_per_s is not None:
        how_far += f", {run.timesteps_per_s:,.0f}/s"
    lines = [("state", ", ".join(filter(None, (state, left)))), ("timesteps", how_far)]
    if (evaluation := run.newest(Evaluated)) is not None:
        rate = evaluation.success_rate
        success = "" if rate is None else f"success {percent(rate)}, "
        final = "final, " if evaluation.is_final else ""
        policy = f"{final}policy of timestep {evaluation.policy_timesteps:,}"
        lines.append(("evaluation", f"{success}reward {evaluation.mean_reward:.2f} ({policy})"))
    lines += [("baseline", event.in_words) for event in run.baselines]
    if run.pool is not None:
        lines.append(("pool", run.pool.in_words))
    if run.ended_by:
        lines.append(("ended early", run.ended_by))
    elif run.stop_when and run.state != "completed":
        lines.append(("ends early", f"after {', or '.join(run.stop_when)}"))
    return lines


def _lines_of_notes(run: "RunView") -> list[tuple[str, str]]:
    lines = [("changed game", change) for change in run.game_changes]
    if run.stuck_episodes:
        text = (
            f"{percent(run.stuck_episodes)} of the latest episodes repeat the same states for a "
            "long time; `same_place_for` or `no_reward_for` in game.yaml's `endings` truncates them"
        )
        lines.append(("stuck", text))
    lines += [("hint", hint.text) for hint in run.hints]
    if run.frames is not None:
        lines.append(("frames", f"{run.frames:,}"))
    return lines


def _lines_of_uploads(uploads: "StoredPart") -> list[tuple[str, str]]:
    safe = "nothing yet"
    if uploads.newest is not None:
        newest = ", the newest one," if uploads.is_newest_safe else ","
        safe = f"checkpoint {_timesteps(uploads.newest)}{newest}"
    lines = [("safe", f"{safe} at {uploads.address}")]
    if uploads.waiting:
        waiting = ", ".join(f"{timesteps:,}" for timesteps in uploads.waiting[:6])
        size = format_bytes(uploads.waiting_bytes)
        lines.append(("waiting", f"{waiting} (up to {size})"))
    return lines


def _timesteps(timesteps: int | None) -> str:
    return "none yet" if timesteps is None else f"{timesteps:,}"
