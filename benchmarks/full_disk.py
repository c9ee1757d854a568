"""The disk plan against real file systems: of exactly its minimum, and of a tenth less.

    python -m benchmarks.full_disk [--only run "run with Lake" population mixture]

A run, a run with a Lake, a population and a mixture are forecast, and carried out in file systems
in memory (tmpfs) of 1 to 2 GB. With the minimum, everything has to end. With a tenth less, the plan
names the timestep, generation or round at which the disk is full, and there the run has to stop, or
its Lake to stop growing. Mounting needs root; the mounts are in a namespace of their own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CONFIGS = Path(__file__).parents[1] / "configs"
_PAGE_BYTES = 4_096
_IN_NAMESPACE = "--in-namespace"
_GROWING_ENDS = "stops growing"  # in the warning about a Lake
_RUN = (
    "duel_ppo",
    "device=cpu",
    "total_timesteps=8192",
    "env.n_envs=8",
    "env.observation.size=full",
    "algorithm.n_steps=64",
    "algorithm.batch_size=128",
    "algorithm.n_epochs=1",
    "checkpoints.every_timesteps=512",
    "checkpoints.keep_last=100",
    "evaluation.every_timesteps=100_000",
    "evaluation.episodes=1",
    "evaluation.final_episodes=1",
    "recording.episodes=0",
)
_EXPERIMENT = (
    "member.device=cpu",
    "member.env.observation.size=full",
    "timesteps_per_{stage}=1024",
    "fitness.episodes=1",
    "champion.candidates=1",
    "champion.episodes=1",
)
CASES = {
    "run": _RUN,
    "run with Lake": (*_RUN, "lake={}"),
    "population": (
        "population_16x25",
        *(word.format(stage="generation") for word in _EXPERIMENT),
        "members=3",
        "generations=5",
        "control=0",
        "member.lake=null",
        "keep_generations={last: 5}",
        "selection.share=0.34",
    ),
    "mixture": (
        "duel_mixture",
        *(word.format(stage="round") for word in _EXPERIMENT),
        "members=2",
        "rounds=6",
        "keep_rounds={last: 6}",
        "learner.device=cpu",
        "learner.env.observation.size=full",
        "learner.algorithm.learning_starts=128",
        "learner_per_round={gradient_steps: 20, timesteps: 256}",
    ),
}


@dataclass(frozen=True)
class Course:
    """What happened in a file system.

    Attributes:
        has_ended: whether everything came to its end.
        stopped_at: timestep, generation or round at which it stopped, or its Lake stopped growing;
            None if neither happened.
        last_line: of what it printed.
    """

    has_ended: bool
    stopped_at: int | None
    last_line: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=tuple(CASES), default=tuple(CASES))
    parser.add_argument(_IN_NAMESPACE, action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.in_namespace:
        script = (sys.executable, "-m", "benchmarks.full_disk", *sys.argv[1:], _IN_NAMESPACE)
        sys.exit(subprocess.run(("unshare", "--mount", *script), check=False).returncode)
    print(f"{'':<14} {'disk MB':>8}  {'forecast':<24} {'found':<24} free MB")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only:
            for line in tried(name, Path(folder)):
                print(line, flush=True)


def tried(name: str, folder: Path) -> Iterator[str]:
    """Forecast a case, carry it out on two disks, and yield a line for each."""
    config, *settings = CASES[name]
    words = (str(_CONFIGS / f"{config}.yaml"), *settings, f"run_dir={folder / 'run'}")
    planned = _printed(("preflight", *words, "--probe", "--json"))
    if not planned.stdout:
        raise SystemExit(planned.stderr)
    report = json.loads(planned.stdout)
    plan = report["disk"]["plan"]
    less = plan["smaller"][0]
    at = f"{plan['stage']} {less['full_at']:,}"
    for n_bytes, forecast in ((plan["minimum_bytes"], "ends"), (less["bytes"], f"full at {at}")):
        course, free_bytes = carried_out(words, folder, n_bytes, plan)
        found = "ends" if course.has_ended else "does not end"
        if course.stopped_at is not None:
            found = f"full at {plan['stage']} {course.stopped_at:,}"
        is_right = found == forecast and (course.has_ended or n_bytes != plan["minimum_bytes"])
        mark = "" if is_right else f"  <-- {course.last_line}"
        yield (
            f"{name:<14} {n_bytes / 1e6:>8.0f}  {forecast:<24} {found:<24} "
            f"{free_bytes / 1e6:>7.0f}{mark}"
        )


def carried_out(
    words: Sequence[str], folder: Path, n_bytes: int, plan: dict[str, Any]
) -> tuple[Course, int]:
    """Train in a file system with so many bytes; return its course, and what was free then."""
    pages = -(-n_bytes // _PAGE_BYTES)
    size = f"size={pages * _PAGE_BYTES}"
    subprocess.run(("mount", "-t", "tmpfs", "-o", size, "tmpfs", folder), check=True)
    try:
        done = _printed(("train", *words, "--force"))
        lines = (done.stderr or done.stdout).strip().splitlines() or [""]
        course = Course(done.returncode == 0, _stopped_at(folder / "run", plan), lines[-1])
        file_system = os.statvfs(folder)
        return course, file_system.f_bavail * file_system.f_frsize
    finally:
        subprocess.run(("umount", folder), check=True)


def _printed(words: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    command = (sys.executable, "-m", "game_rl", *words)
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def _stopped_at(run_dir: Path, plan: dict[str, Any]) -> int | None:
    """Return where the run or experiment stopped, or its Lake stopped growing."""
    own = _events(run_dir / "events.jsonl")
    files = run_dir.rglob("events.jsonl")
    times = [e["time"] for file in files for e in _events(file) if _is_pause(e)]
    times += [event["time"] for event in own if event.get("exit_code", 0) != 0]
    key = "timesteps" if plan["stage"] == "timestep" else "generation"
    before = [event for event in own if times and event["time"] <= min(times)]
    return max((event[key] for event in before), default=None)


def _events(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _is_pause(event: dict[str, Any]) -> bool:
    return event["event"] == "warned" and _GROWING_ENDS in event["text"]


if __name__ == "__main__":
    main()
