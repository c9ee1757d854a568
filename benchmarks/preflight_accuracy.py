"""Accuracy of the preflight: its forecast compared with short real runs and experiments.

    python -m benchmarks.preflight_accuracy [--only N ...] [--drawn 10] [--seed 0] [--experiments]
    python -m benchmarks.preflight_accuracy --device cuda  # on a machine with a GPU

Each run, in a process of its own, makes some updates of a bundled game with an evaluation,
checkpoints and a clip. Its footprint.json has the memory peak of the whole process tree (the sum of
proportional set sizes, sampled throughout) and the bytes of its run directory without its Lake. The
table compares both with the preflight's forecast. The constants of `game_rl.preflight.calibration`
were fitted to the first 36 rows. The later rows, marked "?", were not part of the fit, although the
first six of them had been run and looked at by then. `--drawn` adds rows with values that are drawn
at random. An experiment's memory is watched from outside, and its folder is counted at its end.

Memory pages that other programs on the machine also map (another torch, say) count only in part, so
run this on an idle machine. With --device cuda, the table has what torch's allocator reserves of
the GPU's memory instead of RAM. With ONEDNN_MAX_CPU_ISA=AVX2 in the environment, rows in bfloat16
are those of a processor without AVX512.
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

from benchmarks.memory import measure
from benchmarks.preflight_cases import (
    CASES,
    EXPERIMENTS,
    Case,
    ExperimentCase,
    drawn_cases,
    source_words,
)

_HEADER = (
    "    game, algorithm, parts           envs steps size colour stack batch epochs precision micro"
    " |  RAM MB forecast  error | disk MB forecast  error"
)
_RAM_TOLERANCE = 0.08
_DISK_TOLERANCE = 0.02

_FITTED = 36
_TRAIN = Path(__file__).parents[1] / "train.py"  # what users start; workers import it too


@dataclass(frozen=True)
class Outcome:
    """The errors of one row, relative to the measured values."""

    number: int
    ram_error: float
    disk_error: float
    is_short: bool = False

    @property
    def is_good(self) -> bool:
        return self.ram_error <= _RAM_TOLERANCE and self.disk_error <= _DISK_TOLERANCE

    @property
    def is_held_out(self) -> bool:
        return self.number >= _FITTED


def train(*words: str) -> None:
    """Run `train.py` with these arguments to its end."""
    command = [sys.executable, str(_TRAIN), *words]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if result.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{result.stdout}\n{result.stderr}")


def run(case: Case, run_dir: Path, source: Path, device: str) -> dict[str, Any]:
    """Run a training of `case` and return its footprint.json."""
    if case.source is not None and not source.exists():
        train(*source_words(source))
    train("--config", str(case.path), *case.overrides(run_dir, source, device=device))
    footprint: dict[str, Any] = json.loads((run_dir / "footprint.json").read_text(encoding="utf-8"))
    return footprint


def run_experiment(case: ExperimentCase, run_dir: Path) -> tuple[dict[str, float], ...]:
    """Run an experiment; return RAM and disk, predicted and measured."""
    found = measure([sys.executable, str(_TRAIN), *case.words(run_dir)])
    predicted = json.loads((run_dir / "preflight.json").read_text(encoding="utf-8"))
    ram, disk = predicted["ram"]["predicted_peak_bytes"], predicted["disk"]["predicted_total_bytes"]
    stats = (path.stat() for path in run_dir.rglob("*") if path.is_file())
    files = {stat.st_ino: stat.st_size for stat in stats}  # a linked one counts once
    return _compared(ram, found.peak_bytes), _compared(disk, sum(files.values()))


def _compared(predicted: int, measured: int) -> dict[str, float]:
    return {"predicted": predicted, "measured": measured, "error": predicted / measured - 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the rows to run")
    parser.add_argument("--drawn", type=int, default=0, help="rows with values drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn rows")
    parser.add_argument("--experiments", action="store_true", help="only populations and mixtures")
    parser.add_argument(
        "--device", default="cpu", help="of the network; on a GPU, its memory is compared"
    )
    arguments = parser.parse_args()
    if arguments.experiments:
        show_experiments()
        return
    is_on_gpu = arguments.device != "cpu"
    memory = "vram_reserved_bytes" if is_on_gpu else "ram_peak_bytes"
    print(_HEADER.replace(" RAM", "VRAM") if is_on_gpu else _HEADER)
    outcomes = []
    cases = [*CASES, *drawn_cases(arguments.drawn, arguments.seed)]
    fixed = [] if arguments.drawn and arguments.only is None else range(len(CASES))
    wanted = arguments.only or [*fixed, *range(len(CASES), len(cases))]
    with tempfile.TemporaryDirectory() as folder:
        for number in wanted:
            case = cases[number]
            run_dir = Path(folder) / f"run_{number}"
            footprint = run(case, run_dir, Path(folder) / "source", arguments.device)
            ram, disk = footprint[memory], footprint["disk_total_bytes"]
            outcome = Outcome(number, abs(ram["error"]), abs(disk["error"]), case.is_short)
            outcomes.append(outcome)
            mark = "" if outcome.is_good else "  <--"
            print(f"{_inputs(number, case)} | {_words(ram)} | {_words(disk)}{mark}", flush=True)
    print(_summary("of three updates and more", [o for o in outcomes if not o.is_short]))
    print(_summary("shorter", [o for o in outcomes if o.is_short]))
    print(_summary("held out", [outcome for outcome in outcomes if outcome.is_held_out]))


def show_experiments() -> None:
    """Run every experiment, and print a line for each."""
    print(f"{'experiment':<24} |  RAM MB forecast  error | disk MB forecast  error")
    for case in EXPERIMENTS:
        with tempfile.TemporaryDirectory() as folder:
            ram, disk = run_experiment(case, Path(folder) / "run")
        print(f"{case.name:<24} | {_words(ram)} | {_words(disk)}", flush=True)


def _inputs(number: int, case: Case) -> str:
    mark = "?" if number >= _FITTED else " "
    return (
        f"{number:>2}{mark} {case.name:<31} {case.n_envs:>4} {case.n_steps:>5} {case.size:>4} "
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
