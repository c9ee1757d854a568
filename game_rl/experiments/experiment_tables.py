"""Tables for the terminal: generation, champion, status, forecast."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from game_rl.config.experiments.experiment import STAGES
from game_rl.events import Fitness, LakesFollowed, StretchEnded
from game_rl.events.run_view import STATE_WORDS
from game_rl.experiments.descent import changes_words
from game_rl.experiments.experiment_status import ExperimentStatus
from game_rl.experiments.forecast.experiment_disk import GenerationRow
from game_rl.experiments.forecast.experiment_forecast import ExperimentReport
from game_rl.experiments.records import ChampionRecord, CopyRecord, GenerationRecord
from game_rl.preflight.disk_plan import render_sizes, smaller_lines
from game_rl.preflight.preflight_report import (
    VERDICTS,
    disk_line,
    finding_text,
    of_available,
    verdict_line,
)
from game_rl.system.units import format_bytes, format_duration


def generation_table(
    record: GenerationRecord, stretches: Mapping[int, StretchEnded] | None = None
) -> Table:
    """Return a table with a row for each member, the best first.

    Args:
        stretches: the known stretches, by member's number; they give each member's speed and host.
    """
    by_number = {member.number: member for member in record.members}
    copies = {copy.number: copy for copy in record.copies}
    learner = None if record.learner is None else record.learner.number
    rows = []
    for number in record.ranking:
        member = by_number[number]
        stretch = (stretches or {}).get(number)
        speed = 0.0 if stretch is None else stretch.timesteps_per_s
        rows.append(
            (
                member.folder,
                *(("not finite", "") if member.fitness is None else fitness_cells(member.fitness)),
                _future(copies.get(number), learner),
                "" if not speed else f"{speed:,.0f}",
                "" if stretch is None else stretch.host,
            )
        )
    names = ("member", "fitness", "reward", "continues as", "timesteps/s", "where")
    return filled_table(names, rows, texts=["continues as"])


def filled_table(
    names: Sequence[str], rows: Sequence[Sequence[str]], *, texts: Sequence[str]
) -> Table:
    """Return a table of the columns in which any row has a cell.

    Args:
        texts: names of the columns that are set flush left and may wrap.
    """
    filled = [n for n, cells in enumerate(zip(*rows, strict=True)) if any(cells)]
    table = Table()
    for n in filled:
        is_text = names[n] in texts
        table.add_column(names[n], justify="left" if is_text else "right", no_wrap=not is_text)
    for row in rows:
        table.add_row(*(row[n] for n in filled))
    return table


def champion_table(champion: ChampionRecord) -> Table:
    """Return a table of the champion's and the candidates' figures.

    Each kind of figure comes from episodes of its own.
    """
    table = Table(title=Text(f"champion: {champion.folder}"), title_justify="left")
    table.add_column("episodes that")
    for name in ("member", "number", "fitness", "reward"):
        table.add_column(name, justify="right")
    for each in champion.candidates:
        _add_figures(table, "selected it", each.folder, each.selection)
    for each in champion.candidates:
        _add_figures(table, "chose among candidates", each.folder, each.validation)
    _add_figures(table, "were held out", champion.folder, champion.final)
    return table


def _add_figures(table: Table, name: str, folder: str, fitness: Fitness) -> None:
    table.add_row(name, folder, f"{fitness.episodes}", *fitness_cells(fitness))


def fitness_cells(fitness: Fitness) -> tuple[str, str]:
    """Return the success rate with its 95 % interval, and the mean reward."""
    reward = f"{fitness.mean_reward:.2f}"
    if fitness.success_rate is None or fitness.success_interval is None:
        return "not defined", reward
    low, high = fitness.success_interval
    return f"{fitness.success_rate:.1%} ({100 * low:.0f}-{100 * high:.0f})", reward


def _future(copy: CopyRecord | None, learner: int | None) -> str:
    if copy is None:
        return "itself"
    if copy.parent == learner:
        return "learner's clone"
    changes = changes_words(copy)
    return f"copy of {copy.parent}{': ' if changes else ''}{changes}"


def status_table(status: ExperimentStatus) -> RenderableType:
    stage = f"{STAGES[status.kind]} {status.generation}/{status.generations}"
    stage = "live" if status.is_live else stage
    line = f"{status.path}: {STATE_WORDS[status.state]}, {stage}"
    if status.timesteps_of_all is not None:
        line += f", {status.timesteps_of_all:,} timesteps of all runs"
    if status.frames_of_all is not None:
        line += f" ({status.frames_of_all:,} frames)"
    rows = [
        (
            member.folder,
            f"{member.timesteps:,} of {member.until:,}",
            "" if member.timesteps_per_s is None else f"{member.timesteps_per_s:,.0f}",
            *(("", "") if member.last is None else fitness_cells(member.last)),
            "done" if member.has_ended_stretch else "",
        )
        for member in status.members
    ]
    names = ("member", "timesteps", "timesteps/s", "last fitness", "reward", "now")
    table = filled_table(names, rows, texts=["now"])
    below = [
        f"{member.folder} follows the Lake: {', '.join(_followed_words(member.followed))}"
        for member in status.members
        if member.followed is not None
    ]
    if status.drawn is not None and status.drawn.words:
        below.append(status.drawn.words)
    differences = status.differences
    if differences is not None and differences.words:
        when = "" if status.is_live else f" of {STAGES[status.kind]} {differences.generation}"
        below.append(f"at the end{when}, {differences.words}")
    above = [Text(text) for text in (line, status.text, status.safe) if text]
    return Group(*above, table, *map(Text, below))


def _followed_words(followed: LakesFollowed) -> Iterator[str]:
    yield f"{followed.rows:,} rows seen"
    if followed.drawn:
        yield f"{followed.own_drawn / followed.drawn:.1%} of {followed.drawn:,} drawn are its own"
    if followed.newest_age_s is not None:
        yield f"the newest {followed.newest_age_s:.1f} s old (median)"


_MOST_ROWS = 6


def forecast_summary(report: ExperimentReport) -> RenderableType:
    """Render what a person needs before an experiment trains; see `render_summary` of a run."""
    if report.verdict != "fits":
        return forecast_table(report)
    memory = of_available("RAM", report.ram_bytes, report.machine.ram_available_bytes)
    vram = ""
    if report.vram_bytes and report.member.footprint.vram is not None:
        free = report.machine.gpu_free_bytes(report.member.footprint.vram.gpu)
        vram = f"; {of_available('VRAM', report.vram_bytes, free)}"
    return Group(
        verdict_line(report.verdict, report.machine).append(f"; {_at_once(report)}{_took(report)}"),
        Text(f"memory  {memory}{vram}"),
        disk_line(report.plan, report.machine),
        *(finding_text(each) for each in report.findings if each.severity != "info"),
    )


def forecast_table(report: ExperimentReport) -> RenderableType:
    return Group(
        _headline(report),
        _growth(report),
        render_sizes(report.plan),
        *map(Text, smaller_lines(report.plan, report.machine.disk_free_bytes)),
        *(finding_text(each) for each in report.findings),
    )


def _headline(report: ExperimentReport) -> Text:
    words, style = VERDICTS[report.verdict]
    machine = report.machine
    member = report.member.footprint
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
        f"  {_at_once(report)}: RAM {format_bytes(report.ram_bytes)} of "
        f"{format_bytes(machine.ram_available_bytes)} ({format_bytes(member.ram.peak.bytes)} a "
        f"member{learner}){vram}; disk {format_bytes(report.disk_bytes)} of "
        f"{format_bytes(machine.disk_free_bytes)}, {format_bytes(report.momentary_bytes)} more "
        f"while members save{took}",
    )


def _at_once(report: ExperimentReport) -> str:
    at_once = "1 member at once" if report.slots == 1 else f"{report.slots} members at once"
    if report.is_live:
        at_once = f"{report.slots} members and the learner at once"
    return at_once + (" on a node like this machine" if report.is_of_a_node else "")


def _took(report: ExperimentReport) -> str:
    if report.duration is None:
        return ""
    took = report.duration
    of_learner = ""
    if report.learner is not None:
        of_learner = f" ({format_duration(took.learner_s)} the learner)"
    where = " on one" if report.is_of_a_node else ""
    return f"; about {format_duration(took.wall_s)}{where}{of_learner}"


def _growth(report: ExperimentReport) -> Table:
    stage = STAGES[report.config.kind]
    table = Table(box=None, pad_edge=False, title=f"disk by {stage}", title_justify="left")
    needed = {row.at: row.needed for row in report.plan.rows}
    for name in (stage, "transitions", "checkpoints", "Lake", "logs", "total", "needed"):
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
            format_bytes(needed[row.generation]),
        )
    return table


def _shown(rows: tuple[GenerationRow, ...]) -> list[GenerationRow]:
    """Return the first row, the last one and evenly spaced others: of 25 1, 5, 10, 15, 20, 25."""
    if len(rows) <= _MOST_ROWS:
        return list(rows)
    step = -(-len(rows) // (_MOST_ROWS - 1))
    numbers = {1, len(rows), *range(step, len(rows), step)}
    return [row for row in rows if row.generation in numbers]
