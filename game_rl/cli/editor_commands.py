"""`game-rl schema` and `completion`: what editors and shells read."""

import argparse
from collections.abc import Mapping
from typing import Any

import shtab
from pydantic import BaseModel

from game_rl.cli.parser import make_parser
from game_rl.config.bundled_configs import bundled_configs
from game_rl.config.experiments.mixture_config import MixtureConfig
from game_rl.config.experiments.population_config import PopulationConfig
from game_rl.config.experiments.study_config import StudyConfig
from game_rl.config.loader import json_schema
from game_rl.config.schema import RunConfig
from game_rl.games.definition import GameDefinition

SHELLS = ("bash", "zsh", "tcsh")
_RUNS = "_game_rl_runs"
_CONFIGS = "_game_rl_configs"
_NAMES = " ".join(bundled_configs())
# The functions that complete runs and configs: the folders and YAML files that there are.
_BASH = f"""\
{_RUNS}() {{
  local folder
  for folder in runs/*/ runs/*/*/ $(compgen -d -- "$1" | sed 's|$|/|'); do
    if [[ -e "${{folder}}config.yaml" || -e "${{folder}}experiment.yaml" ]]; then
      compgen -W "${{folder%/}}" -- "$1"
    fi
  done
  compgen -d -- "$1"
}}
{_CONFIGS}() {{
  compgen -W "{_NAMES} $(ls configs/*.yaml 2>/dev/null)" -- "$1"
  compgen -f -X '!*.y*ml' -- "$1"
  compgen -d -- "$1"
}}
"""
_ZSH = f"""\
{_RUNS}() {{
  local -a found
  found=(runs/*/(config|experiment).yaml(N:h) runs/*/*/(config|experiment).yaml(N:h))
  compadd -a found
  _path_files -/
}}
{_CONFIGS}() {{
  local -a found
  found=({_NAMES} configs/*.yaml(N))
  compadd -a found
  _path_files -g '*.y*ml'
}}
"""
_PREAMBLE = {"bash": _BASH, "zsh": _ZSH}
_RUN = {"bash": _RUNS, "zsh": _RUNS}
_CONFIG = {"bash": _CONFIGS, "zsh": _CONFIGS}
_COMPLETERS: Mapping[str, Mapping[str, Any]] = {
    "RUN": _RUN,
    "RUN[@T]": _RUN,
    "RUN|STUDY": _RUN,
    "FILE|KEY=VALUE": _CONFIG,
    "FILE": shtab.FILE,
    "ROM": shtab.FILE,
    "PATH": shtab.FILE,
    "DIR": shtab.DIRECTORY,
    "FOLDER": shtab.DIRECTORY,
    "LAKE": shtab.DIRECTORY,
}
"""How an argument is completed, by its name in the help."""


_EXPERIMENTS: dict[str, type[BaseModel]] = {
    "population": PopulationConfig,
    "mixture": MixtureConfig,
    "study": StudyConfig,
}


def add_schema(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_schema)
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


def add_completion(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_completion)
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")


def _completion(arguments: argparse.Namespace) -> int:
    parser, _ = make_parser()
    _mark(parser)
    preamble = _PREAMBLE.get(arguments.shell, "")
    print(shtab.complete(parser, shell=arguments.shell, preamble=preamble))
    return 0


def _mark(parser: argparse.ArgumentParser) -> None:
    """Note for each argument how a shell completes it; also for commands within a command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            action.help = None  # shtab leaves out what the help leaves out
            for inner in action.choices.values():
                _mark(inner)
        elif isinstance(action.metavar, str) and action.metavar in _COMPLETERS:
            action.complete = _COMPLETERS[action.metavar]  # type: ignore[attr-defined]
