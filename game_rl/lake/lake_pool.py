"""A pool that draws from several Lakes as if they were one, and follows them as they grow."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.config.learn_from import agent_of
from game_rl.errors import LakeError
from game_rl.events.lineage import Source
from game_rl.features.feature import Feature, Part, PlannedRun
from game_rl.lake.lake_reader import TABLE_BYTES, LakeReader, RowsLostError
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.sampler import Batch
from game_rl.lake.view import Indices

_BEFORE_THE_FIRST_CHECKPOINT = "start"


@dataclass(frozen=True)
class Drawn:
    """Rows of a pool, in the order in which they were drawn.

    Attributes:
        batch: the rows. Its `streams` are positions in the pool's `streams`.
        ages: how many timesteps of all envs the row's run played after it.
    """

    batch: Batch
    ages: NDArray[np.int64]


@dataclass(frozen=True)
class _Parts:
    """The rows of each stream in each Lake, as arrays, so that draws need no loop over them.

    Attributes:
        readers: int64 [n_parts], position of the Lake among the pool's readers.
        streams: int64 [n_parts], position of the stream among the pool's streams.
        firsts: int64 [n_parts], rank of the first row in the Lake's view.
        lengths: int64 [n_parts], number of rows.
        n_envs: int64 [n_parts].
        ends: number after the newest row of each env, of one part after another.
    """

    readers: Indices
    streams: Indices
    firsts: Indices
    lengths: Indices
    n_envs: Indices
    ends: Indices

    @classmethod
    def of(cls, readers: Sequence[LakeReader], streams: Sequence[str]) -> "_Parts":
        places = []
        ends = []
        for number, reader in enumerate(readers):
            view = reader.view
            first = 0
            for name, edge in zip(view.streams, view.stream_edges.tolist(), strict=True):
                if edge > first:
                    places.append((number, streams.index(name), first, edge - first))
                    ends.append(_ends(view.sequences, name))
                first = edge
        of_readers, of_streams, firsts, lengths = np.array(places, np.int64).reshape(-1, 4).T.copy()
        return cls(
            of_readers,
            of_streams,
            firsts,
            lengths,
            n_envs=np.array([len(each) for each in ends], np.int64),
            ends=np.concatenate([np.empty(0, np.int64), *ends]),
        )

    @cached_property
    def first_ends(self) -> Indices:
        """Position in `ends` at which each part's begin."""
        return np.cumsum(self.n_envs) - self.n_envs


class Following:
    """Decides when to look into the Lakes again, and counts the rows that were seen.

    A run that writes a Lake may be taken back to its checkpoint, and then plays the same timesteps
    again. A row is counted by its number, so it counts once.

    Args:
        every_s: seconds between two looks; longer if a look takes more than a twentieth of that.
        check: is called when a new stream appears; raises LakeError if it is of another game.
    """

    def __init__(self, every_s: float, *, check: Callable[[], object] = lambda: None) -> None:
        self._every_s = every_s
        self.check = check
        self._next_at = 0.0
        self._ends: dict[str, int] = {}
        self._ages_s: deque[float] = deque(maxlen=_RECENT_DRAWS)

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._next_at

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure a look into the Lakes, and decide when the next is due."""
        began = time.monotonic()
        yield
        now = time.monotonic()
        self._next_at = now + max(self._every_s, (now - began) / _MOST_OF_THE_TIME)

    def saw(self, sequences: Mapping[str, int]) -> None:
        """Record the number after the newest row of each sequence, by "stream/env"."""
        for name, end in sequences.items():
            self._ends[name] = max(end, self._ends.get(name, 0))

    def drew(self, sealed_at: float) -> None:
        """Record a draw, and when the newest row available to it was sealed, by `time.time`."""
        self._ages_s.append(max(0.0, time.time() - sealed_at))

    @property
    def n_rows(self) -> int:
        """Rows that the Lakes' runs have played, up to the newest that this run has seen."""
        return sum(self._ends.values())

    @property
    def newest_age_s(self) -> float | None:
        """Median age of the newest available row over the last thousand draws."""
        return median(self._ages_s) if self._ages_s else None

    def state(self) -> dict[str, int]:
        """Return what was seen, as JSON-compatible data."""
        return dict(self._ends)

    def load_state(self, state: Mapping[str, int]) -> None:
        self._ends = dict(state)


