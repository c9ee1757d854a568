"""The files of a run's logged episodes: their format, and the writer.

The folder has numbered segments, each a sequence of blocks. A block is a header with two lengths
and two checksums, then a compressed description and the compressed actions. The first block of a
segment says under what the episodes after it were played (`PlayedUnder`). Each other block has some
episodes: a table, column by column, and the actions one after another. Behind these are the states
of a pool in which some of them began, each once in a segment.

Segments are only appended to, and each session begins a new one. A kill or a full disk tears at
most the last block of a segment, and readers leave out what is torn. When all segments together
would grow beyond a limit, the oldest are deleted.
"""

import json
import math
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from game_rl.config.schema import RunConfig
from game_rl.emulator.saved_state import PACKED_STATE_BYTES
from game_rl.envs.episode_starts import PoolBeginning
from game_rl.episodes.button_log import EpisodeLog
from game_rl.errors import UsageError
from game_rl.features.feature import Feature, Part, PlannedRun
from game_rl.files.durable_files import sync_directory
from game_rl.files.saved import Saved, Sha256, parse_saved
from game_rl.games.definition import Game
from game_rl.system.packages import installed_versions, source_sha256

Kind = Literal["training", "evaluation", "final"]
KINDS: tuple[Kind, ...] = ("training", "evaluation", "final")

NO_NAME = -1
ROW = np.dtype(
    [
        ("number", "<i8"),  # of the episode, from 1 on
        ("timesteps", "<i8"),  # of the run when it ended
        ("kind", "u1"),  # index of KINDS
        ("deterministic", "u1"),
        ("env", "<u4"),
        ("length", "<u4"),  # timesteps of the agent
        ("reward", "<f4"),  # of the agent
        ("success", "i1"),  # -1: the game does not define it
        ("terminated", "u1"),
        ("ending", "<i4"),  # these three are indices of the block's names
        ("start_state", "<i4"),
        ("fault", "<i4"),
        ("idle_frames", "<u4"),
        ("game_seed", "<u4"),
        ("game_timesteps", "<u4"),
        ("game_reward", "<f8"),
        ("played_bytes", "<u4"),
        ("chosen_bytes", "<u4"),
        ("pool_state", "<i8"),  # number of the state in which it began; -1: in a start state
    ]
)
NO_POOL_STATE = -1
Rows = NDArray[Any]  # [n] of ROW

_HEADER = struct.Struct("<4sIIII")  # what it is, two sizes and two checksums, each in this order
_SESSION = b"GRS1"
_EPISODES = b"GRE1"
_SUFFIX = ".episodes"
_SEGMENTS = 16  # of which the limit has room
_LEAST_SEGMENT_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 18  # of actions, before compression
_TOO_LONG = "its actions take more than the limit of the run's logged episodes, episodes.limit_mb"


class LoggedState(Saved):
    """A state of a pool in a block, where its bytes follow the actions; see `PoolBeginning`."""

    number: int
    start_state: str
    reward: float
    timesteps: int
    bytes: int


@dataclass(frozen=True, slots=True)
class EndedEpisode:
    """An episode that has ended in env number `env`.

    Attributes:
        length: timesteps of the agent; a wrapper may play several of the game in one.
        reward: sum of the agent's rewards, in float32 as it was added up.
        success: None if the game does not define it.
        ending: name of the game's ending that held, or one of those in parentheses.
    """

    env: int
    length: int
    reward: float
    success: bool | None
    terminated: bool
    ending: str
    log: EpisodeLog


