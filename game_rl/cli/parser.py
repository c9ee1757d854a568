"""The table of all commands, and the parser of those that are asked for."""

import argparse
import difflib
import importlib
import platform
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from game_rl.emulator.state_speed import describe_states
from game_rl.errors import UsageError
from game_rl.system.packages import installed_versions, source_sha256

EXIT_CODES = """\
exit codes:
  0    done
  1    failed (a worker died, a checkpoint is damaged, a loss became NaN, the disk is nearly full,
       storage refuses a command, a logged episode does not replay as it was logged)
  2    a mistake in the config, the game file, the ROM or the command
  3    the run does not fit this machine
  4    done, but the upload never worked: nothing of the run or experiment is in storage
  130, 143, 129, 138  stopped by SIGINT, SIGTERM, SIGHUP, SIGUSR1; everything up to the last
       checkpoint is saved
"""
_INVALID_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")
_NAMES_WIDTH = 13
_WIDTH = 96


Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(
    commands: Commands, name: str, summary: str, example: str, *, is_group: bool = False
) -> argparse.ArgumentParser:
    """Add a parser, whose default `command` carries the command out and returns the exit code.

    Args:
        is_group: whether it has commands of its own, and nothing else.
    """
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if is_group:
        return parser
    how = parser.add_mutually_exclusive_group()
    how.add_argument("-q", "--quiet", action="store_true", help="print only the result, and errors")
    how.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print every update of a training, and the traceback of an error",
    )
    return parser


def commands_of(parser: argparse.ArgumentParser) -> Commands:
    """Return what the commands of a group are added to."""
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True)


@dataclass(frozen=True)
class Command:
    """A command, whose module has a function `add_NAME` that adds arguments to its parser.

    Attributes:
        module: its name within `cli`.
        summary: what it does, in half a sentence.
        is_group: whether it has commands of its own.
    """

    name: str
    module: str
    summary: str
    example: str
    is_group: bool = False

    def add_to(self, commands: Commands) -> None:
        module = importlib.import_module(f"game_rl.cli.{self.module}")
        parser = add_command(
            commands, self.name, self.summary, self.example, is_group=self.is_group
        )
        getattr(module, f"add_{self.name.replace('-', '_')}")(parser)


