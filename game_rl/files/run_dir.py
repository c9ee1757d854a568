"""A run's directory: paths, identity, lock, claim, how it is found, and durable writes.

An experiment restarts a member when it believes that the member's process is gone. On another
machine that may be wrong: a node that was cut off or asleep comes back. So each start takes the
claim to the run, and a process that finds another claim in the folder ends without writing.
"""

import errno
import os
import shlex
import stat
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Annotated

from filelock import FileLock, Timeout
from pydantic import Field

from game_rl.errors import ExperimentError, UsageError
from game_rl.files.durable_files import remove_leftovers, write_atomic, write_saved
from game_rl.files.pretrained import pretrained_address, stays_as_it_is
from game_rl.files.saved import Natural, Saved, read_saved

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

EXPERIMENT_VARIABLE = "GAME_RL_EXPERIMENT"
"""Environment variable of a job's process: the experiment's folder, as its user knows it."""


class Parent(Saved):
    """The checkpoint that a fork begins from."""

    id: str
    """Id of the run that wrote it."""
    timesteps: Natural
    sha256: str
    """sha256 of the checkpoint's manifest, which covers all its files."""


class RunIdentity(Saved):
    """The identity of a run, which stays when its directory is moved or copied."""

    id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    """Random id, unique among all runs."""
    created: datetime
    """When the id was drawn, in UTC."""
    parent: Parent | None = None


@dataclass(frozen=True)
class RunDir:
    """The directory of one run, which Python's functions for paths take, too."""

    root: Path

    def __fspath__(self) -> str:
        return str(self.root)

    def __str__(self) -> str:
        return str(self.root)

    def __truediv__(self, name: str) -> Path:
        return self.root / name

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
        found = read_saved(
            RunIdentity,
            file,
            error=UsageError,
            fault="does not identify a run",
            way_out="restore it from a copy, or delete it, and the run gets a new identity",
        )
        if found is not None:
            return found
        identity = RunIdentity(
            id=uuid.uuid4().hex if run_id is None else run_id,
            created=datetime.now(UTC).replace(microsecond=0),
            parent=parent,
        )
        write_saved(file, identity)
        return identity

    @property
    def events(self) -> Path:
        """The run's events, one JSON object a line; only ever appended to."""
        return self.root / "events.jsonl"

    @property
    def lineage(self) -> Path:
        """The sources that the run has learned from; see `game_rl.events.lineage`."""
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
    def places(self) -> Path:
        """How often the player was at each place, over all envs; see `envs.place_counts`."""
        return self.root / "places.npz"

    @property
    def place_screens(self) -> Path:
        """The maps of the game, joined from screens of logged episodes."""
        return self.root / "place_screens.npz"

    @property
    def potentials(self) -> Path:
        """What reward terms know of the way to go; see `explore.potentials`."""
        return self.root / "potentials.json"

    @property
    def episodes(self) -> Path:
        """The logged episodes of training and evaluations; see `envs.episode_files`."""
        return self.root / "episodes"

    @property
    def tensorboard(self) -> Path:
        return self.root / "tensorboard"

    @property
    def progress(self) -> Path:
        """The curves as a table, in SB3's format."""
        return self.root / "progress.csv"

    @property
    def monitor(self) -> Path:
        """The training's episodes, in the format of SB3's Monitor."""
        return self.root / "monitor.csv"

    @property
    def wandb_rows(self) -> Path:
        """The curves for Weights & Biases, one JSON object a line."""
        return self.root / "wandb.jsonl"

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
    def played(self) -> Path:
        """The recorded episodes that the run learns from; see `played.played_files`."""
        return self.root / "played"

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
        """The folder of clips; an agent that comes with game_rl has one beside its card."""
        if pretrained_address(self.root) is not None:
            return self.root
        return self.root / "videos"

    def clip(self, name: str) -> Path:
        """Return where a clip goes: to `videos`, or here for an agent that comes with game_rl."""
        if pretrained_address(self.root) is None:
            return self.videos / name
        return Path(f"{self.root.name}_{name}")

    @property
    def live_frames(self) -> Path:
        """What the agents do at this moment, while the run trains; see `envs.live_file`."""
        return self.root / "live.frames"

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
        return has_file(self.config)

    def refuse_agent(self) -> None:
        """Raise UsageError if it is an agent that comes with game_rl, to which nothing writes."""
        agent = pretrained_address(self.root)
        if agent is not None:
            raise UsageError(stays_as_it_is(agent))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run's lock, which the kernel releases when the process ends.

        Raises:
            UsageError: another training holds it, or it is an agent that comes with game_rl.
        """
        self.refuse_agent()
        busy = (
            f"another training is writing to {self.root}; wait until it has ended, stop it, or "
            "choose another place with --set run_dir=..."
        )
        with locked(self.root / "lock", busy=busy):
            yield

    @property
    def is_locked(self) -> bool | None:
        """Whether a process writes to the run; None if this user cannot find out."""
        return is_locked(self.root / "lock")

    def remove_leftovers(self) -> None:
        """Delete temporary files that a killed process left; only under the lock."""
        remove_leftovers(self.root)

    def size_bytes(self) -> int:
        """Return the size of all files of the run, without its Lake and its teacher's links."""
        total = 0
        for path in self.root.rglob("*"):
            if path.is_relative_to(self.lake):
                continue
            try:
                found = path.stat()
            except FileNotFoundError:  # an uploader or another helper has just renamed it
                continue
            is_linked = found.st_nlink > 1 and path.is_relative_to(self.teacher)
            total += found.st_size if stat.S_ISREG(found.st_mode) and not is_linked else 0
        return total


