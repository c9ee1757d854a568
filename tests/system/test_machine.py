"""Limits from laid-out /proc and cgroup trees; memory use against psutil on live processes."""

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.errors import UsageError
from game_rl.system.machine import (
    PRESETS,
    Machine,
    bf16_way,
    cache_bytes_per_cpu,
    cpu_has_bf16,
    detect_machine,
    disk_free_bytes,
    effective_cpus,
    effective_ram_bytes,
    installed_bytes,
    own_cores,
    parse_machine,
    processor_name,
)
from game_rl.system.placement import USUAL_CACHE_BYTES, Bf16Way, Gpu, visible_gpus
from game_rl.system.process_memory import process_tree_memory
from game_rl.system.units import GIB, KIB, MIB, format_bytes, parse_bytes

HERE = Machine(
    ram_bytes=16 * GIB,
    ram_available_bytes=12 * GIB,
    gpus=(Gpu(8 * GIB, 7 * GIB), Gpu(4 * GIB, 3 * GIB)),
    disk_free_bytes=100 * GIB,
    cpus=4,
    cpu_has_bf16=True,
)


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


MEMINFO = "MemTotal:       33554432 kB\nMemFree: 1 kB\nMemAvailable:   16777216 kB\n"


def test_ram_without_a_container_is_what_the_kernel_calls_available(tmp_path: Path) -> None:
    root = lay_out(tmp_path, {"proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/\n"})
    assert effective_ram_bytes(root) == (32 * GIB, 16 * GIB)


def test_a_v2_limit_counts_from_whichever_parent_sets_it(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/pod/box\n",
            "sys/fs/cgroup/pod/memory.max": str(4 * GIB),
            "sys/fs/cgroup/pod/memory.current": str(3 * GIB),
            "sys/fs/cgroup/pod/memory.stat": f"anon 5\ninactive_file {GIB}\n",
            "sys/fs/cgroup/pod/box/memory.max": "max\n",
            "sys/fs/cgroup/pod/box/memory.current": "5",
        },
    )
    assert effective_ram_bytes(root) == (4 * GIB, 2 * GIB)  # 4 - (3 - 1 of idle page cache)


def test_a_v2_path_that_only_the_host_sees_falls_back_to_the_containers_root(
    tmp_path: Path,
) -> None:
    root = lay_out(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/kubepods/somewhere/else\n",
            "sys/fs/cgroup/memory.max": str(8 * GIB),
            "sys/fs/cgroup/memory.current": str(2 * GIB),
        },
    )
    assert effective_ram_bytes(root) == (8 * GIB, 6 * GIB)


def test_a_v1_limit_counts_and_its_unlimited_number_does_not(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "4:memory:/docker/abc\n3:cpu,cpuacct:/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": str(20 * GIB),
            "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": str(2 * GIB),
            "sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes": str(GIB),
            "sys/fs/cgroup/memory/docker/abc/memory.stat": f"total_inactive_file {GIB // 2}\n",
        },
    )
    assert effective_ram_bytes(root) == (2 * GIB, 3 * GIB // 2)


def test_a_full_container_has_nothing_left_rather_than_less(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "100",
            "sys/fs/cgroup/memory.current": "300",
        },
    )
    assert effective_ram_bytes(root) == (100, 0)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"sys/fs/cgroup/cpu.max": "100000 100000\n"}, 1),
        ({"sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({}, None),
    ],
)
def test_cpus_are_the_affinity_or_the_v2_quota(
    tmp_path: Path, files: dict[str, str], expected: int | None
) -> None:
    root = lay_out(tmp_path, {"proc/self/cgroup": "0::/\n", **files})
    assert effective_cpus(root) == (expected or len(psutil.Process().cpu_affinity()))


def test_cores_are_those_of_the_affinity_unless_a_quota_is_less(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {"proc/self/cgroup": "0::/box\n", "sys/fs/cgroup/box/cpu.max": "max 100000"},
    )
    affinity = psutil.Process().cpu_affinity()
    assert own_cores(root) == affinity
    psutil.Process().cpu_affinity(affinity[-1:])
    try:
        assert own_cores(root) == affinity[-1:]
    finally:
        psutil.Process().cpu_affinity(affinity)
    (root / "sys/fs/cgroup/box/cpu.max").write_text("100000 100000", encoding="utf-8")
    assert own_cores(root) == ([] if len(affinity) > 1 else affinity)


