"""`game-rl train --smoke`: every stage of a config, scaled down to a minute, in a spare folder."""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from math import gcd, lcm
from pathlib import Path

from rich.console import Console

from game_rl.cli.experiment_console import ExperimentConsole
from game_rl.cli.printing import SafeConsole, forecast_shown
from game_rl.cli.run_console import RunConsole, print_json
from game_rl.config.algorithms import DQNConfig
from game_rl.config.experiments.experiment import STAGES, Experiment, load_experiment
from game_rl.config.loader import config_kind
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, value_at, with_changed
from game_rl.errors import GameRLError, UsageError
from game_rl.events import ChampionFound, ExperimentEvent
from game_rl.games.definition import load_game
from game_rl.system.stop_request import StopRequest, stopping_on_signals
from game_rl.system.units import format_duration


def smoke_test(arguments: argparse.Namespace) -> int:
    """Train briefly as the config of `--config` says, and throw all files away.

    Raises:
        GameRLError: something on the way fails; it would fail in the training as well.
    """
    if arguments.config is None:
        raise UsageError("--smoke tests a config: name it with --config FILE")
    kind = config_kind(arguments.config, arguments.set)
    if kind == "study":
        raise UsageError(
            f"{arguments.config} is a study; test the files of its arms with --smoke one by one"
        )
    is_json = arguments.log == "json"
    console = SafeConsole(quiet=is_json or arguments.quiet)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="game_rl_smoke_") as folder:
        went = _run if kind is None else _experiment
        try:
            way = went(arguments, Path(folder) / "run", console)
        except GameRLError as error:  # whose text may name the folder, which is gone
            error.args = (f"the smoke test failed: {error}",)
            raise
    took = format_duration(time.monotonic() - started)
    text = f"[bold green]the smoke test passed[/] in {took}: {way}"
    SafeConsole(quiet=is_json).print(text, soft_wrap=True)
    return 0


def _run(arguments: argparse.Namespace, run_dir: Path, console: Console) -> str:
    """Carry out a run; return the steps of its way."""
    from game_rl.training.admission import (
        check_fit,
        check_pool_named,
        check_teacher_named,
        startable_config,
    )

    run_console = RunConsole(console, is_verbose=arguments.verbose)
    config = startable_config(arguments.config, arguments.set, announce=run_console.announce)
    if config.fork is not None:
        raise UsageError("--smoke tests a new run: leave the section fork out")
    game = load_game(config.game)
    check_teacher_named(config)
    check_pool_named(config, game)
    check_fit(
        config,
        game,
        force=arguments.force,
        show=forecast_shown(console, is_verbose=arguments.verbose),
    )
    changes = smoke_changes(config)
    before = config.model_dump(mode="json")
    for key, value in changes.items():
        name = ".".join(key)
        text = f"{name}: {json.dumps(value_at(before, name))} -> {json.dumps(value)}"
        console.print(f"for the smoke test: {text}", soft_wrap=True, markup=False, highlight=False)
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

    def listen(event: ExperimentEvent) -> None:
        if not isinstance(event, ChampionFound):  # which is thrown away with the folder
            watcher(event)

    command = ExperimentCommand(
        stop=stop,
        force=arguments.force,
        listeners=[print_json if arguments.log == "json" else listen],
        show=watcher.show_preflight,
    )
    with stopping_on_signals(stop, watcher.notice):
        begin_experiment(small, command)
    return "preflight, two members, one generation, a champion"


_UPDATES = 2
_FEWEST_VEC_STEPS = 8  # between two updates, so that most envs see a few actions
_EPISODE_TIMESTEPS = 100
_EPISODES = 2
_CLIP_S = 5.0
_OFFLINE_GRADIENT_STEPS = 8

# keys of a run that an experiment decides for its runs
_DECIDED = (
    "total_timesteps",
    "evaluation.every_timesteps",
    "evaluation.episodes",
    "recording.episodes",
    "stop_when",
    "lake",
    "algorithm.learn_from.offline.gradient_steps",
)


def smoke_changes(config: RunConfig) -> dict[Key, object]:
    """Return the keys of a run to change, with their new values: for two updates and an evaluation.

    The run learns, evaluates and saves at its end, and saves once before.
    """
    wanted = {tuple(key.split(".")): value for key, value in _wanted(config)}
    before = config.model_dump(mode="json")
    return {key: v for key, v in wanted.items() if value_at(before, ".".join(key)) != v}


