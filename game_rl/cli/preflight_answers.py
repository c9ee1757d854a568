"""What `game-rl preflight` answers beside its report: `--recommend` and `--explain`."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from game_rl.errors import UsageError

if TYPE_CHECKING:
    from game_rl.preflight.findings import CheckResult
    from game_rl.preflight.recommendation import Recommendation


def add_answers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--recommend",
        action="store_true",
        help="print the smallest machine that fits, and what further cores gain",
    )
    parser.add_argument(
        "--hours",
        type=_hours,
        metavar="H",
        help="with --recommend --probe: print how many cores end it within H hours",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="list every check with what it compared, also those that found nothing",
    )


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of hours above 0, such as 12")
    return hours


def check_answers(arguments: argparse.Namespace, kind: str | None) -> None:
    """Refuse options that do not go together.

    Args:
        kind: what the config describes; None: a run.

    Raises:
        UsageError: the message says what to change.
    """
    if arguments.hours is not None and not arguments.recommend:
        raise UsageError("--hours is for --recommend: add it")
    if arguments.hours is not None and arguments.on:
        raise UsageError(
            "--hours needs this machine's speed, and --on describes another machine: leave one out"
        )
    if arguments.hours is not None and not arguments.probe:
        raise UsageError("--hours needs this machine's speed: add --probe, which measures it")
    if kind == "study" and (arguments.recommend or arguments.explain):
        option = "--recommend" if arguments.recommend else "--explain"
        raise UsageError(
            f"{option} is for runs and experiments: name the config of an arm of the study"
        )


@dataclass(frozen=True)
class Answers:
    """The answers that were asked for; None: not asked.

    Attributes:
        unmeasured: why the speed was not measured; None if it was.
    """

    recommendation: "Recommendation | None"
    checks: "tuple[CheckResult, ...] | None"
    unmeasured: str | None = None

    def to_json(self) -> Mapping[str, Any]:
        """Return what is added to the report's JSON."""
        found = self.recommendation
        checks = self.checks
        return {
            **({} if found is None else {"recommendation": found.to_json()}),
            **({} if checks is None else {"checks": [check.to_json() for check in checks]}),
        }

    def print(self, console: Console) -> None:
        from game_rl.preflight.preflight_report import render_checks
        from game_rl.preflight.recommendation_table import render_recommendation

        if self.recommendation is not None:
            console.print(render_recommendation(self.recommendation, unmeasured=self.unmeasured))
        if self.checks is not None:
            console.print(render_checks(self.checks))

    def exit_code(self, verdict: str) -> int:
        """Return 3 if nothing fits: this machine or, with --recommend, any machine in time."""
        if self.recommendation is not None:
            return 0 if self.recommendation.is_found else 3
        return 3 if verdict == "does_not_fit" else 0
