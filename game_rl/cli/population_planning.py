"""`game-rl preflight` of an experiment: the resources that its runs need together."""

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from game_rl.config.schema import RunConfig
    from game_rl.games.definition import Game
    from game_rl.preflight.facts import EpisodeLengths, MeasuredLake

    Probe = Callable[[RunConfig, Game], tuple[EpisodeLengths, MeasuredLake | None]]


def preflight_experiment(arguments: argparse.Namespace, probe: "Probe") -> int:
    from game_rl.config.experiments.experiment import load_experiment
    from game_rl.experiments.experiment_tables import forecast_table
    from game_rl.experiments.forecast.experiment_forecast import experiment_preflight
    from game_rl.games.definition import load_game
    from game_rl.system.machine import detect_machine, parse_machine

    experiment = load_experiment(arguments.config, arguments.set)
    game = load_game(experiment.run.game)
    machine = detect_machine(experiment.config.run_dir)
    if arguments.on:
        machine = parse_machine(arguments.on, here=machine)
    lengths, lake = probe(experiment.run, game) if arguments.probe else (None, None)
    report = experiment_preflight(experiment, game, machine, probe=lengths, lake=lake)
    if arguments.probe and not arguments.on and report.verdict != "does_not_fit":
        from game_rl.measure.timed_training import measure_experiment_speed

        with Console(stderr=True).status("training briefly, to measure this machine's speed"):
            measured = measure_experiment_speed(experiment, game, members_at_once=report.slots)
        report = experiment_preflight(
            experiment, game, machine, probe=lengths, lake=lake, measured=measured
        )
    if arguments.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        Console().print(forecast_table(report))
    return 3 if report.verdict == "does_not_fit" else 0
