"""Device and settings that a run's network is computed with, to compare them after a resume."""

import torch


def computing(device: str) -> dict[str, str]:
    """Return where and how the network is computed; any difference changes the rounding.

    Versions of packages are not included (see `system.versions`).
    """
    return {
        "device": device,
        "processor": torch.backends.cpu.get_cpu_capability(),
        "torch threads": str(torch.get_num_threads()),
    }
