"""The Lake: replay on disk, larger than memory.

A Lake is a folder with `lake.json`, the segments of many writers and `pins/`. A writer owns the
files of its stream, and a reader opens sealed segments. These never change, so readers need no
locks. A checkpoint keeps a `Mark` of the Lake, which takes a few kilobytes, and pins it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock

from game_rl.errors import LakeError, NoLakeError
from game_rl.files.durable_files import link_file, rename, sync_directory, write_atomic
from game_rl.files.run_dir import HeldLock, file_lock
from game_rl.lake.horizon import NO_LIMIT, Capacity, Firsts, Horizon, highest, is_of, raised
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.mark import NOTHING, Mark, MarkedSegment
from game_rl.lake.segment import (
    COPY,
    OPEN,
    SEALED,
    SHELVED,
    DamagedFileError,
    SealedSegment,
    SegmentName,
    check_stream,
    read_index,
    recovered,
    superseded,
)
from game_rl.lake.view import LakeView, ends_of

_MOST_LISTINGS = 20


def other_level(path: Path, there: int, wanted: int) -> str:
    """Return an error's text about a Lake that was made with another compression level."""
    return (
        f"found {wanted}, but the Lake at {path} was made with level {there} and keeps it; "
        f"write {there}, or name another folder with lake.path"
    )