class LakePool:
    """Draws rows of some Lakes by their identity (stream, env, number), with replacement.

    Args:
        agents: relative share of the draws that each stream gets, whatever its length, by the id of
            the stream or its beginning. Streams whose ids begin alike share one, in proportion to
            their rows; streams that are not named get none. If None, all rows are equally likely,
            so a stream that is twice as long is drawn twice as often.
        following: given if the Lakes are followed as they grow. They may then be empty, or lack a
            stream until it appears.

    Raises:
        LakeError: from any method, if a Lake is damaged or empty, or the Lakes lack a stream that
            `agents` names.
    """

    def __init__(
        self,
        readers: Sequence[LakeReader],
        *,
        agents: Mapping[str, float] | None,
        following: Following | None = None,
    ) -> None:
        self.readers = readers
        self.following = following
        self._agents = agents
        self.streams: list[str] = []
        self._parts = _Parts.of([], [])
        self.is_open = False

    @property
    def has_rows(self) -> bool:
        """Whether anything can be drawn; once open, always True unless the Lakes are followed."""
        return bool(len(self._parts.lengths)) and (
            self._agents is None or bool(self._chances.any())
        )

    def follow(self) -> None:
        """Renew the views with all that is sealed now, if a look is due."""
        if self.following is not None and self.following.is_due:
            with self.following.timed():
                for reader in self.readers:
                    reader.follow()
                self._arrange()

    def draw(self, rng: np.random.Generator, n: int) -> Drawn:
        """Draw `n` rows."""
        while True:
            if not self.has_rows:
                raise _empty(self.readers[0])
            try:
                drawn = self._taken(*self._chosen(rng, n))
            except RowsLostError:
                self._arrange()
                continue
            if self.following is not None:
                self.following.drew(max(reader.sealed_at for reader in self.readers))
            return drawn

    def renew(self, name: str) -> None:
        """Renew the views with all that is sealed now, and pin them until `unpin(name)`.

        A checkpoint begins with this.
        """
        for reader in self.readers:
            reader.renew(name)
        self._arrange()
        if name != _BEFORE_THE_FIRST_CHECKPOINT:
            self.unpin(_BEFORE_THE_FIRST_CHECKPOINT)

    def unpin(self, name: str) -> None:
        for reader in self.readers:
            reader.unpin(name)

    def begin(self, checkpoints: Iterable[str]) -> None:
        """Prepare for the first draw; call it after `load_state` if there is a state.

        Args:
            checkpoints: names of the existing checkpoints, whose pins are kept.
        """
        names = list(checkpoints)
        for reader in self.readers:
            reader.keep_pins(names)
        if not self.is_open:
            self.renew(_BEFORE_THE_FIRST_CHECKPOINT)

    def close(self) -> None:
        """End the draws; the pins of checkpoints stay."""
        if self.following is not None:
            for reader in self.readers:
                reader.stop_following()

    def release(self) -> None:
        """Remove all pins, for a run that leaves nothing behind."""
        for reader in self.readers:
            reader.keep_pins(())

    def sources(self, *, frame_skip: int) -> list[Source]:
        """Return each stream of the current views as a source of a lineage.

        Args:
            frame_skip: frame skip of the envs that played the streams.
        """
        return [
            Source(
                kind="lake",
                run=stream,
                path=str(reader.path),
                timesteps=int(_ends(reader.mark.sequences, stream).sum()),
                frame_skip=frame_skip,
                sha256=sha256(reader.mark.to_json().encode()).hexdigest(),
            )
            for reader in self.readers
            for stream in reader.view.streams
        ]

    def state(self) -> list[dict[str, Any]]:
        """Return the views as JSON-compatible data."""
        return [reader.state() for reader in self.readers]

    def load_state(self, states: Sequence[Mapping[str, Any]], tell: Callable[[str], None]) -> None:
        """Restore the views of a checkpoint.

        The Lakes may have been moved. If there are as many as before, they are matched by their
        order, else by their path.
        """
        by_path = {state["path"]: state for state in states}
        is_same = len(states) == len(self.readers)
        for number, reader in enumerate(self.readers):
            state = states[number] if is_same else by_path.get(str(reader.path))
            if state is None:
                tell(f"{reader.path} is new to this run, which learns from it from now on")
                reader.renew(_BEFORE_THE_FIRST_CHECKPOINT)
            else:
                reader.load_state(state)
        self._arrange()

    # ------------------------------------------------------------------ drawing

    def _chosen(self, rng: np.random.Generator, n: int) -> tuple[Indices, Indices]:
        """Draw `n` rows, and return the part of each and its place there."""
        lengths = self._parts.lengths
        if self._agents is None:
            ends = np.cumsum(lengths)
            rows = rng.integers(ends[-1], size=n)
            parts = np.searchsorted(ends, rows, side="right")
            return parts, rows - (ends - lengths)[parts]
        parts = rng.choice(len(lengths), n, p=self._chances)
        return parts, rng.integers(lengths[parts])

    def _taken(self, parts: Indices, places: Indices) -> Drawn:
        readers = self._parts.readers[parts]
        ranks = places + self._parts.firsts[parts]
        used = np.unique(readers).tolist()
        batches = [self.readers[number].take(ranks[readers == number]) for number in used]
        batch = batches[0]
        if len(batches) > 1:
            order = np.argsort(np.argsort(readers, kind="stable"), kind="stable")
            names = [field.name for field in fields(Batch)]
            batch = Batch(*(_joined([getattr(b, n) for b in batches], order) for n in names))
        batch.streams[:] = self._parts.streams[parts]
        return Drawn(batch, self._ages(parts, batch))

    def _ages(self, parts: Indices, batch: Batch) -> NDArray[np.int64]:
        ends = self._parts.ends[self._parts.first_ends[parts] + batch.envs]
        ages: NDArray[np.int64] = (ends - batch.numbers) * self._parts.n_envs[parts]
        return ages

    # ------------------------------------------------------------------ the views

    def _arrange(self) -> None:
        self.is_open = True
        for reader in self.readers:
            if self.following is not None:
                self.following.saw(reader.mark.sequences)
            elif not len(reader.view):
                raise _empty(reader)
        before = self.streams
        self.streams = sorted({name for reader in self.readers for name in reader.view.streams})
        if self.following is not None and not set(self.streams) <= set(before):
            self.following.check()
        self._parts = _Parts.of(self.readers, self.streams)
        if self._agents is not None:
            may_come = self.following is not None
            self._chances = _chances(self._agents, self.streams, self._parts, may_come=may_come)


