"""The archive of an exploration: its cells with their states, ways and numbers, in one file.

Each round of an exploration appends one line, so that a kill loses at most a round. What a line
says depends on the rounds before it and on the seed alone: not on the time, nor on how many
processes have played.
"""

import json
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from pydantic import BaseModel, TypeAdapter

from game_rl.envs.game_boy_env import EnvState
from game_rl.errors import UsageError
from game_rl.files.json_lines import located_lines
from game_rl.files.saved import Blob, parse_json
from game_rl.games.cell import Cell

ENDED = 1
"""Last number of the cell of an episode's end, which no other cell has: its tuple is longer."""

_HEADER = struct.Struct("<I")  # length of the compressed JSON


def packed(state: EnvState) -> bytes:
    """Return the state of an env in a few kilobytes; that of the emulator is compressed already."""
    text = zlib.compress(state.model_dump_json(exclude={"emulator"}).encode())
    return _HEADER.pack(len(text)) + text + state.emulator


def unpacked(data: bytes) -> EnvState:
    """Return the state that `packed` has packed."""
    (length,) = _HEADER.unpack_from(data)
    end = _HEADER.size + length
    return EnvState(**json.loads(zlib.decompress(data[_HEADER.size : end])), emulator=data[end:])


@dataclass(frozen=True, slots=True, order=True)
class CellScore:
    """How good a way to a cell is; more is better, the first number first.

    Attributes:
        reward: of the episode so far.
        kept: variables of which more is better, such as lives.
        hurry: minus the timesteps of the episode so far.
    """

    reward: float
    kept: tuple[float, ...]
    hurry: int

    @property
    def timesteps(self) -> int:
        return -self.hurry


@dataclass(slots=True)
class Find:
    """A cell that a trip has reached, or reached in a better way.

    Attributes:
        after: timesteps of the trip until then.
        state: the env's packed state there; empty where the episode has ended.
        terms: the reward terms that the episode has earned until then.
        has_lost: whether something was lost, such as a life, since the cell before was entered.
    """

    cell: Cell
    after: int
    score: CellScore
    state: bytes
    is_success: bool = False
    terms: tuple[str, ...] = ()
    has_lost: bool = False


@dataclass(slots=True)
class Trip:
    """One return to a cell, and the play from there.

    Attributes:
        actions: index of the action of each timestep.
        finds: in the order in which they were reached.
        seen: the cells that it was in, in that order, each once.
        steps: for two cells one after the other, the timesteps from the entry of one to the other,
            if nothing was lost on the way to either.
        earned: the largest sum of each reward term that an episode has reached.
    """

    actions: bytes
    finds: list[Find] = field(default_factory=list)
    seen: list[Cell] = field(default_factory=list)
    steps: dict[tuple[Cell, Cell], int] = field(default_factory=dict)
    earned: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Way:
    """The actions from another way's end, or from the beginning of the episode."""

    number: int
    before: "Way | None"
    actions: bytes

    def whole(self) -> bytes:
        """Return the actions from the beginning of the episode."""
        parts: list[bytes] = []
        way: Way | None = self
        while way is not None:
            parts.append(way.actions)
            way = way.before
        return b"".join(reversed(parts))


@dataclass(slots=True)
class CellRecord:
    """What the archive knows of a cell.

    Attributes:
        number: cells are numbered in the order in which they were found.
        way: the best way to it.
        state: the packed state at its end; empty where the episode has ended, or if it was dropped.
        parent: number of the cell from which the trip began that found the way.
        has_lost: whether something was lost in the way's last step.
        seen: trips that were in it.
        chosen: trips that began in it.
        led: finds of the trips that began in it.
    """

    number: int
    cell: Cell
    way: Way
    score: CellScore
    state: bytes
    is_success: bool
    parent: int | None
    has_lost: bool = False
    seen: int = 0
    chosen: int = 0
    led: int = 0


