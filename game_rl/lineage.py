"""Where a run's weights came from, and what experience is in them: `lineage.json`.

A run has a list of sources: the checkpoint that it was forked from, the teachers that it was drawn
towards, the streams of the Lakes that it learned from. Each has the sources that its own run had
then, so that the account is whole where the other folders are gone. Whoever gives a run another
source calls `add_sources`; `game-rl lineage` adds up what all of them have played.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from game_rl.errors import CheckpointError
from game_rl.run_dir import RunDir, write_atomic

_Count = Annotated[int, Field(ge=0)]
_FrameSkip = Annotated[int, Field(ge=1)]


class _Saved(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Source(_Saved):
    """A run that another one has learned from."""

    kind: Literal["fork", "teacher", "lake"]
    run: str
    """Its id; of a Lake, the name of a stream, which is the id of the run that wrote it."""
    path: str
    """Where it was then: a run directory, or a Lake."""
    timesteps: _Count
    """Up to which it was used."""
    began_at: _Count = 0
    """The timestep at which it had begun to play itself: not 0 in a fork that keeps counters."""
    frame_skip: _FrameSkip
    """Emulator frames in each of its timesteps."""
    sha256: str
    """Of the checkpoint's manifest; of a Lake, of the mark."""
    sources: tuple["Source", ...] = ()
    """Its own, as they were then."""

    @property
    def played_timesteps(self) -> int:
        """That this run has played itself."""
        return max(0, self.timesteps - self.began_at)

    @property
    def frames(self) -> int:
        """Emulator frames that this run has played itself."""
        return self.played_timesteps * self.frame_skip


class Lineage(_Saved):
    """What is known of a run's beginning."""

    began_at: _Count = 0
    """The timestep at which it begins to play itself."""
    sources: tuple[Source, ...] = ()


def read_lineage(run_dir: RunDir) -> Lineage:
    """Of a run that learned from no other, an empty one.

    Raises:
        CheckpointError: `lineage.json` was changed into something else.
    """
    try:
        return Lineage.model_validate_json(run_dir.lineage.read_bytes())
    except FileNotFoundError:
        return Lineage()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise CheckpointError(
            f"{run_dir.lineage} is no account of a run's sources: {first['msg']}; restore it from "
            "a copy, or delete it, and what the run learned from is forgotten"
        ) from None


def write_lineage(run_dir: RunDir, lineage: Lineage) -> None:
    write_atomic(run_dir.lineage, lineage.model_dump_json(indent=2) + "\n")


def add_sources(run_dir: RunDir, *sources: Source) -> None:
    """Say that the run learns from these, too; only under the lock.

    An entry of the same kind, run and path is replaced: a Lake or a teacher is used ever further.
    """
    lineage, added = read_lineage(run_dir), {_key(source) for source in sources}
    others = [source for source in lineage.sources if _key(source) not in added]
    write_lineage(run_dir, lineage.model_copy(update={"sources": (*others, *sources)}))


def _key(source: Source) -> tuple[str, str, str]:
    return source.kind, source.run, source.path


def manifest_sha256(checkpoint: Path) -> str:
    """Of the checkpoint's manifest, and so of all its files."""
    return hashlib.sha256((checkpoint / "manifest.json").read_bytes()).hexdigest()


def all_sources(sources: tuple[Source, ...], depth: int = 0) -> Iterator[tuple[int, Source]]:
    """These and theirs, each with how far away it is, in the order of a tree."""
    for source in sources:
        yield depth, source
        yield from all_sources(source.sources, depth + 1)


def counted_once(runs: Sequence[Source]) -> list[Source]:
    """These and all that they come from, each as far as any of them has used it."""
    farthest: dict[str, Source] = {}
    for _, source in all_sources(tuple(runs)):
        known = farthest.get(source.run)
        if known is None or source.played_timesteps > known.played_timesteps:
            farthest[source.run] = source
    return list(farthest.values())


@dataclass(frozen=True)
class Account:
    """What a run has played, and all that it comes from.

    Attributes:
        run: the run itself, as a source that somebody could have.
    """

    run: Source

    @property
    def counted(self) -> list[Source]:
        """Each run once, as far as it was used: what it played counts once, in whichever ways."""
        return counted_once([self.run])

    @property
    def total_timesteps(self) -> int:
        return sum(source.played_timesteps for source in self.counted)

    @property
    def total_frames(self) -> int:
        return sum(source.frames for source in self.counted)

    def to_json(self) -> dict[str, object]:
        return {
            "run": _as_json(self.run),
            "total_timesteps": self.total_timesteps,
            "total_frames": self.total_frames,
        }


def account_of(run_dir: RunDir, timesteps: int, *, frame_skip: int) -> Account:
    """Of a run at this timestep, which is only read.

    Raises:
        CheckpointError: `lineage.json` was changed into something else.
    """
    lineage = read_lineage(run_dir)
    has_identity, checkpoint = run_dir.identity_file.exists(), run_dir.checkpoint(timesteps)
    run = Source(
        kind="fork",
        run=run_dir.identity().id if has_identity else str(run_dir.root),
        path=str(run_dir.root),
        timesteps=timesteps,
        began_at=lineage.began_at,
        frame_skip=frame_skip,
        sha256=manifest_sha256(checkpoint) if checkpoint.is_dir() else "",
        sources=lineage.sources,
    )
    return Account(run)


def _as_json(source: Source) -> dict[str, object]:
    """With what this run has played itself."""
    return {
        **source.model_dump(mode="json", exclude={"sources"}),
        "played_timesteps": source.played_timesteps,
        "frames": source.frames,
        "sources": [_as_json(each) for each in source.sources],
    }
