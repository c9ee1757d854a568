"""What a run's weights come from, and how much all of it has played, each run counted once.

A run has a list of sources: the checkpoint that it was forked from, the teachers that it was drawn
towards, and the streams of the Lakes that it learned from. Each source has the sources that its own
run had then, so the list is complete even if the other folders are gone. Code that gives a run
another source calls `add_sources`. `game-rl lineage` sums the timesteps that all of them played.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from game_rl.errors import CheckpointError
from game_rl.events import Event
from game_rl.events.event_log import read_events
from game_rl.files.durable_files import write_saved
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Natural, NaturalIfAny, Saved, file_sha256, read_saved

_FrameSkip = Annotated[int, Field(ge=1)]


class Source(Saved):
    """A run from which another run has learned."""

    kind: Literal["fork", "teacher", "lake"]
    run: str
    """Id of the run. For a Lake, the name of a stream, which is the id of the run that wrote it."""
    path: str
    """Path of the run directory, or of the Lake, at that time."""
    timesteps: Natural
    """Timesteps of the run up to which it was used."""
    began_at: Natural = 0
    """Timestep at which the run began to play itself; not 0 in a fork that keeps its counters."""
    frame_skip: _FrameSkip
    """Emulator frames in each of its timesteps."""
    waited_frames: NaturalIfAny = 0
    """Emulator frames beyond these that it has played itself, because its game's `step` plays on.
    A Lake does not count them."""
    waited_by: Annotated[tuple[tuple[int, int], ...], Field(exclude=True)] = ()
    """Timesteps of the run with its waited frames up to then, for a run whose events were read."""
    sha256: str
    """sha256 of the checkpoint's manifest, or of the Lake's mark."""
    sources: tuple["Source", ...] = ()
    """Sources of the run itself, at that time."""

    @property
    def played_timesteps(self) -> int:
        """Timesteps that this run has played itself."""
        return max(0, self.timesteps - self.began_at)

    @property
    def frames(self) -> int:
        """Emulator frames that this run has played itself."""
        return self.played_timesteps * self.frame_skip + self.waited_frames


class Lineage(Saved):
    """The start and the sources of a run."""

    began_at: Natural = 0
    """Timestep at which the run begins to play itself."""
    began_waited_frames: NaturalIfAny = 0
    """Waited frames of the run's checkpoint at that timestep."""
    sources: tuple[Source, ...] = ()

    def waited_since(self, waited_frames: int) -> int:
        """Return the waited frames that a run has played itself, from all that it counts."""
        return max(0, waited_frames - self.began_waited_frames)


def read_lineage(run_dir: RunDir) -> Lineage:
    """Return the lineage of a run; an empty one if it learned from no other run.

    Raises:
        CheckpointError: `lineage.json` is not a valid lineage.
    """
    found = read_saved(
        Lineage,
        run_dir.lineage,
        error=CheckpointError,
        fault="does not describe a run's sources",
        way_out="restore it from a copy, or delete it to forget what the run learned from",
    )
    return found or Lineage()


def write_lineage(run_dir: RunDir, lineage: Lineage) -> None:
    write_saved(run_dir.lineage, lineage)


def add_sources(run_dir: RunDir, *sources: Source) -> None:
    """Record further sources of the run; only under the run's lock.

    An entry of the same kind, run and path is replaced, as its timesteps grow with further use.
    """
    lineage = read_lineage(run_dir)
    added = {_key(source) for source in sources}
    others = [source for source in lineage.sources if _key(source) not in added]
    write_lineage(run_dir, lineage.model_copy(update={"sources": (*others, *sources)}))


def _key(source: Source) -> tuple[str, str, str]:
    return source.kind, source.run, source.path


def manifest_sha256(checkpoint: Path) -> str:
    """Return the sha256 of a checkpoint's manifest, which covers all its files."""
    return file_sha256(checkpoint / "manifest.json")


def all_sources(sources: tuple[Source, ...], depth: int = 0) -> Iterator[tuple[int, Source]]:
    """Yield all sources, direct and indirect, each with its depth, in depth-first order."""
    for source in sources:
        yield depth, source
        yield from all_sources(source.sources, depth + 1)


