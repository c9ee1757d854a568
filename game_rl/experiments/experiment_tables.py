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
from game_rl.experiments.records import ChampionRecord, CopyRecord, GenerationRecord
from game_rl.statistics import percent, percentage
from game_rl.system.units import counted


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
    return f"{percent(fitness.success_rate, 1)} ({percentage(low)}-{percentage(high)})", reward


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
        line += f", {counted(status.timesteps_of_all, 'timestep')} of all runs"
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
        own = percent(followed.own_drawn / followed.drawn, 1)
        yield f"{own} of {followed.drawn:,} drawn are its own"
    if followed.newest_age_s is not None:
        yield f"the newest {followed.newest_age_s:.1f} s old (median)"
