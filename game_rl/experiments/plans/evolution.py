"""Ranking, selection, cloning, mutation: pure functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np

from game_rl.config.experiments.mixture_config import CloneConfig
from game_rl.config.experiments.population_config import (
    MutationConfig,
    SelectionConfig,
    is_discount,
)
from game_rl.config.strict_model import value_at
from game_rl.experiments.records import Value

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


def clones(members: Sequence[Scored], learner: Scored, config: CloneConfig) -> list[Copy]:
    """Return which members are cloned over, by their fitness on the same episodes.

    Of equal fitness, the higher mean reward is better. A member with non-finite weights is always
    cloned over: by the learner or, if its weights are not finite either, by the best member.

    Returns:
        The clones, in the order of the members' numbers; empty if no weights are finite.
    """
    order = ranked(members)
    parent = learner if learner.fitness is not None else order[0]
    if parent.fitness is None:
        return []
    broken = [member for member in members if member.fitness is None]
    beaten: list[Scored] = []
    if learner.fitness is not None:
        finite = [member for member in order if member.fitness is not None]
        reached = finite if config.to == "all" else order[-1:]
        # better in fitness and mean reward, whatever the numbers
        ours = learner.order[:3]
        is_asked = config.only_if_better
        beaten = [m for m in reached if not is_asked or ours < m.order[:3]]
    numbers = {member.number for member in (*broken, *beaten)}
    return [Copy(number, parent.number) for number in sorted(numbers)]


def values_of(run: Mapping[str, Any], mutation: Mapping[str, MutationConfig]) -> dict[str, Value]:
    """Return the values of a dumped run config at the keys that mutate."""
    return {key: value_at(run, key) for key in mutation}


def mutated(
    values: Mapping[str, Value],
    mutation: Mapping[str, MutationConfig],
    rng: np.random.Generator,
) -> dict[str, Value]:
    """Multiply each value by a factor of its own, drawn evenly on a log scale, within bounds.

    f = exp(u), u ~ U(log least, log most). A number x becomes clip(x f). A discount moves as
    1 - x, so it becomes clip(1 - (1 - x) f). The start of a schedule moves like a number; its end
    is multiplied by the ratio of the clipped start to the old one.

    Args:
        rng: draws one number for each key, in the order of `mutation`.
    """
    return {
        key: _moved(key, values[key], rule, _factor(rule, rng)) for key, rule in mutation.items()
    }


def _factor(rule: MutationConfig, rng: np.random.Generator) -> float:
    low, high = (log(factor) for factor in rule.factor)
    return exp(low + (high - low) * float(rng.random()))


def _moved(key: str, value: Value, rule: MutationConfig, factor: float) -> Value:
    if not isinstance(value, dict):
        return _moved_number(key, value, rule, factor)
    start = _moved_number(key, value["start"], rule, factor)
    return {"start": start, "end": value["end"] * (start / value["start"])}


def _moved_number(key: str, value: float, rule: MutationConfig, factor: float) -> float:
    moved = 1 - (1 - value) * factor if is_discount(key) else value * factor
    low, high = rule.bounds
    return min(max(moved, low), high)
