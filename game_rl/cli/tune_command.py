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
from rich.table import Table
from rich.text import Text

from game_rl.cli.arguments import add_command, add_config_arguments, positive
from game_rl.cli.printing import PROGRESS, add_json, print_facts
from game_rl.config.loader import Document, config_kind, game_path, kind_in, named_file
from game_rl.config.proposal import propose
from game_rl.config.strict_model import flat
from game_rl.config.yaml_tree import Node
from game_rl.errors import ConfigError, UsageError
from game_rl.games.definition import load_game
from game_rl.system.units import format_bytes, format_duration

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands
    from game_rl.measure.tune import EnvSetting, Trial, Tuning
    from game_rl.preflight.workload import SpeedForecast


_SECONDS = 90
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}

_UNDECIDED = (
    "Stopped before the fastest settings were compared in turns: each was measured once, for about "
    "a second. Let it end to be sure."
)


def add_tune(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "tune",
        _tune,
        summary=summary,
        example="game-rl tune duel_ppo",
    )
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
    from game_rl.measure.tune import setting_of
    from game_rl.system.machine import detect_machine
    from game_rl.training.admission import startable_config

    refuse_experiment(arguments.config, arguments.set)
    config = startable_config(arguments.config, arguments.set, announce=_announce)
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
        _print_found(tuning, arguments, Console())
    if is_interrupted:
        raise KeyboardInterrupt
    return 0


def _announce(text: str) -> None:
    PROGRESS.print(f"[yellow]warning:[/] {escape(text)}", soft_wrap=True)


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
    console.print(_table(tuning, best))
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


def _table(tuning: "Tuning", best: "Trial") -> Table:
    title = "timesteps/s while collecting and over the whole run; predicted peak of RAM"
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", title_style="")
    for heading in ("n_envs", "workers", "n_steps", "collecting", "whole run", "RAM"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for trial in sorted(tuning.trials, key=lambda trial: -trial.collecting_per_s):
        table.add_row(*_cells(tuning, trial, best), style="bold" if trial is best else "")
    return table


def _outcome(tuning: "Tuning", best: "Trial") -> str:
    present = tuning.forecast(tuning.present)
    fastest = tuning.forecast(best)
    if sum(trial.coarse is not None for trial in tuning.trials) < 2:
        return "There was no time for another setting: allow more with --seconds."
    if best is tuning.present or fastest is None:
        if not tuning.is_decided:
            return f"{_UNDECIDED} No other was clearly faster than the present one."
        return "The present setting is the fastest, or within noise of it: keep it."
    lines = [f"fastest  {_speed(fastest)}", "present  does not fit"]
    if present is not None:
        gain = fastest.timesteps_per_s / present.timesteps_per_s - 1
        lines = [f"{lines[0]}, {gain:.0%} faster", f"present  {_speed(present)}"]
    undecided = [] if tuning.is_decided else [_UNDECIDED]
    return "\n".join([*undecided, *lines, _what_changes(tuning.present.setting, best.setting)])


def _what_changes(present: "EnvSetting", best: "EnvSetting") -> str:
    same = "Rollouts have as many timesteps in both, and batches and updates are the same"
    if best.n_steps == present.n_steps:
        return f"{same}."
    sooner = "sooner" if best.n_steps < present.n_steps else "later"
    return (
        f"{same}; but with n_steps {best.n_steps:,} instead of {present.n_steps:,} returns are "
        f"cut {sooner}: an env's rewards count for at most so many timesteps, and the network "
        "estimates the rest. So it may learn differently: compare both on your game."
    )


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
        "not tried": tuning.fits(trial) and forecast is None,
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
    sections = _sections(root, kind)
    ways = [_command(source, section) for section in sections]
    found = list(dict.fromkeys(way for way in ways if way is not None))
    way = (
        f"name the config of a run: {' or '.join(found)}"
        if found
        else "write the config of a run into a file of its own, and name that: game-rl tune "
        "--config FILE"
    )
    raise UsageError(f"{path} is a {kind}, and game-rl tune is for a single run; {way}")


def _sections(root: Node, kind: str) -> Iterator[Node]:
    """Yield the sections that may name the config of a run."""
    if kind == "study":
        yield from root.nearest(("arms",)).children().values() if root.has(("arms",)) else ()
    else:
        yield root.nearest(("member",))


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
    words = [f"--set {quote(f'{key}={_text(value)}')}" for key, value in flat(own).items()]
    return " ".join([f"game-rl tune --config {quote(os.path.normpath(file))}", *words])


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
