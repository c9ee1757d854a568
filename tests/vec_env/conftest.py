"""Tests of the vec env play in worker processes, except those of the fake."""

import pytest


@pytest.fixture(autouse=True)
def _in_processes(worker_processes: None) -> None:
    pass
