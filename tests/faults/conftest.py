"""One process with the imports of a training, from which the tests of faults fork theirs."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.faults.trainings import WarmStarts


@pytest.fixture(scope="session")
def warm_starts() -> Iterator[WarmStarts]:
    with closing(WarmStarts()) as starts:
        yield starts
