"""What a person knows of a number at a moment: `3`, `decreased`, `2 to 5`, `same as 1`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Before = Literal["previous", "first"] | int
"""The moment to compare with: the one before in which something is known of the number, the first
such one, or a moment by its number, from 1."""

_LARGEST = 2**62


class Shown(NamedTuple):
    """How the number that a person sees follows from that in memory: times scale, plus offset."""

    scale: int = 1
    offset: int = 0

    def of(self, stored: Numbers) -> Numbers:
        shown: Numbers = stored * self.scale + self.offset
        return shown

    @property
    def in_words(self) -> str:
        """What a person sees, such as "shown x 10"; empty if it is the number in memory."""
        found = [f"x {self.scale}"] if self.scale != 1 else []
        if self.offset:
            found.append(f"{'+' if self.offset > 0 else '-'} {abs(self.offset)}")
        return f"shown {' '.join(found)}" if found else ""


AS_STORED = Shown()
WAYS_OF_SHOWING = tuple(Shown(scale, offset) for offset in (0, 1, -1) for scale in (1, 10, 100))
"""As it is in memory first; a score may leave out zeros, and lives may count the one in play."""


@dataclass(frozen=True)
class NumberFact:
    """The number is from `lowest` to `highest`, or is not if `is_not`."""

    lowest: int
    highest: int
    is_not: bool = False

    @property
    def needs_scale(self) -> bool:
        return True

    def holds(self, now: Numbers, _: Numbers | None) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (now >= self.lowest) & (now <= self.highest)
        return ~found if self.is_not else found


@dataclass(frozen=True)
class ChangeFact:
    """How the number compares with itself at another moment.

    Attributes:
        by: the amount; None for any.
    """

    how: Literal["increased", "decreased", "changed", "unchanged"]
    before: Before = "previous"
    by: int | None = None

    @property
    def needs_scale(self) -> bool:
        return self.by is not None

    def holds(self, now: Numbers, then: Numbers | None) -> NDArray[np.bool_]:
        assert then is not None
        steps: Numbers = now - then
        found: dict[str, NDArray[np.bool_]] = {
            "unchanged": steps == 0,
            "increased": steps > 0,
            "decreased": steps < 0,
            "changed": steps != 0,
        }
        agrees = found[self.how]
        return agrees if self.by is None else agrees & (np.abs(steps) == self.by)


@dataclass(frozen=True)
class VariableFact:
    """The number equals a variable of game.yaml at this moment."""

    variable: str


@dataclass(frozen=True)
class LabelFact:
    """The number has the value that this word stands for: `is crab`.

    It is the same wherever the word is the same, and another where the word is another.
    """

    label: str


Fact = NumberFact | ChangeFact | VariableFact | LabelFact
PlacedFact = NumberFact | ChangeFact | LabelFact

_WHOLE = r"[-+]?\d[\d,_]*"
_CHANGE = re.compile(rf"(increased|decreased|changed)(?: by ({_WHOLE}))?")
_RANGE = re.compile(rf"({_WHOLE}) to ({_WHOLE})")
_BOUND = re.compile(rf"(at least|at most|above|below|not) ({_WHOLE})")
_SAME = re.compile(r"(same as|different from)(?: moment)? (\d+)")
_LABEL = re.compile(r"is (\w[\w -]*)")
_EQUALS = re.compile(r"equals ([A-Za-z_]\w*)")

_WORDS = {"unchanged": ChangeFact("unchanged"), "restored": ChangeFact("unchanged", "first")}

FORMS = (
    "a number, 2 to 5, at least 2, at most 5, above 2, below 5, not 3, increased, decreased, "
    "changed, unchanged, increased by 2, decreased by 2, changed by 2, restored, same as 1, "
    "different from 1 (a moment's number), is crab (the same number wherever it is `crab`, another "
    "elsewhere), or equals NAME (a variable of game.yaml)"
)


def parse_fact(text: int | str) -> Fact:
    """Return the fact that is written in a moment.

    Raises:
        ValueError: it is none; the message says what it may be.
    """
    if isinstance(text, int):
        return NumberFact(text, text)
    words = " ".join(text.split()).lower()
    if words in _WORDS:
        return _WORDS[words]
    if re.fullmatch(_WHOLE, words):
        return NumberFact(_number(words), _number(words))
    if match := _CHANGE.fullmatch(words):
        by = None if match[2] is None else _number(match[2])
        how: Literal["increased", "decreased", "changed"] = match[1]  # type: ignore[assignment]
        return ChangeFact(how, by=by)
    if match := _RANGE.fullmatch(words):
        return NumberFact(_number(match[1]), _number(match[2]))
    if match := _SAME.fullmatch(words):
        is_same = match[1] == "same as"
        return ChangeFact("unchanged" if is_same else "changed", int(match[2]))
    if match := _BOUND.fullmatch(words):
        return _bound(match[1], _number(match[2]))
    if match := _LABEL.fullmatch(words):
        return LabelFact(match[1])
    if match := _EQUALS.fullmatch(" ".join(text.split())):
        return VariableFact(match[1])
    raise ValueError(f"{text!r} says nothing about a number; write {FORMS}")


def _bound(how: str, number: int) -> NumberFact:
    match how:
        case "at least":
            return NumberFact(number, _LARGEST)
        case "at most":
            return NumberFact(-_LARGEST, number)
        case "above":
            return NumberFact(number + 1, _LARGEST)
        case "below":
            return NumberFact(-_LARGEST, number - 1)
    return NumberFact(number, number, is_not=True)


def _number(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))


class KnownFact(NamedTuple):
    """A fact of one variable, with the moments that it is about, by their index from 0."""

    moment: int
    fact: NumberFact | ChangeFact
    before: int | None


def placed_facts(facts: Sequence[tuple[int, PlacedFact]], n_moments: int) -> Iterator[KnownFact]:
    """Yield the facts of one variable with the moments that they compare with.

    Args:
        facts: indices of moments with what is known there, in their order.

    Raises:
        ValueError: a fact compares with a moment that is not there.
    """
    labelled: dict[str, int] = {}
    for number, (moment, fact) in enumerate(facts):
        if isinstance(fact, LabelFact):
            for label, other in labelled.items():
                how: Literal["unchanged", "changed"] = "changed"
                if label == fact.label:
                    how = "unchanged"
                yield KnownFact(moment, ChangeFact(how, other + 1), other)
            labelled[fact.label] = moment
            continue
        if isinstance(fact, NumberFact):
            yield KnownFact(moment, fact, None)
            continue
        if isinstance(fact.before, int):
            before = fact.before - 1
            if not 0 <= before < n_moments:
                raise ValueError(
                    f"moment {moment + 1} compares with moment {fact.before}, and there are "
                    f"{n_moments}"
                )
        elif number:
            before = facts[0][0] if fact.before == "first" else facts[number - 1][0]
        else:
            before = moment - 1
        if before < 0:
            raise ValueError(
                f"moment {moment + 1} says `{fact.how}`, and no moment is before it; write the "
                "number there, or put a moment before it"
            )
        yield KnownFact(moment, fact, before)
