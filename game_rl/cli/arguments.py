"""Arguments that several commands share, and types of arguments."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from game_rl.config.values import run_at
from game_rl.errors import UsageError
from game_rl.experiments.experiment_dir import run_of

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command(
    commands: "Commands",
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    summary: str,
    example: str,
    trains: bool = False,
) -> argparse.ArgumentParser:
    """Add a parser for a command.

    Args:
        run: carries the command out and returns the exit code.
        trains: whether the command goes on if its output can no longer be written.
    """
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=run, trains=trains)
    return parser


def add_config_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--config", type=Path, metavar="FILE", required=required, help="config file"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a key of the config, such as env.n_envs=16; repeatable",
    )


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run",
        type=Path,
        metavar="RUN[@T]",
        help="run directory, or the directory of an experiment, which stands for its champion; "
        "@T means --checkpoint T",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="best|latest|N",
        help="checkpoint to use; N is a timestep (default: best). The best acts as in the "
        "evaluation that chose it: it takes its likeliest actions or draws them. Any other "
        "checkpoint acts as evaluation.deterministic says or, if that is auto, like the best",
    )


def named_policy(arguments: argparse.Namespace) -> tuple[Path, str]:
    """Return the run directory and the name of the checkpoint that a command asks for.

    Raises:
        UsageError: it names two checkpoints, or an experiment without a champion.
    """
    root, timesteps = run_at(str(arguments.run))
    if timesteps is None or arguments.run.is_dir():
        return run_of(arguments.run), arguments.checkpoint or "best"
    if arguments.checkpoint is not None:
        raise UsageError(
            f"{arguments.run} and --checkpoint {arguments.checkpoint} both name a checkpoint; "
            "leave one out"
        )
    return run_of(root), str(timesteps)


def positive(text: str) -> int:
    """Parse an integer of at least 1, as the type of an argument."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def not_negative(text: str) -> int:
    """Parse an integer of at least 0, as the type of an argument."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value