GROUPS: Mapping[str, Sequence[Command]] = {
    "train and inspect": (
        Command(
            "demo",
            "train_command",
            "train on the bundled game duel for minutes, evaluate the agent and record a GIF of it",
            "game-rl demo",
        ),
        Command(
            "train",
            "train_command",
            "train an agent, evaluate it and record a clip, or carry out an experiment or a study",
            "game-rl train duel_ppo seed=1",
        ),
        Command(
            "preflight",
            "preflight_command",
            "predict the memory, disk and time that a run, an experiment or a study needs",
            "game-rl preflight duel_ppo --on ram=32GiB,cpus=8",
        ),
        Command(
            "tune",
            "tune_command",
            "try numbers of envs and workers (ppo, pqn); print the fastest as a diff",
            "game-rl tune duel_ppo",
        ),
        Command(
            "runs",
            "status_command",
            "list every run, experiment and exploration with state, timesteps, success and size",
            "game-rl runs runs --prune",
        ),
        Command(
            "watch",
            "watch_command",
            "show a run, an experiment, an exploration or a folder of them on a live page",
            "game-rl watch runs/duel_ppo --open",
        ),
        Command(
            "status",
            "status_command",
            "show the progress of a run, an experiment or an exploration, and what is uploaded",
            "game-rl status runs/duel_ppo",
        ),
        Command(
            "evaluate",
            "play_commands",
            "play episodes with a trained agent and summarise them",
            "game-rl evaluate runs/duel_ppo --checkpoint latest --episodes 50",
        ),
        Command(
            "record",
            "play_commands",
            "record a GIF or MP4 of episodes: new, logged, explored or played ones",
            "game-rl record runs/duel_ppo --best --worst --grid --overlay",
        ),
        Command(
            "episodes",
            "episodes_command",
            "list the episodes that a run has logged in training and in evaluations",
            "game-rl episodes runs/duel_ppo --best --from 100000",
        ),
        Command(
            "plot",
            "picture_commands",
            "plot evaluations, rewards, speed, memory and disk of runs, their seeds, experiments",
            "game-rl plot runs/ppo_* runs/pqn_* --x frames --output curves.png",
        ),
        Command(
            "report",
            "picture_commands",
            "write a report of a run, an experiment or an exploration into one HTML file",
            "game-rl report runs/duel_ppo --output report.html",
        ),
        Command(
            "places",
            "picture_commands",
            "draw a map of the places that a run's agents have visited, for games with a `place`",
            "game-rl places runs/beacon_ppo --output beacon.png",
        ),
    ),
    "compare, keep and share": (
        Command(
            "compare",
            "compare_commands",
            "compare runs and experiments over their seeds, or judge a study: tables, intervals, "
            "exact p-values, curves and verdicts",
            "game-rl compare runs/ppo_* runs/pqn_* --output runs/ppo_or_pqn",
        ),
        Command(
            "study",
            "compare_commands",
            "register a study before its first run, show its progress, give up a run",
            "game-rl study status study_ppo_pqn",
            is_group=True,
        ),
        Command(
            "checkpoints",
            "checkpoint_commands",
            "list a run's checkpoints and verify all their files",
            "game-rl checkpoints runs/duel_ppo",
        ),
        Command(
            "lineage",
            "checkpoint_commands",
            "show where a run's weights came from, in timesteps and emulator frames, or which runs "
            "of an experiment descend from which",
            "game-rl lineage runs/duel_fork",
        ),
        Command(
            "export",
            "checkpoint_commands",
            "export a policy to a Stable-Baselines3 zip file (ppo, or dqn without layer_norm), or "
            "to ONNX",
            "game-rl export runs/duel_ppo --format sb3 --output duel.zip",
        ),
        Command(
            "import",
            "checkpoint_commands",
            "start a run (ppo, or dqn without layer_norm) from a Stable-Baselines3 policy",
            "game-rl import model.zip --config duel_ppo --set run_dir=runs/mine",
        ),
        Command(
            "push",
            "hub_commands",
            "share a run's best policy on the Hugging Face Hub, with a card, a clip and its score",
            "game-rl push runs/duel_ppo hf:ada/ppo-duel",
        ),
        Command(
            "pull",
            "hub_commands",
            "fetch an agent from the Hugging Face Hub, to watch, evaluate, record and fork it",
            "game-rl pull hf:ada/ppo-duel",
        ),
        Command(
            "replay",
            "replay_command",
            "inspect, verify, compact, import or export a Lake of replay",
            "game-rl replay info runs/duel_dqn/lake",
            is_group=True,
        ),
        Command(
            "remote",
            "remote_command",
            "list, fetch, verify and upload runs and experiments in object storage",
            "game-rl remote list s3://bucket/folder",
            is_group=True,
        ),
    ),
    "configs, games, editors and shells": (
        Command(
            "configs",
            "configs_command",
            "list the configs that come with game_rl, print one, or copy it here",
            "game-rl configs duel_ppo > run.yaml",
        ),
        Command(
            "games",
            "games_command",
            "list the known games: bundled ones, examples, and the ROMs in roms/",
            "game-rl games",
        ),
        Command(
            "check-game",
            "game_commands",
            "play a game.yaml's game and show what its variables and rewards do",
            "game-rl check-game my_game/game.yaml --recorded episode.json",
        ),
        Command(
            "new-game",
            "new_game_command",
            "play an unknown ROM, and write a game.yaml and a run.yaml for it",
            "game-rl new-game roms/my_game.gb --folder my_game",
        ),
        Command(
            "play",
            "play_command",
            "play a game yourself, in the browser or in a window, and record the episode",
            "game-rl play duel --record mine/duel.json --open",
        ),
        Command(
            "find",
            "find_command",
            "search a game's RAM for a number by the screen, by moments, by buttons or by symbols",
            'game-rl find my_game --number "row 1 column 5 is 28" --name health',
        ),
        Command(
            "explore",
            "explore_command",
            "explore a game by random play that returns to states it has found",
            "game-rl explore beacon --output explored --minutes 10",
        ),
        Command(
            "schema",
            "editor_commands",
            "print the JSON Schema of a run config, for editors",
            "game-rl schema > configs/run.schema.json",
        ),
        Command(
            "completion",
            "editor_commands",
            "print a script that lets a shell complete commands, options, configs and runs",
            'eval "$(game-rl completion bash)"  # in ~/.bashrc',
        ),
    ),
}
COMMANDS: Mapping[str, Command] = {
    command.name: command for group in GROUPS.values() for command in group
}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are the user's mistakes, as all others."""

    def error(self, message: str) -> NoReturn:
        way_out = ""
        example = (self.epilog or "").removeprefix("example:").strip().partition("\n\n")[0]
        if slip := _INVALID_CHOICE.search(message):
            meant = difflib.get_close_matches(slip[1], re.findall(r"'([^']*)'", slip[2]), n=1)
            way_out = f"; did you mean {meant[0]}?" if meant else ""
        elif "are required" in message and example:
            way_out = f"; for example: {example}"
        raise UsageError(f"{message}{way_out}\nsee {self.prog} --help")


class _Version(argparse.Action):
    """Prints what a report of a bug needs; the digest of the source takes a moment."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        found = installed_versions()
        print(f"game-rl {found.pop('game_rl')}\nsource {source_sha256()}")
        print("\n".join(f"{name} {number}" for name, number in found.items()))
        print(f"states {describe_states()}")
        print(platform.platform())
        parser.exit()


def make_parser(
    names: Collection[str] = COMMANDS,
) -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Return the parser, and the parsers of these commands, which are all that it knows."""
    listed = []
    for title, group in GROUPS.items():
        rows = (
            textwrap.fill(
                command.summary,
                _WIDTH,
                initial_indent=f"  {command.name:<{_NAMES_WIDTH}}",
                subsequent_indent=" " * (_NAMES_WIDTH + 2),
            )
            for command in group
        )
        listed.append("\n".join((f"{title}:", *rows)))
    parser: argparse.ArgumentParser = _Parser(
        prog="game-rl",
        usage="game-rl COMMAND ...",
        description="Train agents on Game Boy games.",
        epilog="\n\n".join((*listed, "game-rl COMMAND --help explains one", EXIT_CODES)),
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=16, width=_WIDTH
        ),
    )
    parser.add_argument(
        "-V",
        "--version",
        action=_Version,
        nargs=0,
        help="print the version, and those of the packages that a run's numbers depend on",
    )
    commands = parser.add_subparsers(
        prog="game-rl", metavar="COMMAND", required=True, help=argparse.SUPPRESS
    )
    for name in names:
        if name in COMMANDS:
            COMMANDS[name].add_to(commands)
    return parser, commands.choices
