"""The frozen, strict model that every part of a run config and of a game file is made of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

MOST_PROBLEMS = 60
"""That one check is asked for: more than anyone reads, few enough to word in an instant."""

Key = tuple[str, ...]
"""The way to a value from the top of its file; written `env.n_envs`. List items count from 0."""


@dataclass(frozen=True)
class Problem:
    """Values that are good one by one and cannot work together.

    Attributes:
        key: the value to change, from the model that reports the problem.
        message: what was found, why it cannot work, and what to write instead.
        reads: every other key that the check looked at. The problem is not reported while one of
            them is wrong by itself, as it may be gone when that one is mended.
    """

    key: Key
    message: str
    reads: tuple[Key, ...] = ()


class StrictModel(BaseModel):
    """Unknown keys are errors, values do not change, and no number is infinite or NaN."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )

    key_hints: ClassVar[Mapping[str, str]] = {}
    """What to say to who writes a key that does not exist, by its name or the whole way to it; the
    outermost model's count."""

    def problems(self) -> Iterable[Problem]:
        """Checks between the fields; called when each field by itself is good."""
        return ()

    @model_validator(mode="after")
    def _has_no_problems(self) -> Self:
        found = tuple(islice(self.problems(), MOST_PROBLEMS))
        if found:
            text = "; ".join(f"{'.'.join(problem.key)}: {problem.message}" for problem in found)
            raise PydanticCustomError("problems", "{text}", {"text": text, "problems": found})
        return self
