"""`game-rl check-game --find-seed`: which bytes of memory hold the game's random numbers.

One byte at a time is changed at the beginning of an episode, and the same actions are played. A
byte of random numbers shows nothing at first, then makes another course of events, and nearly each
value makes another one. So do timers and positions, but those change by small steps when the game
plays, and random numbers jump. The bytes that jump most are tried first.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.errors import LockUpError
from game_rl.game_check.env_checks import SEEDS, CoursePlayer, StartCourses

_SEARCHED = (*range(0xC000, 0xE000), *range(0xFF80, 0xFFFF))  # work RAM and high RAM
_MOST_START_STATES = 4
_PLAY_FRAMES = 4_800  # the bundled games use random numbers within these
_FRAMES_AFTER_CHANGE = 600  # what a random number decides is seen within these
_FRAMES_OF_STILL_BYTES = 1_200
_TIMESTEPS_A_SNAPSHOT = 40
_MASKS = (0x5A, 0x01, 0x80, 0xFF, 0x24, 0x13, 0xC8)
_LEAST_COURSES = 4  # of the 8 that the masks and the byte as it is can make
_JUMP = 12  # positions and timers change by less in a timestep
_LIKELY = 0.3  # bundled games: random numbers have 0.7 and more, positions below 0.05
_MANY_VALUES = 64  # different ones; a byte has 256, and the tiles of a sprite a few
_LONGEST_SEED_BYTES = 4


@dataclass(frozen=True)
class SeedCandidate:
    """Bytes that may hold the game's random numbers, as a variable of game.yaml would name them.

    Attributes:
        score: from 0 to 1; how much the bytes change as random numbers do.
        found: the courses that some random values gave.
    """

    address: int
    n_bytes: int
    score: float
    found: StartCourses

    @property
    def is_likely(self) -> bool:
        return self.score >= _LIKELY

    @property
    def type(self) -> str:
        return f"u{8 * self.n_bytes}"


@dataclass(frozen=True)
class SeedsFound:
    """What a search has found, the best candidate first.

    Attributes:
        tried: bytes that were changed, of the `searched` ones.
        is_cut_off: whether the time was up before the end.
    """

    candidates: tuple[SeedCandidate, ...]
    tried: int
    searched: int
    seconds: float
    is_cut_off: bool


@dataclass(frozen=True)
class _Traits:
    """How a byte changes while the game plays."""

    score: float
    first_change: int  # frames until then


@dataclass(frozen=True)
class _Course:
    first: bytes  # the screen after one frame
    rest: bytes


class SeedSearch:
    """Searches work RAM and high RAM from some start states.

    Args:
        env: it may end up in any state; its next call must be `reset`.
        names: start states; at most four of them are used.
    """

    def __init__(self, env: GameBoyEnv, names: Sequence[str]) -> None:
        self._player = CoursePlayer(env)
        self._starts = env.starts
        self._emulator = env.emulator
        self._names = names[:_MOST_START_STATES]
        self._references: dict[tuple[str, int], _Course] = {}

    def run(self, *, limit_s: float, progress: Callable[[int, int], None]) -> SeedsFound:
        """Search for at most about `limit_s` seconds.

        Args:
            progress: is called with the bytes tried and the bytes to try, before each byte.
        """
        begun = time.monotonic()
        traits = {name: self._traits(name) for name in self._names}
        found: dict[int, tuple[float, str, int]] = {}
        tried = 0
        is_cut_off = False
        for address, score in _ordered(traits):
            if score < _LIKELY and any(each[0] >= _LIKELY for each in found.values()):
                break
            if time.monotonic() - begun > limit_s:
                is_cut_off = True
                break
            progress(tried, len(_SEARCHED))
            tried += 1
            for name in self._names:
                still = _Traits(0.0, _FRAMES_OF_STILL_BYTES - _FRAMES_AFTER_CHANGE)
                of_byte = traits[name].get(address, still)
                frames = min(_PLAY_FRAMES, of_byte.first_change + _FRAMES_AFTER_CHANGE)
                share = self._share_of_courses(address, name, frames)
                if share:
                    found[address] = score * share, name, frames
                    break
        candidates = sorted(self._grouped(found), key=lambda each: -each.score)
        seconds = round(time.monotonic() - begun, 1)
        return SeedsFound(tuple(candidates), tried, len(_SEARCHED), seconds, is_cut_off)

    def _traits(self, name: str) -> Mapping[int, _Traits]:
        """Play once for the bytes that change, and again to see how."""
        snapshots = np.array(list(self._rows(name, _SEARCHED, _TIMESTEPS_A_SNAPSHOT)))
        changed = (snapshots != snapshots[0]).any(axis=0)
        addresses = [address for address, is_in in zip(_SEARCHED, changed, strict=True) if is_in]
        if not addresses:
            return {}
        rows = np.array(list(self._rows(name, addresses, 1)), np.int64)
        frames = _PLAY_FRAMES // max(1, len(rows) - 1)
        return dict(zip(addresses, _traits_of(rows, frames), strict=True))

    def _rows(self, name: str, addresses: Sequence[int], every: int) -> Iterator[list[int]]:
        self._starts.bring(name, game_seed=0, idle_frames=0)
        yield [self._emulator.read(address) for address in addresses]
        try:
            for number, _ in enumerate(self._player.timesteps(_PLAY_FRAMES, draws=False), start=1):
                self._starts.hold_values(name)
                if number % every == 0:
                    yield [self._emulator.read(address) for address in addresses]
        except LockUpError:
            return

    def _share_of_courses(self, address: int, name: str, frames: int) -> float:
        """Return the share of values that give courses of their own; 0 if it can be no seed."""
        reference = self._references.get((name, frames))
        if reference is None:
            reference = self._references[name, frames] = self._course(name, frames)
        courses = {reference.rest}
        for mask in _MASKS:
            try:
                course = self._course(name, frames, address, 1, mask, until=reference.first)
            except LockUpError:
                return 0.0
            if course.first != reference.first:
                return 0.0  # it is something that the screen shows
            courses.add(course.rest)
            if len(courses) == 1:
                return 0.0
        return len(courses) / (len(_MASKS) + 1) if len(courses) >= _LEAST_COURSES else 0.0

    def _course(
        self,
        name: str,
        frames: int,
        address: int = 0,
        n_bytes: int = 0,
        mask: int = 0,
        *,
        until: bytes | None = None,
    ) -> _Course:
        """Play with some bytes changed; no further if the first screen is not `until`."""
        self._starts.bring(name, game_seed=0, idle_frames=0)
        for place in range(address, address + n_bytes):
            self._emulator.write(place, self._emulator.read(place) ^ mask & 0xFF)
            mask >>= 8
        self._emulator.tick(1, render=True)
        first = self._player.seen()
        rest = blake2b()
        if until in (None, first):
            for is_drawn in self._player.timesteps(frames):
                self._starts.hold_values(name)
                if is_drawn:
                    rest.update(self._player.seen())
        return _Course(first, rest.digest())

    def _grouped(self, found: Mapping[int, tuple[float, str, int]]) -> Iterator[SeedCandidate]:
        """Yield the bytes that were found, with their neighbours, and the courses they give."""
        left = dict(found)
        while left:
            first = min(left)
            run = [first]
            while run[-1] + 1 in left and len(run) < _LONGEST_SEED_BYTES:
                if (left[run[-1] + 1][0] >= _LIKELY) != (left[first][0] >= _LIKELY):
                    break
                run.append(run[-1] + 1)
            run = run[:2] if len(run) == 3 else run
            scores = [left.pop(address) for address in run]
            score, name, frames = max(scores)
            yield SeedCandidate(first, len(run), score, self._counted(first, run, name, frames))

    def _counted(self, address: int, run: Sequence[int], name: str, frames: int) -> StartCourses:
        rng = np.random.default_rng(0)
        courses = set()
        for _ in range(SEEDS):
            mask = int(rng.integers(1 << 8 * len(run)))
            try:
                courses.add(self._course(name, frames, address, len(run), mask).rest)
            except LockUpError as error:
                courses.add(str(error).encode())
        return StartCourses(name, SEEDS, len(courses), frames)


def _ordered(traits: Mapping[str, Mapping[int, _Traits]]) -> list[tuple[int, float]]:
    """Return every address with its best score, the highest first."""
    best = dict.fromkeys(_SEARCHED, -1.0)
    for of_start in traits.values():
        for address, found in of_start.items():
            best[address] = max(best[address], found.score)
    ordered = sorted(best.items(), key=lambda item: -item[1])
    return [(address, max(0.0, score)) for address, score in ordered]


def _traits_of(rows: NDArray[np.int64], frames: int) -> Iterator[_Traits]:
    """Yield how each column of `rows` changes, one row a timestep of so many frames."""
    steps = np.diff(rows, axis=0) % 256
    sizes = np.minimum(steps, 256 - steps)
    for column, values in zip(sizes.T, rows.T, strict=True):
        changes = np.flatnonzero(column)
        if len(changes) < 2:
            yield _Traits(0.0, frames * int(changes[0] + 1) if len(changes) else _PLAY_FRAMES)
            continue
        jumps = float(np.mean(column[changes] > _JUMP))
        different = len(np.unique(values)) / min(len(changes) + 1, _MANY_VALUES)
        yield _Traits(jumps * min(1.0, different), frames * int(changes[0] + 1))
