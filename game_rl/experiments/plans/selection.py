"""Selection: which members of a population are replaced by copies of which others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from game_rl.config.experiments.population_config import SelectionConfig

_ROUNDING = 1e-9  # 0.95 - 0.90 is a little less than 0.05


@dataclass(frozen=True)
class Scored:
    """A member at the end of a generation.

    Attributes:
        fitness: what selection compares; None if the weights are not finite.
        mean_reward: breaks ties of fitness.
    """

    number: int
    fitness: float | None
    mean_reward: float

    @property
    def order(self) -> tuple[bool, float, float, int]:
        """A sort key that ascends from the best member to the worst."""
        if self.fitness is None:
            return True, 0.0, 0.0, self.number
        return False, -self.fitness, -self.mean_reward, self.number


@dataclass(frozen=True)
class Copy:
    """A copy of member `parent` that replaces member `number`."""

    number: int
    parent: int


def ranked(members: Sequence[Scored]) -> list[Scored]:
    """Sort members, the best first.

    Of equal fitness, the higher mean reward comes first, then the lower number.
    """
    return sorted(members, key=lambda member: member.order)


def select(
    members: Sequence[Scored],
    config: SelectionConfig,
    *,
    control: int,
    rng: np.random.Generator,
) -> list[Copy]:
    """Select copies by truncation (Jaderberg et al. 2017), with a gap and control members.

    k = max(1, floor(share x members)). Each of the k worst members copies one of the k best, drawn
    evenly, unless its fitness is less than `gap` below that one's. Members with a number below
    `control` are never copied over, however bad: the k worst are those of the others. A member
    with non-finite weights always copies, whatever its number and its rank, and is never copied.

    Args:
        rng: draws one parent for each of the worst, from the worst upwards. It also draws for a
            copy that the gap then forbids, so that the gap changes no other decision.

    Returns:
        The copies, in the order of their numbers; empty if no member has finite weights.
    """
    order = ranked(members)
    finite = [member for member in order if member.fitness is not None]
    if not finite:
        return []
    k = max(1, int(config.share * len(order) + _ROUNDING))
    best = finite[:k]
    broken = [member for member in order if member.fitness is None]
    replaceable = [m for m in finite[len(best) :] if m.number >= control]
    worst = [*replaceable, *broken][-max(k, len(broken)) :]
    copies = []
    for member in reversed(worst):
        parent = best[int(rng.integers(len(best)))]
        if member.fitness is None or _is_clearly_worse(member, parent, config.gap):
            copies.append(Copy(member.number, parent.number))
    return sorted(copies, key=lambda copy: copy.number)


def _is_clearly_worse(member: Scored, parent: Scored, gap: float) -> bool:
    assert member.fitness is not None
    assert parent.fitness is not None
    return parent.fitness - member.fitness >= gap - _ROUNDING
