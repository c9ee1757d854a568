"""`game-rl train --smoke`: every stage of a config, scaled down to a minute, in a spare folder."""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from game_rl.cli.experiment_console import ExperimentConsole
from game_rl.cli.printing import forecast_shown
from game_rl.cli.run_console import RunConsole, print_json
from game_rl.config.experiments.experiment import load_experiment
from game_rl.config.loader import config_kind
from game_rl.config.strict_model import Key, value_at, with_changed
from game_rl.errors import GameRLError, UsageError
from game_rl.events import ChampionFound, ExperimentEvent
from game_rl.games.definition import load_game
from game_rl.preflight.smoke_config import smoke_changes, smoke_overrides
from game_rl.system.stop_request import StopRequest, stopping_on_signals
from game_rl.system.units import format_duration


def smoke_test(arguments: argparse.Namespace) -> int:
    """Train briefly as the config of `--config` says, and throw all files away.

    Raises:
        GameRLError: something on the way fails; it would fail in the training as well.
    """
    if arguments.config is None:
        raise UsageError("--smoke tries a config: name it with --config FILE")
    kind = config_kind(arguments.config, arguments.set)
    if kind == "study":
        raise UsageError(
            f"{arguments.config} is a study; try the files of its arms with --smoke one by one"
        )
    is_json = arguments.log == "json"
    console = Console(quiet=is_json or arguments.quiet)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="game_rl_smoke_") as folder, _named_failures():
        went = _run if kind is None else _experiment
        way = went(arguments, Path(folder) / "run", console)
    took = format_duration(time.monotonic() - started)
    text = f"[bold green]the smoke test passed[/] in {took}: {way}"
    Console(quiet=is_json).print(text, soft_wrap=True)
    return 0


def _run(arguments: argparse.Namespace, run_dir: Path, console: Console) -> str:
    """Carry out a run; return the steps of its way."""
    from game_rl.training.admission import check_fit, check_teacher_named, startable_config

    run_console = RunConsole(console, is_verbose=arguments.verbose)
    config = startable_config(arguments.config, arguments.set, announce=run_console.announce)
    if config.fork is not None:
        raise UsageError("--smoke tests a new run: leave the section fork out")
    game = load_game(config.game)
    check_teacher_named(config)
    check_fit(
        config,
        game,
        force=arguments.force,
        show=forecast_shown(console, is_verbose=arguments.verbose),
    )
    changes = smoke_changes(config)
    _show(changes, config.model_dump(mode="json"), console)
    small = with_changed(config, {**changes, ("run_dir",): run_dir})
    from game_rl.training.train import TrainCommand, resume, train

    stop = StopRequest()
    with closing(run_console), stopping_on_signals(stop):
        listener = print_json if arguments.log == "json" else run_console
        command = TrainCommand(stop=stop, force=True, listeners=[listener])
        train(small, replace(command, until=small.total_timesteps - small.rollout_timesteps))
        result = resume(run_dir, command)
    clip = "" if result.video is None else ", a clip"
    return f"preflight, two updates, an evaluation, a checkpoint, a resume{clip}"


def _experiment(arguments: argparse.Namespace, run_dir: Path, console: Console) -> str:
    """Carry out an experiment of two members; return the steps of its way."""
    from game_rl.experiments.train_experiment import ExperimentCommand, begin_experiment

    experiment = load_experiment(arguments.config, arguments.set)
    overrides = smoke_overrides(experiment, run_dir)
    console.print(f"for the smoke test: {', '.join(overrides)}", soft_wrap=True, markup=False)
    small = load_experiment(arguments.config, [*arguments.set, *overrides])
    watcher = ExperimentConsole(console, is_verbose=arguments.verbose)
    stop = StopRequest(math.inf)
    command = ExperimentCommand(
        stop=stop,
        force=arguments.force,
        listeners=[print_json if arguments.log == "json" else _without_places(watcher)],
        show=watcher.show_preflight,
    )
    with stopping_on_signals(stop, watcher.notice):
        begin_experiment(small, command)
    return "preflight, two members, one generation, a champion"


def _without_places(watcher: ExperimentConsole) -> Callable[[ExperimentEvent], None]:
    """Leave out where the champion is, as the folder is thrown away."""
    return lambda event: None if isinstance(event, ChampionFound) else watcher(event)


def _show(changes: Mapping[Key, object], before: Mapping[str, object], console: Console) -> None:
    for key, value in changes.items():
        name = ".".join(key)
        text = f"{name}: {json.dumps(value_at(before, name))} -> {json.dumps(value)}"
        console.print(f"for the smoke test: {text}", soft_wrap=True, markup=False, highlight=False)


@contextmanager
def _named_failures() -> Iterator[None]:
    """Say of each error that it is the smoke test's, as the folder that it may name is gone."""
    try:
        yield
    except GameRLError as error:
        error.args = (f"the smoke test failed: {error}",)
        raise
