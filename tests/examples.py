"""What runs with the fast tests: how many examples of a property, which variants of a test.

"fast" is the profile of `make test`, "full" that of the slow tests.
"""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

N_EXAMPLES = {"fast": 20, "full": 100}

for name, count in N_EXAMPLES.items():
    settings.register_profile(name, deadline=None, max_examples=count)


def examples(full: int) -> int:
    """Return the number for a property that is tried on `full` examples under "full"."""
    return full * settings().max_examples // N_EXAMPLES["full"]


def variants(*fast: object, slow: Iterable[object]) -> list[Any]:
    """Return the parameters of a test of which `slow` run with the slow tests."""
    marked = ((value if isinstance(value, tuple) else (value,)) for value in slow)
    return [*fast, *(pytest.param(*values, marks=pytest.mark.slow) for values in marked)]
