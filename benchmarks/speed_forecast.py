"""Accuracy of the speed forecast: `preflight --probe` compared with real trainings.

    python -m benchmarks.speed_forecast [--only N] [--seconds 30]

For each row the probe runs first, then a training of about `--seconds`, both with the command that
users run and each in a process of its own. Timesteps per second cover collecting and updating. For
the training they are computed from the times at which it wrote its curves, from the second update
to the last. Run this on an idle machine. A GPU, if there is one, is not used.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

_CONFIGS = Path(__file__).parents[1] / "configs"
_FEWEST_UPDATES = 4
_FORECAST_UPDATES = 100_000
_TOLERANCE = 0.20
_HEADER = (
    "   envs steps skip size colour stack batch epochs precision | "
    "forecast measured  error | collecting, forecast"
)


@dataclass(frozen=True)
class Case:
    """A row with PPO on the bundled game."""

    n_envs: int
    n_steps: int
    frame_skip: int
    size: str
    colour: str
    stack: int
    batch: int
    epochs: int
    precision: str

    config: ClassVar = "duel_ppo.yaml"
    learns_from: ClassVar = 0

    @property
    def rollout(self) -> int:
        return self.n_envs * self.n_steps

    def values(self) -> dict[str, Any]:
        return {
            "env.n_envs": self.n_envs,
            "env.frame_skip": self.frame_skip,
            "env.frame_stack": self.stack,
            "env.observation.size": self.size,
            "env.observation.colour": self.colour,
            "algorithm.n_steps": self.n_steps,
            "algorithm.batch_size": self.batch,
            "algorithm.n_epochs": self.epochs,
            "algorithm.precision": self.precision,
        }

    def __str__(self) -> str:
        return (
            f"{self.n_envs:>4} {self.n_steps:>5} {self.frame_skip:>4} {self.size:>4} "
            f"{self.colour:>6} {self.stack:>5} {self.batch:>5} {self.epochs:>6} "
            f"{self.precision:>9}"
        )


@dataclass(frozen=True)
class Shipped:
    """A row with a bundled config: of another algorithm, or with a memory."""

    config: str
    rollout: int
    learns_from: int = 0
    changes: dict[str, Any] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        learning = {"algorithm.learning_starts": self.learns_from} if self.learns_from else {}
        return learning | self.changes

    def __str__(self) -> str:
        kinds = [str(value) for key, value in self.changes.items() if "memory" in key]
        return f"{' '.join([self.config, *kinds]):<56}"


CASES: tuple[Case | Shipped, ...] = (
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
    Shipped("duel_pqn.yaml", rollout=1_024),
    Shipped("duel_dqn.yaml", rollout=32, learns_from=1_024),
    Shipped("courier_memory_ppo.yaml", rollout=4_096),
    Shipped(
        "duel_ppo.yaml",
        rollout=1_024,
        changes={"env.frame_stack": 1, "algorithm.memory": "{kind: lstm}"},
    ),
)


def forecast(case: Case | Shipped, run_dir: Path) -> dict[str, Any]:
    """Run a preflight and return the `speed` of its report."""
    report: dict[str, Any] = json.loads(
        _call("preflight", case, run_dir, _FORECAST_UPDATES, "--probe", "--json")
    )
    speed: dict[str, Any] = report["speed"]
    return speed


def train(case: Case | Shipped, run_dir: Path, updates: int) -> float:
    """Return a training's timesteps per second, without start-up and evaluations."""
    _call("train", case, run_dir, updates)
    curves = EventAccumulator(str(run_dir / "tensorboard")).Reload()
    written = [(event.wall_time, event.step) for event in curves.Scalars("time/fps")]
    (first_s, first), *_, (last_s, last) = (
        point for point in written[1:] if point[1] > case.learns_from
    )
    return (last - first) / (last_s - first_s)


def _call(command: str, case: Case | Shipped, run_dir: Path, updates: int, *arguments: str) -> str:
    timesteps = updates * case.rollout
    values = {
        "run_dir": run_dir,
        "device": "cpu",
        "total_timesteps": timesteps,
        "evaluation.every_timesteps": timesteps,
        "evaluation.episodes": 4,
        "evaluation.final_episodes": 4,
        "checkpoints.every_timesteps": timesteps,
        "recording.episodes": 0,
        **case.values(),
    }
    overrides = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
    config = str(_CONFIGS / case.config)
    words = [sys.executable, "-m", "game_rl", command, "--config", config, *overrides, *arguments]
    result = subprocess.run(words, capture_output=True, encoding="utf-8", check=False)
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
            predicted = _FORECAST_UPDATES * case.rollout / (collecting + seconds["update"])
            updates = max(round(predicted * options.seconds / case.rollout), _FEWEST_UPDATES)
            measured = train(case, Path(folder) / "run", updates)
        errors.append(predicted / measured - 1)
        share = collecting / (collecting + seconds["update"])
        mark = "" if abs(errors[-1]) <= _TOLERANCE else "  <--"
        print(
            f"{number:>2} {case} | {predicted:>8,.0f} {measured:>8,.0f} {errors[-1]:>+6.1%} | "
            f"{share:>4.0%}{mark}",
            flush=True,
        )
    good = sum(abs(error) <= _TOLERANCE for error in errors)
    print(
        f"{good} of {len(errors)} within {_TOLERANCE:.0%}; "
        f"median error {median(map(abs, errors)):.1%}, largest {max(map(abs, errors)):.1%}"
    )


if __name__ == "__main__":
    main()
