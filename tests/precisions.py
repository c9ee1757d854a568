"""The number formats in which tests measure what torch takes."""

import pytest
import torch

from game_rl.system.machine import cpu_has_bf16

MULTIPLIES_BF16 = cpu_has_bf16() and torch.backends.cpu.get_cpu_capability() == "AVX512"
PRECISIONS = [
    "float32",
    pytest.param(
        "bf16",
        marks=pytest.mark.skipif(
            not MULTIPLIES_BF16,
            reason="this processor has no instructions that multiply bfloat16",
        ),
    ),
]
