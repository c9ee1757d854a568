"""Device and precision against the table that users read."""

import pytest

from game_rl.system.placement import Hardware, Placement, find_placement, is_gpu_missing

NOTHING = Hardware(has_gpu=False, cpu_has_bf16=False)
FAST_CPU = Hardware(has_gpu=False, cpu_has_bf16=True)
GPU = Hardware(has_gpu=True, cpu_has_bf16=False)


@pytest.mark.parametrize(
    ("hardware", "device", "expected"),
    [
        (NOTHING, "auto", Placement("cpu", "float32")),
        (NOTHING, "cpu", Placement("cpu", "float32")),
        (FAST_CPU, "auto", Placement("cpu", "bf16")),
        (FAST_CPU, "cuda:1", Placement("cuda:1", "bf16")),
        (GPU, "auto", Placement("cuda", "bf16")),
        (GPU, "cpu", Placement("cpu", "float32")),
        (GPU, "cuda", Placement("cuda", "bf16")),
        (GPU, "cuda:2", Placement("cuda:2", "bf16")),
    ],
)
def test_auto_is_what_the_hardware_is_fast_in(
    hardware: Hardware, device: str, expected: Placement
) -> None:
    assert find_placement(device=device, precision="auto", hardware=hardware) == expected
    assert expected.is_on_gpu == (expected.device != "cpu")


@pytest.mark.parametrize("hardware", [NOTHING, FAST_CPU, GPU])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("device", ["auto", "cpu", "cuda:3"])
def test_what_the_config_names_is_taken(hardware: Hardware, precision: str, device: str) -> None:
    found = find_placement(device=device, precision=precision, hardware=hardware)  # type: ignore[arg-type]
    assert found.precision == precision
    if device != "auto":
        assert found.device == device


@pytest.mark.parametrize(
    ("device", "n_gpus", "missing"),
    [
        ("cpu", 0, False),
        ("auto", 0, False),
        ("cuda", 0, True),
        ("cuda", 1, False),
        ("cuda:1", 1, True),
        ("cuda:1", 2, False),
    ],
)
def test_a_gpu_is_missing_if_its_number_is_beyond_those_there(
    device: str, n_gpus: int, missing: bool
) -> None:
    assert is_gpu_missing(device, n_gpus=n_gpus) is missing
