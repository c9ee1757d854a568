"""What a run's numbers depend on beside its config: the program, its libraries, the processor."""

import platform
from importlib.metadata import version

import torch

_PACKAGES = ("game_rl", "stable-baselines3", "torch", "gymnasium", "numpy", "pyboy")


def installed_versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES}


def computing(device: str) -> dict[str, str]:
    """Where and how the network is computed; another way rounds differently."""
    return {
        "device": device,
        "processor": torch.backends.cpu.get_cpu_capability(),
        "torch threads": str(torch.get_num_threads()),
    }
