"""The arms of an experiment: each arm and seed has a run directory and a small JSON result.

All work is done by `game-rl` in separate processes, one at a time. A rerun of the same plan in the
same folder skips tasks that have a result and resumes those that have begun.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from game_rl.errors import GameRLError, UsageError
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir

Result = dict[str, object]

_SAVING_S = 60  # time that a training may take to write its last checkpoint
_GOES_ON = "the same command goes on from here"


@dataclass(frozen=True)
class Task:
    """A part of an experiment, with a result of its own.

    Attributes:
        name: name of the result's file, such as `offline_teacher_seed0`.
        work_s: guessed seconds on two idle cores; only ratios matter once some tasks are done.
        do: function that starts or continues the task and returns its result.
    """

    name: str
    work_s: float
    do: Callable[[], Result]


@dataclass(frozen=True)
class Experiment:
    """A folder with a plan, its results and its run directories."""

    folder: Path
    plan: Mapping[str, object]
    results: dict[str, Result] = field(default_factory=dict)

    def open(self) -> None:
        """Read the results so far; raise UsageError if the folder has another plan."""
        self._results.mkdir(parents=True, exist_ok=True)
        file, plan = self.folder / "plan.json", json.loads(json.dumps(self.plan))
        if not file.exists():
            write_atomic(file, json.dumps(plan, indent=2) + "\n")
        saved = json.loads(file.read_text(encoding="utf-8"))
        changed = [key for key in {**saved, **plan} if saved.get(key) != plan.get(key)]
        if changed:
            raise UsageError(
                f"{self.folder} has another experiment: {changed[0]} is {saved.get(changed[0])!r} "
                f"there and {plan.get(changed[0])!r} here; name another --folder"
            )
        for path in self._results.glob("*.json"):
            self.results[path.stem] = json.loads(path.read_text(encoding="utf-8"))

    def run(self, tasks: Sequence[Task]) -> None:
        """Do the tasks without a result, one after the other."""
        for number, task in enumerate(tasks, start=1):
            if task.name in self.results:
                continue
            print(f"[{number}/{len(tasks)}] {task.name}; {self._left(tasks)}", flush=True)
            began_s = time.monotonic()
            result = task.do() | {"seconds": round(time.monotonic() - began_s, 1)}
            write_atomic(self._results / f"{task.name}.json", json.dumps(result, indent=2) + "\n")
            self.results[task.name] = result

    def run_dir(self, name: str) -> Path:
        return self.folder / "runs" / name

    @property
    def _results(self) -> Path:
        return self.folder / "results"

    def _left(self, tasks: Sequence[Task]) -> str:
        """Estimate the time left from the finished tasks.

        A task that was interrupted counts with less than the time it took.
        """
        done = [task for task in tasks if task.name in self.results]
        took_s = sum(_number(self.results[task.name]["seconds"]) for task in done)
        pace = took_s / sum(task.work_s for task in done) if done else 1.0
        left_s = pace * sum(task.work_s for task in tasks if task not in done)
        source = f"by {len(done)} done" if done else "guessed for two idle cores"
        return f"about {left_s / 60:.0f} minutes left ({source})"


def bring_to(run_dir: Path, first: Sequence[str], *, until: int | None = None) -> None:
    """Train with `game-rl train` and the arguments `first`, or resume the run if it exists.

    Args:
        run_dir: directory of the run.
        first: arguments that begin the run.
        until: timestep at which to stop, or None for the run's end.
    """
    run = RunDir(run_dir)
    if is_ended(run) or (until is not None and is_at(run, until)):
        return
    begin = ["--resume", str(run_dir)] if run.exists() else [*first, "--set", f"run_dir={run_dir}"]
    stop = [] if until is None else ["--until", str(until)]
    game_rl("train", *begin, *stop, log=run_dir.with_name(f"{run_dir.name}.log"))


def is_at(run: RunDir, timesteps: int) -> bool:
    found = run.checkpoints_newest_first()
    return bool(found) and int(found[0].name) >= timesteps


def is_ended(run: RunDir) -> bool:
    """Return whether the run has had its final evaluation."""
    if not run.events.exists():
        return False
    lines = run.events.read_text(encoding="utf-8").splitlines()
    return any('"event":"ended"' in line and '"completed"' in line for line in lines[-1:])


def newest(run_dir: Path) -> int:
    """Return the timesteps of the newest checkpoint."""
    return int(RunDir(run_dir).checkpoints_newest_first()[0].name)


def game_rl(*arguments: str, log: Path | None = None) -> str:
    """Run `game-rl` and return its output, which is appended to `log` instead if there is one.

    Raises:
        GameRLError: the command failed.
    """
    if log is None:
        returncode, output, errors = _finished(arguments, subprocess.PIPE, subprocess.PIPE)
    else:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            told = (*arguments, "--log", "json")
            returncode, output, _ = _finished(told, file, subprocess.STDOUT)
        errors = f"see the end of {log}"
    if returncode:
        words = f"game-rl {arguments[0]} ended with exit code {returncode}"
        raise GameRLError(f"{words}: {errors.strip()}; {_GOES_ON}")
    return output


def _finished(arguments: Sequence[str], output: int | IO[str], errors: int) -> tuple[int, str, str]:
    """Return exit code, output and errors; on an interrupt, wait until the training has saved."""
    command = [sys.executable, "-m", "game_rl", *arguments]
    with subprocess.Popen(command, stdout=output, stderr=errors, encoding="utf-8") as process:
        try:
            printed = process.communicate()
        except BaseException as reason:
            if not isinstance(reason, KeyboardInterrupt):  # the terminal sends Ctrl-C to both
                process.terminate()
            try:
                process.wait(timeout=_SAVING_S)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    return process.returncode, printed[0] or "", printed[1] or ""


def settings(**values: object) -> list[str]:
    """Return a `--set` for each value; `__` in a key stands for a dot."""
    words = (f"{key.replace('__', '.')}={value}" for key, value in values.items())
    return [argument for word in words for argument in ("--set", word)]


def lineage(run_dir: Path) -> Result:
    """Return the timesteps and frames played by the run alone and by its whole lineage."""
    account = json.loads(game_rl("lineage", str(run_dir), "--json"))
    return {
        "own_timesteps": account["run"]["played_timesteps"],
        "own_frames": account["run"]["frames"],
        "total_timesteps": account["total_timesteps"],
        "total_frames": account["total_frames"],
    }


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


@contextmanager
def game_rl_errors() -> Iterator[None]:
    """Exit with an error message instead of a traceback; SIGTERM is treated like Ctrl-C."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped; " + _GOES_ON))
    try:
        yield
    except GameRLError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped; " + _GOES_ON)
