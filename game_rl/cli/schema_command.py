"""`game-rl schema`."""

import argparse
from typing import TYPE_CHECKING

from pydantic import BaseModel

from game_rl.cli.arguments import add_command
from game_rl.config.experiments.mixture_config import MixtureConfig
from game_rl.config.experiments.population_config import PopulationConfig
from game_rl.config.experiments.study_config import StudyConfig
from game_rl.config.loader import json_schema
from game_rl.config.schema import RunConfig
from game_rl.games.definition import GameDefinition

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands


_EXPERIMENTS: dict[str, type[BaseModel]] = {
    "population": PopulationConfig,
    "mixture": MixtureConfig,
    "study": StudyConfig,
}


def add_schema(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "schema",
        _schema,
        summary=summary,
        example="game-rl schema > configs/run.schema.json",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--game", action="store_true", help="print the schema of a game.yaml instead"
    )
    for name, model in _EXPERIMENTS.items():
        text = f"print that of a {name} instead"
        which.add_argument(f"--{name}", action="store_const", dest="model", const=model, help=text)
    parser.set_defaults(model=RunConfig)


def _schema(arguments: argparse.Namespace) -> int:
    print(json_schema(GameDefinition if arguments.game else arguments.model), end="")
    return 0