class Archive:
    """The cells of an exploration.

    Args:
        most_bytes: limit of the size of the states.

    Attributes:
        cells: by number.
        steps: the graph: fewest timesteps from a cell to one that followed it, by their numbers.
        earned: the largest sum of each reward term in an episode.
        firsts: the way that was the first to earn each reward term, as long as it led to a cell.
        rounds: rounds that were added.
        timesteps: timesteps that they have played.
        state_bytes: size of the cells' states.
        written_bytes: size of all states in the file, those that are not needed any more included.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.state_bytes = 0
        self.written_bytes = 0
        self.cells: list[CellRecord] = []
        self.steps: dict[tuple[int, int], int] = {}
        self.earned: dict[str, float] = {}
        self.firsts: dict[str, Way] = {}
        self.rounds = 0
        self.timesteps = 0
        self._numbers: dict[Cell, int] = {}
        self._scores: dict[Cell, CellScore] = {}
        self._best = 0
        self._ways: list[Way] = []

    @classmethod
    def read(cls, path: Path, most_bytes: int, *, has_states: bool = True) -> "Archive":
        """Read the archive that a file has; an empty one if there is no file.

        Args:
            has_states: whether to keep the states, which take most of the memory.

        Raises:
            UsageError: a line is not one of an archive.
        """
        archive = cls(most_bytes)
        for number, (_, line) in enumerate(located_lines(path)):
            try:
                round_line = _LINE.validate_python(parse_json(line))
                if not has_states:
                    for found in round_line.finds:
                        found.state = b""
                archive._apply(round_line)
            except (ValueError, IndexError) as error:
                raise UsageError(
                    f"{path}, line {number + 1}, is not a line of an archive ({error}); restore "
                    "the file from a copy, or explore again into another folder"
                ) from None
        return archive

    def scores(self) -> Mapping[Cell, CellScore]:
        """Return the score of each cell; it changes with the archive."""
        return self._scores

    def best(self) -> CellRecord:
        """Return the cell with the best way, of equal ones the first that was found."""
        return self.cells[self._best]

    def successes(self) -> list[CellRecord]:
        return [record for record in self.cells if record.is_success]

    def choose(self, n: int, random: np.random.Generator) -> list[CellRecord]:
        """Draw the cells from which a round's trips begin: rarely seen ones, and those far ahead.

        The weight of a cell that n trips were in is 1 / sqrt(n + 1) (Ecoffet et al. 2021, "First
        return, then explore", Methods). By these weights alone, half of the trips begin. The others
        go by levels, which are the different rewards: half of them begin in cells with the highest
        reward, a quarter in those with the next one, and so on; within a level, the weights decide.
        So a level that was just reached, in one cell, does not wait behind thousands of others.

        Returns:
            Copies, which the round does not change.
        """
        alive = [record for record in self.cells if record.state]
        seen = np.array([record.seen for record in alive])
        weights = 1 / np.sqrt(seen + 1)
        # np.unique sorts, so the last level has the highest reward
        _, levels = np.unique([record.score.reward for record in alive], return_inverse=True)
        shares = 0.5 ** np.arange(levels.max(), -1, -1)
        by_level = (shares / np.bincount(levels, weights))[levels] * weights
        weights = weights / weights.sum() + by_level / by_level.sum()
        drawn = random.choice(len(alive), size=n, p=weights / weights.sum())
        return [replace(alive[index]) for index in drawn]

    def begin(self, find: Find) -> str:
        """Add the cell in which the episode begins; return the line for the file."""
        return self._added(_Line(finds=[_found(find, b"", None, None)]))

    def add_round(self, chosen: Sequence[CellRecord], trips: Sequence[Trip]) -> str:
        """Add what the trips of a round have found, in their order; return the line for the file.

        Args:
            chosen: the cell from which each trip began.
        """
        line = _Line(chosen=[record.number for record in chosen])
        scores: dict[Cell, CellScore] = {}  # those that this round has changed
        numbers = dict(self._numbers)
        n_ways = len(self._ways)
        seen: Counter[int] = Counter()
        steps: dict[tuple[int, int], int] = {}
        for record, trip in zip(chosen, trips, strict=True):
            line.timesteps += len(trip.actions)
            before = record.way.number
            played = 0
            for find in trip.finds:
                best = scores.get(find.cell) or self._scores.get(find.cell)
                if best is not None and find.score <= best:
                    continue
                scores[find.cell] = find.score
                numbers.setdefault(find.cell, len(numbers))
                actions = trip.actions[played : find.after]
                line.finds.append(_found(find, actions, before, record.number))
                for term in find.terms:
                    if term not in self.firsts:
                        line.firsts.setdefault(term, n_ways)
                before = n_ways
                played = find.after
                n_ways += 1
            seen.update(numbers[cell] for cell in trip.seen)
            for (a, b), timesteps in trip.steps.items():
                edge = (numbers[a], numbers[b])
                known = min(self.steps.get(edge, timesteps), steps.get(edge, timesteps))
                if timesteps <= known and self.steps.get(edge) != timesteps:
                    steps[edge] = timesteps
            for term, total in trip.earned.items():
                if total > self.earned.get(term, 0.0):
                    line.earned[term] = max(total, line.earned.get(term, 0.0))
        line.seen = sorted(seen.items())
        line.steps = [(a, b, timesteps) for (a, b), timesteps in sorted(steps.items())]
        return self._added(line)

    def _drop_excess(self) -> None:
        """Drop states above the limit.

        Those go first from which nothing was found, of them those that were chosen most often.
        """
        if self.state_bytes <= self._most_bytes:
            return
        held = [record for record in self.cells if record.state]
        held.sort(key=lambda record: (record.led > 0, -record.chosen, record.number))
        for record in held[:-1]:  # one is left to begin from
            if self.state_bytes <= self._most_bytes:
                break
            self.state_bytes -= len(record.state)
            record.state = b""

    def _added(self, line: "_Line") -> str:
        self._apply(line)
        return line.model_dump_json()

    def _apply(self, line: "_Line") -> None:
        """Add a line that was read or is to be written."""
        for found in line.finds:
            way = Way(
                len(self._ways),
                None if found.before is None else self._ways[found.before],
                found.actions,
            )
            self._ways.append(way)
            cell = tuple(found.cell)
            number = self._numbers.setdefault(cell, len(self._numbers))
            record = CellRecord(
                number,
                cell,
                way,
                CellScore(found.reward, tuple(found.kept), -found.timesteps),
                found.state,
                found.success,
                found.parent,
                found.lost,
            )
            if number == len(self.cells):
                self.cells.append(record)
            else:
                former = self.cells[number]
                self.state_bytes -= len(former.state)
                record.seen = former.seen
                record.chosen = former.chosen
                record.led = former.led
                self.cells[number] = record
            self._scores[cell] = record.score
            if record.score > self.best().score:
                self._best = number
            self.state_bytes += len(found.state)
            self.written_bytes += len(found.state)
            if found.parent is not None:
                self.cells[found.parent].led += 1
        for number in line.chosen:
            self.cells[number].chosen += 1
        for number, times in line.seen:
            self.cells[number].seen += times
        self.steps.update({(a, b): timesteps for a, b, timesteps in line.steps})
        self.earned.update(line.earned)
        self.firsts.update({term: self._ways[number] for term, number in line.firsts.items()})
        self.timesteps += line.timesteps
        self.rounds += bool(line.chosen)
        self._drop_excess()

    def compacted(self, path: Path) -> Iterator[str]:
        """Yield the lines of the archive's file without the states that it no longer needs."""
        number = 0
        for _, text in located_lines(path):
            line = _LINE.validate_python(parse_json(text))
            for found in line.finds:
                record = self.cells[self._numbers[tuple(found.cell)]]
                if record.way.number != number or not record.state:
                    found.state = b""
                number += 1
            yield line.model_dump_json()


class _Found(BaseModel):
    """A find in the file; `before` is the number of the way that its actions continue."""

    cell: list[int]
    before: int | None
    actions: Blob
    parent: int | None
    reward: float
    kept: list[float]
    timesteps: int
    state: Blob
    success: bool
    lost: bool = False


class _Line(BaseModel):
    """A round in the file; `firsts` are numbers of ways."""

    timesteps: int = 0
    chosen: list[int] = []
    finds: list[_Found] = []
    seen: list[tuple[int, int]] = []
    steps: list[tuple[int, int, int]] = []
    earned: dict[str, float] = {}
    firsts: dict[str, int] = {}


_LINE = TypeAdapter(_Line)


@dataclass(frozen=True, slots=True)
class KnownCell:
    """The best way to a cell in an archive's file, without its state.

    Attributes:
        line, find: offset of the line that has the state, and the place among its finds.
    """

    score: CellScore
    line: int
    find: int


def known_cells(path: Path) -> list[KnownCell]:
    """Return the cells with a state, in the order in which they were found first.

    `Archive.read` needs the memory of all states; this needs that of one line.

    Raises:
        UsageError: a line is not one of an archive.
    """
    cells: dict[Cell, KnownCell | None] = {}
    for offset, text in located_lines(path):
        for index, found in enumerate(_line(path, text).finds):
            score = CellScore(found.reward, tuple(found.kept), -found.timesteps)
            known = KnownCell(score, offset, index) if found.state else None
            cells[tuple(found.cell)] = known
    return [known for known in cells.values() if known is not None]


def states_of(path: Path, cells: Sequence[KnownCell]) -> Iterator[EnvState]:
    """Yield the state of each of these cells of an archive's file."""
    texts: dict[int, list[_Found]] = {}
    with path.open("rb") as file:
        for cell in cells:
            file.seek(cell.line)
            if cell.line not in texts:
                texts = {cell.line: _line(path, file.readline()).finds}
            yield unpacked(texts[cell.line][cell.find].state)


@dataclass(frozen=True, slots=True)
class KnownRoute:
    """The actions from the beginning of the episode to a cell."""

    score: CellScore
    actions: bytes


def known_routes(path: Path, most: int, *, to_success: bool) -> list[KnownRoute]:
    """Return the best ways to cells, the best one first.

    Args:
        to_success: whether they are those to successes only.

    Raises:
        UsageError: a line is not one of an archive.
    """
    ways: list[Way] = []
    cells: dict[Cell, tuple[CellScore, Way, bool]] = {}
    for _, text in located_lines(path):
        for found in _line(path, text).finds:
            before = None if found.before is None else ways[found.before]
            ways.append(Way(len(ways), before, found.actions))
            score = CellScore(found.reward, tuple(found.kept), -found.timesteps)
            cells[tuple(found.cell)] = score, ways[-1], found.success
    fitting = [(score, way) for score, way, success in cells.values() if success or not to_success]
    fitting.sort(key=lambda each: each[0], reverse=True)
    return [KnownRoute(score, way.whole()) for score, way in fitting[:most]]


def _line(path: Path, text: bytes) -> _Line:
    try:
        return _LINE.validate_python(parse_json(text))
    except ValueError as error:
        raise UsageError(
            f"{path} is damaged: a line is not one of an archive ({error}); restore the file "
            "from a copy, or explore again into another folder"
        ) from None


def _found(find: Find, actions: bytes, before: int | None, parent: int | None) -> _Found:
    return _Found(
        cell=list(find.cell),
        before=before,
        actions=actions,
        parent=parent,
        reward=find.score.reward,
        kept=list(find.score.kept),
        timesteps=find.score.timesteps,
        state=find.state,
        success=find.is_success,
        lost=find.has_lost,
    )
