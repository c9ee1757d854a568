"""The table of all commands, and the parser of those that are asked for."""

import argparse
import difflib
import importlib
import platform
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from game_rl.emulator.state_speed import describe_states
from game_rl.errors import UsageError
from game_rl.system.packages import installed_versions, source_sha256

EXIT_CODES = """\
exit codes:
  0    done
  1    failed (a worker died, a checkpoint is damaged, a loss became NaN, the disk is nearly full,
       storage refuses a command, a logged episode does not play as it was logged)
  2    a mistake in the config, the game file, the ROM or the command
  3    the run does not fit this machine
  4    done, but the upload never worked: nothing of the run or experiment is in storage
  130, 143, 129, 138  stopped by SIGINT, SIGTERM, SIGHUP, SIGUSR1; everything up to the last
       checkpoint is saved
"""
_INVALID_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")
_NAMES_WIDTH = 13
_WIDTH = 96


@dataclass(frozen=True)
class Command:
    """A command, whose module has a function `add_NAME` that adds its parser.

    Attributes:
        summary: what it does, in half a sentence.
    """

    name: str
    module: str
    summary: str

    def add_to(self, commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        module = importlib.import_module(self.module)
        getattr(module, f"add_{self.name.replace('-', '_')}")(commands, self.summary)


GROUPS: Mapping[str, Sequence[Command]] = {
    "train, and look at what was trained": (
        Command(
            "demo",
            "game_rl.cli.demo_command",
            "train on the bundled game duel for minutes, evaluate the agent and record a GIF of it",
        ),
        Command(
            "train",
            "game_rl.cli.train_command",
            "train an agent, evaluate it and record a clip, or carry out an experiment or a study",
        ),
        Command(
            "preflight",
            "game_rl.cli.preflight_command",
            "predict the memory, disk and time that a run, an experiment or a study needs",
        ),
        Command(
            "tune",
            "game_rl.cli.tune_command",
            "try numbers of envs and workers (ppo, pqn); print the fastest as a diff",
        ),
        Command(
            "runs",
            "game_rl.cli.runs_command",
            "list every run and experiment with state, timesteps, success and size",
        ),
        Command(
            "watch",
            "game_rl.cli.watch_command",
            "show a run, an experiment or a folder of runs on a live page in the browser",
        ),
        Command(
            "status",
            "game_rl.cli.status_command",
            "show the progress of a run or an experiment, and what of it is uploaded",
        ),
        Command(
            "evaluate",
            "game_rl.cli.play_commands",
            "play episodes with a trained agent and summarise them",
        ),
        Command(
            "record",
            "game_rl.cli.play_commands",
            "record a GIF or MP4 of episodes: new ones with a trained agent, or logged ones again",
        ),
        Command(
            "episodes",
            "game_rl.cli.episodes_command",
            "list the episodes that a run has logged, of its training and its evaluations",
        ),
        Command(
            "plot",
            "game_rl.cli.picture_commands",
            "plot evaluations, rewards, speed, memory and disk of runs, their seeds, experiments",
        ),
        Command(
            "report",
            "game_rl.cli.picture_commands",
            "write all about a run or an experiment into one HTML file",
        ),
        Command(
            "places",
            "game_rl.cli.places_command",
            "draw a map of the places that a run's agents have visited, for games with a `place`",
        ),
    ),
    "compare, keep and share": (
        Command(
            "compare",
            "game_rl.cli.compare_commands",
            "compare runs and experiments over their seeds, or judge a study: tables, intervals, "
            "exact p-values, curves and verdicts",
        ),
        Command(
            "study",
            "game_rl.cli.compare_commands",
            "register a study before its first run, show its progress, give up a run",
        ),
        Command(
            "checkpoints",
            "game_rl.cli.checkpoint_commands",
            "list a run's checkpoints and verify all their files",
        ),
        Command(
            "lineage",
            "game_rl.cli.lineage_command",
            "show where a run's weights came from, in timesteps and emulator frames, or which runs "
            "of an experiment descend from which",
        ),
        Command(
            "export",
            "game_rl.cli.checkpoint_commands",
            "export a policy (ppo, or dqn without layer_norm) to a Stable-Baselines3 zip file",
        ),
        Command(
            "import",
            "game_rl.cli.checkpoint_commands",
            "begin a run (ppo, or dqn without layer_norm) from a Stable-Baselines3 policy",
        ),
        Command(
            "replay",
            "game_rl.cli.replay_command",
            "inspect, verify, compact, import or export a Lake of replay",
        ),
        Command(
            "remote",
            "game_rl.cli.remote_command",
            "list, fetch, verify and upload runs and experiments in object storage",
        ),
    ),
    "configs, games, editors and shells": (
        Command(
            "configs",
            "game_rl.cli.configs_command",
            "list the configs that come with game_rl, print one, or copy it here",
        ),
        Command(
            "check-game",
            "game_rl.cli.game_commands",
            "play a game.yaml's game and show what its variables and rewards do",
        ),
        Command("new-game", "game_rl.cli.game_commands", "write a starter game.yaml for a ROM"),
        Command(
            "explore",
            "game_rl.cli.explore_command",
            "find out how far random play gets in a game, by returning to states that it has found",
        ),
        Command(
            "schema",
            "game_rl.cli.schema_command",
            "print the JSON Schema of a run config, for editors",
        ),
        Command(
            "completion",
            "game_rl.cli.completion_command",
            "print a script with which a shell completes commands, options, configs and runs",
        ),
    ),
}
COMMANDS: Mapping[str, Command] = {
    command.name: command for group in GROUPS.values() for command in group
}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are the user's mistakes, as all others."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}{self._way_out(message)}\nsee {self.prog} --help")

    def _way_out(self, message: str) -> str:
        """Return the choice that was probably meant, or how the command is called."""
        if slip := _INVALID_CHOICE.search(message):
            meant = difflib.get_close_matches(slip[1], re.findall(r"'([^']*)'", slip[2]), n=1)
            return f"; did you mean {meant[0]}?" if meant else ""
        example = (self.epilog or "").removeprefix("example:").strip()
        return f"; for example: {example}" if "are required" in message and example else ""


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
    parser: argparse.ArgumentParser = _Parser(
        prog="game-rl",
        usage="game-rl COMMAND ...",
        description="Train agents on Game Boy games.",
        epilog="\n\n".join((*_listed(), "game-rl COMMAND --help explains one", EXIT_CODES)),
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


def _listed() -> Iterable[str]:
    """Yield the list of each group of commands."""
    indent = " " * (_NAMES_WIDTH + 2)
    for title, group in GROUPS.items():
        rows = (
            textwrap.fill(
                command.summary,
                _WIDTH,
                initial_indent=f"  {command.name:<{_NAMES_WIDTH}}",
                subsequent_indent=indent,
            )
            for command in group
        )
        yield "\n".join((f"{title}:", *rows))
