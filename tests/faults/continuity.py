"""Whether all that an earlier commit saved goes on as before with the code that is here.

    python -m tests.faults.continuity COMMIT [--only NAME ...]

The commit's own code, in a worktree, brings one of each thing to its middle: runs of each
algorithm, a population, ERL, a mixture, a live mixture, an uploaded run, Lakes of both kinds and a
policy as an SB3 zip. Two copies go on: one with the commit's code, one with the code that is here.
What they save must be the same, bit for bit. Registered studies are left out, because they are tied
to the code that registered them, and a live mixture's learner, which depends on the time.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.faults.configs import Length, Setting, config_text
from tests.faults.erl_files import write_erl
from tests.faults.mixture_files import write_live_mixture, write_mixture
from tests.faults.population_faults import hashes_of, records_of, write_population

ROOT = Path(__file__).parents[2]
_HALF, _LENGTH = 384, Length()
_HANG_S = 600.0
_RANDOM = re.compile(r"-[0-9a-f]{6}(?=\.segment$)")
Content = Mapping[str, object]


@dataclass(frozen=True)
class Code:
    """A working tree whose `game_rl` is run."""

    root: Path

    def run(self, *arguments: object) -> None:
        """Run a `game-rl` command, which must succeed."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=_HANG_S)
        if process.returncode != 0:
            sys.exit(f"{self.root}: game-rl {' '.join(map(str, arguments))}\n{output}")

    def start(self, *arguments: object) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "game_rl", *map(str, arguments)],
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": str(self.root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )


@dataclass(frozen=True)
class Thing:
    """One kind of saved thing.

    Attributes:
        make: brings it to its middle at this place.
        go_on: goes on with a copy that has taken this place.
        content: what must be the same afterwards.
    """

    make: Callable[[Code, Path], None]
    go_on: Callable[[Code, Path], None]
    content: Callable[[Path], Content]


# ---------------------------------------------------------------------- runs


def _make_run(algorithm: str, upload: str = "") -> Callable[[Code, Path], None]:
    def make(code: Code, place: Path) -> None:
        text = config_text(
            Setting(algorithm),
            _LENGTH,
            run_dir=place / "run",
            others=place,
            teacher=place,
            explored=place,
            novel=place,
            played=place,
        )
        config = place / "run.yaml"
        config.write_text(text + upload.replace("PLACE", str(place)), encoding="utf-8")
        if upload:
            (place / "storage").mkdir()
        code.run("train", "--config", config, "--until", _HALF, "--force")

    return make


def _resume(code: Code, place: Path) -> None:
    code.run("train", "--resume", place / "run", "--force")


def _resume_and_fetch(code: Code, place: Path) -> None:
    _resume(code, place)
    run = json.loads((place / "run" / "run.json").read_text(encoding="utf-8"))["id"]
    address = f"file://{place}/storage/runs/{run}"
    code.run("remote", "verify", address)
    code.run("remote", "fetch", address, place / "fetched")


def _export(code: Code, place: Path) -> None:
    _resume(code, place)
    code.run("export", place / "run", "--output", place / "policy.zip")
    imported = f"run_dir={place / 'imported'}"
    code.run("import", place / "policy.zip", "--config", place / "run.yaml", "--set", imported)


def _use_lakes(code: Code, place: Path) -> None:
    _resume(code, place)
    lake = place / "run" / "lake"
    code.run("replay", "verify", lake)
    code.run("replay", "export", lake, "--output", place / "replay.pkl")
    code.run("replay", "import", place / "replay.pkl", "--output", place / "imported")
    code.run("replay", "compact", lake)


def _files(folder: Path, *patterns: str) -> dict[str, object]:
    """Return the hashes of files; a random number in a segment's name is left out of it."""
    return {
        _RANDOM.sub("", path.relative_to(folder).as_posix()): _sha256(path)
        for pattern in patterns
        for path in sorted(folder.glob(pattern))
    }


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run_content(place: Path) -> Content:
    return {
        **_files(place, "run/checkpoints/*/*.safetensors", "run/eval.csv", "*.pkl"),
        **_files(place, "run/lake/*.segment", "imported/*.segment"),
        **_files(place, "imported/checkpoints/*/*.safetensors"),
        **_files(place, "fetched/checkpoints/*/*.safetensors"),
        **_policy_of_zip(place / "policy.zip"),
    }


def _uploaded_content(place: Path) -> Content:
    """Leave out the run's own older checkpoints, which stay until they are uploaded."""
    newest = max((place / "run" / "checkpoints").iterdir()).name
    return _files(
        place, f"run/checkpoints/{newest}/*.safetensors", "fetched/checkpoints/*/*.safetensors"
    )


