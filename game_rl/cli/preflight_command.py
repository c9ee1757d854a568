"""`game-rl preflight` of runs, experiments and studies."""

import argparse
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.highlighter import ReprHighlighter
from rich.text import Text

from game_rl.cli.arguments import NO_CONFIG, add_config_arguments
from game_rl.cli.printing import PROGRESS, SafeConsole, add_json, print_facts
from game_rl.config.experiments.experiment import load_experiment
from game_rl.config.experiments.study_config import load_study
from game_rl.config.loader import config_kind, load_config
from game_rl.emulator.state_speed import describe_states, why_states_are_slow
from game_rl.errors import UsageError
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.lake.lake_feed import level_problems

if TYPE_CHECKING:
    from game_rl.config.schema import RunConfig
    from game_rl.games.definition import Game
    from game_rl.preflight.facts import EpisodeLengths, MeasuredLake
    from game_rl.preflight.recommendation import Recommendation
    from game_rl.preflight.rendering import Forecast
    from game_rl.preflight.workload import ExperimentSpeed, MeasuredSpeed
    from game_rl.system.machine import Machine


def add_preflight(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_preflight)
    add_config_arguments(parser, required=False)
    parser.add_argument(
        "--storage",
        metavar="shape=504x108x9,dtype=float32,capacity=200_000,...",
        help="instead of a config: compute the storage of any replay from plain numbers",
    )
    parser.add_argument(
        "--on",
        metavar="large|ram=32GiB,vram=16GiB,disk=250GiB,cpus=8",
        help="plan for another machine: small, medium or large, and values that differ from it; "
        "without such a name, values that are left out are those of this machine",
    )
    parser.add_argument(
        "--probe",
        action="store_true",
        help="measure the length of episodes, the speed of training on this machine and how well "
        "a Lake compresses the game; takes about 20 seconds, for an experiment a minute",
    )
    parser.add_argument(
        "--recommend",
        action="store_true",
        help="print the smallest machine that fits, and how much more cores would help",
    )
    parser.add_argument(
        "--hours",
        type=_hours,
        metavar="H",
        help="with --recommend --probe: print how many cores finish within H hours",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="list every check with what it compared, including those that found nothing",
    )
    add_json(parser)


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of hours above 0, such as 12")
    return hours


def _preflight(arguments: argparse.Namespace) -> int:
    from game_rl.system.machine import detect_machine, parse_machine, without_installation

    if arguments.storage is not None:
        return _plain_storage(arguments)
    if arguments.config is None:
        raise UsageError(NO_CONFIG)
    kind = config_kind(arguments.config, arguments.set)
    _check_options(arguments, kind)
    subject = _SUBJECTS.get(kind, _Experiment)(arguments)
    machine = detect_machine(subject.run_dir)
    if arguments.on:
        machine = parse_machine(arguments.on, here=machine)
    if arguments.probe:
        subject.play()
    forecast = subject.forecast(machine)
    unmeasured = _why_unmeasured(arguments, forecast)
    if unmeasured is None and kind != "study":
        with _busy("training briefly, to measure this machine's speed"):
            subject.train()
        forecast = subject.forecast(machine)
    found = None
    if arguments.recommend:
        found = subject.recommend(without_installation(machine), arguments.hours)
    if arguments.json:
        _print_json(forecast, subject, found, explains=arguments.explain)
    else:
        _print(forecast, subject, found, unmeasured, explains=arguments.explain)
    fits = forecast.verdict != "does_not_fit" if found is None else found.is_found
    return 0 if fits else 3


def _print_json(
    forecast: "Forecast", subject: "_Subject", found: "Recommendation | None", *, explains: bool
) -> None:
    answers = {**forecast.to_json(), **subject.more_json()}
    if found is not None:
        answers["recommendation"] = found.to_json()
    if explains:
        answers["checks"] = [check.to_json() for check in forecast.checks]
    print_facts(answers)


def _print(
    forecast: "Forecast",
    subject: "_Subject",
    found: "Recommendation | None",
    unmeasured: str | None,
    *,
    explains: bool,
) -> None:
    """Print the recommendation or else the forecast, and the checks.

    Args:
        unmeasured: why the speed was not measured; None if it was.
    """
    from game_rl.preflight.recommendation import render_recommendation
    from game_rl.preflight.rendering import render_checks

    console = SafeConsole()
    if found is not None:
        console.print(render_recommendation(found, unmeasured=unmeasured))
    else:
        for text in (forecast.table(), *subject.notes(unmeasured)):
            console.print(text, crop=False)
    if explains:
        console.print(render_checks(forecast.checks))