@dataclass
class Lake:
    """A Lake's folder; make one with `create` or `open`.

    Attributes:
        keeps_indices: whether the indices of segments stay in memory, or are read when needed.
    """

    path: Path
    schema: LakeSchema
    capacity: Capacity = NO_LIMIT
    keeps_indices: bool = True
    _known: dict[str, SealedSegment] = field(default_factory=dict, repr=False)

    @classmethod
    def create(cls, path: Path, schema: LakeSchema, *, capacity: Capacity = NO_LIMIT) -> "Lake":
        """Create a Lake, or open the one at `path` if it has this schema.

        Raises:
            LakeError: the Lake at `path` has another schema.
        """
        description = path / "lake.json"
        path.mkdir(parents=True, exist_ok=True)
        if not description.exists():
            with FileLock(path / ".lake-lock"):
                if not description.exists():
                    write_atomic(description, schema.to_json())
        for left in path.glob(".*lake-*"):  # a process that waits for this lock finds lake.json
            left.unlink(missing_ok=True)
        lake = cls.open(path, capacity=capacity)
        if lake.schema != schema:
            if lake.schema.arrays is not None:
                raise LakeError(
                    f"{path} has {lake.schema.description}, not {schema.description}: it was "
                    "imported from a replay buffer; name another folder"
                )
            if replace(lake.schema, level=schema.level) == schema:
                level = other_level(path, lake.schema.level, schema.level)
                raise LakeError(f"lake.compression_level: {level}")
            if lake.schema.parts is not None or schema.parts is not None:
                what = lake.schema.difference(schema) or "its blocks have another size"
                raise LakeError(
                    f"{path}: {what}; name another folder, or give the run the env.observation, "
                    "env.frame_stack and parts that the Lake was made with"
                )
            raise LakeError(
                f"{path} has rows of {lake.schema}, not of {schema}; name another folder, or give "
                "the run the observation that the Lake was made with"
            )
        return lake

    @classmethod
    def open(
        cls, path: Path, *, capacity: Capacity = NO_LIMIT, keeps_indices: bool = True
    ) -> "Lake":
        """Open an existing Lake.

        Raises:
            LakeError: `path` is not a Lake, or its lake.json is damaged.
        """
        try:
            text = (path / "lake.json").read_text(errors="replace", encoding="utf-8")
        except OSError:
            own = path / "lake"  # of a run directory
            meant = own if (own / "lake.json").is_file() else "the folder of one, runs/my_run/lake"
            raise NoLakeError(f"{path} is not a Lake: it has no lake.json; name {meant}") from None
        schema = LakeSchema.from_json(text, source=path / "lake.json")
        return cls(path, schema, capacity, keeps_indices)

    def files(self, suffix: str) -> list[Path]:
        """Return the files with this suffix by name: by stream, then in the order of writing."""
        return sorted(self.path.glob(f"*{suffix}"))

    def view(self, mark: Mark | None = None) -> LakeView:
        """Return a view of what is sealed now, or of exactly what was visible at `mark`.

        Raises:
            LakeError: a segment is damaged, or one of the mark's segments is missing or was
                replaced.
        """
        if mark is not None:
            segments = [self._marked(marked) for marked in mark.segments]
            return LakeView(self.schema, segments, mark.sequences, mark.horizon)
        segments = self._sealed()
        ends = ends_of(segments)
        horizon = self._seen_from(segments)
        # a sequence whose files are all gone continues after its hidden rows
        sequences = horizon | {name: max(end, horizon.get(name, 0)) for name, end in ends.items()}
        return LakeView(self.schema, _seen(segments, horizon), sequences, horizon)

    def rows_of(self, mark: Mark) -> LakeView:
        """Return a view of the rows of `mark` that still exist, whatever files they are in now.

        Raises:
            LakeError: a segment is damaged.
        """
        segments = self._sealed()
        horizon = highest(self._horizon.firsts(), mark.horizon)
        limits = mark.sequences
        return LakeView(self.schema, _seen(segments, horizon), limits, horizon, limits)

    def _seen_from(self, segments: Sequence[SealedSegment]) -> Firsts:
        """Return the horizon on disk, raised as far as the capacity now requires."""
        firsts = self._horizon.firsts()
        most = self.capacity.transitions
        return firsts if most is None else raised(firsts, ends_of(segments), most)

    def _sealed(self) -> list[SealedSegment]:
        """Return the sealed segments.

        They are listed again if another process evicted some before they were read.
        """
        for _ in range(_MOST_LISTINGS):
            known, is_whole = self._listed()
            if is_whole:
                break
        self._known = known
        return list(known.values())

    def _listed(self) -> tuple[dict[str, SealedSegment], bool]:
        """Return the sealed segments, and whether all listed files were still there."""
        known = {}
        files = self.files(SEALED)
        merged = superseded(files)
        wanted = [path for path in files if path not in merged]
        for path in wanted:
            try:
                known[path.name] = self._known.get(path.name) or self._read(path)
            except FileNotFoundError:
                continue
        return known, len(known) == len(wanted)

    def _read(self, path: Path) -> SealedSegment:
        segment = read_index(path)
        return segment if self.keeps_indices else replace(segment, kept=None)

    def _marked(self, marked: MarkedSegment) -> SealedSegment:
        path = self._place_of(marked)
        try:
            segment = self._read(path)
        except FileNotFoundError:
            raise LakeError(
                f"the checkpoint needs {self.path / marked.name}, which is missing; use a newer "
                "checkpoint, or start with an empty Lake"
            ) from None
        if segment.sha256 != marked.sha256:
            raise DamagedFileError(path, "it is not the segment that the checkpoint names")
        return segment

    def _place_of(self, marked: MarkedSegment) -> Path:
        path = self.path / marked.name
        return path if path.exists() else path.with_suffix(SHELVED)

    def mark(self, stream: str | None = None) -> Mark:
        """Return a mark of all sealed data, or of one stream's. Seal the writers first.

        Nothing is written.
        """
        view = self.view()
        return Mark(
            tuple(_marked(s) for s in view.segments if _is_of(stream, s.path)),
            {name: end for name, end in view.sequences.items() if is_of(stream, name)},
            {name: first for name, first in view.horizon.items() if is_of(stream, name)},
        )

    # ------------------------------------------------------------------ checkpoints

    @property
    def _pins(self) -> Path:
        return self.path / "pins"

    def pin(self, name: str, stream: str | None = None, *, before: Mark = NOTHING) -> Mark:
        """Mark the Lake or one stream, and keep what the mark names until `unpin(name)`.

        Args:
            before: mark of ended streams that this one continues; it is joined to the new mark. A
                pin must keep its segments already.

        Raises:
            LakeError: the Lake is being compacted, or damaged.
        """
        self._pins.mkdir(exist_ok=True)
        with shared_lock(self.path):
            while True:
                mark = self.mark(stream)
                whole = before.joined(mark)
                write_atomic(self._pins / f"{name}.json", whole.to_json())
                # A process that evicted a segment before it saw this pin may delete it: mark again.
                if all((self.path / segment.name).exists() for segment in mark.segments):
                    return whole

    def keep(self, name: str, mark: Mark) -> None:
        """Keep what this mark names until `unpin(name)`; its segments must exist."""
        self._pins.mkdir(exist_ok=True)
        write_atomic(self._pins / f"{name}.json", mark.to_json())

    def unpin(self, name: str) -> None:
        (self._pins / f"{name}.json").unlink(missing_ok=True)
        self._forget_shelved()

    def keep_pins(self, names: Iterable[str], *, among: str = "") -> None:
        """Unpin all but these, when a run starts.

        It repairs a crash between the deletion of a checkpoint and its unpinning. Pins whose names
        do not begin with `among` belong to other runs and are left.
        """
        kept = set(names)
        for pin in self._pins.glob(f"{among}*.json"):
            if pin.stem not in kept:
                pin.unlink(missing_ok=True)
        self._forget_shelved()

    def link_to(self, target: Path, mark: Mark, *, pin: str) -> None:
        """Give a fork what `mark` names: links in the Lake at `target`, which are pinned there.

        Sealed segments never change, so both Lakes can have them. The Lake at `target` is created
        if necessary.

        Raises:
            LakeError: a segment is missing or was replaced, or the rows of `target` have another
                form.
            OSError: for example, the disk is full.
        """
        self.view(mark)
        lake = Lake.create(target, self.schema)
        for marked in mark.segments:
            place = target / marked.name
            if not place.exists() and not place.with_suffix(SHELVED).exists():
                link_file(self._place_of(marked), place)
        lake._horizon.raise_to(mark.horizon)
        lake.keep(pin, mark)
        sync_directory(target)

    def pinned(self) -> set[str]:
        """Return the names of the segments in pinned marks."""
        names: set[str] = set()
        for pin in self._pins.glob("*.json"):
            try:
                text = pin.read_text(errors="replace", encoding="utf-8")
            except FileNotFoundError:
                continue
            names.update(s.name for s in Mark.from_json(text, source=pin).segments)
        return names

    def resume(self, mark: Mark, stream: str | None = None) -> None:
        """Take the Lake, or one stream, back to `mark`; no process may be writing it.

        Later data is deleted, or shelved if another pinned mark has it. What the mark has of other
        streams must exist, and is not changed.

        Raises:
            LakeError: a segment of the mark is missing or was replaced, or the Lake is being
                compacted. Nothing is changed then.
        """
        with shared_lock(self.path):
            self.view(mark)
            self._go_back(mark, stream)

    def _go_back(self, mark: Mark, stream: str | None) -> None:
        names = {segment.name for segment in mark.segments}
        for path in self.files(OPEN) + self.files(COPY):
            if _is_of(stream, path):
                path.unlink()
        for path in self.files(SEALED):
            if path.name not in names and _is_of(stream, path):
                self._shelve(path)
        for name in names:
            shelved = (self.path / name).with_suffix(SHELVED)
            if _is_of(stream, shelved) and shelved.exists():
                rename(shelved, self.path / name)
        sync_directory(self.path)
        firsts = {name: first for name, first in mark.horizon.items() if is_of(stream, name)}
        self._horizon.set_back(stream, firsts)

    def delete_stream(self, stream: str) -> None:
        """Delete all rows and pins of this stream; no process may be writing it.

        Segments that a pinned mark of another stream has are shelved.

        Raises:
            LakeError: the Lake is being compacted.
        """
        with shared_lock(self.path):
            for pin in self._pins.glob(f"{check_stream(stream)}.*.json"):
                pin.unlink(missing_ok=True)
            self._go_back(Mark((), {}), stream)
            self._forget_shelved()

    def recover(self, stream: str) -> list[SealedSegment]:
        """Seal what a crash left of this stream; no process may be writing it.

        Raises:
            OSError: for example, the disk is full. The files that are not sealed yet stay.
        """
        for copy in self.path.glob(f"{check_stream(stream)}.*{COPY}"):
            copy.unlink()
        found = [recovered(path) for path in sorted(self.path.glob(f"{stream}.*{OPEN}"))]
        return [segment for segment in found if segment is not None]

    # ------------------------------------------------------------------ capacity

    def evict(self) -> None:
        """Evict the oldest data until the Lake is within its capacity.

        For a limit of transitions, rows before the horizon are hidden. Files with no other rows are
        deleted, or shelved if a pinned mark has them. For a limit of bytes, whole files are
        deleted, except those that a pinned mark has.
        """
        if self.capacity.transitions is not None:
            segments = self._sealed()
            horizon = self._seen_from(segments)
            seen = {segment.path for segment in _seen(segments, horizon)}
            for segment in segments:
                if segment.path not in seen:
                    self._shelve(segment.path)
            self._horizon.raise_to(horizon)
        while self.capacity.n_bytes is not None and self.n_bytes() > self.capacity.n_bytes:
            if not self.evict_oldest():
                break

    def evict_oldest(self) -> bool:
        """Delete the oldest segment that no pinned mark has; False if there is none.

        Shelved segments that no pinned mark has go first, all of them. The newest segment stays.
        """
        if self._forget_shelved():
            return True
        pinned = self.pinned()
        for segment in self._oldest_first()[:-1]:
            if segment.path.name not in pinned:
                self._shelve(segment.path)
                return True
        return False

    def n_bytes(self) -> int:
        """Return the bytes of all segments on disk."""
        return sum(_size(p) for suffix in (SEALED, SHELVED, OPEN) for p in self.files(suffix))

    def _oldest_first(self) -> list[SealedSegment]:
        """Return the segments by how many numbers their newest row is behind its sequence's end."""
        segments = self._sealed()
        ends = ends_of(segments)

        def age(segment: SealedSegment) -> int:
            return min(ends[name] - end for name, end in segment.ends.items())

        return sorted(segments, key=lambda segment: (-age(segment), segment.path.name))

    @property
    def _horizon(self) -> Horizon:
        return Horizon(self.path)

    def _forget_shelved(self) -> bool:
        """Delete what was shelved for checkpoints that are gone; False if there is nothing."""
        pinned = self.pinned()
        shelved = [p for p in self.files(SHELVED) if p.with_suffix(SEALED).name not in pinned]
        for path in shelved:
            path.unlink(missing_ok=True)
        return bool(shelved)

    def _shelve(self, path: Path) -> None:
        """Hide a segment from readers, and delete it unless a pinned mark has it.

        The pins must be read after the rename, because `pin` checks for the segments after it has
        written its pin.
        """
        shelved = path.with_suffix(SHELVED)
        try:
            rename(path, shelved)
        except FileNotFoundError:
            return  # another process was first
        if path.name not in self.pinned():
            shelved.unlink(missing_ok=True)


