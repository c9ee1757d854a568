"""What holds for every test: no time limit on an example, threads that share two cores, Ctrl-C."""

import gc
import os
import signal

import pytest
from hypothesis import settings

from tests.tiny_run import make_config as make_config  # a fixture

# the tests run side by side: threads that wait for each other leave the core to another test
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# a shell without job control ignores SIGINT for what it starts with `&`, and so would its children
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest test first, so that nobody waits for it at the end."""
    items.sort(key=lambda item: item.path.name != "test_learning.py")


def pytest_collection_finish() -> None:
    """No garbage collection goes through thousands of collected tests any more."""
    gc.collect()
    gc.freeze()


settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
