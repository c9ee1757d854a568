"""A run's directory: paths, identity, lock, claim, how it is found, and durable writes.

An experiment restarts a member when it believes that the member's process is gone. On another
machine that may be wrong: a node that was cut off or asleep comes back. So each start takes the
claim to the run, and a process that finds another claim in the folder ends without writing.
"""

import errno
import fcntl
import os
import shlex
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, BinaryIO

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from game_rl.errors import ExperimentError, UsageError

EXPERIMENT_VARIABLE = "GAME_RL_EXPERIMENT"
"""Environment variable of a job's process: the experiment's folder, as its user knows it."""
_TEMPORARY = ".tmp"
_TRASH = ".trash"


class Parent(BaseModel):
    """The checkpoint that a fork begins from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """Id of the run that wrote it."""
    timesteps: Annotated[int, Field(ge=0)]
    sha256: str
    """sha256 of the checkpoint's manifest, which covers all its files."""


class RunIdentity(BaseModel):
    """The identity of a run, which stays when its directory is moved or copied."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    """Random id, unique among all runs."""
    created: datetime
    """When the id was drawn, in UTC."""
    parent: Parent | None = None


@dataclass(frozen=True)
class RunDir:
    """The directory of one run."""

    root: Path

    @property
    def config(self) -> Path:
        """The resolved config; its presence makes a directory a run."""
        return self.root / "config.yaml"

    @property
    def way_on(self) -> str:
        """The command that continues the run or, in a job of an experiment, the experiment."""
        root = os.environ.get(EXPERIMENT_VARIABLE, str(self.root))
        return f"game-rl train --resume {shlex.quote(root)}"

    @property
    def identity_file(self) -> Path:
        return self.root / "run.json"

    def identity(self, *, parent: Parent | None = None, run_id: str | None = None) -> RunIdentity:
        """Return the run's identity, or draw and write a new one; only under the lock.

        Args:
            parent: checkpoint that a new run begins from.
            run_id: id of a new run, which no other run has, or None to draw one at random.

        Raises:
            UsageError: `run.json` is not a valid identity.
        """
        file = self.identity_file
        if file.exists():
            try:
                return RunIdentity.model_validate_json(file.read_bytes())
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                raise UsageError(
                    f"{file} does not identify a run: {first['msg']}; restore it from a copy, or "
                    "delete it, and the run gets a new identity"
                ) from None
        identity = RunIdentity(
            id=uuid.uuid4().hex if run_id is None else run_id,
            created=datetime.now(UTC).replace(microsecond=0),
            parent=parent,
        )
        write_atomic(file, identity.model_dump_json(indent=2) + "\n")
        return identity

    @property
    def events(self) -> Path:
        """The run's events, one JSON object a line; only ever appended to."""
        return self.root / "events.jsonl"

    @property
    def lineage(self) -> Path:
        """The sources that the run has learned from; see `game_rl.lineage`."""
        return self.root / "lineage.json"

    @property
    def preflight(self) -> Path:
        return self.root / "preflight.json"

    @property
    def footprint(self) -> Path:
        """Predicted and measured memory and disk."""
        return self.root / "footprint.json"

    @property
    def evaluations(self) -> Path:
        return self.root / "eval.csv"

    @property
    def evaluation_episodes(self) -> Path:
        """The episodes of each evaluation, in SB3's own format."""
        return self.root / "evaluations.npz"

    @property
    def tensorboard(self) -> Path:
        return self.root / "tensorboard"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def lake(self) -> Path:
        """The run's Lake, unless the config names another folder."""
        return self.root / "lake"

    @property
    def damaged(self) -> Path:
        """Checkpoints that a resumed run set aside because they failed verification."""
        return self.root / "damaged"

    @property
    def teacher(self) -> Path:
        """The policy that the run is drawn towards; see `checkpoints.teacher`."""
        return self.root / "teacher"

    @property
    def validation(self) -> Path:
        """Whether the best policy is the run's own or its teacher's."""
        return self.root / "validation.json"

    @property
    def set_aside(self) -> Path:
        """Checkpoints after the one that the run was taken back to."""
        return self.root / "set_aside"

    @property
    def videos(self) -> Path:
        return self.root / "videos"

    @property
    def upload_journal(self) -> Path:
        """The journal of the run's uploads, one JSON object a line."""
        return self.root / "upload.jsonl"

    def has_checkpoints(self) -> bool:
        """Whether there is a checkpoint, from before the first timestep or after it."""
        return bool(self.checkpoints_newest_first() or self.offline.checkpoints_newest_first())

    @property
    def offline(self) -> "RunDir":
        """The same run with the checkpoints from before its first timestep, by gradient steps."""
        return _OfflineRunDir(self.root)

    def checkpoint(self, timesteps: int) -> Path:
        return self.checkpoints / f"{timesteps:012d}"

    def checkpoints_newest_first(self) -> list[Path]:
        if not self.checkpoints.is_dir():
            return []
        found = [p for p in self.checkpoints.iterdir() if p.is_dir() and p.name.isdecimal()]
        return sorted(found, key=lambda p: int(p.name), reverse=True)

    def set_aside_checkpoints(self) -> list[Path]:
        return sorted(self.set_aside.iterdir()) if self.set_aside.is_dir() else []

    def exists(self) -> bool:
        return self.config.is_file()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run's lock, which the kernel releases when the process ends.

        Raises:
            UsageError: another training holds it.
        """
        try:
            with FileLock(self.root / "lock", timeout=0):
                yield
        except Timeout:
            raise UsageError(
                f"another training is writing to {self.root}; wait until it has ended, stop it, "
                "or choose another place with --set run_dir=..."
            ) from None

    def remove_leftovers(self) -> None:
        """Delete temporary files that a killed process left; only under the lock."""
        for path in list(self.root.rglob(".*")):
            if path.name.endswith((_TEMPORARY, _TRASH)) and path.exists():
                _remove(path)

    def size_bytes(self) -> int:
        """Return the size of all files of the run, without its Lake."""
        files = (p for p in self.root.rglob("*") if not p.is_relative_to(self.lake))
        return sum(p.stat().st_size for p in files if p.is_file())


class _OfflineRunDir(RunDir):
    @property
    def checkpoints(self) -> Path:
        return self.root / "offline"


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write `content` to `path` in one rename, so that readers see the old or the new file."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}{_TEMPORARY}")
    try:
        write_synced(temporary, data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and sync it to the disk."""
    with synced_file(path) as file:
        file.write(content)