def _policy_of_zip(path: Path) -> dict[str, object]:
    if not path.exists():
        return {}
    with zipfile.ZipFile(path) as archive:
        # `data` names functions by their address in memory, and pickles vary with such things
        return {"zip policy": archive.getinfo("policy.pth").CRC}


# ---------------------------------------------------------------------- experiments


def _make_experiment(write: Callable[[Path, Path], Path]) -> Callable[[Code, Path], None]:
    def make(code: Code, place: Path) -> None:
        experiment = place / "experiment"
        process = code.start("train", "--config", write(place, experiment), "--force")
        deadline = time.monotonic() + _HANG_S
        while not _is_in_its_middle(experiment) and process.poll() is None:
            if time.monotonic() > deadline:
                sys.exit(f"{experiment} has not come to its middle")
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=_HANG_S)
        if process.returncode not in (0, 130):
            sys.exit(f"{experiment}\n{output}")

    return make


def _is_in_its_middle(experiment: Path) -> bool:
    """Whether its first generation is decided, or, if it is live, all of its runs have saved."""
    runs = [*experiment.glob("members/*"), *experiment.glob("learner*")]
    saved = [run for run in runs if any(run.glob("checkpoints/0*/manifest.json"))]
    is_live = "mode: live" in experiment.with_suffix(".yaml").read_text(encoding="utf-8")
    decided = any(experiment.glob("generations/*/record.json"))
    return decided or (is_live and len(saved) == 3)


def _resume_experiment(code: Code, place: Path) -> None:
    code.run("train", "--resume", place / "experiment", "--force")


def _experiment_content(place: Path) -> Content:
    return {"records": records_of(place / "experiment"), **hashes_of(place / "experiment")}


def _live_content(place: Path) -> Content:
    return _files(place, "experiment/members/[0-9]*/checkpoints/*/policy.safetensors")


_UPLOAD = "upload: {to: 'file://PLACE/storage', wait_s: 60}\n"
THINGS: Mapping[str, Thing] = {
    **{
        name: Thing(_make_run(name), _resume, _run_content)
        for name in ("ppo", "pqn", "dqn", "dqn-lake")
    },
    "lakes": Thing(_make_run("ppo-lake"), _use_lakes, _run_content),
    "sb3": Thing(_make_run("ppo"), _export, _run_content),
    "upload": Thing(_make_run("pqn", _UPLOAD), _resume_and_fetch, _uploaded_content),
    "population": Thing(
        _make_experiment(write_population), _resume_experiment, _experiment_content
    ),
    "erl": Thing(_make_experiment(write_erl), _resume_experiment, _experiment_content),
    "mixture": Thing(_make_experiment(write_mixture), _resume_experiment, _experiment_content),
    "live": Thing(_make_experiment(write_live_mixture), _resume_experiment, _live_content),
}


@contextmanager
def worktree(commit: str, folder: Path) -> Iterator[Code]:
    """Check the commit out for as long as the block runs."""
    git = ("git", "-C", str(ROOT), "worktree")
    subprocess.run([*git, "add", "--detach", "--quiet", str(folder), commit], check=True)
    try:
        yield Code(folder)
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def differences(thing: Thing, before: Code, folder: Path) -> list[str]:
    """Make the thing with the code of before, and go on with both; return what differs."""
    place, middle = folder / "place", folder / "middle"  # paths are saved, so both use one place
    place.mkdir(parents=True)
    thing.make(before, place)
    shutil.copytree(place, middle)
    found = []
    for code in (before, Code(ROOT)):
        shutil.rmtree(place)
        shutil.copytree(middle, place)
        thing.go_on(code, place)
        found.append(thing.content(place))
    wanted, got = found
    if not wanted:
        return ["nothing was saved"]
    return [key for key in sorted({*wanted, *got}) if wanted.get(key) != got.get(key)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("commit", help="commit whose code saves")
    parser.add_argument("--only", nargs="+", choices=THINGS, default=list(THINGS), metavar="NAME")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="continuity-") as folder,
        worktree(arguments.commit, Path(folder) / "before") as before,
        ThreadPoolExecutor(2) as pool,
    ):
        jobs = {
            name: pool.submit(differences, THINGS[name], before, Path(folder) / name)
            for name in arguments.only
        }
        bad = 0
        for name, job in jobs.items():
            different = job.result()
            bad += bool(different)
            print(f"{name:<12}{'differs: ' + ', '.join(different) if different else 'the same'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
