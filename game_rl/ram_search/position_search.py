"""`game-rl find --position`: bytes that follow the direction buttons, and the room's number."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import Button, Emulator
from game_rl.emulator.ram import Ram
from game_rl.errors import LockUpError, UsageError
from game_rl.game_check.button_trial import SMOOTH_STEPS, moves_apart, screen_digest
from game_rl.ram_search.encodings import U8, U16
from game_rl.ram_search.proof import Prover, Verdict
from game_rl.ram_search.ranking import KnownPlaces, RankedPlace, ranked_places, watch_idle
from game_rl.ram_search.search import RamCandidate
from game_rl.ram_search.searched_game import SearchedGame
from game_rl.ram_search.shown_numbers import background_tiles

_SAMPLES = 24  # of two frames
_BEGINNINGS = 6
_LEAST_SHARE = 0.5  # of the states in which the best byte moves both ways

_PLAYS = 6
_PLAY_FRAMES = 3_600
_PLAY_SAMPLE_FRAMES = 16
_JUMP = 56  # between two samples; running is slower
_SETTLED = 3  # samples: how far from a jump the rest of a change of rooms may be
_SAME_PICTURE = 0.97  # of the tiles; a door may have opened
_LEAST_AT_JUMPS = 0.75  # of its changes; a life that is lost may lead to another room, too
_MOST_ROOM_VALUES = 64
_LEAST_ROOM_SCORE = 0.6


class _Axis(NamedTuple):
    name: str
    lower: Button
    higher: Button


AXES = (_Axis("x", "left", "right"), _Axis("y", "up", "down"))


@dataclass(frozen=True)
class PositionFound:
    """What follows the direction buttons.

    Attributes:
        axes: for "x" and "y", the places that go one way and back, the likeliest first.
        rooms: places that are the same wherever the background is, and differ where it differs; the
            likeliest first.
    """

    axes: dict[str, tuple[RankedPlace, ...]]
    rooms: tuple[RankedPlace, ...]

    @property
    def place(self) -> list[str]:
        """What `place` of game.yaml may name."""
        return [*(["room"] if self.rooms else []), *(axis for axis in self.axes if self.axes[axis])]


def find_position(searched: SearchedGame, known: KnownPlaces, *, seed: int = 0) -> PositionFound:
    """Hold left, then right, from one state, and up and down; from several states in turn.

    Raises:
        UsageError: no byte follows a direction.
    """
    with searched.emulator() as emulator:
        power_on = emulator.save_state()
        searched.bring_to_start(emulator, power_on)
        rng = np.random.default_rng(seed)
        states = list(_states(searched, emulator, rng))
        axes = {axis.name: _axis(searched, emulator, axis, states, known) for axis in AXES}
        if not any(axes.values()):
            raise UsageError(
                "no byte goes one way while a direction is held and back while its opposite is; "
                "start where the player can walk both ways (--start-state, --script, --wait)"
            )
        plays = _played(searched, emulator, states, rng)
        chosen = [places[0].candidate.index for places in axes.values() if places]
        moving = {place.candidate.index for places in axes.values() for place in places}
        walked = _walked(plays, chosen, sorted(moving), searched.ram)
        axes = {
            name: tuple(_widened(place, walked.wide) for place in places)
            for name, places in axes.items()
        }
        rooms = _rooms(searched, emulator, walked, states[0], known)
    return PositionFound(axes, rooms)


def _states(
    searched: SearchedGame, emulator: Emulator, rng: np.random.Generator
) -> Iterator[bytes]:
    """Yield the start, and states after some random play."""
    yield emulator.save_state()
    ways = _ways(searched)
    for _ in range(_BEGINNINGS - 1):
        for _ in range(4):
            emulator.hold(ways[int(rng.integers(len(ways)))])
            emulator.tick(int(rng.integers(8, 24)), render=False)
        emulator.hold(())
        emulator.tick(16, render=False)
        yield emulator.save_state()


def _ways(searched: SearchedGame) -> list[frozenset[Button]]:
    return [each for each in searched.button_sets if not each & {"start", "select"}]


# --- x and y ---


def _axis(
    searched: SearchedGame,
    emulator: Emulator,
    axis: _Axis,
    states: Sequence[bytes],
    known: KnownPlaces,
) -> tuple[RankedPlace, ...]:
    ram = searched.ram
    moved = _moved(emulator, ram, axis, states)
    if not moved.times.any():
        return ()
    enough = np.flatnonzero(moved.times >= _LEAST_SHARE * moved.times.max())
    prover = Prover(emulator, ram, states[moved.best], searched.button_sets)
    noise = watch_idle(emulator, ram, states[moved.best])
    found = [RamCandidate(int(index), U8) for index in enough]
    places = ranked_places(found, ram, noise, known, (prover,))

    def order(place: RankedPlace) -> tuple[float, ...]:
        """What obeys soonest is the player's own, and not what follows it."""
        index = place.candidate.index
        is_copy = place.proof is not None and place.proof.verdict is Verdict.COPY
        is_jerky = bool(moved.steps[index] < SMOOTH_STEPS)
        delay = int(moved.delays[index])
        return (is_copy + 2 * place.mirrors_sprites, is_jerky, delay, *place.order)

    return tuple(sorted(places, key=order))


