"""Trainings with injected faults, and their comparison with an undisturbed one."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import psutil

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_folder import best_of
from game_rl.errors import CheckpointError
from game_rl.events.event_log import read_events
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.system.fork_server import ForkServer
from tests.explore.made_archives import write_way_to_the_right
from tests.faults.configs import (
    LONG,
    WITH_NOVELTY,
    WITH_PLAYED,
    Length,
    Setting,
    config_text,
    write_novel_game,
    write_played_episodes,
)

_OTHERS, _TEACHER = "others", "teacher"  # names of runs from which others learn
_EXPLORED = "explored"
_NOVEL = "novel"
_PLAYED = "played"
COMPARED = (
    "policy.safetensors",
    "optimizer.safetensors",
    "arrays.safetensors",
    "replay.safetensors",  # only of DQN
    "callbacks.json",  # only with callbacks of one's own
    "potentials.json",  # only with a reward from an exploration
    "pool.json",  # only with a pool
    "novelty.json",  # only with a reward of novelty
    "curiosity.json",  # only with curiosity
)
HANG_S = 180.0
_PLAIN = Setting()
_FAULTY_RUN = "tests.faults.faulty_run"
_IMPORTED = ("game_rl.cli.train_command", "game_rl.training.train", "game_rl.training.admission")
_BEGUN = re.compile(r"^\s*[\d,]+ / [\d,]+ |^offline [\d,]+/")


class Process(Protocol):
    """What a training needs of its process."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int: ...
    def kill(self) -> None: ...
    def send_signal(self, sig: int, /) -> None: ...
    def wait(self, timeout: float | None = None) -> object: ...


class ForkedProcess:
    """A training that is forked from a process which has imported what it needs.

    Its `returncode` kills what is left of its process group, so it comes after all other questions.
    """

    def __init__(self, starts: "WarmStarts", arguments: list[str], cpu: int, output: int) -> None:
        self._starts = starts
        with starts.lock:
            self._process = starts.server.fork(
                "tests.faults.forked_run", arguments, starts.environment, output
            )
        self.pid = self._process.pid
        os.sched_setaffinity(self.pid, {cpu})
        self._code: int | None = None

    @property
    def returncode(self) -> int:
        if self._code is None:
            with self._starts.lock:
                self._code = self._process.kill_and_wait()
        return self._code

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, sig: int, /) -> None:
        os.kill(self.pid, sig)  # it is not reaped yet, so its id is its own

    def wait(self, timeout: float | None = None) -> None:
        deadline = time.monotonic() + (HANG_S if timeout is None else timeout)
        while not self._process.has_ended():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired("the forked training", timeout or HANG_S)
            time.sleep(min(0.005, left_s))


