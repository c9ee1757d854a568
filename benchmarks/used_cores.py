"""What share of the processor's time a whole training uses, phase by phase.

    python -m benchmarks.used_cores [--configs duel_ppo courier_memory_ppo] [--set KEY=VALUE ...]

Each training runs from its start to its end in processes of its own, with everything that a run
has: evaluations, checkpoints, a clip. Ten times a second, the CPU time of all its processes (user
and system) is read. A share of 100 % means that all cores worked for the run all the time.

    start       until the first rollout: imports, the forecast, baselines, emulators
    play        rollouts; the first four seconds of them try which cores the workers get
    update      the network learns
    evaluation  episodes are evaluated, those of the end included
    checkpoint  a checkpoint is written
    end         after the last rollout, without evaluations: the last update, the clip

"lost" is the phase's part of the time that the cores idled. Other programs take time away, so run
it on an idle machine.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
from stable_baselines3.common.callbacks import BaseCallback

import game_rl
from game_rl.events import CheckpointSaved, Evaluated
from game_rl.events.event_log import read_events
from game_rl.files.run_dir import RunDir
from game_rl.system.machine import effective_cpus

_EVERY_S = 0.1
_PHASES = ("start", "play", "update", "evaluation", "checkpoint", "end")
_TRAIN = "from benchmarks.used_cores import train; train()"


class Moment(NamedTuple):
    """CPU time of all processes so far, at a time in seconds since the epoch."""

    time_s: float
    cpu_s: float


class Span(NamedTuple):
    """A stretch of time of one phase, in seconds since the epoch."""

    phase: str
    begin_s: float
    end_s: float


class RolloutTimes(BaseCallback):
    """Notes when rollouts begin and end, and writes that to a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._times: list[float] = []

    def _on_rollout_start(self) -> None:
        self._times.append(time.time())

    def _on_rollout_end(self) -> None:
        self._times.append(time.time())
        self._path.write_text(json.dumps(self._times), encoding="utf-8")

    def _on_step(self) -> bool:
        return True


def train() -> None:
    """Train in this process: config, run directory, file of the rollouts' times, overrides."""
    name, run_dir, times, *overrides = sys.argv[1:]
    config = game_rl.load_config(name, f"run_dir={run_dir}", *overrides)
    game_rl.train(config, progress=False, callbacks=[RolloutTimes(Path(times))])


def watched(command: Sequence[str]) -> list[Moment]:
    """Run a command, and return the CPU time of its processes over its time."""
    moments = [Moment(time.time(), 0.0)]
    taken: dict[tuple[int, float], float] = {}  # of ended processes, too
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    root = psutil.Process(process.pid)
    while process.poll() is None:
        with suppress(psutil.Error):
            for each in (root, *root.children(recursive=True)):
                with suppress(psutil.Error):  # it has just ended
                    times = each.cpu_times()
                    taken[each.pid, each.create_time()] = times.user + times.system
        moments.append(Moment(time.time(), sum(taken.values())))
        time.sleep(_EVERY_S)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed; what it printed stands above")
    return moments


def spans_of(run_dir: RunDir, rollouts: Sequence[float]) -> list[Span]:
    """Return the phases of a run but start and end; where two overlap, the first one counts."""
    found = []
    for event in read_events(run_dir):
        if isinstance(event, Evaluated | CheckpointSaved):
            phase = "evaluation" if isinstance(event, Evaluated) else "checkpoint"
            end_s = event.time.timestamp()
            found.append(Span(phase, end_s - event.seconds, end_s))
    for number, begin_s in enumerate(rollouts[:-1]):
        phase = "update" if number % 2 else "play"
        found.append(Span(phase, begin_s, rollouts[number + 1]))
    return found


def phase_at(time_s: float, spans: Sequence[Span]) -> str:
    for span in spans:
        if span.begin_s <= time_s < span.end_s:
            return span.phase
    is_before = all(time_s < span.begin_s for span in spans if span.phase == "play")
    return "start" if is_before else "end"


def times_of(moments: Sequence[Moment], spans: Sequence[Span]) -> dict[str, tuple[float, float]]:
    """Return seconds and CPU seconds of each phase; each interval is that of its middle."""
    seconds: dict[str, float] = defaultdict(float)
    cpu_s: dict[str, float] = defaultdict(float)
    for number, before in enumerate(moments[:-1]):
        after = moments[number + 1]
        phase = phase_at((before.time_s + after.time_s) / 2, spans)
        seconds[phase] += after.time_s - before.time_s
        cpu_s[phase] += after.cpu_s - before.cpu_s
    return {phase: (seconds[phase], cpu_s[phase]) for phase in _PHASES if phase in seconds}


def table(times: dict[str, tuple[float, float]], cpus: int) -> str:
    lines = [f"{'':<12} {'seconds':>8} {'of all':>7} {'CPU s':>8} {'share':>6} {'lost':>6}"]
    total_s = sum(seconds for seconds, _ in times.values())
    total_cpu_s = sum(cpu_s for _, cpu_s in times.values())
    whole = ("the run", (total_s, total_cpu_s))
    for name, (seconds, cpu_s) in (*times.items(), whole):
        lost = (cpus * seconds - cpu_s) / (cpus * total_s)
        share = cpu_s / (cpus * seconds)
        lines.append(
            f"{name:<12} {seconds:>8.1f} {seconds / total_s:>7.1%} {cpu_s:>8.1f} {share:>6.1%} "
            f"{lost:>6.1%}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configs", nargs="+", default=["duel_ppo", "courier_memory_ppo"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    cpus = effective_cpus()
    for name in options.configs:
        with tempfile.TemporaryDirectory() as folder:
            run_dir = RunDir(Path(folder) / "run")
            times = Path(folder) / "rollouts.json"
            words = [name, str(run_dir.root), str(times), *options.set]
            load = os.getloadavg()[0]
            moments = watched([sys.executable, "-c", _TRAIN, *words])
            spans = spans_of(run_dir, json.loads(times.read_text(encoding="utf-8")))
        print(f"{name} on {cpus:g} cores; load before it {load:.1f}")
        print(table(times_of(moments, spans), int(cpus)), flush=True)


if __name__ == "__main__":
    main()
