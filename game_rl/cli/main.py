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
from difflib import get_close_matches
from pathlib import Path

from game_rl.cli.outputs import check_outputs
from game_rl.cli.parser import COMMANDS, make_parser
from game_rl.errors import GameRLError, UsageError
from game_rl.system.output import exit_code_of, write_every_character
from game_rl.system.processes import end_with_parent, raise_on_ctrl_c


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, and return the exit code (see `parser.EXIT_CODES`)."""
    end_with_parent()
    write_every_character()
    words = sys.argv[1:] if argv is None else list(argv)
    is_verbose = any(word in ("-v", "--verbose") for word in words)
    run = _run_traced if is_verbose else _run
    return exit_code_of(lambda: run(words), trains=words[:1] in (["train"], ["demo"]))


def _run_traced(words: Sequence[str]) -> int:
    """Run a command, and print where an error was raised, before its text."""
    try:
        return _run(words)
    except (GameRLError, OSError):
        traceback.print_exc()
        raise


def _run(words: Sequence[str]) -> int:
    raise_on_ctrl_c()
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
    check_outputs(arguments)
    command: Callable[[argparse.Namespace], int] = arguments.command
    return command(arguments)


def _check_command(words: Sequence[str]) -> None:
    """Refuse a command that does not exist, and suggest the one that was probably meant."""
    if not words:
        raise UsageError(
            "a command is missing, such as game-rl train duel_ppo; game-rl --help lists all"
        )
    if words[0] in COMMANDS or words[0] in ("-h", "--help", "-V", "--version"):
        return
    answer = _no_command(words[0], words[1:])
    is_sure = "game-rl" in answer
    raise UsageError(answer if is_sure else f"{answer}\nthere are {', '.join(COMMANDS)}")


_OTHER_WORDS = {
    "version": "game-rl --version",
    "list": "game-rl runs",
    "ls": "game-rl runs",
    "resume": "game-rl train --resume",
    "continue": "game-rl train --resume",
    "fork": "game-rl train --fork",
    "view": "game-rl watch",
    "dashboard": "game-rl watch",
    "test": "game-rl evaluate",
    "plot": "tensorboard --logdir",
    "init": "game-rl new-game",
    "examples": "game-rl configs",
    "verify": "game-rl checkpoints",
    "fetch": "game-rl remote fetch",
}
"""Commands by names that other programs use."""


def _no_command(first: str, rest: Sequence[str]) -> str:
    """Return what stands where a command is due, and what was probably meant."""
    from game_rl.config.bundled_configs import bundled_configs
    from game_rl.config.schema_guide import closest

    if first.startswith("-"):
        at = next((n for n, word in enumerate(rest) if word in COMMANDS), None)
        if at is not None:
            ordered = [*rest[at:], first, *rest[:at]]
            return f"options go after the command: game-rl {shlex.join(ordered)}"
        near = get_close_matches(first, ["--help", "--version"], n=1, cutoff=0.75)
        guess = f"did you mean game-rl {near[0]}?" if near else "options go after it"
        return f"expected a command, found {first}; {guess}"
    if first == "help":
        about = [word for word in rest if word in COMMANDS][:1]
        return f"help is an option: {shlex.join(['game-rl', *about, '--help'])}"
    if first in _OTHER_WORDS:
        return f"there is no command {first!r}; use {' '.join([_OTHER_WORDS[first], *rest])}"
    if first.endswith((".yaml", ".yml")) or first in bundled_configs():
        return f"a command is missing: game-rl train {shlex.join([first, *rest])}"
    if any((Path(first) / name).is_file() for name in ("config.yaml", "experiment.yaml")):
        return f"a command is missing: game-rl status {shlex.join([first, *rest])}"
    meant = closest(first, list(COMMANDS))
    guess = f"; did you mean {shlex.join(['game-rl', meant, *rest])}?" if meant else ""
    return f"there is no command {first!r}{guess}"


def _unknown_options(unknown: Sequence[str], parser: argparse.ArgumentParser) -> str:
    """Return a message on options that a command does not have."""
    from game_rl.config.schema import RunConfig
    from game_rl.config.schema_guide import closest, schema_guide

    known = [name for action in parser._actions for name in action.option_strings]
    name = unknown[0].partition("=")[0]
    key = name.lstrip("-").replace("-", "_")
    meant = closest(name, known) if name.startswith("-") else None
    if name == "--json" and "--log" in known:
        meant = "--log json"
    elif f"--{name}" in known:
        meant = f"--{name}"
    guess = f"; did you mean {meant}?" if meant else f"; see {parser.prog} --help"
    if "--set" in known and "." not in key:  # `--n-envs` is the key env.n_envs
        key = min(schema_guide(RunConfig).places_of(key), key=len, default=key)
    if "--set" in known and key.partition(".")[0] in RunConfig.model_fields:
        guess = f"; a key of the config is written without dashes: {key}=..."
    return f"{parser.prog} has no argument {shlex.join(unknown)}{guess}"