class WarmStarts:
    """Starts trainings by forks of one process: most of a short training's time is imports."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.environment = _environment()
        self.server = ForkServer(_IMPORTED, self.environment)

    def close(self) -> None:
        self.server.close()


class Training:
    """A training process, with its output and the moment at which it began to train.

    Args:
        run_dir: directory of the run.
        cpu: the core on which it runs.
        plan: fault, as in `faulty_run`.
        fork_of: run and timestep of which it is a fork.
        starts: what forks its process; None starts a fresh interpreter.
    """

    def __init__(
        self,
        run_dir: Path,
        cpu: int,
        *,
        plan: str = "none:0:none",
        fork_of: str | None = None,
        starts: WarmStarts | None = None,
    ) -> None:
        self.begun = threading.Event()
        self.lines: list[str] = []
        arguments = ["train", "--config", str(run_dir.with_suffix(".yaml"))]
        if fork_of is not None:
            settings = (f"run_dir={run_dir}", "checkpoints.keep_last=2")
            arguments = ["train", "--fork", fork_of]
            arguments += [part for setting in settings for part in ("--set", setting)]
        if (run_dir / "config.yaml").exists():
            arguments = ["train", "--resume", str(run_dir)]
        self._started_s = time.monotonic()
        self.start_s = 0.0
        self._left: list[psutil.Process] = []
        reads, writes = os.pipe()
        self._output = os.fdopen(reads, encoding="utf-8", errors="replace")
        arguments = [plan, str(run_dir), *arguments]
        self.process: Process
        if starts is None:
            command = ["taskset", "--cpu-list", str(cpu), sys.executable, "-u", "-m", _FAULTY_RUN]
            self.process = subprocess.Popen(
                [*command, *arguments],
                stdout=writes,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=_environment(),
            )
        else:
            self.process = ForkedProcess(starts, arguments, cpu, writes)
        os.close(writes)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._output as output:
            for line in output:
                self.lines.append(line.rstrip())
                if not self.begun.is_set() and _BEGUN.match(line):
                    self.start_s = time.monotonic() - self._started_s
                    self.begun.set()
        self.begun.set()

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def wait(self) -> int:
        """Wait for the process and its children; return the exit code.

        Children that still run after the time limit show up in `orphans`.
        """
        self.process.wait(HANG_S)
        self._reader.join(HANG_S)  # the pipe closes when the last child has ended
        self._left = self._outliving()
        return self.process.returncode

    def orphans(self) -> list[psutil.Process]:
        """Return processes of this training that outlived it by five seconds."""
        return self._left

    def _outliving(self) -> list[psutil.Process]:
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            left = [
                process
                for process in psutil.process_iter()
                if process.pid != self.process.pid and _session(process.pid) == self.process.pid
            ]
            if not left:
                return []
            psutil.wait_procs(left, timeout=0.1)
        return left


def _environment() -> dict[str, str]:
    return os.environ | {"COLUMNS": "1000", "OMP_NUM_THREADS": "1"}


def _account(run_dir: Path) -> list[tuple[str, int, int | None]]:
    """Return the events that do not depend on when the training was interrupted."""
    return [
        (event.event, event.timesteps, getattr(event, "offline_gradient_steps", None))
        for event in read_events(RunDir(run_dir))
        if event.event in ("begun", "rollout_ended", "evaluated")
    ]


def _times(root: Path) -> dict[str, tuple[int, int]]:
    """Return the modification time and size of each file and folder."""
    return {
        str(path.relative_to(root)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in (root, *root.rglob("*"))
    }


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


@dataclass
class Tally:
    """The trials of one kind."""

    trials: int = 0
    runs: int = 0
    problems: list[str] = field(default_factory=list)
    recoveries_s: list[float] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)

    def note(self, what: str) -> None:
        self.notes[what] = self.notes.get(what, 0) + 1


class Bench:
    """Runs with injected faults, and an undisturbed one for comparison.

    If it `forks`, the runs with faults are forks of the undisturbed run from half of it. They
    change no setting of the training, so they must end like that run.
    """

    def __init__(
        self,
        folder: Path,
        jobs: int,
        seed: int,
        *,
        setting: Setting = _PLAIN,
        length: Length = LONG,
        forks: bool = False,
        starts: WarmStarts | None = None,
    ) -> None:
        folder.mkdir()
        self._starts = starts
        self._setting, self._length = setting, length
        self.final = length.total
        self.folder = folder
        self.jobs = jobs
        self.random = random.Random(seed)
        self.cpus = sorted(os.sched_getaffinity(0))[:jobs]
        self._free = list(self.cpus)
        self._lock = threading.Lock()
        if setting.algorithm in ("dqn-mixed", "dqn-offline"):
            self._undisturbed(self.new_run(_OTHERS, algorithm="pqn"))
        if setting.algorithm == "dqn-teacher":
            self._undisturbed(self.new_run(_TEACHER, algorithm="pqn"))
        if setting.algorithm == "ppo-potential":
            write_way_to_the_right(folder / _EXPLORED, load_game(setting.game))
        if setting.algorithm in WITH_NOVELTY:
            write_novel_game(load_game(setting.game).folder, folder / _NOVEL)
        if setting.algorithm in WITH_PLAYED:
            write_played_episodes(load_game(setting.game), folder / _PLAYED)
        self.whole = self.new_run("whole", keep_last=1000)
        began = time.monotonic()
        training = self._undisturbed(self.whole)
        self.start_s = training.start_s
        self.train_s = time.monotonic() - began - training.start_s
        self.hashes = {
            int(path.name): self._hashes(path)
            for path in RunDir(self.whole).checkpoints_newest_first()
        }
        self._forked_at = self.final // 2 if forks else 0
        self._fork_of = f"{self.whole}@{self._forked_at}" if forks else None
        self._parent = _times(self.whole)

    @property
    def forks(self) -> bool:
        return self._fork_of is not None

    def train(self, run_dir: Path, cpu: int, *, plan: str = "none:0:none") -> Training:
        """Start or resume the run."""
        return Training(run_dir, cpu, plan=plan, fork_of=self._fork_of, starts=self._starts)

    def changed_parent(self) -> list[str]:
        """Return the files of the undisturbed run that have changed."""
        now = _times(self.whole)
        paths = {
            path for path in {**self._parent, **now} if now.get(path) != self._parent.get(path)
        }
        return [f"the parent's {path} was changed" for path in sorted(paths)]

    def _undisturbed(self, run_dir: Path) -> Training:
        training = Training(run_dir, self.cpus[0], starts=self._starts)
        if training.wait() != 0:
            raise SystemExit(f"the undisturbed training failed:\n{training.output}")
        return training

    def new_run(
        self, name: str, *, keep_last: int | None = None, algorithm: str | None = None
    ) -> Path:
        run_dir = self.folder / name
        text = config_text(
            replace(self._setting, algorithm=algorithm or self._setting.algorithm),
            replace(self._length, keep_last=keep_last or self._length.keep_last),
            run_dir=run_dir,
            others=self.folder / _OTHERS,
            teacher=self.folder / _TEACHER,
            explored=self.folder / _EXPLORED,
            novel=self.folder / _NOVEL,
            played=self.folder / _PLAYED,
        )
        run_dir.with_suffix(".yaml").write_text(text, encoding="utf-8")
        return run_dir

    def half_run(self, name: str) -> Path:
        """Copy the undisturbed run as a kill just after half of it would have left it."""
        run_dir = self.folder / name
        shutil.copytree(self.whole, run_dir)
        half = self.final // 2
        best = Checkpoint(RunDir(run_dir).checkpoint(half)).state.best
        assert best is not None
        for path in RunDir(run_dir).checkpoints_newest_first():
            if int(path.name) not in (best.timesteps, *range(half - 128, half + 1)):
                shutil.rmtree(path)
        text = (run_dir / "config.yaml").read_text(encoding="utf-8")
        (run_dir / "config.yaml").write_text(
            text.replace(str(self.whole), str(run_dir)), encoding="utf-8"
        )
        return run_dir

    def map(self, act: Callable[[int, int], None], count: int) -> None:
        """Call `act(number, cpu)` for each number, with one call at a time on each core."""

        def on_a_free_core(number: int) -> None:
            with self._lock:
                cpu = self._free.pop()
            try:
                act(number, cpu)
            finally:
                with self._lock:
                    self._free.append(cpu)

        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(on_a_free_core, range(count)))

    def uniform(self, high: float) -> float:
        with self._lock:
            return self.random.uniform(0, high)

    def finish(self, run_dir: Path, cpu: int, tally: Tally, label: str) -> None:
        """Resume undisturbed to the end, and compare."""
        training = self.train(run_dir, cpu)
        code = training.wait()
        tally.recoveries_s.append(training.start_s)
        if code != 0:
            tally.problems.append(
                f"{label}: the resume ended with {code}: {training.output[-600:]}"
            )
            return
        tally.problems += [f"{label}: {p}" for p in self.differences(run_dir, training)]
        shutil.rmtree(run_dir, ignore_errors=True)

    def differences(self, run_dir: Path, training: Training) -> list[str]:
        """Return the differences of a finished run from the undisturbed one."""
        found = self.wrong_bytes(run_dir)
        final = run_dir / "checkpoints" / f"{self.final:012d}"
        if not final.is_dir():
            return [*found, f"no final checkpoint: {training.output[-600:]}"]
        bests = [
            best_of(RunDir(root), Checkpoint(RunDir(root).checkpoint(self.final)))
            for root in (run_dir, self.whole)
        ]
        if None in bests or bests[0].timesteps != bests[1].timesteps:
            found.append("another best evaluation")
        accounts = [_account(root) for root in (run_dir, self.whole)]
        if accounts[0] != accounts[1]:
            found.append(f"another account: {accounts[0]} instead of {accounts[1]}")
        tables = [
            RunDir(root).evaluations.read_text(encoding="utf-8") for root in (run_dir, self.whole)
        ]
        if tables[0] != tables[1]:
            found.append(f"another table of evaluations:\n{tables[0]}instead of\n{tables[1]}")
        files = [RunDir(r).evaluation_episodes.read_bytes() for r in (run_dir, self.whole)]
        if files[0] != files[1]:
            found.append("another evaluations.npz")
        left = [p.name for p in run_dir.rglob(".*") if p.name.endswith((".tmp", ".trash"))]
        left += [p.name for p in run_dir.parent.glob(f".{run_dir.name}.*")]
        if left:
            found.append(f"left behind: {left}")
        return found + self.bad_ends(training)

    def bad_ends(self, training: Training) -> list[str]:
        """Return tracebacks, and processes that were left running."""
        found = [f"orphan {p}" for p in training.orphans()]
        if "Traceback" in training.output:
            found.append(f"a traceback: {training.output[-1500:]}")
        return found

    def wrong_bytes(self, run_dir: Path) -> list[str]:
        """Return checkpoints that do not verify or differ from those of the undisturbed run."""
        found = []
        offline = RunDir(run_dir).offline.checkpoints_newest_first()
        for path in [*RunDir(run_dir).checkpoints_newest_first(), *offline]:
            try:
                Checkpoint(path).verify()
            except CheckpointError:
                found.append(f"checkpoint {path.name} does not verify")
                continue
            if path in offline:
                continue
            hashes, expected = self._hashes(path), self.hashes[int(path.name)]
            if int(path.name) < self._forked_at:  # the parent's best; a fork has only a part of it
                expected = {name: expected[name] for name in hashes}
            if hashes != expected:
                found.append(f"checkpoint {path.name} holds other numbers")
        return found

    @staticmethod
    def _hashes(path: Path) -> dict[str, str]:
        files = json.loads((path / "manifest.json").read_text(encoding="utf-8"))["files"]
        return {name: files[name]["sha256"] for name in COMPARED if name in files}
