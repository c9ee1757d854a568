"""What a gradient takes its time for, by torch's profiler.

    python -m benchmarks.gradient_profile [--precisions float32 bf16]

The gradient of `benchmarks.torch_compile`, not compiled: PPO's loss of 128 samples in one thread.
Unpacking the samples and the optimiser's step are not in it. The last lines say what learning from
a timestep would take on all cores if nothing but torch's convolutions and linear layers took time,
and if their operations had the speed of large square matrices: a yardstick and no bound, as a
convolution may be somewhat faster and there are ways with fewer operations.
"""

import argparse
import time
from collections import Counter
from statistics import median
from typing import get_args

import torch
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.torch_compile import SAMPLES, gradient_steps
from benchmarks.trainings.work import Work
from game_rl.algorithms.networks import Precision
from game_rl.system.allocator import keep_freed_memory
from game_rl.system.machine import effective_cpus

_STEPS = 10
_MATRIX = 1536  # rows
_GROUPS = {
    "convolutions backwards": ("aten::convolution_backward",),
    "convolutions forwards": ("aten::mkldnn_convolution",),
    "copies and conversions": ("aten::copy_",),
    "ReLUs": ("aten::clamp_min_", "aten::threshold_backward"),
    "linear layers": ("aten::mm", "aten::addmm"),
}
_MULTIPLYING = ("convolutions backwards", "convolutions forwards", "linear layers")
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


def operations_of_gradient(precision: Precision) -> int:
    """Multiplications and additions, as torch counts those of convolutions and matrices."""
    gradient, _ = gradient_steps(precision)
    with FlopCounterMode(display=False) as counter:
        gradient()
    return int(counter.get_total_flops())


def operations_per_s(precision: Precision) -> float:
    """Of one thread that multiplies large square matrices; its median speed."""
    number = torch.bfloat16 if precision == "bf16" else torch.float32
    matrix = torch.randn(_MATRIX, _MATRIX).to(number)
    seconds = []
    for _ in range(3 * _STEPS):
        started = time.perf_counter()
        torch.mm(matrix, matrix)
        seconds.append(time.perf_counter() - started)
    return 2 * _MATRIX**3 / median(seconds)


def print_without_the_rest(precision: Precision, ms_of_groups: Counter[str]) -> None:
    gradient_ms = ms_of_groups.total()
    layers_ms = sum(ms_of_groups[group] for group in _MULTIPLYING)
    operations, speed = operations_of_gradient(precision), operations_per_s(precision)
    matrices_ms = operations / speed * 1e3
    work, cpus = Work(), effective_cpus()
    matrices = f"{operations / 1e9:.2f} billion operations at {speed / 1e9:,.0f} billion a second"
    print(f"  {work.n_epochs} epochs of a timestep on {cpus} cores, if nothing else took time")
    for what, ms in (("convolutions and linear layers", layers_ms), (matrices, matrices_ms)):
        us = ms * 1e3 / SAMPLES * work.n_epochs / cpus
        print(f"    {us:>5,.0f} us: {what}, {ms:.1f} ms ({ms / gradient_ms:.0%})")


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
        print_without_the_rest(precision, found)


if __name__ == "__main__":
    main()