@contextmanager
def synced_file(path: Path) -> Iterator[BinaryIO]:
    """Open a new file, and sync it to the disk when the block ends."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary directory, which becomes `path` when the block ends.

    The caller fills it with synced files. If the block raises, nothing is left. The parent of
    `path` must exist.

    Raises:
        FileExistsError: `path` exists already.
    """
    if path.exists():
        raise FileExistsError(errno.EEXIST, "exists already", str(path))
    temporary = path.with_name(f".{path.name}{_TEMPORARY}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        sync_directory(temporary)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_directory(path.parent)


def link_file(source: Path, target: Path) -> None:
    """Hard-link a file that never changes, or make a synced copy if linking fails."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        with source.open("rb") as whole, synced_file(target) as copy:
            shutil.copyfileobj(whole, copy)


def remove_directory(path: Path) -> None:
    """Rename `path`, then delete it, so that readers never see a part of it."""
    trash = path.with_name(f".{path.name}{_TRASH}")
    shutil.rmtree(trash, ignore_errors=True)
    path.rename(trash)
    shutil.rmtree(trash)


@contextmanager
def replaced_directory(path: Path) -> Iterator[None]:
    """Move `path` away, so that the block can make it anew; restore it if the block raises."""
    if not path.exists():
        yield
        return
    trash = path.with_name(f".{path.name}{_TRASH}")
    shutil.rmtree(trash, ignore_errors=True)
    path.rename(trash)
    try:
        yield
    except BaseException:
        trash.rename(path)
        raise
    shutil.rmtree(trash)


def sync_directory(path: Path) -> None:
    """Make a rename in `path` durable; a no-op where directories cannot be opened (Windows)."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


CLAIM_VARIABLE = "GAME_RL_CLAIM"
"""Environment variable with the claim of this process. If it is not set, claims are not checked."""


def take_claim(run_dir: RunDir) -> str:
    """Write a new, unique claim to the run, one epoch after the standing one, and return it."""
    epoch = int(standing_claim(run_dir).partition("-")[0] or 0) + 1
    claim = f"{epoch}-{uuid.uuid4().hex}"
    write_atomic(_file(run_dir), claim)
    return claim


def check_claim(run_dir: RunDir) -> None:
    """Raise ExperimentError if this process has a claim and a newer one has been taken.

    The file is opened afresh each time, which makes network file systems ask their server.
    """
    own = os.environ.get(CLAIM_VARIABLE)
    if own is not None and standing_claim(run_dir) != own:
        raise ExperimentError(
            f"a newer process has been started for {run_dir.root}; this one ends without writing"
        )


def standing_claim(run_dir: RunDir) -> str:
    """Return the claim in the run directory, or "" if there is none."""
    try:
        return _file(run_dir).read_text(encoding="ascii")
    except FileNotFoundError:
        return ""


def _file(run_dir: RunDir) -> Path:
    return run_dir.root / "claim"


def folder_bytes(path: Path) -> int:
    """Return the size of all files of a checkpoint; 0 if it is gone."""
    try:
        return sum(file.stat().st_size for file in path.iterdir())
    except OSError:
        return 0


_LOCK_EVERY_S = 0.5


@contextmanager
def upload_lock(run_dir: Path, *, wait_s: float) -> Iterator[bool]:
    """Hold the lock of the run's uploader on this machine; yield False if it stays taken."""
    file = os.open(run_dir / "upload.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        deadline_s = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline_s:
                    yield False
                    return
                time.sleep(_LOCK_EVERY_S)
            else:
                yield True
                return
    finally:
        os.close(file)
