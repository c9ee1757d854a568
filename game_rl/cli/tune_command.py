"""`game-rl tune`, and the refusal of an experiment's config."""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from game_rl.cli.arguments import add_config_arguments, positive
from game_rl.cli.printing import PROGRESS, SafeConsole, add_json, numbers, print_facts
from game_rl.config.loader import Document, config_kind, game_path, kind_in, named_file
from game_rl.config.proposal import propose
from game_rl.config.strict_model import flat
from game_rl.config.yaml_tree import Node
from game_rl.errors import ConfigError, UsageError
from game_rl.games.definition import load_game
from game_rl.statistics import percent
from game_rl.system.units import format_bytes, format_duration

if TYPE_CHECKING:
    from game_rl.measure.tune import Trial, Tuning
    from game_rl.preflight.workload import SpeedForecast


_SECONDS = 90
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}

_UNDECIDED = (
    "Stopped before the fastest settings were compared in turn: each was measured once, for about "
    "a second. Let it finish to be sure."
)


def add_tune(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_tune)
    add_config_arguments(parser, required=True)
    parser.add_argument(
        "--seconds",
        type=positive,
        default=_SECONDS,
        metavar="N",
        help=f"approximate time to spend (default: {_SECONDS}); Ctrl-C prints the best so far",
    )
    add_json(parser)


def _tune(arguments: argparse.Namespace) -> int:
    from game_rl.measure.settings import setting_of
    from game_rl.system.machine import detect_machine
    from game_rl.training.admission import startable_config

    def announce(text: str) -> None:
        PROGRESS.print(f"[yellow]warning:[/] {escape(text)}", soft_wrap=True)

    refuse_experiment(arguments.config, arguments.set)
    config = startable_config(arguments.config, arguments.set, announce=announce)
    game = load_game(config.game)
    machine = detect_machine(config.run_dir)
    setting_of(config)
    from game_rl.measure.tune import Tuning

    tuning = Tuning(config, game, machine, seconds=arguments.seconds)
    is_interrupted = False
    try:
        with _progress(arguments.seconds) as tell:
            tuning.run(tell)
    except KeyboardInterrupt:
        is_interrupted = True
    if arguments.json:
        print_facts(_facts(tuning))
    else:
        _print_found(tuning, arguments, SafeConsole())
    if is_interrupted:
        raise KeyboardInterrupt
    return 0


