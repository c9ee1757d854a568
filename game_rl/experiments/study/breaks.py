"""Scores across a break, separately for members that continue, for copies and for the learner."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Annotated

from pydantic import Field

from game_rl.experiments.compare.outcome import Metric
from game_rl.experiments.compare.report import table
from game_rl.experiments.compare.wording import score_words
from game_rl.experiments.records import GenerationRecord
from game_rl.saved import Saved

_Count = Annotated[int, Field(ge=0)]


class Reached(Saved):
    """The score of a member or the learner at the end of a generation.

    It is over the episodes that all of them play then.
    """

    generation: _Count
    number: _Count
    is_learner: bool = False
    began_as: int | None = None
    """Number of the member whose weights it began from: its own number, or for a copy the parent's.
    None in the first generation, and for the learner."""
    mean_reward: float | None
    """None if its weights became non-finite."""
    success_rate: float | None
    """None if its weights became non-finite, or if the game does not define success."""

    def value(self, metric: Metric) -> float | None:
        return self.success_rate if metric == "success_rate" else self.mean_reward


def reached(records: Sequence[GenerationRecord]) -> Iterator[Reached]:
    """Yield the scores of all generations, the earliest first."""
    copies: dict[int, int] = {}
    for place, record in enumerate(records):
        learner = None if record.learner is None else record.learner.number
        for member in record.members:
            is_learner, fitness = member.number == learner, member.fitness
            went_on = place and not is_learner
            yield Reached(
                generation=record.generation,
                number=member.number,
                is_learner=is_learner,
                began_as=copies.get(member.number, member.number) if went_on else None,
                mean_reward=None if fitness is None else fitness.mean_reward,
                success_rate=None if fitness is None else fitness.success_rate,
            )
        copies = {copy.number: copy.parent for copy in record.copies}


def break_lines(arms: Mapping[str, Sequence[Sequence[Reached]]], metric: Metric) -> list[str]:
    """Return a Markdown table of means over seeds; empty if no arm is an experiment.

    Args:
        arms: by arm and seed, the scores of all runs at the end of each generation.
    """
    header = ["arm", "generation", "went on: before, after", "copies: before, after", "learner"]
    rows = [row for name, seeds in arms.items() for row in _rows(name, seeds, metric)]
    if not rows:
        return []
    return [
        "At the breaks: scores at the end of each generation, after those that the same weights "
        "had at the end of the one before, where a copy's were its parent's. Means over seeds and "
        "members; in brackets, how many members.",
        "",
        *table(header, rows),
    ]


def _rows(name: str, seeds: Sequence[Sequence[Reached]], metric: Metric) -> Iterator[list[str]]:
    for generation in sorted({each.generation for seed in seeds for each in seed}):
        steps = [step for seed in seeds for step in _steps(seed, generation, metric)]
        yield [
            name,
            f"{generation}",
            _change(((before, after) for kind, before, after in steps if kind == "itself"), metric),
            _change(((before, after) for kind, before, after in steps if kind == "copy"), metric),
            _change(((None, after) for kind, _, after in steps if kind == "learner"), metric),
        ]


def _steps(
    seed: Sequence[Reached], generation: int, metric: Metric
) -> Iterator[tuple[str, float | None, float]]:
    """Yield each run's kind, its score a generation before if it had one, and its score now."""
    before = {r.number: r.value(metric) for r in seed if r.generation == generation - 1}
    for each in seed:
        after = each.value(metric)
        if each.generation != generation or after is None:
            continue
        kind = "itself" if each.began_as in (None, each.number) else "copy"
        began = None if each.began_as is None else before.get(each.began_as)
        yield "learner" if each.is_learner else kind, began, after


def _change(pairs: Iterable[tuple[float | None, float]], metric: Metric) -> str:
    found = list(pairs)
    if not found:
        return ""
    after = score_words(fmean(score for _, score in found), metric)
    began = [score for score, _ in found if score is not None]
    before = f"{score_words(fmean(began), metric)}, " if began else ""
    return f"{before}{after} ({len(found)})"