def _check_options(arguments: argparse.Namespace, kind: str | None) -> None:
    """Refuse options that do not go together.

    Args:
        kind: what the config describes; None: a run.

    Raises:
        UsageError: the message says what to change.
    """
    if arguments.hours is not None and not arguments.recommend:
        raise UsageError("--hours is for --recommend: add it")
    if arguments.hours is not None and arguments.on:
        raise UsageError(
            "--hours needs this machine's speed, and --on describes another machine: leave one out"
        )
    if arguments.hours is not None and not arguments.probe:
        raise UsageError("--hours needs this machine's speed: add --probe, which measures it")
    if kind == "study" and (arguments.recommend or arguments.explain):
        option = "--recommend" if arguments.recommend else "--explain"
        raise UsageError(
            f"{option} is for runs and experiments: name the config of an arm of the study"
        )


def _why_unmeasured(arguments: argparse.Namespace, forecast: "Forecast") -> str | None:
    if arguments.on:
        return "--on describes another machine"
    if not arguments.probe:
        return "--probe measures it in about 20 seconds"
    return "the run does not fit" if forecast.verdict == "does_not_fit" else None


def _busy(doing: str) -> AbstractContextManager[object]:
    """Show a spinner on stderr while something takes seconds."""
    return PROGRESS.status(doing)


def _plain_storage(arguments: argparse.Namespace) -> int:
    from game_rl.preflight.plain_storage import parse_storage, render_storage

    if arguments.config is not None:
        raise UsageError("--storage computes only from plain numbers: leave the config out")
    storage = parse_storage(arguments.storage)
    if arguments.json:
        print_facts(storage.to_json())
    else:
        SafeConsole().print(render_storage(storage))
    return 3 if storage.full_at is not None else 0


class _Subject:
    """What is forecast."""

    run_dir: Path

    def play(self) -> None:
        """Measure how a Lake compresses the game, and the lengths of episodes."""
        raise NotImplementedError

    def forecast(self, machine: "Machine") -> "Forecast":
        """Return the forecast, with what was measured."""
        raise NotImplementedError

    def train(self) -> None:
        """Measure the speed of this machine at what was forecast."""
        raise NotImplementedError

    def recommend(self, machine: "Machine", hours: float | None) -> "Recommendation":
        raise NotImplementedError

    def more_json(self) -> dict[str, Any]:
        """Return what is added to the forecast's JSON."""
        return {}

    def notes(self, unmeasured: str | None) -> Iterator[RenderableType]:  # noqa: ARG002
        """Yield what is printed after the forecast.

        Args:
            unmeasured: why the speed was not measured; None if it was.
        """
        yield from ()


class _Played(_Subject):
    """What random play of a run, or of a member of an experiment, measures.

    Args:
        is_here: whether this machine is meant.
    """

    def __init__(self, run: "RunConfig", game: "Game", *, is_here: bool) -> None:
        self.played = run
        self.game = game
        self._is_here = is_here
        self.episodes: EpisodeLengths | None = None
        self.lake: MeasuredLake | None = None

    def play(self) -> None:
        from game_rl.preflight.random_play import LEVELS, probe_episodes, probe_lake

        with _busy("playing random episodes"):
            self.episodes = probe_episodes(self.played, self.game)
        if self.played.lake is not None:
            with _busy("writing random play into a Lake, to measure how the game compresses"):
                self.lake = probe_lake(self.played, self.game, levels=LEVELS)

    def more_json(self) -> dict[str, Any]:
        more: dict[str, Any] = {"lake": None if self.lake is None else asdict(self.lake)}
        more |= self.own_json()
        if self._is_here:
            why_slow = why_states_are_slow()
            more["states"] = {"fast": why_slow is None, "why_slow": why_slow}
        return more

    def own_json(self) -> dict[str, Any]:
        return {}

    def notes(self, unmeasured: str | None) -> Iterator[RenderableType]:  # noqa: ARG002
        """Yield how states are saved, and what each compression level costs if it was measured."""
        from game_rl.preflight.preflight import levels_table
        from game_rl.preflight.rendering import unwrapped

        if self._is_here:
            yield unwrapped(Text(f"states    {describe_states()}"))
        lake = self.played.lake
        if lake is not None and self.lake is not None and self.lake.levels:
            yield levels_table(self.lake, lake.compression_level)


