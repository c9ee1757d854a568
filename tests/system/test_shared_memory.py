"""Memory that processes share, in both forms."""

import gc
import multiprocessing
import os
import sys
from multiprocessing import shared_memory
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from game_rl.system.shared_memory import NamedMemory, NamelessMemory, new_shared_memory


def turn_round(name: str) -> None:
    memory = NamedMemory(name)
    mapped = memory.mapped(8)
    memory.close()
    mapped[:8] = mapped[:8][::-1].copy()


def numbers(memory: NamelessMemory | NamedMemory) -> NDArray[np.int32]:
    return np.ndarray((16,), np.int32, memory.mapped(128), 64)


@pytest.mark.parametrize("kind", [NamelessMemory, NamedMemory])
def test_arrays_outlive_the_memory_and_what_they_are_made_from(
    kind: type[NamelessMemory | NamedMemory],
) -> None:
    memory = kind()
    array = numbers(memory)
    array[:] = np.arange(16)
    memory.close()
    del memory
    gc.collect()
    new = kind()  # takes the opportunity to close what is unused
    numbers(new)[:] = 7
    np.testing.assert_array_equal(array, np.arange(16))
    new.close()


def test_by_its_name_another_process_maps_the_same_memory() -> None:
    memory = NamedMemory()
    mapped = memory.mapped(8)
    mapped[:8] = range(8)
    other = multiprocessing.get_context("spawn").Process(target=turn_round, args=(memory.name,))
    other.start()
    other.join(60)
    assert mapped[:8].tolist() == list(range(8))[::-1]
    memory.close()


def test_only_its_maker_deletes_the_name() -> None:
    memory = NamedMemory()
    array = numbers(memory)
    assert memory.name is not None
    name = memory.name
    other = NamedMemory(name)
    numbers(other)[3] = 5
    other.close()
    assert array[3] == 5
    assert (numbers(NamedMemory(name)) == array).all()
    memory.close()
    with pytest.raises(FileNotFoundError):
        shared_memory.SharedMemory(name)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_named_memory_leaves_no_files_open() -> None:
    def make_and_use() -> None:
        memory = NamedMemory()
        numbers(memory)[:] = 1
        numbers(NamedMemory(memory.name))[:] = 2
        memory.close()

    counts = []
    for _ in range(6):
        make_and_use()
        gc.collect()
        counts.append(len(list(Path("/proc/self/fd").iterdir())))
    assert counts[-1] == counts[1]


def test_memory_has_no_path_where_the_system_can_do_that() -> None:
    memory = new_shared_memory()
    assert isinstance(memory, NamelessMemory if hasattr(os, "memfd_create") else NamedMemory)
    memory.close()