def _wanted(config: RunConfig) -> Iterator[tuple[str, object]]:
    algorithm = config.algorithm
    if isinstance(algorithm, DQNConfig):
        rollout = config.rollout_timesteps
        vec_steps = max(_FEWEST_VEC_STEPS, algorithm.n_step + 1)
        random = _rounded_up(vec_steps * config.env.n_envs, rollout)
        starts = min(algorithm.learning_starts, random)
        yield "algorithm.learning_starts", starts
        total = _rounded_up(starts, rollout) + _UPDATES * rollout
        yield from _offline(config)
    else:
        n_steps = _fewest_n_steps(config)
        yield "algorithm.n_steps", n_steps
        yield "algorithm.n_epochs", min(algorithm.n_epochs, 1)
        rollout = n_steps * config.env.n_envs
        total = _UPDATES * rollout
    if config.clone is not None:
        yield "algorithm.learn_from.played.clone.n_epochs", 1
    if algorithm.exploration is not None and algorithm.exploration.restarts:
        yield "algorithm.exploration.restarts", []
    if algorithm.teacher is not None:
        yield "algorithm.teacher.keep_if_better", False
    yield "total_timesteps", total
    longest = config.env.most_episode_timesteps or _EPISODE_TIMESTEPS
    yield "env.max_episode_timesteps", min(longest, _EPISODE_TIMESTEPS)
    yield "evaluation.every_timesteps", total
    yield "evaluation.episodes", min(config.evaluation.episodes, _EPISODES)
    yield "evaluation.final_episodes", min(config.evaluation.final_episodes, _EPISODES)
    yield "checkpoints.every_timesteps", rollout
    yield "recording.episodes", min(config.recording.episodes, 1)
    yield "recording.max_s", min(config.recording.max_s or _CLIP_S, _CLIP_S)
    yield "stop_when", None
    yield "upload", None
    yield "logging.wandb", None
    if config.lake is not None:
        yield "lake.path", None


def _fewest_n_steps(config: RunConfig) -> int:
    """Return the smallest n_steps whose rollout has whole batches and whole sequences of a memory.

    It has not too few vec steps.
    """
    algorithm = config.algorithm
    assert algorithm.n_steps is not None  # of an on-policy algorithm
    batches = algorithm.batch_size // gcd(algorithm.batch_size, config.env.n_envs)
    unit = lcm(batches, algorithm.whole_timesteps)
    return min(algorithm.n_steps, _rounded_up(_FEWEST_VEC_STEPS, unit))


def _offline(config: RunConfig) -> Iterator[tuple[str, object]]:
    if config.offline is None:
        return
    steps = min(config.offline.gradient_steps, _OFFLINE_GRADIENT_STEPS)
    for name in ("gradient_steps", "evaluate_every_gradient_steps", "save_every_gradient_steps"):
        yield f"algorithm.learn_from.offline.{name}", steps


def _rounded_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def smoke_overrides(experiment: Experiment, run_dir: Path) -> list[str]:
    """Return overrides of the experiment's file: two members and one generation in `run_dir`."""
    config = experiment.config
    run = experiment.run
    stage = STAGES[config.kind]
    of_member = smoke_changes(run)
    values: dict[str, object] = {
        "run_dir": str(run_dir),
        "members": 2,
        f"{stage}s": 1,
        f"timesteps_per_{stage}": of_member.get(("total_timesteps",), run.total_timesteps),
        "fitness.episodes": min(config.fitness.episodes, _EPISODES),
        "champion.candidates": min(config.champion.candidates, 2),
        "champion.episodes": min(config.champion.episodes, _EPISODES),
        "upload": None,
    }
    if config.kind == "population":
        values |= {"control": min(config.control, 1), "train_on": None}
    values |= _of_section("member", of_member)
    if experiment.learner is not None:
        of_learner = smoke_changes(experiment.learner)
        total = of_learner.get(("total_timesteps",), experiment.learner.total_timesteps)
        if config.rule != "live":  # there it learns while it plays
            values[f"learner_per_{stage}.gradient_steps"] = _OFFLINE_GRADIENT_STEPS
        values |= {
            f"learner_per_{stage}.timesteps": total,
            "learner.member_shares": None,
            **_of_section("learner", of_learner),
        }
    return [f"{key}={json.dumps(value)}" for key, value in values.items()]


def _of_section(name: str, changes: Mapping[Key, object]) -> dict[str, object]:
    """Return the changes of a run in its section of the experiment's file."""
    keys = {".".join(key): value for key, value in changes.items()}
    return {
        f"{name}.{key}": value
        for key, value in keys.items()
        if not f"{key}.".startswith(tuple(f"{decided}." for decided in _DECIDED))
    }
