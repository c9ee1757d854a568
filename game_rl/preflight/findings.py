"""What a check compares and finds: what is wrong, or could be better, with its fix."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from game_rl.preflight.fixes import Fix

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One sentence for the user about a run.

    Attributes:
        severity: "error": the run does not fit, or cannot begin; "warning": the user should look
            at it; "info": the run could be better.
        key: the config key that the finding is about.
        fix: a single change after which the finding is gone; None if there is none.
    """

    severity: Severity
    code: str
    key: str
    message: str
    fix: Fix | None


@dataclass(frozen=True)
class Compared:
    """What a check compares, and what it finds.

    Attributes:
        text: the numbers or settings.
        applies: whether the run has what the check is about; if not, `text` says what is missing.
    """

    text: str
    finding: Finding | None = None
    applies: bool = True

    def found(
        self, severity: Severity, code: str, key: str, message: str, fix: Fix | None = None
    ) -> "Compared":
        """Return the same with a finding."""
        return replace(self, finding=Finding(severity, code, key, message, fix))


@dataclass(frozen=True)
class CheckResult:
    """A check of a run or an experiment, and what came of it.

    Attributes:
        name: name of the check; those of an experiment's runs have `member.` or `learner.` before
            it.
    """

    name: str
    comparison: Compared

    @property
    def finding(self) -> Finding | None:
        return self.comparison.finding

    @property
    def outcome(self) -> Literal["found", "holds", "does_not_apply"]:
        if self.finding is not None:
            return "found"
        return "holds" if self.comparison.applies else "does_not_apply"

    def of_section(self, section: str) -> "CheckResult":
        """Return the result under the name that it has in an experiment."""
        return replace(self, name=f"{section}.{self.name}")

    def to_json(self) -> dict[str, Any]:
        return {
            "check": self.name,
            "outcome": self.outcome,
            "compared": self.comparison.text,
            "finding": None if self.finding is None else asdict(self.finding),
        }


def absent(text: str) -> Compared:
    """Return that the run does not have what the check is about, with `text` that says so."""
    return Compared(text, applies=False)


def worst_first(findings: Iterable[Finding | None]) -> tuple[Finding, ...]:
    """Return those that are findings, the most severe first."""
    order: tuple[Severity, ...] = ("error", "warning", "info")
    found = [finding for finding in findings if finding is not None]
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))
