"""Accuracy of the preflight: its forecast compared with short real runs.

    python -m benchmarks.preflight_accuracy [--only N]

Each run, in a process of its own, makes some updates of a bundled game with an evaluation,
checkpoints and a clip. Its footprint.json has the memory peak of the whole process tree (the sum of
proportional set sizes, sampled throughout) and the bytes of its run directory without its Lake. The
table compares both with the preflight's forecast. The constants of `game_rl.preflight.calibration`
were fitted to the first 36 rows. The later rows, marked "?", were not part of the fit, although the
first six of them had been run and looked at by then.

Memory pages that other programs on the machine also map (another torch, say) count only in part, so
run this on an idle machine. A GPU, if there is one, is not used.
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
from typing import Any

from benchmarks.preflight_cases import CASES, Case

_HEADER = (
    "    game, algorithm   envs steps size colour stack batch epochs precision micro | "
    " RAM MB forecast  error | disk MB forecast  error"
)
_RAM_TOLERANCE = 0.10
_DISK_TOLERANCE = 0.02

_FITTED = 36
_TRAIN = Path(__file__).parents[1] / "train.py"  # what users start; workers import it too


@dataclass(frozen=True)
class Outcome:
    """The errors of one row, relative to the measured values."""

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
    """Run a training of `case` and return its footprint.json."""
    command = [sys.executable, str(_TRAIN), "--config", str(case.path)]
    result = subprocess.run(
        [*command, *case.overrides(run_dir)], capture_output=True, encoding="utf-8", check=False
    )
    if result.returncode:
        raise SystemExit(f"{case} failed:\n{result.stdout}\n{result.stderr}")
    footprint: dict[str, Any] = json.loads((run_dir / "footprint.json").read_text(encoding="utf-8"))
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
        f"{number:>2}{mark} {case.name:<16} {case.n_envs:>4} {case.n_steps:>5} {case.size:>4} "
        f"{case.colour:>6} {case.stack:>5} {case.batch:>5} {case.epochs:>6} {case.precision:>9} "
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