@dataclass(frozen=True)
class _Moved:
    """How bytes have followed the buttons of an axis.

    Attributes:
        times: int64 [n_bytes], from how many states they went one way and back, each the same way.
        steps, delays: int64 [n_bytes], the most steps, and the fewest samples before the first one.
        best: the state from which most bytes followed.
    """

    times: NDArray[np.int64]
    steps: NDArray[np.int64]
    delays: NDArray[np.int64]
    best: int


def _moved(emulator: Emulator, ram: Ram, axis: _Axis, states: Sequence[bytes]) -> _Moved:
    times = np.zeros((2, ram.n_bytes), np.int64)
    steps = np.zeros(ram.n_bytes, np.int64)
    delays = np.full(ram.n_bytes, _SAMPLES)
    n_moved = []
    for state in states:
        n_moved.append(0)
        try:
            idle, idle_screens = _held(emulator, ram, state, ())
            higher, higher_screens = _held(emulator, ram, state, (axis.higher,))
            lower, lower_screens = _held(emulator, ram, state, (axis.lower,))
        except LockUpError:
            continue
        if higher_screens == lower_screens or idle_screens in (higher_screens, lower_screens):
            continue  # nothing that a person sees goes both ways
        for way, moves in enumerate(moves_apart(idle, higher, lower)):
            times[way] += moves.is_two_way
            steps = np.maximum(steps, moves.steps * moves.is_two_way)
            delays = np.where(moves.is_two_way, np.minimum(delays, moves.delays), delays)
            n_moved[-1] += int(moves.is_two_way.sum())
    return _Moved(times.max(axis=0), steps, delays, int(np.argmax(n_moved)))


def _held(
    emulator: Emulator, ram: Ram, state: bytes, buttons: Sequence[Button]
) -> tuple[NDArray[np.uint8], list[bytes]]:
    """Return memory, uint8 [n_samples, n_bytes], and the screens while buttons are held."""
    emulator.load_state(state)
    emulator.hold(buttons)
    memory = []
    screens = []
    for _ in range(_SAMPLES):
        emulator.tick(2, render=True)
        memory.append(ram.read(emulator))
        screens.append(screen_digest(emulator))
    return np.array(memory), screens


# --- random play: overflows, and rooms ---


class _Play(NamedTuple):
    """What was seen while buttons were held at random.

    Attributes:
        memory: uint8 [n_samples, n_bytes].
        tiles: int16 [n_samples, 18, 20], the background.
    """

    memory: NDArray[np.uint8]
    tiles: NDArray[np.int16]


