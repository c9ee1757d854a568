"""What a gradient takes its time for, by torch's profiler.

    python -m benchmarks.gradient_profile [--precisions float32 bf16]

The gradient of `benchmarks.torch_compile`, not compiled: PPO's loss of 128 samples in one thread.
Unpacking the samples and the optimiser's step are not in it.
"""

import argparse
from collections import Counter
from typing import get_args

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from benchmarks.torch_compile import gradient_steps
from game_rl.algorithms.networks import Precision
from game_rl.allocator import keep_freed_memory

_STEPS = 10
_GROUPS = {
    "convolutions backwards": ("aten::convolution_backward",),
    "convolutions forwards": ("aten::mkldnn_convolution",),
    "copies and conversions": ("aten::copy_",),
    "ReLUs": ("aten::clamp_min_", "aten::threshold_backward"),
    "linear layers": ("aten::mm", "aten::addmm"),
}
_GROUP_OF = {operation: group for group, names in _GROUPS.items() for operation in names}


def cpu_ms_of_groups(precision: Precision) -> Counter[str]:
    """Of one gradient; `others` are operations of no group, and what lies between operations."""
    gradient, _ = gradient_steps(precision)
    found: Counter[str] = Counter()

    def add_up(profiler: profile) -> None:
        for event in profiler.key_averages():
            found[_GROUP_OF.get(event.key, "others")] += event.self_cpu_time_total / 1e3 / _STEPS

    # its first steps are slow: a copy takes several times as long
    steps = schedule(wait=0, warmup=_STEPS, active=_STEPS, repeat=1)
    with profile(
        activities=[ProfilerActivity.CPU], schedule=steps, on_trace_ready=add_up, acc_events=True
    ) as profiler:
        for _ in range(2 * _STEPS):
            gradient()
            profiler.step()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    precisions = get_args(Precision)
    parser.add_argument("--precisions", nargs="+", choices=precisions, default=precisions)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()  # as trainings do
    for precision in arguments.precisions:
        found = cpu_ms_of_groups(precision)
        print(f"{precision}: {found.total():.1f} ms a gradient")
        for group, ms in found.most_common():
            print(f"  {group:<24} {ms:>5.1f} ms {ms / found.total():>4.0%}")


if __name__ == "__main__":
    main()
