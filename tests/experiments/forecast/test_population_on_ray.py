"""What a population takes where Ray carries it out, beside the same one in local processes."""

from dataclasses import replace

import pytest

from game_rl.experiments.forecast.experiment_footprint import (
    CONTROLLER_BYTES,
    LOADING_BYTES,
    RAY_CONTROLLER_BYTES,
    RAY_NODE_BYTES,
    RAY_WORKER_BYTES,
    STORAGE_BYTES,
    loaded_once_bytes,
)
from game_rl.system.placement import Gpu
from game_rl.system.units import GIB
from tests.experiments.conftest import MakePopulation
from tests.experiments.forecast.test_experiment_forecast import forecast, machine

_RAY = "executor={kind: ray}"


def test_ray_takes_its_own_memory_and_some_for_each_member(make_population: MakePopulation) -> None:
    local = forecast(make_population(), machine(cpus=3))
    ray = forecast(make_population("x", _RAY), machine(cpus=3))
    assert (ray.slots, ray.disk_bytes) == (local.slots, local.disk_bytes)
    shared = 2 * loaded_once_bytes(local.machine)  # by each process on its own
    of_ray = RAY_CONTROLLER_BYTES + RAY_NODE_BYTES + 3 * RAY_WORKER_BYTES
    assert ray.ram_bytes - local.ram_bytes == shared + of_ray - CONTROLLER_BYTES - LOADING_BYTES


def test_storage_takes_memory_for_each_member_and_disk_where_members_train(
    make_population: MakePopulation,
) -> None:
    shared = forecast(make_population("x", _RAY), machine(cpus=3))
    distant = {
        address: forecast(
            make_population(
                "y", f"executor={{kind: ray, storage: 's3://b/x', address: '{address}'}}"
            ),
            machine(cpus=3),
        )
        for address in ("local", "head:6379")
    }
    assert distant["local"].ram_bytes - shared.ram_bytes == (1 + 3) * STORAGE_BYTES
    member = shared.member.footprint.disk.bytes
    assert distant["local"].momentary_bytes - shared.momentary_bytes == 3 * member
    assert distant["head:6379"].momentary_bytes == shared.momentary_bytes


def test_a_machine_with_room_for_ray_and_one_member_takes_one(
    make_population: MakePopulation,
) -> None:
    small = machine(ram_gib=2.2)
    assert (
        forecast(make_population("x", _RAY), small).slots < forecast(make_population(), small).slots
    )


@pytest.mark.parametrize(
    ("executor", "gpus"),
    [
        ("{kind: local}", 0.0),
        ("{kind: ray}", None),
        ("{kind: ray, gpus_per_member: 0.25}", 0.25),
        ("{kind: ray, gpus_per_member: 2}", 2.0),
    ],
)
def test_a_member_asks_for_its_share_of_a_gpu(
    make_population: MakePopulation, executor: str, gpus: float | None
) -> None:
    gpu = Gpu(total_bytes=8 * GIB, free_bytes=8 * GIB)
    report = forecast(make_population("x", f"executor={executor}"), replace(machine(), gpus=(gpu,)))
    if gpus is not None:
        assert report.gpus_per_member == gpus
        return
    vram = report.member.footprint.vram
    assert vram is not None
    at_once = int(1 / report.gpus_per_member)
    assert at_once * vram.peak.bytes <= gpu.total_bytes < (at_once + 2) * vram.peak.bytes


def test_a_member_asks_for_no_gpu_where_it_computes_on_the_cpu(
    make_population: MakePopulation,
) -> None:
    assert forecast(make_population("x", _RAY), machine()).gpus_per_member == 0


def test_a_gpu_by_its_number_is_an_error_that_names_the_way_out(
    make_population: MakePopulation,
) -> None:
    gpu = Gpu(total_bytes=8 * GIB, free_bytes=8 * GIB)
    two = replace(machine(), gpus=(gpu, gpu))
    report = forecast(make_population("x", _RAY, "member.device=cuda:1"), two)
    (finding,) = (f for f in report.findings if f.code == "ray_chooses_gpu")
    assert finding.fix is not None
    fixed = make_population("y", _RAY, f"{finding.fix.key}={finding.fix.value}")
    assert "ray_chooses_gpu" not in {f.code for f in forecast(fixed, two).findings}


def test_a_node_of_a_cluster_gets_no_more_members_than_it_has_room_for(
    make_population: MakePopulation,
) -> None:
    cluster = "executor={kind: ray, address: 'head:6379', parallel: 4}"
    here = "executor={kind: ray, parallel: 4}"
    two = machine(cpus=2)
    assert forecast(make_population("x", cluster), two).slots == 2
    assert forecast(make_population("y", here), two).slots == 4  # as the user says


def test_the_table_says_whose_members_it_counts(make_population: MakePopulation) -> None:
    from rich.console import Console

    for address, is_said in (("local", False), ("head:6379", True)):
        population = make_population("x", f"executor={{kind: ray, address: '{address}'}}")
        console = Console(width=400, record=True, quiet=False)
        with console.capture() as shown:
            console.print(forecast(population, machine()).table())
        assert ("on a node like this machine" in shown.get()) == is_said