def test_what_the_environment_says_counts_before_affinity_and_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than there are, too: numbers round as on a machine with so many."""
    root = lay_out(
        tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}
    )
    monkeypatch.setenv("GAME_RL_CPUS", "1000")
    assert effective_cpus(root) == 1_000
    assert own_cores(root) == []


@pytest.mark.parametrize("text", ["", "0", "-1", "two", "1.5"])
def test_an_environment_that_says_no_number_of_cpus_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAME_RL_CPUS", text)
    with pytest.raises(UsageError, match="GAME_RL_CPUS"):
        effective_cpus()


def test_cpus_follow_the_v1_quota(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {
            "proc/self/cgroup": "3:cpu,cpuacct:/box\n",
            "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "100000",
            "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1",
        },
    )
    assert effective_cpus(root) == 1


def test_disk_is_measured_at_the_nearest_folder_that_exists(tmp_path: Path) -> None:
    free = disk_free_bytes(tmp_path / "not" / "there" / "yet")
    assert free == pytest.approx(psutil.disk_usage(str(tmp_path)).free, rel=0.05)


def fake_nvidia_smi(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


ANSWERS = """
case "$1" in
--id=0) echo "8192, 7000" ;;
--id=1 | --id=GPU-b) echo "16384, 15000" ;;
--id=*) echo "No devices were found"; exit 6 ;;
*) echo "8192, 7000"; echo "16384, 15000" ;;
esac
"""
FIRST, SECOND = Gpu(8 * GIB, 7_000 * MIB), Gpu(16 * GIB, 15_000 * MIB)


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, (FIRST, SECOND)),
        ("1,0", (SECOND, FIRST)),
        ("GPU-b", (SECOND,)),
        ("0, 7, 1", (FIRST,)),  # what comes after one that is not there is not there either
        ("", ()),
        ("-1", ()),
    ],
)
def test_gpus_are_those_that_cuda_would_show_in_its_order(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    visible: str | None,
    expected: tuple[Gpu, ...],
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    fake_nvidia_smi(tmp_path, ANSWERS, monkeypatch)
    assert visible_gpus() == expected


def test_a_gpu_is_found_by_its_number_in_torch() -> None:
    assert [HERE.gpu_free_bytes(number) for number in range(3)] == [7 * GIB, 3 * GIB, 0]
    assert HERE.vram_bytes == 8 * GIB


@pytest.mark.parametrize("visible", [None, "0"])
@pytest.mark.parametrize("script", ["exit 9", "echo no devices were found", "true"])
def test_a_driver_that_gives_no_numbers_is_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, visible: str | None
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    fake_nvidia_smi(tmp_path, script, monkeypatch)
    assert visible_gpus() == ()


def test_the_live_machine_has_sane_numbers(tmp_path: Path) -> None:
    machine = detect_machine(tmp_path / "run")
    assert 0 < machine.ram_available_bytes <= machine.ram_bytes <= psutil.virtual_memory().total
    assert 1 <= machine.cpus <= (psutil.cpu_count() or 1)


def test_pss_of_a_laid_out_tree_is_the_sum_over_descendants_only(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {
            "proc/self/stat": "",
            "proc/self/smaps_rollup": "",
            "proc/1/stat": "1 (init) S 0 1",
            "proc/10/stat": "10 (main) S 1 10",
            "proc/10/smaps_rollup": "0-f ---p [rollup]\nRss: 900 kB\nPss:   100 kB\n",
            "proc/11/stat": "11 (a (nasty) name) S 10 10",
            "proc/11/smaps_rollup": "Pss: 20 kB\n",
            "proc/12/stat": "12 (grandchild) S 11 10",
            "proc/12/smaps_rollup": "Pss: 3 kB\n",
            "proc/13/stat": "13 (stranger) S 1 13",
            "proc/13/smaps_rollup": "Pss: 5000 kB\n",
            "proc/14/stat": "14 (zombie) Z 10 10",
        },
    )
    assert process_tree_memory(10, root=root)[0] == 123 * 1024


@pytest.mark.parametrize(
    ("file_pss", "expected"),
    [
        ((900, 60), 100 + 30 + 960),  # nobody else maps the files
        ((300, 20), 100 + 30 + 900),  # two other programs do
    ],
)
def test_pages_of_files_that_other_programs_map_count_as_without_them(
    tmp_path: Path, file_pss: tuple[int, int], expected: int
) -> None:
    files = {"proc/self/stat": "", "proc/self/smaps_rollup": ""}
    for pid, parent, anonymous, shared, mapped in (
        (10, 1, 100, file_pss[0], 900),
        (11, 10, 30, file_pss[1], 500),
    ):
        files |= {
            f"proc/{pid}/stat": f"{pid} (x) S {parent} 10",
            f"proc/{pid}/smaps_rollup": f"Pss: {anonymous + shared} kB\nPss_File: {shared} kB\n",
            f"proc/{pid}/status": f"VmRSS:\t 2000 kB\nRssFile:\t {mapped} kB\n",
        }
    assert process_tree_memory(10, root=lay_out(tmp_path, files))[0] == expected * 1024


@pytest.mark.skipif(
    "Pss_File" not in Path("/proc/self/smaps_rollup").read_text(encoding="utf-8")
    if Path("/proc/self/smaps_rollup").exists()
    else True,
    reason="needs Linux >= 5.3",
)
def test_other_programs_with_the_same_libraries_change_nothing() -> None:
    code = "import numpy, scipy.stats; print('up', flush=True); input()"
    started = []
    sizes = []
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(child)
        assert child.stdout is not None
        child.stdout.readline()
        sizes.append(process_tree_memory(started[0].pid)[0])
    for child in started:
        child.communicate()
    assert sizes[-1] == pytest.approx(sizes[0], rel=0.01)


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux >= 4.14")
def test_pss_of_live_processes_agrees_with_psutil() -> None:
    code = "import sys; block = bytearray(b'x' * 30_000_000); print('up', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        expected = counted(psutil.Process(child.pid))
        assert process_tree_memory(child.pid)[0] == pytest.approx(expected, rel=0.02)
        # the child, and what other tests have left running: the forkserver of the workers
        members = [psutil.Process(), *psutil.Process().children(recursive=True)]
        least = sum(member.memory_full_info().pss for member in members)
        assert least * 0.95 <= process_tree_memory(os.getpid())[0]
        assert process_tree_memory(os.getpid())[0] <= 1.05 * sum(map(counted, members))
        child.stdin.close()


def counted(process: psutil.Process) -> int:
    """Return its own memory, with all of the files' pages that it has mapped."""
    maps = process.memory_maps(grouped=False)
    shared = sum(each.rss - each.pss for each in maps if each.path.startswith("/"))
    return int(process.memory_full_info().pss + shared)


