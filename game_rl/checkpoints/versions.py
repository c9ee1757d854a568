"""What a run's numbers depend on beside its config: the program, its libraries, the processor."""

import platform
from importlib.metadata import version

import torch

_PACKAGES = ("game_rl", "stable-baselines3", "torch", "gymnasium", "numpy", "pyboy")


def installed_versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES}


def version_differences(then: dict[str, str], now: dict[str, str]) -> tuple[str, ...]:
    """What is not as it was, item by item."""
    return tuple(
        f"{name} was {then.get(name, 'not there')}, is {now.get(name, 'not there')}"
        for name in {**then, **now}
        if then.get(name) != now.get(name)
    )


def computing(device: str) -> dict[str, str]:
    """Where and how the network is computed; another way rounds differently."""
    return {
        "device": device,
        "processor": torch.backends.cpu.get_cpu_capability(),
        "torch threads": str(torch.get_num_threads()),
    }
