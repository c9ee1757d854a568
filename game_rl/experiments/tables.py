"""Tables for the terminal: a generation of an experiment, and its champion."""

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from game_rl.events import Fitness, StretchEnded
from game_rl.experiments.plans.mutation import Value
from game_rl.experiments.records import ChampionRecord, CopyRecord, GenerationRecord, TrainedMember


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
        member, stretch = by_number[number], (stretches or {}).get(number)
        speed = 0.0 if stretch is None else stretch.timesteps_per_s
        rows.append(
            (
                member.folder,
                *_fitness_cells(member),
                _future(copies.get(number), learner),
                "" if not speed else f"{speed:,.0f}",
                "" if stretch is None else stretch.host,
            )
        )
    names = ("member", "fitness", "reward", "goes on as", "timesteps/s", "where")
    return filled_table(names, rows, texts=["goes on as"])


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


def differences_words(record: GenerationRecord) -> str:
    """Say how much actions differ on the same observations; empty if it was not measured."""
    found, learner = record.differences, record.learner_folder
    if found is None:
        return ""
    words = []
    pairs = [(share, a, b) for a, b, share in found.pairs() if learner not in (a, b)]
    if pairs and record.differing_members is not None:
        low, one, other = min(pairs)
        alike = f"the most alike, {one} and {other}, on {low:.1%}"
        words.append(f"two members act differently on {record.differing_members:.1%} ({alike})")
    if record.differing_learner is not None:
        words.append(f"a member and the learner on {record.differing_learner:.1%}")
    of = f"of the same {found.observations:,} observations, "
    return of + ", ".join(words) if words else ""


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
    _add_figures(table, "selected nothing", champion.folder, champion.final)
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


def changes_words(copy: CopyRecord) -> str:
    """List what mutated, such as `learning_rate 0.0005 to 0.00061`."""
    words = [
        f"{key.rpartition('.')[2]} {_words(copy.old_values[key])} to {_words(value)}"
        for key, value in copy.new_values.items()
        if copy.reason != "injected"
    ]
    noise = [f"weights by {copy.weight_noise:g}"] if copy.weight_noise else []
    return ", ".join([*words, *noise])


def _fitness_cells(member: TrainedMember) -> tuple[str, str]:
    if member.fitness is None:
        return "not finite", ""
    return fitness_cells(member.fitness)


def _future(copy: CopyRecord | None, learner: int | None) -> str:
    if copy is None:
        return "itself"
    if copy.parent == learner:
        return "learner's clone"
    changes = changes_words(copy)
    return f"copy of {copy.parent}{': ' if changes else ''}{changes}"


def _words(value: Value) -> str:
    if isinstance(value, dict):
        return f"{{{value['start']:.3g}, {value['end']:.3g}}}"
    return f"{value:.3g}"