class Cut(Saved):
    """What a resume from the checkpoint of a timestep supersedes; -1 is the start of the run."""

    timesteps: int
    evaluation_due: bool = False
    """Whether the evaluation at this timestep is played again."""

    def keeps(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which rows of before are kept."""
        is_before = rows["timesteps"] < self.timesteps
        is_there = rows["timesteps"] == self.timesteps
        kind = rows["kind"]
        is_played = kind == KINDS.index("training")
        if not self.evaluation_due:
            is_played |= kind == KINDS.index("evaluation")
        kept: NDArray[np.bool_] = is_before | (is_there & is_played)
        return kept


class PlayedUnder(Saved):
    """Under what the episodes of a segment were played."""

    format: Literal[1] = 1
    cut: Cut | None = None
    """What the session has superseded of all segments before; None if it did so already."""
    config: dict[str, JsonValue]
    """The run's config."""
    game: dict[str, JsonValue]
    """The run's game file."""
    rom_sha256: Sha256
    versions: dict[str, str]
    source_sha256: Sha256 | None = None

    @property
    def n_envs(self) -> int:
        """Number of envs that the training played at once."""
        env = self.config.get("env")
        found = env.get("n_envs") if isinstance(env, dict) else None
        return found if isinstance(found, int) else 1


def played_under(config: RunConfig, game: Game, cut: Cut | None = None) -> PlayedUnder:
    """Return under what episodes are played here and now."""
    return PlayedUnder(
        cut=cut,
        config=config.model_dump(mode="json"),
        game=game.definition.model_dump(mode="json", by_alias=True),
        rom_sha256=game.rom.sha256,
        versions=installed_versions(),
        source_sha256=source_sha256(),
    )


class EpisodeBlock(NamedTuple):
    """A block of a segment that was read.

    Attributes:
        under: the session's description, in the first block of a segment; else None.
        names, rows: the episodes; empty in the first block.
        states: those that the segment has from here on.
        path, at, n_bytes, crc: where the block's compressed actions and states are.
    """

    under: PlayedUnder | None
    names: Sequence[str]
    rows: Rows
    states: Sequence[LoggedState]
    path: Path
    at: int
    n_bytes: int
    crc: int


def segments_in(folder: Path) -> list[Path]:
    """Return the segments, the oldest first."""
    try:
        found = [path for path in folder.iterdir() if path.suffix == _SUFFIX]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((path for path in found if path.stem.isdecimal()), key=lambda p: int(p.stem))


def blocks_of(segment: Path) -> Iterator[EpisodeBlock]:
    """Yield the whole blocks of a segment, without the actions; none if it is gone.

    Raises:
        UsageError: another version wrote it.
    """
    try:
        with segment.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            while len(head := file.read(_HEADER.size)) == _HEADER.size:
                kind, n_table, table_crc, n_actions, actions_crc = _HEADER.unpack(head)
                at = file.tell() + n_table
                if kind not in (_SESSION, _EPISODES) or at + n_actions > size:
                    return
                table = file.read(n_table)
                if zlib.crc32(table) != table_crc:
                    return
                parsed = _parsed(kind, zlib.decompress(table), segment)
                yield EpisodeBlock(*parsed, segment, at, n_actions, actions_crc)
                file.seek(at + n_actions)
    except FileNotFoundError:
        return


def read_actions(block: EpisodeBlock) -> bytes | None:
    """Return the actions of a block's episodes, then its states; None if they are damaged."""
    with block.path.open("rb") as file:
        file.seek(block.at)
        data = file.read(block.n_bytes)
    return zlib.decompress(data) if zlib.crc32(data) == block.crc else None


_NO_ROWS: Rows = np.zeros(0, ROW)


def _parsed(
    kind: bytes, table: bytes, segment: Path
) -> tuple[PlayedUnder | None, Sequence[str], Rows, Sequence[LoggedState]]:
    if kind == _SESSION:
        way_out = "read it with the version that wrote it, or delete it"
        under = parse_saved(PlayedUnder, table, segment, error=UsageError, way_out=way_out)
        return under, (), _NO_ROWS, ()
    text, _, columns = table.partition(b"\n")
    head = json.loads(text)
    rows = np.zeros(head["n"], ROW)
    rows["pool_state"] = NO_POOL_STATE
    at = 0
    for name in ROW.names or ():
        if at == len(columns):  # earlier versions have no pool_state
            break
        column = np.frombuffer(columns, ROW[name], head["n"], at)
        rows[name] = column
        at = at + column.nbytes
    states = [LoggedState.model_validate(each) for each in head.get("states", ())]
    return None, head["names"], rows, states


def _block(kind: bytes, table: bytes, actions: bytes = b"") -> bytes:
    tables = zlib.compress(table)
    # by frequencies and runs: drawn actions have no longer repetitions that pay, and looking for
    # them takes fifty times as long
    compressor = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION, strategy=zlib.Z_RLE)
    packed = compressor.compress(actions) + compressor.flush()
    head = _HEADER.pack(kind, len(tables), zlib.crc32(tables), len(packed), zlib.crc32(packed))
    return head + tables + packed


