"""A table of what an exploration loses when it is killed at random moments.

    python -m tests.faults.explore_faults [--kills 30] [--seed 0]

Each trial is an exploration of beacon in a process of its own, with so small a limit for states
that its file is compacted again and again, and its pictures are drawn after every second round. It
has one process or two. It is killed three times, before, halfway through or after an operation on
its files, or at any moment, or its disk is full from a write on. It is continued each time, and
must end with the very bytes of an exploration that was never killed, and with whole pictures.
"""

import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from game_rl.explore.archive import Archive
from game_rl.explore.exploration import Exploration
from game_rl.explore.explore_dir import ExploreDir
from game_rl.explore.exploring_processes import ExploringProcesses
from game_rl.games.definition import load_game
from game_rl.places.screen_map import read_screen_map
from tests.explore.test_exploration import settings
from tests.faults.faulty_run import Faults, injected

ROUNDS = 12
MOST_BYTES = 60_000
KILLS_A_TRIAL = 3
DRAWN_EVERY = 2
FILES = [
    "archive.jsonl",
    "best.json",
    "best.png",
    "place_screens.npz",
    "progress.jsonl",
    "sheet.png",
]
_HANG_S = 300
_FAULTS = ("kill-before", "kill-after")
_FAULTS_OF_WRITES = (*_FAULTS, "kill-half", "ENOSPC")


@dataclass(frozen=True)
class Sitting:
    """How an exploration has ended.

    Attributes:
        code: exit code, negative for a signal.
        rounds: the last round that it has told of; 0 for none.
        operations: how often it has done what to its files, if it came to its end.
        compacted: after how many rounds its file was a new one.
    """

    code: int
    rounds: int
    operations: dict[str, int]
    compacted: int


def explore(
    folder: Path,
    plan: str = "none:0:none",
    *,
    processes: int = 1,
    kill_after_s: float | None = None,
) -> Sitting:
    """Explore up to the last round, or up to a fault; see `faulty_run`."""
    word = [sys.executable, "-m", "tests.faults.explore_faults"]
    word += ["--child", plan, str(folder), "--processes", f"{processes}"]
    with subprocess.Popen(
        word, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    ) as process:
        try:
            output, _ = process.communicate(timeout=kill_after_s or _HANG_S)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            assert kill_after_s is not None, "it hangs"
    told = [line for line in output.splitlines() if line.isdecimal()]
    counts = [line for line in output.splitlines() if line.startswith("{")]
    files = [line for line in output.splitlines() if line.startswith("file ")]
    return Sitting(
        process.returncode,
        int(told[-1]) if told else 0,
        json.loads(counts[0]) if counts else {},
        sum(before != after for before, after in itertools.pairwise(files)),
    )


def problem_of_trial(
    folder: Path, undisturbed: ExploreDir, operations: dict[str, int], draw: random.Random
) -> str:
    """Kill an exploration three times; return what is wrong in the end, or nothing."""
    found = ExploreDir(folder)
    folder.mkdir()
    for _ in range(KILLS_A_TRIAL):
        processes = draw.choice((1, 2))
        if draw.random() < 0.3:
            kill_after_s = draw.uniform(1.0, 8.0)
            sitting = explore(folder, processes=processes, kill_after_s=kill_after_s)
        else:
            operation = draw.choice(sorted(operations))
            fault = draw.choice(_FAULTS_OF_WRITES if operation == "write" else _FAULTS)
            count = draw.randint(1, operations[operation])
            sitting = explore(folder, f"{operation}:{count}:{fault}", processes=processes)
        kept = Archive.read(found.archive, MOST_BYTES).rounds
        if kept < sitting.rounds:
            return f"it has told of round {sitting.rounds}, and {kept} are in the file"
    if explore(folder).code != 0:
        return "it cannot be continued"
    if found.archive.read_bytes() != undisturbed.archive.read_bytes():
        return "the archive has other bytes"
    for picture in (found.sheet, found.best_picture):
        with Image.open(picture) as image:
            image.load()
    if not read_screen_map(found.place_screens).maps():
        return "the maps cannot be read"
    if found.best.read_bytes() != undisturbed.best.read_bytes():
        return "the best route has other bytes"
    left = sorted(path.name for path in folder.iterdir())
    return "" if left == FILES else f"{left} are left"


def kill_trials(kills: int, seed: int) -> list[str]:
    """Return what is wrong in each trial."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as root:
        undisturbed = Path(root) / "undisturbed"
        undisturbed.mkdir()
        sitting = explore(undisturbed)
        assert sitting.compacted > 1, "the file is compacted several times"
        operations = sitting.operations
        return [
            problem_of_trial(Path(root) / f"{number}", ExploreDir(undisturbed), operations, draw)
            for number in range(-(-kills // KILLS_A_TRIAL))
        ]


def _explore_here(plan: str, folder: Path, processes: int) -> None:
    game = load_game("beacon")
    faults = Faults(plan, str(folder))
    with injected(faults):
        usual = settings(game, most_bytes=MOST_BYTES)
        longer = usual.model_copy(update={"trip_timesteps": 60})  # so that a reward is earned
        exploration = Exploration(ExploreDir(folder), game, longer)
        left = ROUNDS - exploration.archive.rounds
        with ExploringProcesses(game, exploration.settings, processes) as explorers:
            for archive in itertools.islice(exploration.rounds(explorers), left):
                print(archive.rounds, flush=True)
                print("file", exploration.folder.archive.stat().st_ino)
                if archive.rounds % DRAWN_EVERY == 0:
                    exploration.draw(explorers)
            exploration.draw(explorers)
    print(json.dumps(faults.counts))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", nargs=2, metavar=("PLAN", "FOLDER"))
    parser.add_argument("--processes", type=int, default=1, help="of the child")
    arguments = parser.parse_args()
    if arguments.child:
        plan, folder = arguments.child
        _explore_here(plan, Path(folder), arguments.processes)
        return 0
    problems = kill_trials(arguments.kills, arguments.seed)
    bad = [each for each in problems if each]
    print(f"{KILLS_A_TRIAL * len(problems)} kills, {len(bad)} bad")
    print("\n".join(bad))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
