"""What every forecast answers, of a run, an experiment or a study, and words that all share."""

from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from game_rl.preflight.disk_plan import DiskPlan
from game_rl.preflight.findings import CheckResult, Finding
from game_rl.preflight.footprint import Verdict
from game_rl.statistics import percent
from game_rl.system.machine import Machine
from game_rl.system.units import format_bytes


class Forecast(Protocol):
    """What something takes of a machine, whether it fits, and what to change."""

    @property
    def verdict(self) -> Verdict: ...

    @property
    def machine(self) -> Machine: ...

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What does not fit or could be better, each with the way out."""

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        """Every check with what it compared; those that found something are in `findings`."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data; sizes are in bytes."""

    def table(self) -> RenderableType:
        """Return all of it for people."""

    def summary(self) -> RenderableType:
        """Return what a person needs before a training of something that fits."""


def brief(forecast: Forecast) -> RenderableType:
    """Return the summary, or everything where something is near its limit."""
    return forecast.summary() if forecast.verdict == "fits" else forecast.table()


VERDICTS: dict[Verdict, tuple[str, str]] = {
    "fits": ("FITS", "bold green"),
    "tight": ("TIGHT", "bold yellow"),
    "does_not_fit": ("DOES NOT FIT", "bold red"),
}
_SEVERITIES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def verdict_line(verdict: Verdict, machine: Machine) -> Text:
    """Return the verdict with the machine that it is about."""
    words, style = VERDICTS[verdict]
    sizes = " + ".join(format_bytes(gpu.total_bytes) for gpu in machine.gpus)
    vram = f"{sizes} VRAM" if sizes else "no GPU"
    return Text.assemble(
        (words, style), f"  {machine.cpus} CPUs, {format_bytes(machine.ram_bytes)} RAM, {vram}"
    )


def unwrapped(text: Text) -> Group:
    """Return a text that keeps its lines on a console of any width, printed with `crop=False`."""
    text.no_wrap = True
    text.overflow = "ignore"
    return Group(text)  # a console joins bare texts, and forgets how each is wrapped


def disk_line(plan: DiskPlan, machine: Machine, most: str = "") -> Text:
    """Return what the disk holds at the end.

    Args:
        most: words before the size, such as "at most ".
    """
    return Text(f"disk    {most}{of_available('', plan.total_bytes, machine.disk_free_bytes)}")


def of_available(name: str, size: int, free: int) -> str:
    """Return a size beside what is free: `RAM 453 MiB of 22.7 GiB free (2%)`."""
    share = share_text(size, free)
    return f"{name} {format_bytes(size)} of {format_bytes(free)} free ({share})".strip()


def share_text(size: int, limit: int) -> str:
    """Return a share in percent; a small one is not 0."""
    share = size / limit if limit else 1.0
    return "under 1%" if 0 < share < 0.01 else percent(share)


def render_checks(checks: tuple[CheckResult, ...]) -> Table:
    """Render the checks for people, in their order, one a row."""
    styles = {"found": "yellow", "holds": "green", "does_not_apply": "dim"}
    table = Table(box=None, pad_edge=False, title="checks", title_justify="left", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for check in checks:
        words = check.outcome.replace("_", " ")
        table.add_row(Text(words, styles[check.outcome]), check.name, Text(check.comparison.text))
    return table


def finding_text(finding: Finding) -> Text:
    text = Text.assemble(
        (finding.severity, _SEVERITIES[finding.severity]), f" {finding.key}: {finding.message}"
    )
    if finding.fix is not None:
        text.append("\n  → ")
        text.append(f"--set {finding.fix.key}={finding.fix.value}", style="bold")
    return text