def test_an_unused_process_id_has_no_memory() -> None:
    assert process_tree_memory(2**22 + 1)[0] == 0


_AVX512 = "avx512bw avx512vl avx512dq"


@pytest.mark.parametrize(
    ("cpuinfo", "limit", "expected"),
    [
        (f"flags\t\t: fpu {_AVX512} avx512_bf16 amx_bf16 amx_tile\n", None, "native"),
        (f"flags\t\t: fpu {_AVX512} avx512_bf16\n", None, "native"),
        (f"flags\t\t: fpu {_AVX512} avx512_bf16\n", "AVX512_CORE_BF16", "native"),
        (f"flags\t\t: fpu {_AVX512} avx512_bf16\n", "avx512_core", "converted"),
        (f"flags\t\t: fpu {_AVX512} avx512_bf16\n", "AVX2", "unfolded"),
        (f"flags\t\t: fpu {_AVX512}\n", None, "converted"),
        ("flags\t\t: fpu avx512f avx512_vnni\n", None, "unfolded"),
        ("Features\t: fp asimd bf16\n", None, "unfolded"),
        (None, None, "unfolded"),
    ],
)
def test_bf16_is_for_processors_that_multiply_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cpuinfo: str | None,
    limit: str | None,
    expected: Bf16Way,
) -> None:
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    if limit is not None:
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    root = lay_out(tmp_path, {"proc/cpuinfo": cpuinfo} if cpuinfo else {})
    assert bf16_way(root) == expected
    assert cpu_has_bf16(root) is (expected == "native")


