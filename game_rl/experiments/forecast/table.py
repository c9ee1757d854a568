"""The preflight of an experiment for the terminal: verdict, members at once, disk space."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from game_rl.experiments.forecast.growth import GenerationRow
from game_rl.experiments.forecast.report import ExperimentReport
from game_rl.experiments.stages import STAGES
from game_rl.preflight.preflight_report import VERDICTS, finding_text
from game_rl.system.units import format_bytes, format_duration

_MOST_ROWS = 6


def forecast_table(report: ExperimentReport) -> RenderableType:
    return Group(
        _headline(report), _growth(report), *(finding_text(each) for each in report.findings)
    )


def _headline(report: ExperimentReport) -> Text:
    words, style = VERDICTS[report.verdict]
    machine, member = report.machine, report.member.footprint
    at_once = "1 member at once" if report.slots == 1 else f"{report.slots} members at once"
    if report.is_live:
        at_once = f"{report.slots} members and the learner at once"
    at_once += " on a node like this machine" if report.is_of_a_node else ""
    vram = ""
    if report.vram_bytes and member.vram is not None:
        free = machine.gpu_free_bytes(member.vram.gpu)
        vram = f"; VRAM {format_bytes(report.vram_bytes)} of {format_bytes(free)}"
    took = _took(report)
    learner = ""
    if report.learner is not None:
        learner = f", {format_bytes(report.learner.footprint.ram.peak.bytes)} the learner"
        learner += "" if report.is_live else ", alone"
    return Text.assemble(
        (words, style),
        f"  {at_once}: RAM {format_bytes(report.ram_bytes)} of "
        f"{format_bytes(machine.ram_available_bytes)} ({format_bytes(member.ram.peak.bytes)} a "
        f"member{learner}){vram}; disk {format_bytes(report.disk_bytes)} of "
        f"{format_bytes(machine.disk_free_bytes)}, {format_bytes(report.momentary_bytes)} more "
        f"while members save{took}",
    )


def _took(report: ExperimentReport) -> str:
    if report.duration is None:
        return ""
    took, of_learner = report.duration, ""
    if report.learner is not None:
        of_learner = f" ({format_duration(took.learner_s)} the learner)"
    where = " on one" if report.is_of_a_node else ""
    return f"; about {format_duration(took.wall_s)}{where}{of_learner}"


def _growth(report: ExperimentReport) -> Table:
    stage = STAGES[report.kind]
    table = Table(box=None, pad_edge=False, title=f"disk by {stage}", title_justify="left")
    for name in (stage, "transitions", "checkpoints", "Lake", "logs", "total"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in _shown(report.growth):
        lake = "not measured" if row.lake is None else format_bytes(row.lake)
        table.add_row(
            f"{row.generation}",
            f"{row.transitions:,}",
            format_bytes(row.checkpoints),
            "no Lake" if row.lake == 0 else lake,
            format_bytes(row.logs),
            format_bytes(row.total),
        )
    return table


def _shown(rows: tuple[GenerationRow, ...]) -> list[GenerationRow]:
    """Return the first row, the last one and evenly spaced others: of 25 1, 5, 10, 15, 20, 25."""
    if len(rows) <= _MOST_ROWS:
        return list(rows)
    step = -(-len(rows) // (_MOST_ROWS - 1))
    numbers = {1, len(rows), *range(step, len(rows), step)}
    return [row for row in rows if row.generation in numbers]
