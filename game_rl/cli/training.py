"""`game-rl train`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from game_rl.cli.arguments import add_command, add_config_arguments
from game_rl.cli.playing import evaluation_table
from game_rl.errors import UsageError

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands
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
    parser.add_argument("--force", action="store_true", help="start even if it does not fit")


def _train(arguments: argparse.Namespace) -> int:
    from game_rl.config.loader import load_config

    console = Console()
    if arguments.resume is not None:
        if arguments.config is not None:
            raise UsageError(
                "--resume continues a run with its own config: leave --config out; "
                "some keys may be changed with --set, such as total_timesteps"
            )
        from game_rl.training.train import resume

        result = resume(
            arguments.resume, overrides=arguments.set, force=arguments.force, console=console
        )
    elif arguments.config is not None:
        config = load_config(arguments.config, arguments.set)
        from game_rl.training.train import train

        result = train(config, force=arguments.force, console=console)
    else:
        raise UsageError("train needs --config FILE, or --resume RUN to continue a run")
    _print_result(result, console)
    return 0


def _print_result(result: "TrainingResult", console: Console) -> None:
    from game_rl.preflight.report import footprint_line

    title = f"best policy, timestep {result.best_timesteps:,}"
    console.print(evaluation_table(result.evaluation, title))
    console.print(f"footprint    {footprint_line(result.footprint)}", soft_wrap=True)
    if result.video is not None:
        console.print(f"video        {result.video}", soft_wrap=True)
    root = result.run_dir.root
    console.print(f"run          {root}", soft_wrap=True)
    console.print(f"curves       tensorboard --logdir {root}", soft_wrap=True)