def _is_of(stream: str | None, path: Path) -> bool:
    return stream is None or SegmentName.of(path).stream == stream


def _seen(segments: Sequence[SealedSegment], horizon: Mapping[str, int]) -> list[SealedSegment]:
    """Return the segments with a visible row.

    A segment of a Lake of arrays may have rows but no transition, so its end can be 0.
    """
    return [
        segment
        for segment in segments
        if any(end > horizon.get(name, -1) for name, end in segment.ends.items())
    ]


def _marked(segment: SealedSegment) -> MarkedSegment:
    return MarkedSegment(segment.path.name, segment.sha256, segment.n_bytes, segment.n_transitions)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def shared_lock(lake: Path) -> HeldLock:
    """Take the lock with which streams are written or changed beside others, until it is closed.

    Raises:
        LakeError: another process holds the Lake alone.
    """
    busy = f"{lake} is being compacted; wait until that has finished, then start again"
    return _locked(lake, busy, shared=True)


def exclusive_lock(lake: Path) -> HeldLock:
    """Take the lock under which no other process can write the Lake, until it is closed.

    Raises:
        LakeError: another process holds a lock, shared or alone.
    """
    busy = (
        f"{lake} is being written or compacted by another process; wait until that has ended, "
        "then start again"
    )
    return _locked(lake, busy, shared=False)


def _locked(lake: Path, busy: str, *, shared: bool) -> HeldLock:
    try:
        return file_lock(lake / "lake.json", shared=shared)
    except BlockingIOError:
        raise LakeError(busy) from None
