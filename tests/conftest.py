"""Settings of all tests: files in memory, examples, workers in this process, and Ctrl-C."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import tests.cores  # before torch is imported
import tests.examples  # its profiles  # noqa: F401
from game_rl.vec_env.worker import default_start_method, workers_in_process
from tests.tiny_run import make_config as make_config  # a fixture

# thousands of small trainings wait for the disk longer than they compute, so their files are in
# memory where there is room (a container has 64 MB)
_MEMORY = Path("/dev/shm")  # noqa: S108
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= 2 * 1024**3:
    os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)

# a shell without job control starts commands with `&` with SIGINT ignored, which children inherit
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _fake_workers() -> Iterator[None]:
    """Emulators play in this process, which starts none of its own; see `worker_processes`."""
    with workers_in_process():
        yield


@pytest.fixture
def worker_processes() -> Iterator[None]:
    """Emulators play in worker processes, as they do for users."""
    token = default_start_method.set("forkserver")
    yield
    default_start_method.reset(token)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest test first, so it is not the last one to end."""
    items.sort(key=lambda item: item.path.name != "test_learning.py")


def pytest_collection_finish() -> None:
    """Exclude the thousands of collected tests from later garbage collections."""
    gc.collect()
    gc.freeze()


settings.load_profile("fast")
