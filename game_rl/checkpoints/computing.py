"""How a run's network is computed, beside what is installed (`system.versions`)."""

import torch


def computing(device: str) -> dict[str, str]:
    """Where and how the network is computed; another way rounds differently."""
    return {
        "device": device,
        "processor": torch.backends.cpu.get_cpu_capability(),
        "torch threads": str(torch.get_num_threads()),
    }