class _Run(_Played):
    def __init__(self, arguments: argparse.Namespace) -> None:
        from game_rl.explore.potentials import with_potentials
        from game_rl.preflight.facts import missing_explorations
        from game_rl.training.admission import (
            check_packages,
            check_pool_named,
            check_teacher_named,
        )

        config = load_config(arguments.config, arguments.set, more_checks=level_problems)
        if not arguments.on:
            check_packages(config)
        super().__init__(config, load_game(config.game), is_here=not arguments.on)
        self.run_dir = config.run_dir
        is_new = not RunDir(config.run_dir).has_checkpoints()
        if not arguments.on and is_new and not missing_explorations(config, self.game):
            # what is missing is a finding
            check_pool_named(config, self.game)
            if config.fork is None:
                with_potentials(self.game, config.env)
        self._teacher: str | None = None
        self._speed: MeasuredSpeed | None = None
        if config.algorithm.teacher is not None:
            if not RunDir(config.run_dir).teacher.is_dir():
                check_teacher_named(config)
            from game_rl.training.extensions.teacher_extension import describe_teacher  # torch

            self._teacher = describe_teacher(config, self.game)

    def forecast(self, machine: "Machine") -> "Forecast":
        from game_rl.preflight.preflight import preflight

        return preflight(
            self.played,
            self.game,
            machine,
            probe=self.episodes,
            lake=self.lake,
            measured=self._speed,
        )

    def train(self) -> None:
        from game_rl.measure.timed_training import measure_speed

        self._speed = measure_speed(self.played, self.game)

    def recommend(self, machine: "Machine", hours: float | None) -> "Recommendation":
        from game_rl.preflight.facts import run_facts
        from game_rl.preflight.recommendation import RunNeeds

        needs = RunNeeds(
            self.played,
            run_facts(self.played, self.game, machine, self.episodes, self.lake),
            machine,
            measured=self._speed,
            episode_timesteps=None if self.episodes is None else self.episodes.mean,
        )
        return needs.recommendation(hours)

    def own_json(self) -> dict[str, Any]:
        return {"teacher": self._teacher}

    def notes(self, unmeasured: str | None) -> Iterator[RenderableType]:
        from game_rl.preflight.rendering import unwrapped

        if unmeasured is not None:
            yield f"speed     not measured: {unmeasured}"
        if self.lake is not None:
            yield (
                f"lake      {self.lake.bytes_per_timestep:,.0f} bytes a timestep on disk, measured "
                f"over {self.lake.timesteps:,} of random play; an agent that sees more of the game "
                "takes more"
            )
        elif self.played.lake is not None:
            yield "lake      not measured: --probe measures it in a few seconds"
        if self._teacher is not None:
            yield unwrapped(ReprHighlighter()(f"teacher   {self._teacher}"))
        yield from super().notes(unmeasured)


class _Experiment(_Played):
    def __init__(self, arguments: argparse.Namespace) -> None:
        from game_rl.experiments.train_experiment import check_experiment_packages

        self._experiment = load_experiment(arguments.config, arguments.set)
        if not arguments.on:
            check_experiment_packages(self._experiment)
        run = self._experiment.run
        super().__init__(run, load_game(run.game), is_here=not arguments.on)
        self.run_dir = self._experiment.config.run_dir
        self._slots = 0
        self._speed: ExperimentSpeed | None = None

    def forecast(self, machine: "Machine") -> "Forecast":
        from game_rl.experiments.forecast.experiment_forecast import experiment_preflight

        report = experiment_preflight(
            self._experiment,
            self.game,
            machine,
            probe=self.episodes,
            lake=self.lake,
            measured=self._speed,
        )
        self._slots = report.slots
        return report

    def train(self) -> None:
        from game_rl.measure.timed_training import measure_experiment_speed

        self._speed = measure_experiment_speed(
            self._experiment, self.game, members_at_once=self._slots
        )

    def recommend(self, machine: "Machine", hours: float | None) -> "Recommendation":
        from game_rl.experiments.forecast.experiment_forecast import ExperimentNeeds

        needs = ExperimentNeeds(
            self._experiment, self.game, machine, self.episodes, self.lake, self._speed
        )
        return needs.recommendation(hours)


class _Study(_Subject):
    def __init__(self, arguments: argparse.Namespace) -> None:
        self._study = load_study(arguments.config, arguments.set)
        self.run_dir = self._study.config.run_dir
        self._lakes: dict[str, MeasuredLake] = {}

    def play(self) -> None:
        """Measure the compression of the Lakes of arms that write one."""
        from game_rl.preflight.random_play import probe_lake

        players = {name: arm.players[0] for name, arm in self._study.arms.items()}
        with _busy("writing random play into Lakes, to measure them"):
            self._lakes = {
                name: probe_lake(run, load_game(run.game))
                for name, run in players.items()
                if run.lake is not None
            }

    def forecast(self, machine: "Machine") -> "Forecast":
        from game_rl.experiments.study.study_forecast import study_preflight

        return study_preflight(self._study, machine, lakes=self._lakes)


_SUBJECTS: dict[str | None, type[_Run | _Experiment | _Study]] = {None: _Run, "study": _Study}
"""By the kind of config; all other kinds are experiments."""
