"""A training in a process of its own that learns in turns and says what each turn has taken.

    python -m benchmarks.trainings.counted CONFIG FOLDER UPDATES [KEY=VALUE ...]

It prints "settled". Then it reads a line before each turn, learns for so many updates, and prints a
`Turn` as JSON.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.trainings.ours import settled_session
from benchmarks.way import ROOT
from game_rl.config.loader import load_config
from game_rl.files.run_dir import RunDir


class Turn(NamedTuple):
    """What a turn has taken.

    Attributes:
        cpu_s: CPU time in seconds, that of the workers included.
        timesteps: played in it.
        done: timesteps played so far.
        weights: sha256 of the policy's weights after it.
    """

    cpu_s: float
    timesteps: int
    done: int
    weights: str


class CountedTraining(subprocess.Popen[str]):
    """Starts such a training; as a context manager it waits for its end.

    Args:
        words: `key=value` texts for its config.
        variables: environment variables of its own.
    """

    def __init__(
        self,
        config: str,
        folder: str,
        words: Sequence[str],
        *,
        updates: int,
        variables: Mapping[str, str] = {},
    ) -> None:
        arguments = [str(ROOT / config), folder, str(updates), "device=cpu", *words]
        super().__init__(
            [sys.executable, "-m", "benchmarks.trainings.counted", *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | dict(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def wait_until_settled(self) -> None:
        assert self.stdout is not None
        if self.stdout.readline() != "settled\n":
            raise SystemExit("a training has failed; what it printed stands above")

    def turn(self) -> Turn:
        """Let it learn for one turn."""
        assert self.stdin is not None
        assert self.stdout is not None
        self.stdin.write("\n")
        self.stdin.flush()
        found: list[Any] = json.loads(self.stdout.readline())
        return Turn(*found)


def _cpu_s() -> float:
    training = psutil.Process()
    times = [process.cpu_times() for process in (training, *training.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def _learn_in_turns(file: str, folder: str, updates: str, *overrides: str) -> None:
    config = load_config(Path(file), overrides)
    with settled_session(config, RunDir(Path(folder))) as session:
        print("settled", flush=True)
        for _ in sys.stdin:
            first = session.num_timesteps
            before = _cpu_s()
            session.learn_until(first + int(updates) * config.rollout_timesteps)
            took = _cpu_s() - before
            weights = hashlib.sha256()
            for values in session.model.policy.state_dict().values():
                weights.update(values.cpu().numpy().tobytes())
            done = session.num_timesteps
            print(json.dumps(Turn(took, done - first, done, weights.hexdigest())), flush=True)


if __name__ == "__main__":
    _learn_in_turns(*sys.argv[1:])
