"""What a fork has of its parent when it begins, on disk."""

import json
from dataclasses import dataclass
from pathlib import Path

from game_rl.config.run_at import run_at
from game_rl.config.schema import RunConfig
from game_rl.errors import UsageError
from game_rl.lake.mark import Mark
from game_rl.run_dir import RunDir
from game_rl.system.machine import is_same_disk

_COPIES = ("events.jsonl", "eval.csv", "evaluations.npz")


@dataclass(frozen=True, kw_only=True)
class ForkFacts:
    """A checkpoint that a run begins from.

    Attributes:
        began_at: the fork's first timestep; what comes before its parent has played.
        copied_bytes: of curves, tables and events.
        shared_bytes: of files that are its parent's too: a checkpoint, and segments of a Lake.
        is_linked: they take no space again.
    """

    began_at: int
    copied_bytes: int
    shared_bytes: int
    is_linked: bool

    @property
    def new_shared_bytes(self) -> int:
        """What files that are the parent's too take again: a linked one is counted once."""
        return 0 if self.is_linked else self.shared_bytes


def fork_facts(config: RunConfig) -> ForkFacts | None:
    """Of the fork of `config`; None if it is none.

    A fork that was made goes on without its parent, which may delete its checkpoint, or be gone.

    Raises:
        UsageError: it is still to be made, and its parent has no such checkpoint.
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
        is_linked=is_same_disk(root, _nearest_folder(config.run_dir.absolute())),
    )


def _still_offline(parent: RunDir) -> str:
    if parent.checkpoints_newest_first() or not parent.offline.checkpoints_newest_first():
        return ""
    return (
        f"; it is still learning before its first timestep: game-rl train --resume {parent.root} "
        "--until 0 ends that, and timestep 0 can be forked"
    )


def _independent(began_at: int, *, counts_anew: bool) -> ForkFacts:
    """Of a fork whose files are all its own by now."""
    return ForkFacts(
        began_at=0 if counts_anew else began_at, copied_bytes=0, shared_bytes=0, is_linked=True
    )


def _lake_bytes(config: RunConfig, checkpoint: Path) -> int:
    """Of the segments that the fork's replay has."""
    file = checkpoint / "lake.json"
    if config.lake is None or not file.is_file():
        return 0
    state = json.loads(file.read_text())
    if state.get("replay") is None:
        return 0
    return sum(segment.n_bytes for segment in Mark.from_json(state["mark"], source=file).segments)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _nearest_folder(path: Path) -> Path:
    """That exists already."""
    return next((p for p in (path, *path.parents) if p.exists()), path)
