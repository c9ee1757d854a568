"""Disk space of the files that a fork takes over from its parent."""

import json
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from game_rl.config.schema import RunConfig
from game_rl.config.values import run_at
from game_rl.errors import UsageError
from game_rl.lake.mark import Mark
from game_rl.run_dir import RunDir
from game_rl.system.machine import is_same_disk, nearest_folder

_COPIES = ("events.jsonl", "eval.csv", "evaluations.npz")


@dataclass(frozen=True, kw_only=True)
class ForkFacts:
    """The checkpoint that a fork begins from, and the files that it takes over.

    Attributes:
        began_at: the timestep at which the fork begins.
        copied_bytes: bytes of copied files: curves, tables and events.
        shared_bytes: bytes of the parent's checkpoint and of the Lake's segments that it needs.
        is_linked: whether those are hard links, which take no space again.
    """

    began_at: int
    copied_bytes: int
    shared_bytes: int
    is_linked: bool

    @property
    def new_shared_bytes(self) -> int:
        """Additional bytes of the shared files: 0 if they are links."""
        return 0 if self.is_linked else self.shared_bytes


def fork_facts(config: RunConfig) -> ForkFacts | None:
    """Return the facts of the fork that `config` describes; None if it describes no fork.

    A fork that exists does not need its parent, which may have deleted the checkpoint or be gone.

    Raises:
        UsageError: the fork does not exist yet, and its parent has no such checkpoint.
    """
    if config.fork is None:
        return None
    root, timesteps = run_at(config.fork.run)
    parent, counts_anew = RunDir(root), config.fork.counters == "new"
    saved = parent.checkpoints_newest_first()
    found = [path for path in saved if timesteps in (None, int(path.name))]
    if not found and RunDir(config.run_dir).exists():
        return _independent(timesteps or 0, counts_anew=counts_anew)
    if not found:
        raise UsageError(
            f"{root} keeps no checkpoint to fork"
            + ("" if timesteps is None else f" at timestep {timesteps:,}")
            + f"; it has: {', '.join(f'{int(path.name):,}' for path in saved) or 'none'}"
            + _still_offline(parent)
        )
    copies = [*(root / name for name in _COPIES), *parent.tensorboard.glob("*")]
    return ForkFacts(
        began_at=0 if counts_anew else int(found[0].name),
        copied_bytes=0 if counts_anew else sum(map(_size, copies)),
        shared_bytes=sum(map(_size, found[0].iterdir())) + _lake_bytes(config, found[0]),
        is_linked=is_same_disk(root, nearest_folder(config.run_dir.absolute())),
    )


def _still_offline(parent: RunDir) -> str:
    if parent.checkpoints_newest_first() or not parent.offline.checkpoints_newest_first():
        return ""
    return (
        "; it is still learning before its first timestep: bring it to timestep 0 with game-rl "
        f"train --resume {quote(str(parent.root))} --until 0, then fork that"
    )


def _independent(began_at: int, *, counts_anew: bool) -> ForkFacts:
    """Facts of an existing fork whose files are all its own."""
    return ForkFacts(
        began_at=0 if counts_anew else began_at, copied_bytes=0, shared_bytes=0, is_linked=True
    )


def _lake_bytes(config: RunConfig, checkpoint: Path) -> int:
    """Bytes of the segments that the rows of the fork's replay are in."""
    file = checkpoint / "lake.json"
    if config.lake is None or not file.is_file():
        return 0
    state = json.loads(file.read_text(encoding="utf-8"))
    if state.get("replay") is None:
        return 0
    return sum(segment.n_bytes for segment in Mark.from_json(state["mark"], source=file).segments)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
