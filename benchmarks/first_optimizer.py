"""The first optimiser of a process: torch's, which imports torch's compiler, and ours.

    python -m benchmarks.first_optimizer [--rounds 5]

Each in a new process that has imported torch and game_rl's networks: processor time, and the
memory (proportional set size) that it adds.
"""

import argparse
import subprocess
import sys
from statistics import median

_CLASSES = {"torch": "torch.optim.Adam", "ours": "game_rl.algorithms.optimizers.Adam"}
_CODE = """
import time, torch, game_rl.algorithms.networks
from game_rl.system.machine import process_tree_pss_bytes as pss_bytes
weights = [torch.nn.Parameter(torch.zeros(1))]
pss, started = pss_bytes(), time.process_time()
optimizer = {name}(weights)
weights[0].grad = torch.ones(1)
optimizer.step()
print(time.process_time() - started, pss_bytes() - pss)
"""


def seconds_and_bytes(name: str) -> tuple[float, float]:
    code = _CODE.format(name=name)
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    seconds, n_bytes = output.split()
    return float(seconds), float(n_bytes)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    found = {
        who: [seconds_and_bytes(name) for _ in range(arguments.rounds)]
        for who, name in _CLASSES.items()
    }
    for who, rounds in found.items():
        seconds, sizes = zip(*rounds, strict=True)
        print(
            f"{who:<6} {median(seconds):>7.3f} s ({min(seconds):.3f} - {max(seconds):.3f})"
            f"  {median(sizes) / 1e6:>6.1f} MB ({min(sizes) / 1e6:.1f} - {max(sizes) / 1e6:.1f})"
        )


if __name__ == "__main__":
    main()
