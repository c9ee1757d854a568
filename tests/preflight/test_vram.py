"""Networks and replays on the GPUs that a config names, judged each by its own."""

from dataclasses import replace
from typing import Any

import pytest

from game_rl.preflight.estimate import estimate
from game_rl.preflight.footprint import verdict
from game_rl.preflight.memory import network_gpu, replay_gpu, storage
from game_rl.preflight.preflight import report_of
from game_rl.system.placement import Gpu
from game_rl.system.units import GIB
from tests.preflight.conftest import FACTS, MACHINE, make_config
from tests.preflight.test_findings import Make, by_code, mended
from tests.preflight.test_report import text_of

SMALL, LARGE = Gpu(4 * GIB, 3 * GIB), Gpu(80 * GIB, 79 * GIB)
ON_GPU = replace(FACTS, uses_gpu=True)


def dqn(replay_device: str) -> dict[str, Any]:
    replay = {"capacity": 1_000_000, "device": replay_device}  # 5.8 GB of full screens
    return {"name": "dqn", "replay": replay, "batch_size": 64}


def run_on(device: str, replay_device: str) -> dict[str, Any]:
    return {
        "device": device,
        "algorithm": dqn(replay_device),
        "env__observation": {"size": "full"},
        "facts__uses_gpu": device != "cpu",
        "facts__four_shades": True,
    }


@pytest.mark.parametrize(
    ("device", "number"), [("auto", 0), ("cuda", 0), ("cuda:0", 0), ("cuda:3", 3)]
)
def test_a_gpu_without_a_number_is_the_first_as_in_torch(device: str, number: int) -> None:
    assert network_gpu(make_config(device=device), ON_GPU) == number
    assert network_gpu(make_config(device="cpu"), FACTS) is None
    if device != "auto":
        assert replay_gpu(make_config(algorithm=dqn(device))) == number
    assert replay_gpu(make_config(algorithm=dqn("cpu"))) is None


@pytest.mark.parametrize("shared", [True, False])
def test_a_replay_is_counted_on_its_own_gpu(*, shared: bool) -> None:
    config = make_config(device="cuda:1", algorithm=dqn("cuda:1" if shared else "cuda"))
    footprint, replay = estimate(config, ON_GPU), storage(config, ON_GPU).bytes
    without = estimate(make_config(device="cuda:1", algorithm=dqn("cpu")), ON_GPU)
    assert footprint.vram is not None
    assert without.vram is not None
    assert footprint.vram.gpu == 1
    added = footprint.vram.peak.bytes - without.vram.peak.bytes
    assert added == (replay if shared else 0)
    if shared:
        assert footprint.replay_vram is None
    else:
        assert footprint.replay_vram is not None
        assert footprint.replay_vram.gpu == 0
        assert footprint.replay_vram.peak.bytes > replay


@pytest.mark.parametrize(
    ("device", "replay_device", "expected"),
    [
        ("cuda:0", "cuda:0", "vram_does_not_fit"),
        ("cuda:1", "cuda:1", None),
        ("cuda:1", "cuda:0", "replay_vram_does_not_fit"),
        ("cuda:0", "cuda:1", None),
        ("auto", "cuda:1", None),
        ("cuda:2", "cpu", "gpu_missing"),
        ("cuda:1", "cuda:2", "replay_gpu_missing"),
    ],
)
def test_each_gpu_is_judged_by_its_own_memory(
    situation: Make, device: str, replay_device: str, expected: str | None
) -> None:
    case = situation(**run_on(device, replay_device), machine__gpus=(SMALL, LARGE))
    found = {
        code: finding for code, finding in by_code(case).items() if finding.severity == "error"
    }
    assert set(found) == ({expected} if expected else set())
    assert (verdict(case.footprint, case.machine) == "does_not_fit") == bool(expected)
    if expected:
        assert expected not in by_code(mended(case, found[expected]))


def test_a_missing_gpu_is_told_with_those_that_are_there(situation: Make) -> None:
    case = situation(**run_on("cuda:2", "cpu"), machine__gpus=(SMALL, LARGE))
    assert "cuda:1" in by_code(case)["gpu_missing"].message
    case = situation(**run_on("cuda:2", "cpu"), machine__gpus=())
    assert "no GPU" in by_code(case)["gpu_missing"].message


def test_the_report_shows_both_gpus() -> None:
    config = make_config(device="cuda:1", algorithm=dqn("cuda:0"))
    report = report_of(config, ON_GPU, replace(MACHINE, gpus=(SMALL, LARGE)))
    found = report.to_json()
    for key, gpu in (("vram", LARGE), ("replay_vram", SMALL)):
        assert found[key]["limit_bytes"] == gpu.free_bytes
        parts = sum(part["bytes"] for part in found[key]["parts"])
        assert parts == found[key]["predicted_peak_bytes"]
    assert {part["name"] for part in found["replay_vram"]["parts"]} >= {"replay"}
    lines = text_of(report).splitlines()
    assert "4.00 GiB + 80.0 GiB VRAM" in lines[0]
    assert any(line.startswith("VRAM of cuda:0") and "3.00 GiB" in line for line in lines)
    one = report_of(make_config(), ON_GPU, replace(MACHINE, gpus=(SMALL,)))
    assert one.to_json()["replay_vram"] is None
