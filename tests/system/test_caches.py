"""A CPU's caches from laid-out /sys trees."""

from pathlib import Path

import pytest

from game_rl.system.machine import cache_bytes_per_cpu
from game_rl.system.placement import USUAL_CACHE_BYTES
from game_rl.system.units import KIB, MIB
from tests.system.test_machine import lay_out

L1 = ("Data", "48K", "0")
CODE = ("Instruction", "64M", "0")


def caches(root: Path, *found: tuple[str, str, str]) -> Path:
    folder = "sys/devices/system/cpu/cpu0/cache"
    for number, texts in enumerate(found):
        names = ("type", "size", "shared_cpu_list")
        files = zip(names, texts, strict=True)
        lay_out(root, {f"{folder}/index{number}/{name}": f"{text}\n" for name, text in files})
    return root


@pytest.mark.parametrize(
    ("l2", "l3", "expected"),
    [
        (("Unified", "1024K", "0"), ("Unified", "32768K", "0-1"), 16 * MIB),
        (("Unified", "2048K", "0,56"), ("Unified", "107520K", "0-55,56-111"), MIB),
        (("Unified", "512K", "0"), ("Unified", "32M", "0-7,64-71"), 2 * MIB),
        (("Unified", "1280K", "0-1"), CODE, 640 * KIB),
    ],
)
def test_what_counts_is_the_largest_share_of_a_cache(
    l2: tuple[str, str, str], l3: tuple[str, str, str], expected: int, tmp_path: Path
) -> None:
    assert cache_bytes_per_cpu(caches(tmp_path, L1, CODE, l2, l3)) == expected


@pytest.mark.parametrize(
    "found",
    [
        (),
        (CODE,),
        (("Unified", "", "0"),),
        (("Unified", "K", "0"),),
        (("Unified", "0K", "0"),),
        (("Unified", "big", "0"),),
        (("Unified", "1024K", ""),),
        (("Unified", "1024K", "0-x"),),
    ],
)
def test_where_nothing_is_told_a_cache_is_a_usual_one(
    found: tuple[tuple[str, str, str], ...], tmp_path: Path
) -> None:
    assert cache_bytes_per_cpu(caches(tmp_path, *found)) == USUAL_CACHE_BYTES


def test_this_machine_has_one() -> None:
    assert 16 * KIB <= cache_bytes_per_cpu() <= 1024 * MIB
