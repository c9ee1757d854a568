"""Page faults of a process that frees and takes again what a gradient step needs."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import numpy as np
from game_rl.system.process_memory import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()

def step():
    blocks = [np.ones(12_000_000, np.uint8) for _ in range(8)]
    # freed from the top of the heap down, so that all of it could be given back
    while blocks:
        blocks.pop()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(5):
    step()
before = faults()
for _ in range(5):
    step()
print(faults() - before)
"""


def page_faults(mode: str) -> int:
    command = [sys.executable, "-c", PROGRAM, mode]
    return int(subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_freed_memory_is_used_again_without_page_faults() -> None:
    assert page_faults("as it is") > 10_000
    assert page_faults("kept") < 1_000
