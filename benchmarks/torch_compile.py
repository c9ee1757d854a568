"""Does `torch.compile` make a gradient step faster? Ours, as it is and compiled, in turns.

    python -m benchmarks.torch_compile [--precisions float32 bf16] [--rounds 12]

Needs a C++ compiler. Both compute the gradient of PPO's loss in LeanCnnPolicy for the same 128
samples in one thread, which is what each of two cores does of a minibatch of 256. Ratios are taken
within a round.
"""

import argparse
import os
import time
from collections.abc import Callable
from statistics import median
from typing import get_args

import numpy as np
import torch
from gymnasium import spaces

from game_rl.algorithms.networks import LeanCnnPolicy, Precision, policy_arguments
from game_rl.system.allocator import keep_freed_memory

SAMPLES = 128
_N_ACTIONS = 9
_STEPS = 10  # a round
_OBSERVATIONS = spaces.Box(0, 255, (4, 72, 80), np.uint8)

Gradients = tuple[torch.Tensor, ...]


def gradient_steps(precision: Precision) -> tuple[Callable[[], Gradients], Callable[[], Gradients]]:
    """The gradient of one batch: as it is, and compiled."""
    torch.manual_seed(0)
    policy = LeanCnnPolicy(
        _OBSERVATIONS, spaces.Discrete(_N_ACTIONS), lambda _: 0.0, **policy_arguments(precision)
    )
    observations = torch.randint(0, 255, (SAMPLES, *_OBSERVATIONS.shape), dtype=torch.uint8)
    actions = torch.randint(0, _N_ACTIONS, (SAMPLES,))
    parameters = list(policy.parameters())

    def loss() -> torch.Tensor:
        values, log_probs, entropies = policy.evaluate_actions(observations, actions)
        ratios = torch.exp(log_probs - log_probs.detach())
        return -ratios.mean() + 0.5 * values.square().mean() - 0.01 * entropies.mean()

    compiled = torch.compile(loss)
    return (
        lambda: torch.autograd.grad(loss(), parameters),
        lambda: torch.autograd.grad(compiled(), parameters),
    )


def seconds_of(step: Callable[[], Gradients]) -> float:
    started = time.perf_counter()
    for _ in range(_STEPS):
        step()
    return (time.perf_counter() - started) / _STEPS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    precisions = get_args(Precision)
    parser.add_argument("--precisions", nargs="+", choices=precisions, default=precisions)
    parser.add_argument("--rounds", type=int, default=12)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()  # as trainings do
    for precision in arguments.precisions:
        plain, compiled = gradient_steps(precision)
        started = time.perf_counter()
        pairs = zip(compiled(), plain(), strict=True)
        difference = max(float((a - b).abs().max()) for a, b in pairs)
        compile_s = time.perf_counter() - started
        rounds = [(seconds_of(plain), seconds_of(compiled)) for _ in range(arguments.rounds)]
        ratios = [a / b for a, b in rounds]
        print(
            f"{precision}: {median(a for a, _ in rounds) * 1e3:.1f} ms as it is, "
            f"{median(b for _, b in rounds) * 1e3:.1f} ms compiled, {median(ratios):.2f} times as "
            f"fast ({min(ratios):.2f} - {max(ratios):.2f}); compiling took {compile_s:.0f} s; "
            f"gradients differ by up to {difference:.0e} (load {os.getloadavg()[0]:.1f})"
        )


if __name__ == "__main__":
    main()
