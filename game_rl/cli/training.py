"""`game-rl train`."""

import argparse
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from game_rl.cli.arguments import add_command, add_config_arguments, not_negative
from game_rl.cli.playing import evaluation_table
from game_rl.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from game_rl.cli.arguments import Commands
    from game_rl.cli.run_console import RunConsole
    from game_rl.training.train import TrainingResult


def add_train(commands: "Commands") -> None:
    parser = add_command(
        commands,
        "train",
        _train,
        summary="train an agent, evaluate it and record a clip of it",
        example="game-rl train --config configs/duel_ppo.yaml --set seed=1",
    )
    add_config_arguments(parser, required=False)
    parser.add_argument("--resume", type=Path, metavar="RUN", help="continue the run in RUN")
    parser.add_argument(
        "--until",
        type=not_negative,
        metavar="T",
        help="train up to the first update at or beyond timestep T, save, and leave; "
        "0: after algorithm.learn_from.offline",
    )
    parser.add_argument("--force", action="store_true", help="start even if it does not fit")
    parser.add_argument(
        "--log",
        choices=["text", "json"],
        default="text",
        help="what is printed: text for people, or each event as one JSON object a line",
    )


def _train(arguments: argparse.Namespace) -> int:
    if arguments.resume is None and arguments.config is None:
        raise UsageError("train needs --config FILE, or --resume RUN to continue a run")
    if arguments.resume is not None and arguments.config is not None:
        raise UsageError(
            "--resume continues a run with its own config: leave --config out; "
            "some keys may be changed with --set, such as total_timesteps"
        )
    from game_rl.cli.run_console import PatientConsole, RunConsole

    console = PatientConsole(quiet=arguments.log == "json")
    with closing(RunConsole(console)) as run_console:
        result = _trained(arguments, console, run_console)
    _print_result(result, console)
    return 0


def _trained(
    arguments: argparse.Namespace, console: "Console", run_console: "RunConsole"
) -> "TrainingResult":
    from game_rl.config.loader import load_config

    # a mistake in the config is reported before torch is loaded
    config = None if arguments.config is None else load_config(arguments.config, arguments.set)
    from game_rl.callbacks.stop import StopRequest
    from game_rl.cli.run_console import print_json
    from game_rl.cli.signals import stopping_on_signals
    from game_rl.preflight.report import render_report
    from game_rl.training.train import Command, resume, train

    stop = StopRequest()
    command = Command(
        until=arguments.until,
        force=arguments.force,
        stop=stop,
        listeners=[print_json if arguments.log == "json" else run_console],
        show=lambda report: console.print(render_report(report)),
    )
    with stopping_on_signals(stop):
        if config is not None:
            return train(config, command)
        return resume(arguments.resume, command, overrides=arguments.set)


def _print_result(result: "TrainingResult", console: "Console") -> None:
    from game_rl.preflight.report import footprint_line

    root = result.run_dir.root
    if result.evaluation is None:
        console.print(
            f"trained up to timestep {result.timesteps:,} and saved; continue with --resume {root}",
            soft_wrap=True,
            markup=False,
        )
        return
    title = f"best policy, {result.best_name}"
    console.print(evaluation_table(result.evaluation, title))
    console.print(f"footprint    {footprint_line(result.footprint)}", soft_wrap=True, markup=False)
    if result.video is not None:
        console.print(f"video        {result.video}", soft_wrap=True, markup=False)
    console.print(f"run          {root}", soft_wrap=True, markup=False)
    console.print(f"curves       tensorboard --logdir {root}", soft_wrap=True, markup=False)