@contextmanager
def _progress(seconds: int) -> Iterator[Callable[[str], None]]:
    """Show a bar over the time with the setting that is tried now; without a terminal, lines."""
    console = PROGRESS
    started = time.monotonic()
    if not console.is_terminal:
        yield console.print
        return
    columns = (
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("of about {task.total} s: {task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=seconds)
        yield lambda text: progress.update(
            task, description=text, completed=time.monotonic() - started
        )


def _facts(tuning: "Tuning") -> dict[str, object]:
    """Return what was found; `best` is None, and nothing changes, before the first measurement."""
    best = tuning.best
    changes = {} if best is None else best.setting.changes_of(tuning.present.setting)
    return {
        "is_decided": tuning.is_decided,
        "changes": {".".join(key): value for key, value in changes.items()},
        "present": _trial_facts(tuning, tuning.present),
        "best": None if best is None else _trial_facts(tuning, best),
        "trials": [_trial_facts(tuning, trial) for trial in tuning.trials],
    }


def _trial_facts(tuning: "Tuning", trial: "Trial") -> dict[str, object]:
    forecast = tuning.forecast(trial)
    return {
        "n_envs": trial.setting.n_envs,
        "n_workers": trial.setting.workers(tuning.cpus),
        "n_steps": trial.setting.n_steps,
        "fits": tuning.fits(trial),
        "ram_bytes": trial.ram_bytes,
        "collecting_per_s": trial.collecting_per_s if forecast else None,
        "timesteps_per_s": forecast.timesteps_per_s if forecast else None,
        "wall_s": forecast.wall_s if forecast else None,
    }


def _print_found(tuning: "Tuning", arguments: argparse.Namespace, console: Console) -> None:
    best = tuning.best
    if best is None:
        return
    title = "timesteps/s while collecting and over the whole run; predicted peak of RAM"
    names = ("n_envs", "workers", "n_steps", "collecting", "whole run", "RAM")
    headings = (*numbers(*names, no_wrap=True), Column(no_wrap=True))
    table = Table(
        *headings, box=None, pad_edge=False, title=title, title_justify="left", title_style=""
    )
    for trial in sorted(tuning.trials, key=lambda trial: -trial.collecting_per_s):
        table.add_row(*_cells(tuning, trial, best), style="bold" if trial is best else "")
    console.print(table)
    console.print()
    console.print(_outcome(tuning, best))
    if best is tuning.present:
        return

    values = best.setting.changes_of(tuning.present.setting)
    lines = propose(arguments.config, values, best.config, arguments.set)
    if lines is not None:
        console.print()
        for line in lines:
            console.print(Text(line, _DIFF_STYLES.get(line[:1], "")), soft_wrap=True)
        console.print()
    words = (
        f"--set {'.'.join(key)}={'null' if value is None else value}"
        for key, value in values.items()
    )
    console.print(
        Text.assemble("or " if lines else "with ", (" ".join(words), "bold")), soft_wrap=True
    )


def _outcome(tuning: "Tuning", best: "Trial") -> str:
    present = tuning.forecast(tuning.present)
    fastest = tuning.forecast(best)
    if sum(trial.coarse is not None for trial in tuning.trials) < 2:
        return "There was no time to test another setting: allow more with --seconds."
    if best is tuning.present or fastest is None:
        if not tuning.is_decided:
            return f"{_UNDECIDED} No other was clearly faster than the present one."
        return "The present setting is the fastest, or within noise of it: keep it."
    lines = [f"fastest  {_speed(fastest)}", "present  does not fit"]
    if present is not None:
        gain = fastest.timesteps_per_s / present.timesteps_per_s - 1
        lines = [f"{lines[0]}, {percent(gain)} faster", f"present  {_speed(present)}"]
    if not tuning.is_decided:
        lines.insert(0, _UNDECIDED)
    same = "Rollouts have as many timesteps in both, and batches and updates are the same"
    before = tuning.present.setting.n_steps
    after = best.setting.n_steps
    if after == before:
        return "\n".join([*lines, f"{same}."])
    sooner = "sooner" if after < before else "later"
    text = (
        f"{same}; but with n_steps {after:,} instead of {before:,} returns are "
        f"cut {sooner}: an env's rewards count for at most so many timesteps, and the network "
        "estimates the rest. So it may learn differently: compare both on your game."
    )
    return "\n".join([*lines, text])


def _speed(forecast: "SpeedForecast") -> str:
    return f"about {forecast.timesteps_per_s:,.0f} timesteps/s, {format_duration(forecast.wall_s)}"


def _cells(tuning: "Tuning", trial: "Trial", best: "Trial") -> list[str]:
    setting = trial.setting
    forecast = tuning.forecast(trial)
    speeds = ["-", "-"]
    if forecast is not None:
        speeds = [f"{trial.collecting_per_s:,.0f}", f"{forecast.timesteps_per_s:,.0f}"]
    notes = {
        "fastest": trial is best,
        "present": trial is tuning.present,
        "does not fit": not tuning.fits(trial),
        "not tested": tuning.fits(trial) and forecast is None,
    }
    return [
        str(setting.n_envs),
        str(setting.workers(tuning.cpus)),
        f"{setting.n_steps:,}",
        *speeds,
        format_bytes(trial.ram_bytes),
        ", ".join(note for note, holds in notes.items() if holds),
    ]


def refuse_experiment(path: Path, overrides: Sequence[str]) -> None:
    """Accept the config of a run, and refuse that of an experiment.

    Raises:
        UsageError: the config is an experiment's. The message suggests commands for its runs.
    """
    source = Document(path, ConfigError)
    root, _ = source.tree(overrides)
    kind = kind_in(source, root)
    if kind is None:
        return
    sections = [root.nearest(("member",))]  # that may name the config of a run
    if kind == "study":
        sections = []
        if root.has(("arms",)):
            sections = list(root.nearest(("arms",)).children().values())
    ways = [_command(source, section) for section in sections]
    found = list(dict.fromkeys(filter(None, ways)))
    way = f"name the config of a run: {' or '.join(found)}"
    if not found:
        way = (
            "write the config of a run into a file of its own, and name that: game-rl tune "
            "--config FILE"
        )
    raise UsageError(f"{path} is a {kind}, and game-rl tune is for a single run; {way}")


def _command(source: Document, section: Node) -> str | None:
    """Return the command for the file that a section is based on, with the section's changes.

    None if the section is based on no file, or on that of an experiment.
    """
    file = named_file(source, section)
    if file is None or config_kind(file) is not None:
        return None
    own = section.without(("config",)).plain()
    assert isinstance(own, dict)
    if section.has(("game",)):  # in --set, it is relative to the current folder
        game = str(own["game"])
        node = section.nearest(("game",))
        folder = Document(file, ConfigError).folder_of(node)
        own["game"] = str(game_path(game, relative_to=folder) or game)
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in flat(own).items()}
    words = [f"--set {quote(f'{key}={text}')}" for key, text in texts.items()]
    return " ".join([f"game-rl tune --config {quote(os.path.normpath(file))}", *words])
