"""Mutation: how a copy's values differ from those of the member that it is copied from."""

from collections.abc import Mapping
from math import exp, log
from typing import Any

import numpy as np

from game_rl.config.experiments.population_config import MutationConfig, is_discount
from game_rl.config.strict_model import value_at

Value = float | dict[str, float]
"""A number, or a schedule as the config states it: `{start: ..., end: ...}`."""


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
