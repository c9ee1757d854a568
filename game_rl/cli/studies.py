"""Studies on the command line: registration, preflight, training, status and report."""

import argparse
import functools
import json
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from game_rl.cli.arguments import add_command, not_negative
from game_rl.cli.comparing import show_comparison

if TYPE_CHECKING:
    from rich.console import Console

    from game_rl.cli.arguments import Commands
    from game_rl.config.experiments.study_config import Study
    from game_rl.experiments.study.study_forecast import StudyReport
    from game_rl.experiments.study.study_results import Result
    from game_rl.experiments.tasks import Death
    from game_rl.preflight.facts import MeasuredLake


def add_study(commands: "Commands") -> None:
    parser = commands.add_parser(
        "study",
        help="register a study before its first run, show its progress, give up a run",
        description="Register a study before its first run, show its progress, give up a run.",
    )
    steps = parser.add_subparsers(title="steps", metavar="STEP", required=True)
    register = add_command(
        steps,
        "register",
        _register,
        summary="record a study's plan, and a hash of every file that may change a result",
        example="game-rl study register configs/study_ppo_pqn.yaml",
    )
    register.add_argument("file", type=Path, metavar="FILE", help="the study's file")
    give_up = add_command(
        steps,
        "give-up",
        _give_up,
        summary="count a run that cannot be brought to its end as failed, with the worst value",
        example="game-rl study give-up configs/study_ppo_pqn.yaml --arm pqn --seed 103 "
        "--reason 'the emulator locks up'",
    )
    give_up.add_argument("file", type=Path, metavar="FILE", help="the study's file")
    give_up.add_argument("--arm", required=True, metavar="NAME", help="arm of the run")
    give_up.add_argument(
        "--seed", type=not_negative, required=True, metavar="N", help="seed of the run"
    )
    give_up.add_argument(
        "--reason", required=True, metavar="TEXT", help="text that the report shows"
    )
    status = add_command(
        steps,
        "status",
        _status,
        summary="show which (arm, seed) has a result, and the progress of the others",
        example="game-rl study status configs/study_ppo_pqn.yaml",
    )
    status.add_argument("file", type=Path, metavar="FILE", help="the study's file")
    status.add_argument("--json", action="store_true", help="print one JSON object")


def _register(arguments: argparse.Namespace) -> int:
    from game_rl.config.experiments.study_config import load_study
    from game_rl.experiments.study.study_dir import study_dir
    from game_rl.experiments.study.study_registration import register

    study = load_study(arguments.file)
    registration = register(study)
    print(f"registered   {study_dir(study.config).registration}")
    print(f"             {len(registration.code)} files of game_rl, {registration.sha256()[:16]}")
    print("next         commit it, then")
    print(f"             python train.py --config {quote(str(arguments.file))}")
    print(f"             game-rl compare {quote(str(arguments.file))}")
    return 0


def _give_up(arguments: argparse.Namespace) -> int:
    from game_rl.config.experiments.study_config import load_study
    from game_rl.experiments.study.study_dir import Pair
    from game_rl.experiments.study.study_run import give_up

    pair = Pair(arguments.arm, arguments.seed)
    result = give_up(load_study(arguments.file), pair, arguments.reason)
    print(f"{pair.name} counts as failed at timestep {result.timesteps:,}")
    return 0


def train_study(arguments: argparse.Namespace) -> int:
    """Make the missing results of a study."""
    from rich.console import Console

    from game_rl.config.experiments.study_config import load_study
    from game_rl.experiments.study.study_run import StudyCommand, carry_out
    from game_rl.system.stop_request import StopFlag, stopping_experiment_on_signals

    console = Console(quiet=arguments.log == "json")
    stop = StopFlag()
    command = StudyCommand(
        stop=stop,
        force=arguments.force,
        show=lambda report: _show_forecast(report, console),
        on_result=_print_json if arguments.log == "json" else functools.partial(_show, console),
        on_death=functools.partial(_show_death, console),
    )
    study = load_study(arguments.config, arguments.set)
    with stopping_experiment_on_signals(
        stop, lambda text: console.print(text, style="yellow", markup=False)
    ):
        carry_out(study, command)
    report = f"game-rl compare {quote(str(arguments.config))}"
    console.print(f"report       {report}", soft_wrap=True, markup=False)
    return 0


def report_study(arguments: argparse.Namespace) -> int:
    """Print the report of a study, and write it to the study's results folder."""
    from game_rl.config.experiments.study_config import load_study
    from game_rl.experiments.study.study_report import study_findings

    findings = study_findings(load_study(arguments.runs[0]))
    if arguments.output is None:
        arguments.output = findings.study.config.results
    show_comparison(
        arguments,
        findings.comparison,
        title=findings.study.config.question,
        notes=list(findings.notes),
        more=findings.breaks,
    )
    return 0


def preflight_study(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from game_rl.config.experiments.study_config import load_study
    from game_rl.experiments.study.study_forecast import study_preflight
    from game_rl.system.machine import detect_machine, parse_machine

    study = load_study(arguments.config, arguments.set)
    machine = detect_machine(study.config.run_dir)
    if arguments.on:
        machine = parse_machine(arguments.on, here=machine)
    lakes = _measured_lakes(study) if arguments.probe else {}
    report = study_preflight(study, machine, lakes=lakes)
    if arguments.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        _show_forecast(report, Console())
    return 3 if report.verdict == "does_not_fit" else 0


def _measured_lakes(study: "Study") -> "dict[str, MeasuredLake]":
    """Measure the compression of the Lakes of arms that write one, by random play."""
    from rich.console import Console

    from game_rl.games.definition import load_game
    from game_rl.measure.random_play import probe_lake

    players = {name: arm.players[0] for name, arm in study.arms.items()}
    with Console(stderr=True).status("writing random play into Lakes, to measure them"):
        return {
            name: probe_lake(run, load_game(run.game))
            for name, run in players.items()
            if run.lake is not None
        }


def _status(arguments: argparse.Namespace) -> int:
    from game_rl.config.experiments.study_config import load_study
    from game_rl.experiments.study.study_report import study_status

    rows = study_status(load_study(arguments.file))
    if arguments.json:
        print(json.dumps([row.to_json() for row in rows], indent=2))
        return 0
    for row in rows:
        print(f"{row.arm:<20} seed {row.seed:<12} {row.text}")
    done = sum(row.is_done for row in rows)
    print(f"{done} of {len(rows)} results")
    return 0


def _show_forecast(report: "StudyReport", console: "Console") -> None:
    from rich.text import Text

    from game_rl.preflight.preflight_report import VERDICTS
    from game_rl.system.units import format_bytes

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


def _show(console: "Console", result: "Result", done: int, count: int) -> None:
    from game_rl.experiments.study.study_report import result_words
    from game_rl.system.units import format_duration

    took = format_duration(result.seconds)
    text = f"[{done}/{count}] {result.arm}, seed {result.seed}: {result_words(result)}, {took}"
    console.print(text, soft_wrap=True, markup=False, highlight=False)


def _print_json(result: "Result", done: int, count: int) -> None:  # noqa: ARG001 - as `_show`
    print(result.model_dump_json(exclude_none=True), flush=True)


def _show_death(console: "Console", death: "Death") -> None:
    from game_rl.cli.experiment_console import death_words

    ended = death.ended
    words = death_words(
        name=ended.job.name,
        code=ended.code,
        deaths=death.count,
        pause_s=death.pause_s,
        cause=ended.cause,
    )
    console.print(f"warning: {words}", soft_wrap=True, markup=False)
