"""`game-rl schema`."""

import argparse
from typing import TYPE_CHECKING

from game_rl.cli.arguments import add_command

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands


def add_schema(commands: "Commands") -> None:
    parser = add_command(
        commands,
        "schema",
        _schema,
        summary="print the JSON Schema of a run config, for editors",
        example="game-rl schema > configs/run.schema.json",
    )
    parser.add_argument("--game", action="store_true", help="of a game.yaml instead")


def _schema(arguments: argparse.Namespace) -> int:
    from game_rl.config.loader import json_schema
    from game_rl.config.schema import RunConfig
    from game_rl.games.definition import GameDefinition

    print(json_schema(GameDefinition if arguments.game else RunConfig), end="")
    return 0
