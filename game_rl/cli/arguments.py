"""What the commands' arguments have in common."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command(
    commands: "Commands",
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    summary: str,
    example: str,
) -> argparse.ArgumentParser:
    """A parser for the command `name`; `run` returns its exit code."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=run)
    return parser


def add_config_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", required=required, help="run config")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a key of the config, such as env.n_envs=16; may be given often",
    )


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run",
        type=Path,
        metavar="RUN",
        help="run directory of a training, or of an experiment: its champion",
    )
    parser.add_argument(
        "--checkpoint",
        default="best",
        metavar="best|latest|N",
        help="which checkpoint; N is its timestep (default: best). The best acts as in the "
        "evaluation that chose it, by its likeliest actions or by drawing them; another one as "
        "evaluation.deterministic says, and if that is auto, as the best",
    )


def positive(text: str) -> int:
    """An argument type: a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def not_negative(text: str) -> int:
    """An argument type: a whole number of at least 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value
