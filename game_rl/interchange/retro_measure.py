"""What a scenario of stable-retro measures of a variable, as conditions and reward terms."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from game_rl.interchange.retro_variables import CannotBeSaidError

_LARGEST_REFERENCE = 2**53  # above, YAML has no exact numbers
_LARGEST_WEIGHT = 1e30


@dataclass(frozen=True)
class Measure:
    """What is measured of a variable: for a condition whether it is above 0, for a reward how much.

    Attributes:
        is_delta: whether the difference to the frame before is taken, not the value.
        op: what is done with it; None for nothing.
    """

    is_delta: bool
    op: str | None
    reference: int
    reward: float
    penalty: float
    comment: str

    @classmethod
    def of(cls, entry: Mapping[str, Any], *, is_delta: bool) -> "Measure":
        measurement = entry.get("measurement")
        if measurement in ("delta", "absolute"):
            is_delta = measurement == "delta"
        op = entry.get("op")
        return cls(
            is_delta=is_delta,
            op=op if op in _OPERATIONS else None,
            reference=whole_number(entry.get("reference")),
            reward=real_number(entry.get("reward")),
            penalty=real_number(entry.get("penalty")),
            comment=", ".join(f"{key} {value}" for key, value in entry.items()) or "above 0",
        )

    @property
    def bounds(self) -> tuple[int | None, int | None, bool]:
        """Lowest and highest number that counts, and whether it is rather all others that count."""
        n = self.reference
        return _OPERATIONS[self.op or "positive"](n)

    @property
    def equal_to(self) -> int | None:
        lowest, highest, is_not = self.bounds
        return lowest if lowest == highest and not is_not else None

    @property
    def change(self) -> str | None:
        """What change of the variable counts; None if the amount does.

        Raises:
            CannotBeSaidError: a change by an amount.
        """
        if self.op is None or self.op == "sign":
            return self.op
        kinds = {
            (1, None, False): "up",
            (None, -1, False): "down",
            (0, 0, True): "any",
            (0, 0, False): "none",
            (0, None, False): "not down",
            (None, 0, False): "not up",
        }
        if self.bounds not in kinds:
            raise CannotBeSaidError(
                f"a change by an amount ({self.comment}) cannot be expressed in a game file"
            )
        return kinds[self.bounds]

    def condition(self, variable: str) -> str:
        """Return the condition that a variable meets where this is above 0."""
        if abs(self.reference) > _LARGEST_REFERENCE:
            raise CannotBeSaidError(f"its reference {self.reference} is too large")
        if self.is_delta:
            key, is_not = _CHANGES[self.change]
            found = f"{{variable: {variable}, {key}: true}}"
            return f"{{not: {found}}}" if is_not else found
        lowest, highest, is_not = self.bounds
        if lowest == highest:
            found = f"{{variable: {variable}, equals: {lowest}}}"
        elif highest is None:
            found = f"{{variable: {variable}, at_least: {lowest}}}"
        else:
            found = f"{{variable: {variable}, at_most: {highest}}}"
        return f"{{not: {found}}}" if is_not else found


_OPERATIONS: Mapping[str, Callable[[int], tuple[int | None, int | None, bool]]] = {
    "equal": lambda n: (n, n, False),
    "negative-equal": lambda n: (-n, -n, False),
    "not-equal": lambda n: (n, n, True),
    "less-than": lambda n: (None, n - 1, False),
    "greater-than": lambda n: (n + 1, None, False),
    "less-or-equal": lambda n: (None, n, False),
    "greater-or-equal": lambda n: (n, None, False),
    "nonzero": lambda _: (0, 0, True),
    "zero": lambda _: (0, 0, False),
    "negative": lambda _: (None, -1, False),
    "positive": lambda _: (1, None, False),
    "sign": lambda _: (1, None, False),
}
"""What each operation lets count: see `Measure.bounds`."""

_CHANGES: Mapping[str | None, tuple[str, bool]] = {
    None: ("increases", False),
    "sign": ("increases", False),
    "up": ("increases", False),
    "down": ("decreases", False),
    "any": ("changes", False),
    "none": ("changes", True),
    "not down": ("decreases", True),
    "not up": ("increases", True),
}
"""Comparison for each change, and whether it must not hold."""


ALWAYS_0 = "always_0"
"""Name of a variable that is 0 at each timestep, for terms that need no amount."""

Term = dict[str, object]
"""The keys of a reward term in game.yaml."""


def reward_terms(measure: Measure, variable: str, *, is_signed: bool) -> Iterator[tuple[str, Term]]:
    """Yield the reward terms that earn what the measure does, each with an ending for its name.

    Terms whose weight would be 0 are among them.

    Args:
        is_signed: whether the variable may be negative.

    Raises:
        CannotBeSaidError: no terms do.
    """
    up = f"{{variable: {variable}, {'increases: true' if measure.is_delta else 'at_least: 1'}}}"
    down = f"{{variable: {variable}, {'decreases: true' if measure.is_delta else 'at_most: -1'}}}"
    gain = measure.reward
    loss = measure.penalty
    if measure.op == "sign":
        yield "_up", _constant(gain, up)
        yield "_down", _constant(-loss, down)
    elif measure.op is not None:
        yield "_is", _constant(gain, measure.condition(variable))
    elif measure.is_delta and gain == loss:
        yield "", {"variable": variable, "on": "difference", "weight": gain}
    elif measure.is_delta:
        yield "_up", {"variable": variable, "on": "increase", "weight": gain}
        yield "_down", {"variable": variable, "on": "decrease", "weight": -loss}
    elif gain == loss or not is_signed:
        yield "", {"variable": variable, "on": "value", "weight": gain}
    else:
        yield "_up", {"variable": variable, "on": "value", "weight": gain, "when": up}
        yield "_down", {"variable": variable, "on": "value", "weight": loss, "when": down}


def time_term(measure: Measure) -> Term:
    """Return the reward term for each timestep.

    Raises:
        CannotBeSaidError: an operation is done with the time.
    """
    if measure.op is not None:
        raise CannotBeSaidError(
            f"an operation on the time ({measure.comment}) cannot be expressed in a game file"
        )
    return _constant(measure.reward, None)


def _constant(weight: float, when: str | None) -> Term:
    """Return a term that earns its weight at each timestep after which a condition holds."""
    term: Term = {"variable": ALWAYS_0, "on": "equals", "value": 0, "weight": weight}
    return term if when is None else {**term, "when": when}


def whole_number(value: object) -> int:
    """Return a value of JSON as stable-retro reads it where it needs a whole number."""
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else 0
    return int(value) if isinstance(value, int) else 0


def real_number(value: object) -> float:
    """Return a value of JSON as stable-retro reads it where it needs a number."""
    if isinstance(value, int | float) and abs(value) < _LARGEST_WEIGHT:
        return float(value)
    return 0.0