def _played(
    searched: SearchedGame, emulator: Emulator, states: Sequence[bytes], rng: np.random.Generator
) -> Iterator[_Play]:
    """Yield some minutes of play; buttons are held for up to two seconds, to get somewhere."""
    ways = _ways(searched)
    for number in range(_PLAYS):
        emulator.load_state(states[number % len(states)])
        memory = []
        tiles = []
        left = 0
        for _ in range(_PLAY_FRAMES // _PLAY_SAMPLE_FRAMES):
            if not left:
                emulator.hold(ways[int(rng.integers(len(ways)))])
                left = int(rng.integers(2, 8))
            left -= 1
            try:
                emulator.tick(_PLAY_SAMPLE_FRAMES, render=False)
            except LockUpError:
                break
            memory.append(searched.ram.read(emulator))
            tiles.append(background_tiles(emulator))
        if memory:
            yield _Play(np.array(memory), np.array(tiles))


@dataclass(frozen=True)
class _Walked:
    """What random play has told.

    Attributes:
        stays: memory between two jumps of the position, where the background stays as it is, uint8
            [n_stays, n_bytes].
        alike: bool [n_stays, n_stays], whether two of them show the same background.
        is_steady: bool [n_bytes], the bytes that change at jumps, and seldom elsewhere.
        wide: the moving bytes whose next one counts their overflows.
    """

    stays: NDArray[np.uint8]
    alike: NDArray[np.bool_]
    is_steady: NDArray[np.bool_]
    wide: frozenset[int]


def _walked(
    plays: Iterator[_Play], position: Sequence[int], moving: Sequence[int], ram: Ram
) -> _Walked:
    """Go through random play.

    Args:
        position: indices of the bytes for x and y.
        moving: of all bytes that may be one of them.
    """
    stays = []
    pictures = []
    n_changes = np.zeros(ram.n_bytes, np.int64)
    n_at_jumps = np.zeros(ram.n_bytes, np.int64)
    has_next = [ram.region_numbers[i : i + 2].tolist() for i in moving]
    low = [index for index, both in zip(moving, has_next, strict=True) if both[:1] == both[1:]]
    overflows = np.zeros((3, len(low)), np.int64)
    for play in plays:
        memory = play.memory
        overflows += overflows_of(memory[:, low], memory[:, [index + 1 for index in low]])
        is_jump = np.abs(_steps(memory[:, position])) > _JUMP
        jumps: NDArray[np.bool_] = np.any(is_jump, axis=1)
        window = np.ones(2 * _SETTLED + 1)
        is_near = np.convolve(jumps, window)[_SETTLED : _SETTLED + len(jumps)] > 0
        changes = memory[1:] != memory[:-1]
        n_changes += changes.sum(axis=0)
        n_at_jumps += changes[is_near].sum(axis=0)
        ends = [0, *(np.flatnonzero(jumps) + 1).tolist(), len(memory)]
        for begin, end in pairwise(ends):
            if end - begin > 2 * _SETTLED:
                middle = (begin + end) // 2
                first, last = play.tiles[[begin + _SETTLED, end - 1 - _SETTLED]]
                if np.mean(first == last) >= _SAME_PICTURE:
                    stays.append(memory[middle])
                    pictures.append(play.tiles[middle])
    n = len(pictures)
    alike = np.zeros((n, n), np.bool_)
    for index, picture in enumerate(pictures):
        alike[index] = [np.mean(picture == other) >= _SAME_PICTURE for other in pictures]
    is_steady = (n_at_jumps > 0) & (n_at_jumps >= _LEAST_AT_JUMPS * n_changes)
    times, carried, others = overflows
    is_wide = (carried > 0) & (carried >= times - 1) & (others <= carried)
    return _Walked(
        np.array(stays, np.uint8).reshape(n, ram.n_bytes),
        alike,
        is_steady,
        frozenset(np.array(low, np.int64)[is_wide].tolist()),
    )


def _steps(memory: NDArray[np.uint8]) -> NDArray[np.int16]:
    """Return by how much each byte changes from sample to sample, by the shorter way round."""
    return np.diff(memory.astype(np.int16), axis=0).astype(np.int8).astype(np.int16)


def overflows_of(low: NDArray[np.uint8], high: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return for each byte how often it overflows, how often the byte after it counts that, and how
    often that one changes otherwise: int64 [3, n].

    Args:
        low, high: the bytes, and those after them, uint8 [n_samples, n].
    """
    whole = np.diff(low.astype(np.int16), axis=0)
    turns = (whole < -128).astype(np.int16) - (whole > 128)
    after = _steps(high)
    carried = (turns != 0) & (after == turns)
    others = (turns == 0) & (after != 0)
    return np.array([(turns != 0).sum(axis=0), carried.sum(axis=0), others.sum(axis=0)])


def _widened(place: RankedPlace, wide: frozenset[int]) -> RankedPlace:
    if place.candidate.index not in wide:
        return place
    return replace(place, candidate=RamCandidate(place.candidate.index, U16))


def _rooms(
    searched: SearchedGame, emulator: Emulator, walked: _Walked, state: bytes, known: KnownPlaces
) -> tuple[RankedPlace, ...]:
    """Return what tells the rooms apart: numbers close to one another before others."""
    scores = room_scores(walked.stays, walked.alike) * walked.is_steady
    chosen = np.flatnonzero(scores >= max(_LEAST_ROOM_SCORE, 0.8 * scores.max()))
    if not len(chosen):
        return ()
    ram = searched.ram
    spans = np.ptp(walked.stays, axis=0)
    places = ranked_places(
        [RamCandidate(int(index), U8) for index in chosen],
        ram,
        watch_idle(emulator, ram, state),
        known,
        (Prover(emulator, ram, state, searched.button_sets),),
        lambda candidate: int(spans[candidate.index]),
    )
    tenths = np.round(10 * scores)
    return tuple(sorted(places, key=lambda each: (-tenths[each.candidate.index], *each.order)))


def room_scores(stays: NDArray[np.uint8], alike: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return how well each byte tells rooms apart, 0 to 1, float64 [n_bytes].

    It is the share of pairs of stays with one background in which the byte is the same, or that of
    pairs with two backgrounds in which it differs, whichever is less.

    Args:
        stays: uint8 [n_stays, n_bytes].
        alike: bool [n_stays, n_stays].
    """
    pairs = np.triu_indices(len(stays), 1)
    is_alike = alike[pairs]
    if is_alike.all():
        return np.zeros(stays.shape[1])  # there is one room, or nothing was seen
    same = np.zeros(stays.shape[1], np.int64)
    other = np.zeros(stays.shape[1], np.int64)
    for one, two, is_one_room in zip(*pairs, is_alike, strict=True):
        equal = stays[one] == stays[two]
        if is_one_room:
            same += equal
        else:
            other += ~equal
    n_alike = int(is_alike.sum())
    of_alike = same / n_alike if n_alike else np.ones(stays.shape[1])
    found: NDArray[np.float64] = np.minimum(of_alike, other / (len(is_alike) - n_alike))
    has_few = np.array([len(np.unique(each)) <= _MOST_ROOM_VALUES for each in stays.T])
    return np.where(has_few, found, 0.0)
