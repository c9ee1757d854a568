"""The command line: one command is run, and its exit code returned.

A command's module is imported when that command is given, and torch, SB3 and PyBoy inside the
functions that need them, so that help and mistakes are answered in a fraction of a second. Only the
main program may import this module: worker processes import the main program again and must stay
small.
"""

import argparse
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence

from game_rl.cli.parser import COMMANDS, make_parser
from game_rl.errors import GameRLError, UsageError
from game_rl.system.output import exit_code_of, write_every_character
from game_rl.system.processes import end_with_parent


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, and return the exit code (see `parser.EXIT_CODES`)."""
    end_with_parent()
    write_every_character()
    words = sys.argv[1:] if argv is None else list(argv)
    is_verbose = any(word in ("-v", "--verbose") for word in words)
    run = _run_traced if is_verbose else _run
    return exit_code_of(lambda: run(words), trains=words[:1] == ["train"])


def _run_traced(words: Sequence[str]) -> int:
    """Run a command, and print where an error was raised, before its text."""
    try:
        return _run(words)
    except (GameRLError, OSError):
        traceback.print_exc()
        raise


def _run(words: Sequence[str]) -> int:
    _check_command(words)
    parser, commands = make_parser(words[:1])
    arguments, unknown = parser.parse_known_args(words)
    if "words" in arguments:
        from game_rl.cli.arguments import take_words

        unknown = take_words(arguments, unknown)
    if unknown:
        raise UsageError(_unknown_options(unknown, commands[words[0]]))
    from game_rl.cli.printing import PROGRESS

    PROGRESS.quiet = arguments.quiet
    command: Callable[[argparse.Namespace], int] = arguments.command
    return command(arguments)


def _check_command(words: Sequence[str]) -> None:
    """Refuse a command that does not exist, and suggest the one that was probably meant."""
    if not words:
        raise UsageError(
            "a command is missing, such as game-rl train configs/duel_ppo.yaml; game-rl --help "
            "lists all"
        )
    if words[0].startswith("-") or words[0] in COMMANDS:
        return
    if words[0].endswith((".yaml", ".yml")):
        raise UsageError(f"a command is missing: game-rl train {shlex.join(words)}")
    from game_rl.config.schema_guide import closest

    meant = closest(words[0], list(COMMANDS))
    guess = "" if meant is None else f"; did you mean game-rl {shlex.join([meant, *words[1:]])}?"
    raise UsageError(f"there is no command {words[0]!r}{guess}\nthere are {', '.join(COMMANDS)}")


def _unknown_options(unknown: Sequence[str], parser: argparse.ArgumentParser) -> str:
    """Return a message on options that a command does not have."""
    from game_rl.config.schema import RunConfig
    from game_rl.config.schema_guide import closest

    known = [name for action in parser._actions for name in action.option_strings]
    name = unknown[0].partition("=")[0]
    key = name.lstrip("-").replace("-", "_")
    meant = closest(name, known) if name.startswith("-") else None
    guess = f"; did you mean {meant}?" if meant else f"; see {parser.prog} --help"
    if "--set" in known and key.partition(".")[0] in RunConfig.model_fields:
        guess = f"; a key of the config is written without dashes: {key}=..."
    return f"{parser.prog} has no argument {shlex.join(unknown)}{guess}"
