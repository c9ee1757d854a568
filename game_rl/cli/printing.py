"""What a command prints: its result to standard output, progress to standard error."""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from rich.console import Console

from game_rl.slow_work import telling_if_slow

PROGRESS = Console(stderr=True)
"""The console for progress, which the main program silences with -q."""


def add_json(parser: argparse.ArgumentParser, what: Literal["object", "list"] = "object") -> None:
    parser.add_argument("--json", action="store_true", help=f"print one JSON {what}")


def print_facts(facts: object) -> None:
    print(json.dumps(facts, indent=2))


def print_result(arguments: argparse.Namespace, facts: object, text: str, hint: str = "") -> None:
    """Print what a command has done, as JSON or as text.

    Args:
        hint: what may be done next; left out by -q.
    """
    if arguments.json:
        print_facts(facts)
    else:
        print("\n".join(filter(None, (text, "" if arguments.quiet else hint))))


@contextmanager
def working(text: str) -> Iterator[None]:
    """Print what is going on, as progress, if the block takes more than two seconds."""
    is_shown = False

    def show(_: float) -> None:
        nonlocal is_shown
        if not is_shown:
            PROGRESS.print(f"{text} …", markup=False, highlight=False)
        is_shown = True

    with telling_if_slow(show):
        yield


def console_for(verdict: str, console: Console) -> Console:
    """Return the console for a preflight's report: one that does not fit is never kept quiet.

    The error that follows refers to it.
    """
    return Console(stderr=True) if console.quiet and verdict == "does_not_fit" else console
