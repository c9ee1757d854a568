"""Settings of all tests: files in memory, examples, threads that share two cores, and Ctrl-C."""

import gc
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from tests.tiny_run import fake_workers as fake_workers  # fixtures
from tests.tiny_run import make_config as make_config

# tests run in parallel, so threads that wait for each other should leave the core to other tests
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# thousands of small trainings wait for the disk longer than they compute, so their files are in
# memory where there is room (a container has 64 MB); tests of disks take the fixture `disk_path`
_MEMORY = Path("/dev/shm")
_ON_DISK = Path(tempfile.gettempdir())
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= 2 * 1024**3:
    os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)

# a shell without job control starts commands with `&` with SIGINT ignored, which children inherit
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest test first, so it is not the last one to end."""
    items.sort(key=lambda item: item.path.name != "test_learning.py")


def pytest_collection_finish() -> None:
    """Exclude the thousands of collected tests from later garbage collections."""
    gc.collect()
    gc.freeze()


settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
