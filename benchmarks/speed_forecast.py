"""How true the forecast of speed is: real trainings against what `preflight --probe` said before.

    python -m benchmarks.speed_forecast [--only N] [--seconds 30]

For each row the probe runs first, then a training of about `--seconds`, both as a user starts them
and each in a process of its own. Timesteps per second are those of collecting and updating: the
training's are told by the times at which it wrote its curves, from the second update to the last.
Run it on a quiet machine. A GPU, if there is one, is not used.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

_CONFIG = Path(__file__).parents[1] / "configs" / "duel_ppo.yaml"
_FEWEST_UPDATES = 4
_TOLERANCE = 0.20
_HEADER = (
    "   envs steps skip size colour stack batch epochs precision | "
    "forecast measured  error | collecting, forecast"
)


@dataclass(frozen=True)
class Case:
    n_envs: int
    n_steps: int
    frame_skip: int
    size: str
    colour: str
    stack: int
    batch: int
    epochs: int
    precision: str

    @property
    def rollout(self) -> int:
        return self.n_envs * self.n_steps

    def overrides(self, run_dir: Path, updates: int) -> list[str]:
        values = {
            "run_dir": run_dir,
            "device": "cpu",
            "total_timesteps": updates * self.rollout,
            "env.n_envs": self.n_envs,
            "env.frame_skip": self.frame_skip,
            "env.frame_stack": self.stack,
            "env.observation.size": self.size,
            "env.observation.colour": self.colour,
            "algorithm.n_steps": self.n_steps,
            "algorithm.batch_size": self.batch,
            "algorithm.n_epochs": self.epochs,
            "algorithm.precision": self.precision,
            "evaluation.every_timesteps": updates * self.rollout,
            "evaluation.episodes": 4,
            "evaluation.final_episodes": 4,
            "checkpoints.every_timesteps": updates * self.rollout,
            "recording.episodes": 0,
        }
        return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


CASES = (
    Case(8, 128, 8, "half", "grey", 4, 256, 4, "bf16"),
    Case(8, 128, 8, "half", "grey", 4, 256, 4, "float32"),
    Case(8, 256, 4, "half", "grey", 4, 64, 4, "float32"),
    Case(2, 256, 4, "half", "grey", 4, 512, 3, "bf16"),
    Case(1, 128, 4, "half", "grey", 4, 64, 1, "bf16"),
    Case(16, 128, 4, "half", "grey", 2, 512, 1, "bf16"),
    Case(64, 32, 4, "half", "grey", 4, 256, 2, "bf16"),
    Case(4, 512, 24, "half", "grey", 4, 1024, 2, "float32"),
    Case(4, 128, 4, "half", "rgb", 4, 256, 2, "float32"),
    Case(8, 128, 4, "full", "grey", 4, 256, 2, "bf16"),
    Case(2, 512, 4, "full", "rgb", 4, 1024, 1, "bf16"),
    Case(8, 256, 2, "full", "grey", 1, 128, 1, "float32"),
)


def forecast(case: Case, run_dir: Path) -> dict[str, Any]:
    """The `speed` of a preflight."""
    command = ["preflight", "--probe", "--json", *case.overrides(run_dir, 1_000)]
    report: dict[str, Any] = json.loads(_call(*command))
    speed: dict[str, Any] = report["speed"]
    return speed


def train(case: Case, run_dir: Path, updates: int) -> float:
    """Timesteps per second of a training, without start-up and evaluations."""
    _call("train", *case.overrides(run_dir, updates))
    curves = EventAccumulator(str(run_dir / "tensorboard")).Reload()
    written = [(event.wall_time, event.step) for event in curves.Scalars("time/fps")][1:]
    (first_s, first), (last_s, last) = written[0], written[-1]
    return (last - first) / (last_s - first_s)


def _call(command: str, *arguments: str) -> str:
    words = [sys.executable, "-m", "game_rl", command, "--config", str(_CONFIG), *arguments]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{result.stdout}\n{result.stderr}")
    return result.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the rows to run")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each training")
    options = parser.parse_args()
    print(_HEADER)
    errors = []
    for number, case in enumerate(CASES):
        if options.only and number not in options.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            speed = forecast(case, Path(folder) / "run")
            seconds = speed["seconds"]
            collecting = seconds["emulation"] + seconds["inference"]
            predicted = 1_000 * case.rollout / (collecting + seconds["update"])
            updates = max(round(predicted * options.seconds / case.rollout), _FEWEST_UPDATES)
            measured = train(case, Path(folder) / "run", updates)
        errors.append(predicted / measured - 1)
        share = collecting / (collecting + seconds["update"])
        mark = "" if abs(errors[-1]) <= _TOLERANCE else "  <--"
        print(
            f"{_inputs(number, case)} | {predicted:>8,.0f} {measured:>8,.0f} {errors[-1]:>+6.1%} | "
            f"{share:>4.0%}{mark}",
            flush=True,
        )
    good = sum(abs(error) <= _TOLERANCE for error in errors)
    print(
        f"{good} of {len(errors)} within {_TOLERANCE:.0%}; "
        f"median error {median(map(abs, errors)):.1%}, largest {max(map(abs, errors)):.1%}"
    )


def _inputs(number: int, case: Case) -> str:
    return (
        f"{number:>2} {case.n_envs:>4} {case.n_steps:>5} {case.frame_skip:>4} {case.size:>4} "
        f"{case.colour:>6} {case.stack:>5} {case.batch:>5} {case.epochs:>6} {case.precision:>9}"
    )


if __name__ == "__main__":
    main()