def counted_once(runs: Sequence[Source]) -> list[Source]:
    """Return these runs and all their sources, each once, with the most timesteps it played."""
    farthest: dict[str, Source] = {}
    for _, source in all_sources(tuple(runs)):
        known = farthest.get(source.run)
        if known is None or source.played_timesteps > known.played_timesteps:
            farthest[source.run] = source
    return list(farthest.values())


def played_in_all(run: Source) -> tuple[int, int]:
    """Return the timesteps and frames that a run and all its sources have played, each run once."""
    return _played(counted_once([run]))


def lineage_json(run: Source) -> dict[str, object]:
    timesteps, frames = played_in_all(run)
    return {"run": _as_json(run), "total_timesteps": timesteps, "total_frames": frames}


def run_as_source(
    run_dir: RunDir, timesteps: int, *, frame_skip: int, events: Sequence[Event] | None = None
) -> Source:
    """Return a run at this timestep, with its sources; the run is only read.

    Args:
        events: the run's events, if they have been read.

    Raises:
        CheckpointError: `lineage.json` is not a valid lineage.
    """
    lineage = read_lineage(run_dir)
    if events is None:
        events = read_events(run_dir)
    waited_by = tuple(
        (event.timesteps, lineage.waited_since(event.waited_frames))
        for event in events
        if event.waited_frames is not None
    )
    has_identity = run_dir.identity_file.exists()
    checkpoint = run_dir.checkpoint(timesteps)
    return Source(
        kind="fork",
        run=run_dir.identity().id if has_identity else str(run_dir.root),
        path=str(run_dir.root),
        timesteps=timesteps,
        began_at=lineage.began_at,
        frame_skip=frame_skip,
        waited_frames=_waited_at(waited_by, timesteps),
        waited_by=waited_by,
        sha256=manifest_sha256(checkpoint) if checkpoint.is_dir() else "",
        sources=lineage.sources,
    )


def _waited_at(waited_by: Sequence[tuple[int, int]], timesteps: int) -> int:
    """Return the waited frames up to a timestep, between two events in proportion."""
    if not waited_by:
        return 0
    known, frames = zip(*sorted(waited_by), strict=True)
    return round(float(np.interp(timesteps, known, frames)))


def _as_json(source: Source) -> dict[str, object]:
    """Return a source as JSON-compatible data, with the timesteps and frames that it played."""
    return {
        **source.model_dump(mode="json", exclude={"sources"}),
        "played_timesteps": source.played_timesteps,
        "frames": source.frames,
        "sources": [_as_json(each) for each in source.sources],
    }


def played_by(run_dir: RunDir, frame_skip: int) -> Source:
    """Return a run in its newest state, by its events and checkpoints, with its sources."""
    saved = [int(path.name) for path in run_dir.checkpoints_newest_first()[:1]]
    events = read_events(run_dir)
    told = [event.timesteps for event in events[-1:]]
    now = max(saved + told, default=0)
    return run_as_source(run_dir, now, frame_skip=frame_skip, events=events)


def at(run: Source, timesteps: int) -> Source:
    """Return the run as it was at this timestep, or as it is if it has not reached it."""
    then = min(run.timesteps, timesteps)
    waited_frames = _waited_at(run.waited_by, then) if run.waited_by else run.waited_frames
    return run.model_copy(update={"timesteps": then, "waited_frames": waited_frames})


def totals(runs: Sequence[Source]) -> tuple[int, int]:
    """Return the timesteps and frames that runs and everything that they come from have played.

    Each run counts with the figures that it states itself. A reader of its rows in a Lake would
    count by their numbers, of which a fork skips one for each env.
    """
    own = {run.run: run for run in runs}
    return _played([own.get(source.run, source) for source in counted_once(runs)])


def _played(counted: Sequence[Source]) -> tuple[int, int]:
    return sum(each.played_timesteps for each in counted), sum(each.frames for each in counted)