def _joined(parts: Sequence[Any], order: Indices) -> Any:  # noqa: ANN401
    """Concatenate arrays, or dicts of arrays by name, and put the rows in this order."""
    if isinstance(parts[0], Mapping):
        return {name: _joined([part[name] for part in parts], order) for name in parts[0]}
    return np.concatenate(parts)[order]


def _ends(sequences: Mapping[str, int], stream: str) -> NDArray[np.int64]:
    numbers = {
        int(name.rpartition("/")[2]): end
        for name, end in sequences.items()
        if name.rpartition("/")[0] == stream
    }
    return np.array([numbers.get(env, 0) for env in range(max(numbers, default=0) + 1)])


def _empty(reader: LakeReader) -> LakeError:
    return LakeError(
        f"{reader.path} has no sealed transitions; let the run that writes it save a "
        "checkpoint first, or take it out of algorithm.learn_from.lakes"
    )


def _chances(
    agents: Mapping[str, float], streams: Sequence[str], parts: _Parts, *, may_come: bool
) -> NDArray[np.float64]:
    """Return the chance of each part.

    A share that several streams have, or one stream in two Lakes, is divided in proportion to rows.

    Args:
        may_come: whether streams with a share may still appear. Until one does, all chances are 0.
    """
    names = [agent_of(agents, stream) for stream in streams]
    unknown = [name for name in agents if name not in names]
    if unknown and not may_come:
        raise LakeError(
            f"algorithm.learn_from.agents names {unknown[0]}, but the Lakes have the streams "
            f"{', '.join(streams)}; a stream is named by the id in its run's run.json"
        )
    rows = Counter[str | None]()
    of_parts = [names[stream] for stream in parts.streams.tolist()]
    lengths = parts.lengths.tolist()
    for name, length in zip(of_parts, lengths, strict=True):
        rows[name] += length
    shares = [
        0.0 if name is None else agents[name] * length / rows[name]
        for name, length in zip(of_parts, lengths, strict=True)
    ]
    if not sum(shares) > 0 and may_come:
        return np.zeros(len(shares))
    if not sum(shares) > 0:
        raise LakeError(
            "algorithm.learn_from.agents gives no stream a share; give at least one a positive "
            "share"
        )
    chances: NDArray[np.float64] = np.array(shares) / sum(shares)
    return chances


_MOST_OF_THE_TIME = 0.05  # largest share of the time that looking may take
_RECENT_DRAWS = 1_000


VIEW_BYTES = 3 << 20
"""Memory of a view of a Lake. Names, digests and ends of 500 files took 2.2 MiB; the number of rows
does not matter."""


class LearningFeature(Feature):
    """The Lakes that a run learns from."""

    def memory(self, run: PlannedRun) -> Iterable[Part]:
        """Return the memory of their views, the cache of decompressed blocks, and drawn rows.

        Drawn stacks exist packed, unpacked, as a batch, and joined with those of the run's own
        replay.
        """
        settings = run.config.algorithm.lakes
        if settings is None:
            return ()
        observation_format = run.observation_format
        schema = LakeSchema.of(observation_format, n_actions=run.n_actions)
        block = schema.block_frames * observation_format.row_bytes
        blocks = run.learned_blocks
        cache = min(settings.cache_mb * 10**6 + len(settings.lakes) * block, blocks * block)
        packed = observation_format.stack * observation_format.row_bytes
        batch = run.config.algorithm.batch_size
        most = batch  # rows of Lakes in one batch
        if settings.offline is None:
            most = min(batch, int(batch * (1 - settings.least_own_share)) + 1)
        drawn = 2 * most * (packed + 2 * observation_format.nbytes)
        joined = 2 * batch * observation_format.nbytes
        views = len(settings.lakes) * VIEW_BYTES
        return (Part("Lakes that are learned from", views + cache + drawn + joined),)

    def removed_bytes(self, run: PlannedRun, *, plays: bool) -> int:  # noqa: ARG002
        """Return the bytes of unnamed table files, which vanish with the process.

        There are three copies at most: the present table and, while a new one is sorted, its
        unordered and its ordered file.
        """
        return 3 * run.learned_blocks * TABLE_BYTES
