"""`game-rl preflight` of runs, experiments and studies."""

import argparse
import json
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from game_rl.cli.arguments import NO_CONFIG, add_command, add_config_arguments
from game_rl.cli.preflight_answers import Answers, add_answers, check_answers
from game_rl.cli.printing import PROGRESS
from game_rl.config.experiments.experiment import load_experiment
from game_rl.config.experiments.study_config import load_study
from game_rl.config.loader import config_kind, load_config
from game_rl.emulator.state_speed import describe_states, why_states_are_slow
from game_rl.errors import UsageError
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.lake.lake_feed import level_problems
from game_rl.system.units import format_bytes

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands
    from game_rl.config.experiments.experiment import Experiment
    from game_rl.config.experiments.study_config import Study
    from game_rl.config.schema import RunConfig
    from game_rl.experiments.forecast.experiment_forecast import ExperimentReport
    from game_rl.experiments.study.study_forecast import StudyReport
    from game_rl.games.definition import Game
    from game_rl.preflight.facts import EpisodeLengths, MeasuredLake
    from game_rl.preflight.preflight_report import PreflightReport
    from game_rl.system.machine import Machine


def add_preflight(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "preflight",
        _preflight,
        summary=summary,
        example="game-rl preflight duel_ppo --on ram=32GiB,cpus=8",
    )
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
    add_answers(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _preflight(arguments: argparse.Namespace) -> int:
    if arguments.storage is not None:
        return _plain_storage(arguments)
    if arguments.config is None:
        raise UsageError(NO_CONFIG)
    kind = config_kind(arguments.config, arguments.set)
    check_answers(arguments, kind)
    if kind == "study":
        return _preflight_study(arguments)
    if kind is not None:
        return _preflight_experiment(arguments)
    return _preflight_run(arguments)


def _preflight_run(arguments: argparse.Namespace) -> int:
    from game_rl.preflight.preflight import preflight, recommend
    from game_rl.training.admission import check_packages

    config = load_config(arguments.config, arguments.set, more_checks=level_problems)
    if not arguments.on:
        check_packages(config)
    game = load_game(config.game)
    teacher = _teacher_note(config, game)
    machine = _machine(arguments, config.run_dir)
    probe, lake = _probed(config, game) if arguments.probe else (None, None)
    report = preflight(config, game, machine, probe=probe, lake=lake)
    unmeasured = _why_unmeasured(arguments, report)
    measured = None
    if unmeasured is None:
        from game_rl.measure.timed_training import measure_speed

        with _busy("training briefly, to measure this machine's speed"):
            measured = measure_speed(config, game)
        report = preflight(config, game, machine, probe=probe, lake=lake, measured=measured)
    found = None
    hours = arguments.hours
    if arguments.recommend:
        found = recommend(
            config, game, machine, probe=probe, lake=lake, measured=measured, hours=hours
        )
    answers = Answers(found, report.checks if arguments.explain else None, unmeasured)
    if arguments.json:
        more = {
            **_measured_json(lake),
            "teacher": teacher,
            **_states_json(arguments),
            **answers.to_json(),
        }
        print(json.dumps({**report.to_json(), **more}, indent=2))
    else:
        if answers.recommendation is None:
            _print(report, unmeasured, _lake_note(config, lake), teacher)
            _print_states(arguments)
            _print_levels(config, lake)
        answers.print(Console())
    return answers.exit_code(report.verdict)


def _plain_storage(arguments: argparse.Namespace) -> int:
    from game_rl.preflight.plain_storage import parse_storage, render_storage

    if arguments.config is not None:
        raise UsageError("--storage computes from plain numbers alone: leave the config out")
    storage = parse_storage(arguments.storage)
    if arguments.json:
        print(json.dumps(storage.to_json(), indent=2))
    else:
        Console().print(render_storage(storage))
    return 3 if storage.full_at is not None else 0


def _probed(config: "RunConfig", game: "Game") -> "tuple[EpisodeLengths, MeasuredLake | None]":
    from game_rl.preflight.random_play import LEVELS, probe_episodes, probe_lake

    with _busy("playing random episodes"):
        lengths = probe_episodes(config, game)
    if config.lake is None:
        return lengths, None
    with _busy("writing random play into a Lake, to measure how the game compresses"):
        return lengths, probe_lake(config, game, levels=LEVELS)


def _print(
    report: "PreflightReport", unmeasured: str | None, lake_note: str | None, teacher: str | None
) -> None:
    from game_rl.preflight.preflight_report import render_report

    console = Console()
    console.print(render_report(report))
    if unmeasured is not None:
        console.print(f"speed     not measured: {unmeasured}")
    if lake_note is not None:
        console.print(f"lake      {lake_note}")
    if teacher is not None:
        console.print(f"teacher   {teacher}", soft_wrap=True, markup=False)


def _print_states(arguments: argparse.Namespace) -> None:
    if not arguments.on:
        line = f"states    {describe_states()}"
        Console().print(line, soft_wrap=True, markup=False, highlight=False)


def _states_json(arguments: argparse.Namespace) -> "dict[str, object]":
    if arguments.on:
        return {}
    why_slow = why_states_are_slow()
    return {"states": {"fast": why_slow is None, "why_slow": why_slow}}


def _lake_note(config: "RunConfig", lake: "MeasuredLake | None") -> str | None:
    """Return a note on the size of the run's Lake, or None if it has no Lake."""
    if config.lake is None:
        return None
    if lake is None:
        return "not measured: --probe measures it in a few seconds"
    return (
        f"{lake.bytes_per_timestep:,.0f} bytes a timestep on disk, measured over "
        f"{lake.timesteps:,} of random play; an agent that sees more of the game takes more"
    )


def _measured_json(lake: "MeasuredLake | None") -> "dict[str, object]":
    return {"lake": None if lake is None else asdict(lake)}


def _print_levels(config: "RunConfig", lake: "MeasuredLake | None") -> None:
    """Print what each compression level costs, if that was measured."""
    from game_rl.preflight.preflight_report import levels_table

    if lake is not None and lake.levels and config.lake is not None:
        Console().print(levels_table(lake, config.lake.compression_level))


def _teacher_note(config: "RunConfig", game: "Game") -> str | None:
    """Return a note on the run's teacher, or None without one; raise if the teacher is unusable."""
    from game_rl.training.admission import check_teacher_named

    if config.algorithm.teacher is None:
        return None
    if not RunDir(config.run_dir).teacher.is_dir():
        check_teacher_named(config)
    from game_rl.training.extensions.teacher_extension import describe_teacher  # loads torch

    return describe_teacher(config, game)


def _machine(arguments: argparse.Namespace, run_dir: Path) -> "Machine":
    """Return this machine, or the one that `--on` describes."""
    from game_rl.system.machine import detect_machine, parse_machine

    here = detect_machine(run_dir)
    return parse_machine(arguments.on, here=here) if arguments.on else here


def _why_unmeasured(
    arguments: argparse.Namespace, report: "PreflightReport | ExperimentReport"
) -> str | None:
    if arguments.on:
        return "--on describes another machine"
    if not arguments.probe:
        return "--probe measures it in about 20 seconds"
    return "the run does not fit" if report.verdict == "does_not_fit" else None


def _busy(doing: str) -> AbstractContextManager[object]:
    """Show a spinner on stderr while something takes seconds."""
    return PROGRESS.status(doing)


def _preflight_experiment(arguments: argparse.Namespace) -> int:
    from game_rl.experiments.experiment_tables import forecast_table
    from game_rl.experiments.forecast.experiment_explanation import explain_experiment
    from game_rl.experiments.forecast.experiment_forecast import experiment_preflight
    from game_rl.experiments.forecast.experiment_recommendation import ExperimentNeeds
    from game_rl.system.machine import without_installation

    experiment = _experiment(arguments)
    game = load_game(experiment.run.game)
    machine = _machine(arguments, experiment.config.run_dir)
    lengths, lake = _probed(experiment.run, game) if arguments.probe else (None, None)
    report = experiment_preflight(experiment, game, machine, probe=lengths, lake=lake)
    unmeasured = _why_unmeasured(arguments, report)
    measured = None
    if unmeasured is None:
        from game_rl.measure.timed_training import measure_experiment_speed

        with _busy("training briefly, to measure this machine's speed"):
            measured = measure_experiment_speed(experiment, game, members_at_once=report.slots)
        report = experiment_preflight(
            experiment, game, machine, probe=lengths, lake=lake, measured=measured
        )
    found = None
    if arguments.recommend:
        other = without_installation(machine)
        needs = ExperimentNeeds(experiment, game, other, lengths, lake, measured)
        found = needs.recommendation(arguments.hours)
    answers = Answers(
        found,
        explain_experiment(report) if arguments.explain else None,
        unmeasured,
    )
    if arguments.json:
        more = {**_measured_json(lake), **_states_json(arguments), **answers.to_json()}
        print(json.dumps({**report.to_json(), **more}, indent=2))
    else:
        if answers.recommendation is None:
            Console().print(forecast_table(report))
            _print_states(arguments)
            _print_levels(experiment.run, lake)
        answers.print(Console())
    return answers.exit_code(report.verdict)


def _experiment(arguments: argparse.Namespace) -> "Experiment":
    """Return the experiment; for this machine, check the packages that it needs."""
    from game_rl.experiments.train_experiment import check_experiment_packages

    experiment = load_experiment(arguments.config, arguments.set)
    if not arguments.on:
        check_experiment_packages(experiment)
    return experiment


def _preflight_study(arguments: argparse.Namespace) -> int:
    from game_rl.experiments.study.study_forecast import study_preflight

    study = load_study(arguments.config, arguments.set)
    machine = _machine(arguments, study.config.run_dir)
    lakes = _measured_lakes(study) if arguments.probe else {}
    report = study_preflight(study, machine, lakes=lakes)
    if arguments.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        show_study_forecast(report, Console())
    return 3 if report.verdict == "does_not_fit" else 0


def _measured_lakes(study: "Study") -> "dict[str, MeasuredLake]":
    """Measure the compression of the Lakes of arms that write one, by random play."""
    from game_rl.preflight.random_play import probe_lake

    players = {name: arm.players[0] for name, arm in study.arms.items()}
    with _busy("writing random play into Lakes, to measure them"):
        return {
            name: probe_lake(run, load_game(run.game))
            for name, run in players.items()
            if run.lake is not None
        }


def show_study_forecast(report: "StudyReport", console: "Console") -> None:
    from game_rl.preflight.preflight_report import VERDICTS

    words, style = VERDICTS[report.verdict]
    machine = report.machine
    console.print(
        Text.assemble(
            (words, style),
            f"  {report.runs} runs, {report.slots} at once: "
            f"RAM {format_bytes(report.ram_bytes)} of {format_bytes(machine.ram_available_bytes)}; "
            f"disk {format_bytes(report.disk_bytes)} of {format_bytes(machine.disk_free_bytes)}",
        ),
        soft_wrap=True,
    )
    if report.unmeasured_lakes:
        names = ", ".join(report.unmeasured_lakes)
        text = f"without the Lakes of {names}, not measured yet: preflight --probe adds them"
        console.print(text, soft_wrap=True, markup=False, highlight=False)
