"""`game-rl demo`: the default training, in a new folder."""

import argparse
from datetime import datetime
from typing import TYPE_CHECKING

from game_rl.cli.arguments import add_command
from game_rl.cli.train_command import add_training_options, train_as_asked
from game_rl.config.bundled_configs import bundled_configs
from game_rl.errors import UsageError

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands

_CONFIG = "duel_ppo"


def add_demo(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands, "demo", _demo, summary=summary, example="game-rl demo", trains=True
    )
    parser.add_argument(
        "set",
        nargs="*",
        metavar="KEY=VALUE",
        help=f"keys of the config {_CONFIG} to override, such as seed=1; run_dir=... names the "
        "folder (default: runs/demo_ and the time)",
    )
    add_training_options(parser)
    parser.set_defaults(
        config=None,
        resume=None,
        fork=None,
        at=None,
        generation=None,
        until=None,
        take_over=False,
    )


def _demo(arguments: argparse.Namespace) -> int:
    for word in arguments.set:
        if "=" not in word:
            raise UsageError(
                f"game-rl demo trains {_CONFIG} and takes KEY=VALUE alone, not {word!r}; "
                "game-rl train takes a config"
            )
    arguments.config = bundled_configs()[_CONFIG]
    folder = f"run_dir=runs/demo_{datetime.now():%Y%m%d_%H%M%S}"
    arguments.set = [folder, *arguments.set]
    return train_as_asked(arguments)
