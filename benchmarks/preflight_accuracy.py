"""How true the preflight is: short real runs, each in a process of its own, against its forecast.

    python -m benchmarks.preflight_accuracy [--only N]

Each run makes some updates of the bundled game with an evaluation, checkpoints and a clip, and
writes its footprint.json: the memory peak of the whole process tree (summed proportional set size,
sampled all along) and the bytes of its run directory. The table compares both with what the
preflight said. Constants of `game_rl.preflight.calibration` were fitted to the first 36 rows; the
rows after them, marked "?", had been run and looked at by then, but had no part in the fit.

Pages that other programs on the machine map too (another torch, say) count only in part, so run it
on a quiet machine. A GPU, if there is one, is not used.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

_CONFIG = Path(__file__).parents[1] / "configs" / "duel_ppo.yaml"
_GRADIENT_STEPS = 12  # the heap has its size by then
_FEWEST_UPDATES, _MOST_TIMESTEPS = 3, 20_000
_HEADER = (
    "    envs steps size colour stack batch epochs precision micro | "
    " RAM MB forecast  error | disk MB forecast  error"
)
_RAM_TOLERANCE = 0.10
_DISK_TOLERANCE = 0.05


@dataclass(frozen=True)
class Case:
    n_envs: int
    n_steps: int
    size: str
    colour: str
    stack: int
    batch: int
    epochs: int
    precision: str = "float32"
    micro_batch: int | Literal["auto"] | None = None

    def overrides(self, run_dir: Path) -> list[str]:
        rollout = self.n_envs * self.n_steps
        wanted = _GRADIENT_STEPS // (self.epochs * (rollout // self.batch))
        updates = max(_FEWEST_UPDATES, min(wanted, _MOST_TIMESTEPS // rollout))
        values = {
            "run_dir": run_dir,
            "device": "cpu",
            "total_timesteps": updates * rollout,
            "env.n_envs": self.n_envs,
            "env.frame_stack": self.stack,
            "env.observation.size": self.size,
            "env.observation.colour": self.colour,
            "algorithm.n_steps": self.n_steps,
            "algorithm.batch_size": self.batch,
            "algorithm.n_epochs": self.epochs,
            "algorithm.precision": self.precision,
            "algorithm.micro_batch_size": self.micro_batch or "null",
            "evaluation.every_timesteps": updates * rollout,
            "evaluation.episodes": 4,
            "evaluation.final_episodes": 4,
            "checkpoints.every_timesteps": rollout,
        }
        return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


CASES = (
    Case(8, 256, "half", "grey", 4, 256, 4, "bf16"),
    Case(8, 128, "half", "grey", 4, 64, 2, "float32"),
    Case(2, 256, "half", "grey", 4, 512, 3, "bf16"),
    Case(4, 512, "half", "grey", 1, 1024, 2, "float32"),
    Case(8, 512, "half", "grey", 4, 1024, 2, "float32"),
    Case(8, 512, "half", "grey", 4, 2048, 1, "bf16"),
    Case(16, 128, "half", "grey", 2, 512, 4, "float32"),
    Case(1, 512, "half", "grey", 4, 128, 2, "bf16"),
    Case(4, 128, "half", "rgb", 4, 256, 2, "float32"),
    Case(4, 128, "full", "grey", 4, 64, 2, "bf16"),
    Case(8, 128, "full", "grey", 4, 256, 1, "float32"),
    Case(2, 512, "full", "grey", 2, 128, 2, "float32"),
    Case(4, 256, "full", "grey", 4, 1024, 1, "bf16"),
    Case(8, 256, "full", "grey", 4, 512, 1, "float32"),
    Case(2, 256, "full", "rgb", 4, 128, 2, "bf16"),
    Case(16, 256, "half", "grey", 4, 4096, 1, "float32"),
    Case(32, 64, "half", "grey", 4, 512, 2, "bf16"),
    Case(64, 32, "half", "grey", 4, 256, 1, "float32"),
    Case(2, 1024, "half", "rgb", 2, 256, 2, "bf16"),
    Case(12, 128, "half", "grey", 3, 384, 3, "float32"),
    Case(2, 512, "full", "rgb", 4, 256, 1, "float32"),
    Case(8, 256, "full", "grey", 4, 128, 1, "bf16"),
    Case(16, 64, "full", "grey", 1, 1024, 2, "float32"),
    Case(6, 200, "full", "rgb", 1, 300, 2, "bf16"),
    Case(2, 2048, "full", "rgb", 4, 1024, 1, "float32", 128),
    Case(64, 64, "half", "grey", 4, 1024, 1, "bf16", 256),
    Case(4, 512, "full", "grey", 4, 1024, 1, "bf16", 256),
    Case(8, 512, "half", "grey", 4, 2048, 2, "float32", 512),
    Case(16, 128, "half", "rgb", 4, 2048, 2, "float32", 1024),
    Case(2, 512, "full", "rgb", 4, 1024, 1, "bf16", 64),
    Case(10, 96, "half", "grey", 4, 192, 2, "bf16"),
    Case(3, 400, "full", "grey", 3, 240, 2, "float32"),
    Case(24, 64, "half", "rgb", 3, 768, 1, "float32"),
    Case(5, 256, "full", "rgb", 2, 160, 1, "bf16"),
    Case(20, 100, "half", "grey", 2, 1000, 2, "bf16", 250),
    Case(6, 256, "full", "grey", 4, 768, 1, "float32", 96),
    Case(14, 112, "half", "grey", 4, 224, 2, "bf16"),
    Case(7, 180, "half", "rgb", 4, 420, 1, "bf16"),
    Case(2, 600, "full", "rgb", 3, 200, 1, "float32"),
    Case(9, 160, "full", "grey", 2, 480, 2, "bf16"),
    Case(40, 50, "half", "grey", 3, 500, 3, "float32", 125),
    Case(3, 900, "full", "rgb", 4, 900, 1, "bf16", 90),
)
_FITTED = 36


@dataclass(frozen=True)
class Outcome:
    """Errors of one row, as shares of what was measured."""

    number: int
    ram_error: float
    disk_error: float

    @property
    def is_good(self) -> bool:
        return self.ram_error <= _RAM_TOLERANCE and self.disk_error <= _DISK_TOLERANCE

    @property
    def is_held_out(self) -> bool:
        return self.number >= _FITTED


def run(case: Case, run_dir: Path) -> dict[str, Any]:
    """The footprint.json of a training of `case`."""
    command = [sys.executable, "-m", "game_rl", "train", "--config", str(_CONFIG)]
    result = subprocess.run(
        [*command, *case.overrides(run_dir)], capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise SystemExit(f"{case} failed:\n{result.stdout}\n{result.stderr}")
    footprint: dict[str, Any] = json.loads((run_dir / "footprint.json").read_text())
    return footprint


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the rows to run")
    only = parser.parse_args().only
    print(_HEADER)
    outcomes = []
    for number, case in enumerate(CASES):
        if only and number not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            footprint = run(case, Path(folder) / "run")
        ram, disk = footprint["ram_peak_bytes"], footprint["disk_total_bytes"]
        outcome = Outcome(number, abs(ram["error"]), abs(disk["error"]))
        outcomes.append(outcome)
        mark = "" if outcome.is_good else "  <--"
        print(f"{_inputs(number, case)} | {_words(ram)} | {_words(disk)}{mark}", flush=True)
    print(_summary("all", outcomes))
    print(_summary("held out", [outcome for outcome in outcomes if outcome.is_held_out]))


def _inputs(number: int, case: Case) -> str:
    mark = "?" if number >= _FITTED else " "
    return (
        f"{number:>2}{mark} {case.n_envs:>4} {case.n_steps:>5} {case.size:>4} {case.colour:>6} "
        f"{case.stack:>5} {case.batch:>5} {case.epochs:>6} {case.precision:>9} "
        f"{case.micro_batch or '':>5}"
    )


def _words(numbers: dict[str, float]) -> str:
    measured, predicted = numbers["measured"] / 1e6, numbers["predicted"] / 1e6
    return f"{measured:>7.1f} {predicted:>8.1f} {numbers['error']:>+6.1%}"


def _summary(name: str, outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return f"{name}: none"
    ram, disk = ([getattr(o, kind) for o in outcomes] for kind in ("ram_error", "disk_error"))
    return (
        f"{name}: {sum(outcome.is_good for outcome in outcomes)} of {len(outcomes)} within "
        f"{_RAM_TOLERANCE:.0%} of RAM and {_DISK_TOLERANCE:.0%} of disk; "
        f"RAM median {median(ram):.1%}, worst {max(ram):.1%}; disk worst {max(disk):.1%}"
    )


if __name__ == "__main__":
    main()