class EpisodeWriter:
    """Appends episodes to a folder of segments.

    After an error of the disk, episodes are dropped until `sync` begins a new segment. Begin with
    `begin`, which records what the session supersedes.

    Args:
        limit_bytes: the most that all segments together take.
        under: what the segments of this session begin with.
        next_number: number of the next episode.

    Attributes:
        dropped: episodes that could not be written.
        is_failing: whether the disk failed, so that episodes are dropped until `sync`.

    Raises:
        OSError: from every method but `add`, if the disk fails.
    """

    def __init__(
        self, folder: Path, *, limit_bytes: int, under: PlayedUnder, next_number: int
    ) -> None:
        self._folder = folder
        self._limit = limit_bytes
        self._under = under
        self._next = next_number
        self.dropped = 0
        self._sizes = {path: path.stat().st_size for path in segments_in(folder)}
        self._file: FileIO | None = None
        self._path = folder
        self._kept_states: set[int] = set()  # numbers of those that the segment has
        self.is_failing = False
        self._forget()

    def begin(self) -> None:
        """Begin the first segment of the session."""
        self._guarded(lambda: self._begin_segment(0))

    def add(self, episode: EndedEpisode, *, timesteps: int, kind: Kind, deterministic: bool) -> int:
        """Add an episode, and return its number; the next `write` or `sync` writes it.

        Args:
            timesteps: of the run, when the episode has ended or its evaluation is due.
            deterministic: whether the most probable actions were taken.
        """
        log = episode.log
        state = log.beginning
        if state is not None and not log.fault:
            self._states[state.number] = state
        self._rows.append(
            (
                self._next,
                timesteps,
                KINDS.index(kind),
                deterministic,
                episode.env,
                episode.length,
                episode.reward,
                -1 if episode.success is None else episode.success,
                episode.terminated,
                self._name(episode.ending),
                self._name(log.start_state),
                self._name(log.fault) if log.fault else NO_NAME,
                log.idle_frames,
                log.game_seed,
                log.timesteps,
                log.game_reward,
                len(log.played),
                len(log.chosen),
                NO_POOL_STATE if state is None else state.number,
            )
        )
        self._next += 1
        self._actions += log.played
        self._actions += log.chosen
        return self._next - 1

    @property
    def is_full(self) -> bool:
        """Whether there is enough for a block."""
        n_states = sum(len(each.state) for each in self._new_states())
        return len(self._actions) + n_states >= _BLOCK_BYTES

    def write(self) -> None:
        """Write the episodes so far as a block."""
        if not self._rows:
            return
        if self.is_failing:
            self._drop()
            return
        try:
            self._guarded(self._append)
        except OSError:
            self._drop()
            raise
        self._forget()

    def sync(self) -> None:
        """Write the episodes so far, and wait until all are on the disk."""
        if self.is_failing:
            self._guarded(lambda: self._begin_segment(0))
            self.is_failing = False
        self.write()
        if self._file is not None:
            descriptor = self._file.fileno()
            self._guarded(lambda: os.fsync(descriptor))

    def close(self) -> None:
        """Write the episodes so far, and close the file."""
        try:
            self.write()
        finally:
            self._leave_segment()

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except OSError:
            self.is_failing = True
            self._leave_segment()
            raise

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _packed(self) -> tuple[bytes, Sequence[PoolBeginning]]:
        """Return the episodes as a block that fits the limit, and the states that it has.

        If need be, it is without actions and states.
        """
        rows = np.array(self._rows, ROW)
        states = self._new_states()
        block = self._with(rows, bytes(self._actions), states)
        if len(block) > self._limit // 2:
            rows["fault"] = self._name(_TOO_LONG)
            rows["played_bytes"] = rows["chosen_bytes"] = 0
            states = []
            block = self._with(rows, b"", states)
        return block, states

    def _new_states(self) -> list[PoolBeginning]:
        """Return the states of the episodes so far that the segment does not have."""
        return [each for number, each in self._states.items() if number not in self._kept_states]

    def _with(self, rows: Rows, actions: bytes, states: Sequence[PoolBeginning]) -> bytes:
        about = [
            LoggedState(
                number=each.number,
                start_state=each.start_state,
                reward=each.reward,
                timesteps=each.timesteps,
                bytes=len(each.state),
            ).model_dump()
            for each in states
        ]
        head = json.dumps({"n": len(rows), "names": list(self._names), "states": about}).encode()
        columns = b"".join(rows[name].tobytes() for name in ROW.names or ())
        own = b"".join(each.state for each in states)
        return _block(_EPISODES, head + b"\n" + columns, actions + own)

    def _append(self) -> None:
        block, states = self._packed()
        most = max(_LEAST_SEGMENT_BYTES, self._limit // _SEGMENTS)
        if self._file is not None and self._sizes[self._path] + len(block) > most:
            self._leave_segment()
            block, states = self._packed()  # the next segment has none of them
        if self._file is None:
            self._begin_segment(len(block))
        self._make_room(len(block))
        self._write(block)
        self._kept_states.update(each.number for each in states)

    def _begin_segment(self, n_more: int) -> None:
        head = _block(_SESSION, self._under.model_dump_json().encode())
        self._folder.mkdir(exist_ok=True)
        self._make_room(len(head) + n_more)
        last = max((int(path.stem) for path in self._sizes), default=-1)
        path = self._folder / f"{last + 1:06d}{_SUFFIX}"
        self._file = FileIO(path, "xb")
        self._path = path
        self._sizes[path] = 0
        sync_directory(self._folder)
        self._write(head)
        # segments that follow in this session supersede nothing
        self._under = self._under.model_copy(update={"cut": None})

    def _make_room(self, n_bytes: int) -> None:
        """Delete the oldest segments, but never the one that is written."""
        for path in list(self._sizes):
            if sum(self._sizes.values()) + n_bytes <= self._limit:
                return
            if self._file is None or path != self._path:
                path.unlink(missing_ok=True)
                del self._sizes[path]

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        view = memoryview(data)
        while view:
            written = self._file.write(view) or 0
            self._sizes[self._path] += written
            view = view[written:]

    def _leave_segment(self) -> None:
        if self._file is not None:
            file = self._file
            self._file = None
            self._kept_states = set()
            file.close()

    def _drop(self) -> None:
        self.dropped += len(self._rows)
        self._forget()

    def _forget(self) -> None:
        self._rows: list[tuple[object, ...]] = []
        self._names: dict[str, int] = {}
        self._actions = bytearray()
        self._states: dict[int, PoolBeginning] = {}


# Bytes of an episode besides its actions, of the header of a block and the part of it that does not
# compress, and of the beginning of a segment, which has config and game file. The actions take 1.05
# of what their number is worth in bits where they are drawn evenly, and less if they are not. A
# state of a pool has numbers beside it; in a checkpoint, running episodes have theirs in base64.
_EPISODE_BYTES = 30
_BLOCK_HEADER_BYTES = 300
_SEGMENT_BYTES = 4_000
_ACTION_FACTOR = 1.1
_LOGGED_STATE_BYTES = PACKED_STATE_BYTES + 60
_SAVED_STATE_BYTES = 5_500
_MB = 10**6


class EpisodesFeature(Feature):
    """The log of episodes, which is no part of a checkpoint: it is cut when it is read."""

    def checkpoint_bytes(self, run: PlannedRun, timesteps: int) -> int:  # noqa: ARG002
        """Return the bytes of the states of the pool in which the running episodes began."""
        config = run.config
        has_states = config.episodes is not None and config.env.pool is not None
        return config.env.n_envs * _SAVED_STATE_BYTES if has_states else 0

    def logs(self, run: PlannedRun) -> Iterable[Part]:
        """Return the size of `episodes/` at the end, with actions drawn evenly.

        Each segment has all states of a pool that does not grow, at most one for each episode. Of
        one that grows, each episode has another state.
        """
        config = run.config
        if config.episodes is None:
            return ()
        evaluation = config.evaluation
        each = max(1, run.episode_timesteps)
        played = run.evaluations * len(config.evaluation_ways) * evaluation.episodes
        played += evaluation.final_episodes
        timesteps = run.played_timesteps + played * each
        n_choices = 2 if config.env.sticky_actions else 1  # what was chosen and what was played
        bits = math.log2(max(2, run.n_actions)) * _ACTION_FACTOR
        blocks = run.checkpoints + 2 * run.evaluations + 2
        size = timesteps * n_choices * bits / 8
        size += (run.played_timesteps / each + played) * _EPISODE_BYTES
        size += blocks * _BLOCK_HEADER_BYTES
        limit_bytes = config.episodes.limit_mb * _MB
        pool = config.env.pool
        if pool is not None:
            n_states = pool.share * run.played_timesteps / each
            if pool.save_on is None:
                room = limit_bytes / _SEGMENTS  # in a segment, of which some is for episodes
                own = max(room / 2, room - pool.size * _LOGGED_STATE_BYTES)
                n_states = min(n_states, pool.size * math.ceil(size / own))
            size += n_states * _LOGGED_STATE_BYTES
        size *= 1 + _SEGMENTS * _SEGMENT_BYTES / limit_bytes
        return (Part("logged episodes", min(round(size + 2 * _SEGMENT_BYTES), limit_bytes)),)
