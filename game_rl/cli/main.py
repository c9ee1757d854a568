"""The command line: the parser of all commands, and the exit code.

Torch, SB3 and PyBoy are imported inside the commands that need them, so that a mistake in a config
is reported in a fraction of a second. Only the main program may import this module: worker
processes import the main program again and must stay small.
"""

import argparse
import shlex
from collections.abc import Callable, Sequence
from importlib import metadata

from game_rl.cli import (
    checkpoint_commands,
    compare_commands,
    game_commands,
    lineage_command,
    play_commands,
    preflight_command,
    remote_command,
    replay_command,
    schema_command,
    status_command,
    train_command,
    tune_command,
)
from game_rl.system.output import exit_code_of, write_every_character
from game_rl.system.processes import end_with_parent

EXIT_CODES = """\
exit codes:
  0    done
  1    failed (a worker died, a checkpoint is damaged, a loss became NaN, the disk is nearly full,
       storage refuses a command)
  2    a mistake in the config, the game file, the ROM or the command
  3    the run does not fit this machine
  4    done, but the upload never worked: nothing of the run or experiment is in storage
  130, 143, 138  stopped by SIGINT, SIGTERM, SIGUSR1; everything up to the last checkpoint is saved
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, and return the exit code (see EXIT_CODES)."""
    end_with_parent()
    write_every_character()
    parser = _parser()
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        repeated = "; write --set before each KEY=VALUE" if "=" in unknown[0] else ""
        parser.error(f"unrecognized arguments: {shlex.join(unknown)}{repeated}")
    command: Callable[[argparse.Namespace], int] = arguments.command
    return exit_code_of(lambda: command(arguments), trains=arguments.trains)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="game-rl",
        description="Train agents on Game Boy game_commands.",
        epilog=EXIT_CODES,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=16, width=96
        ),
    )
    parser.add_argument(
        "--version", action="version", version=f"game-rl {metadata.version('game_rl')}"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    train_command.add_train(commands)
    preflight_command.add_preflight(commands)
    tune_command.add_tune(commands)
    play_commands.add_evaluate(commands)
    play_commands.add_record(commands)
    status_command.add_status(commands)
    compare_commands.add_compare(commands)
    compare_commands.add_study(commands)
    checkpoint_commands.add_checkpoints(commands)
    checkpoint_commands.add_export(commands)
    checkpoint_commands.add_import(commands)
    lineage_command.add_lineage(commands)
    game_commands.add_check_game(commands)
    game_commands.add_new_game(commands)
    replay_command.add_replay(commands)
    remote_command.add_remote(commands)
    schema_command.add_schema(commands)
    return parser
