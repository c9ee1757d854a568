"""How the values of a copy differ from those of the member that it is copied from."""

from collections.abc import Mapping
from math import exp, log
from typing import Any

import numpy as np

from game_rl.config.experiments.population import MutationConfig, is_discount, value_at

Value = float | dict[str, float]
"""A number, or a schedule as it is written."""


def values_of(run: Mapping[str, Any], mutation: Mapping[str, MutationConfig]) -> dict[str, Value]:
    """What a run's config, dumped, has at the keys that are mutated."""
    return {key: value_at(run, key) for key in mutation}


def mutated(
    values: Mapping[str, Value],
    mutation: Mapping[str, MutationConfig],
    rng: np.random.Generator,
) -> dict[str, Value]:
    """Each value times a factor of its own, drawn evenly on a log scale and held in bounds.

    f = exp(u), u ~ U(log least, log most). A number x becomes clip(x f); a discount moves as
    1 - x, so it becomes clip(1 - (1 - x) f). Of a schedule, the start moves so, and the end is
    multiplied by what the start was in fact multiplied by.

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