class _OfflineRunDir(RunDir):
    @property
    def checkpoints(self) -> Path:
        return self.root / "offline"


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


_LOCK_WAIT_S = 1.0  # `is_locked` holds a lock for an instant


@contextmanager
def locked(file: Path, *, busy: str) -> Iterator[None]:
    """Hold a lock, which the kernel releases when the process ends.

    Args:
        file: made if necessary; it stays.

    Raises:
        UsageError: another process holds it, even after a moment; the text is `busy`.
    """
    try:
        with FileLock(file, timeout=_LOCK_WAIT_S):
            yield
    except Timeout:
        raise UsageError(busy) from None


def has_file(path: Path) -> bool:
    """Whether there is such a file in its folder.

    Raises:
        OSError: this user may not enter the folder, which the error names, as the file may not
            exist.
    """
    try:
        return path.is_file()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path.parent)) from error


def is_locked(file: Path) -> bool | None:
    """Whether a process holds the lock, on this machine or, in a shared folder, on another.

    None if this user cannot find out, because the file cannot be read.
    """
    try:
        if not file.exists():
            return False
        with FileLock(file, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # a file that this user may at most read
        return _is_share_refused(file)


def _is_share_refused(file: Path) -> bool | None:
    """Do the same as `is_locked` without the right to write: the writer's lock allows no share."""
    if fcntl is None:
        return None
    try:
        with FileIO(file, "r") as shared:
            fcntl.flock(shared, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


_SLOTS = 64
HeldLock = FileIO | ExitStack


def file_lock(file: Path, *, shared: bool) -> HeldLock:
    """Lock a file that others may read, as one of many or alone, until what is returned is closed.

    Its content stays. The kernel releases the lock when the process ends.

    Raises:
        BlockingIOError: another process holds a lock that excludes this one.
    """
    if fcntl is None:
        return _slots_held(file, shared=shared)
    held = FileIO(file, "r+")  # network file systems lock only what is open for writing
    try:
        fcntl.flock(held, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BaseException:
        held.close()
        raise
    return held


def _slots_held(file: Path, *, shared: bool) -> ExitStack:
    """Do the same with locks that only one process can hold: one of them is a share, all the file.

    At most 64 processes can share it.
    """
    slots = file.with_name(f".{file.name}.locks")
    slots.mkdir(exist_ok=True)
    with ExitStack() as held:
        for number in range(_SLOTS):
            slot = FileLock(slots / f"{number:02d}", thread_local=False)
            try:
                held.enter_context(slot.acquire(timeout=0))
            except Timeout:
                if not shared:
                    break
            else:
                if shared:
                    return held.pop_all()
        else:
            if not shared:
                return held.pop_all()
    raise BlockingIOError(errno.EWOULDBLOCK, "locked by another process", str(file))


@contextmanager
def upload_lock(run_dir: Path, *, wait_s: float) -> Iterator[bool]:
    """Hold the lock of the run's uploader on this machine; yield False if it stays taken."""
    lock = FileLock(run_dir / "upload.lock", timeout=wait_s)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