def test_the_processor_is_named_as_its_maker_does(tmp_path: Path) -> None:
    text = "processor\t: 0\nmodel name\t: Some CPU @ 2.5GHz\nmodel\t\t: 1\n"
    assert processor_name(lay_out(tmp_path, {"proc/cpuinfo": text})) == "Some CPU @ 2.5GHz"


def test_on_describes_a_whole_machine() -> None:
    assert parse_machine("ram=32GiB, vram=16GiB,disk=250GB,cpus=8", here=HERE) == Machine(
        ram_bytes=32 * GIB,
        ram_available_bytes=32 * GIB,
        gpus=(Gpu(16 * GIB, 16 * GIB),),
        disk_free_bytes=250 * 10**9,
        cpus=8,
        cpu_has_bf16=True,
        installation_bytes=installed_bytes(),
    )


def test_a_disk_that_is_described_has_room_for_the_installation_only_once() -> None:
    there = parse_machine("disk=250GB", here=HERE)
    assert there.disk_room_bytes == 250 * 10**9 - installed_bytes()
    assert parse_machine("ram=2GiB", here=HERE).disk_room_bytes == HERE.disk_free_bytes


@pytest.mark.skipif(shutil.which("du") is None, reason="there is no du")
def test_the_installation_is_as_large_as_du_says() -> None:
    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    ended = subprocess.run(
        ["du", "-sc", "--block-size=1", *folders], check=True, capture_output=True, encoding="utf-8"
    )
    total = int(ended.stdout.splitlines()[-1].split()[0])
    assert installed_bytes() == pytest.approx(total, rel=0.01)


def test_on_takes_what_it_does_not_name_from_here() -> None:
    machine = parse_machine("ram=2GiB,vram=0", here=HERE)
    assert (machine.ram_available_bytes, machine.vram_bytes) == (2 * GIB, None)
    assert (machine.disk_free_bytes, machine.cpus) == (HERE.disk_free_bytes, HERE.cpus)
    assert parse_machine("ram=2GiB", here=HERE).gpus == HERE.gpus


@pytest.mark.parametrize("name", PRESETS)
def test_on_knows_machines_by_name(name: str) -> None:
    machine = parse_machine(name, here=HERE)
    assert machine == parse_machine(PRESETS[name], here=HERE)
    other = replace(machine, disk_free_bytes=500 * GIB)
    assert parse_machine(f"{name},disk=500GiB", here=HERE) == other
    assert parse_machine(f" disk=500GiB , {name}", here=HERE) == other


def test_larger_machines_have_more_of_everything() -> None:
    small, medium, large = (parse_machine(name, here=HERE) for name in ("small", "medium", "large"))
    for one, other in ((small, medium), (medium, large)):
        assert one.ram_bytes < other.ram_bytes
        assert one.disk_free_bytes < other.disk_free_bytes
        assert one.cpus < other.cpus
        assert (one.vram_bytes or 0) < (other.vram_bytes or 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "nothing"),
        ("huge", "not one of small, medium, large"),
        ("small,large", "small and large are two machines"),
        ("small,ram=1GiB,ram=2GiB", "twice"),
        ("memory=3GiB", "memory=3GiB"),
        ("ram", "'ram'"),
        ("ram=1GiB,ram=2GiB", "twice"),
        ("ram=lots", "lots"),
        ("ram=3XB", "3XB"),
        ("ram=-3GiB", "-3GiB"),
        ("ram=0", "more than 0"),
        ("cpus=0", "more than 0"),
        ("cpus=1.5", "1.5"),
    ],
)
def test_on_says_what_it_cannot_read(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_machine(text, here=HERE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4096", 4096), ("1KiB", 1024), ("1 kb", 1000), ("1.5GiB", 3 * 2**29), ("2TB", 2 * 10**12)],
)
def test_sizes_have_binary_and_decimal_units(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


@given(st.integers(min_value=0, max_value=2**50))
def test_a_formatted_size_reads_back_to_three_digits(size: int) -> None:
    assert parse_bytes(format_bytes(size)) == pytest.approx(size, rel=0.006)


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
