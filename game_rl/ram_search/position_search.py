"""`game-rl find --position`: bytes that follow the direction buttons, from one state."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import Button, Emulator
from game_rl.emulator.ram import Ram
from game_rl.errors import LockUpError, UsageError
from game_rl.ram_search.encodings import U8, U16
from game_rl.ram_search.proof import Prover, Verdict
from game_rl.ram_search.ranking import KnownPlaces, RankedPlace, ranked_places, watch_idle
from game_rl.ram_search.search import RamCandidate
from game_rl.ram_search.searched_game import SearchedGame

_FRAMES = 48
_LEAST_STEPS = 4  # of the frames in which a byte must move
_BEGINNINGS = 6
_ROOM_FRAMES = 3_600
_MOST_ROOM_VALUES = 64


class _Axis(NamedTuple):
    name: str
    lower: Button
    higher: Button


AXES = (_Axis("x", "left", "right"), _Axis("y", "up", "down"))


@dataclass(frozen=True)
class PositionFound:
    """What follows the direction buttons.

    Attributes:
        axes: for "x" and "y", the places that go down and up, the likeliest first.
        rooms: places that are constant but where the position jumps; the likeliest first.
    """

    axes: dict[str, tuple[RankedPlace, ...]]
    rooms: tuple[RankedPlace, ...]

    @property
    def place(self) -> list[str]:
        """What `place` of game.yaml may name."""
        names = [axis for axis, places in self.axes.items() if places]
        return [*(["room"] if self.rooms and len(names) == 2 else []), *names]


def find_position(searched: SearchedGame, known: KnownPlaces, *, seed: int = 0) -> PositionFound:
    """Hold left, then right, from one state, and up and down; from several states in turn.

    Raises:
        UsageError: no byte follows a direction.
    """
    with searched.emulator() as emulator:
        power_on = emulator.save_state()
        searched.bring_to_start(emulator, power_on)
        states = _states(searched, emulator, seed)
        axes = {axis.name: _axis(searched, emulator, axis, states, known) for axis in AXES}
        if not any(axes.values()):
            raise UsageError(
                "no byte goes down while one direction is held and up while the other is; begin "
                "where the player can walk both ways (--start-state, --script, --wait)"
            )
        rooms: tuple[RankedPlace, ...] = ()
        if axes["x"]:
            rooms = _rooms(searched, emulator, states[0], axes["x"][0], known, seed)
    return PositionFound(axes, rooms)


def _states(searched: SearchedGame, emulator: Emulator, seed: int) -> list[bytes]:
    """Return the start, and states after some random play."""
    rng = np.random.default_rng(seed)
    found = [emulator.save_state()]
    ways = [s for s in searched.button_sets if not s & {"start", "select"}]
    for _ in range(_BEGINNINGS - 1):
        for _ in range(4):
            emulator.hold(ways[int(rng.integers(len(ways)))])
            emulator.tick(int(rng.integers(8, 24)), render=False)
        emulator.hold(())
        emulator.tick(16, render=False)
        found.append(emulator.save_state())
    return found


def _axis(
    searched: SearchedGame,
    emulator: Emulator,
    axis: _Axis,
    states: Sequence[bytes],
    known: KnownPlaces,
) -> tuple[RankedPlace, ...]:
    ram = searched.ram
    scores = np.zeros(ram.n_bytes)
    wide = np.zeros(ram.n_bytes)
    chosen = states[0]
    best = 0.0
    for state in states:
        one, two = _scores(emulator, ram, axis, state)
        scores += one
        wide += two
        if one.max() > best:
            best = float(one.max())
            chosen = state
    found = []
    for encoding, of_encoding in ((U8, scores), (U16, wide)):
        if of_encoding.max() <= 0:
            continue
        enough = np.flatnonzero(of_encoding >= max(0.5, 0.5 * of_encoding.max()))
        found += [RamCandidate(int(index), encoding) for index in enough]
    if not found:
        return ()
    prover = Prover(emulator, ram, chosen, searched.button_sets)
    noise = watch_idle(emulator, ram, chosen)
    places = ranked_places(found, ram, noise, known, (prover,))
    top = scores.max() or 1.0

    def order(place: RankedPlace) -> tuple[float, ...]:
        index = place.candidate.index
        is_copy = place.proof is not None and place.proof.verdict is Verdict.COPY
        return (is_copy + 2 * place.mirrors_sprites, -round(2 * scores[index] / top), *place.order)

    widened = []
    for place in places:
        index = place.candidate.index
        encoding = U16 if wide[index] > scores[index] + 0.1 else U8
        widened.append(replace(place, candidate=RamCandidate(index, encoding)))
    return tuple(sorted(widened, key=order))


def _scores(
    emulator: Emulator, ram: Ram, axis: _Axis, state: bytes
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for each byte, as u8 and u16, 0 to 1: whether it goes down, up, and rests."""
    try:
        lower = _held(emulator, ram, state, (axis.lower,))
        higher = _held(emulator, ram, state, (axis.higher,))
        idle = _held(emulator, ram, state, ())
        other = _held(emulator, ram, state, AXES[axis.name == "x"][1:2])
    except LockUpError:
        nothing = np.zeros(ram.n_bytes)
        return nothing, nothing
    narrow = [_steps_u8(each) for each in (lower, higher, idle, other)]
    wide = [_steps_u16(each) for each in (lower, higher, idle, other)]
    return _score(*narrow), _score(*wide)


def _held(
    emulator: Emulator, ram: Ram, state: bytes, buttons: Sequence[Button]
) -> NDArray[np.uint8]:
    emulator.load_state(state)
    emulator.hold(buttons)
    found = [ram.read(emulator)]
    for _ in range(_FRAMES // 2):
        emulator.tick(2, render=False)
        found.append(ram.read(emulator))
    return np.array(found)


def _steps_u8(snapshots: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the steps from one snapshot to the next, the short way around."""
    whole = snapshots.astype(np.int64)
    found: NDArray[np.int64] = np.mod(whole[1:] - whole[:-1] + 128, 256) - 128
    return found


def _steps_u16(snapshots: NDArray[np.uint8]) -> NDArray[np.int64]:
    whole = snapshots.astype(np.int64)
    high = np.concatenate([whole[:, 1:], whole[:, :1]], axis=1)
    both: NDArray[np.int64] = whole | high << 8
    return both[1:] - both[:-1]


def _score(
    lower: NDArray[np.int64],
    higher: NDArray[np.int64],
    idle: NDArray[np.int64],
    other: NDArray[np.int64],
) -> NDArray[np.float64]:
    down = _one_way(lower, -1)
    up = _one_way(higher, 1)
    still = 1 - 0.5 * (idle != 0).any(axis=0) - 0.25 * (other != 0).any(axis=0)
    moved = ((lower != 0).sum(axis=0) >= _LEAST_STEPS) + ((higher != 0).sum(axis=0) >= _LEAST_STEPS)
    both = np.minimum(down, up)
    one = 0.4 * np.maximum(down, up) * (moved == 1)
    found: NDArray[np.float64] = np.where(moved == 2, both, one) * still
    return found


def _one_way(steps: NDArray[np.int64], way: int) -> NDArray[np.float64]:
    """Return 1 for bytes that only move this way, by small steps."""
    is_right = ((steps * way >= 0) & (np.abs(steps) <= 12)).all(axis=0) & (steps != 0).any(axis=0)
    found: NDArray[np.float64] = is_right.astype(np.float64)
    return found


def _rooms(
    searched: SearchedGame,
    emulator: Emulator,
    state: bytes,
    x: RankedPlace,
    known: KnownPlaces,
    seed: int,
) -> tuple[RankedPlace, ...]:
    """Play at random; return bytes that change when the position jumps, and at no other time."""
    ram = searched.ram
    rng = np.random.default_rng(seed)
    ways = [s for s in searched.button_sets if not s & {"start", "select"}]
    emulator.load_state(state)
    rows = [ram.read(emulator)]
    held = 0
    try:
        for _ in range(_ROOM_FRAMES // 8):
            if held == 0:
                emulator.hold(ways[int(rng.integers(len(ways)))])
                held = int(rng.integers(4, 16))
            held -= 1
            emulator.tick(8, render=False)
            rows.append(ram.read(emulator))
    except LockUpError:
        pass
    seen = np.array(rows)
    jumps = np.abs(_steps_u8(seen)[:, x.candidate.index]) > 40
    if not jumps.any():
        return ()
    changes = np.diff(seen.astype(np.int64), axis=0) != 0
    near = jumps | np.roll(jumps, 1) | np.roll(jumps, -1)
    at_jumps = (changes & near[:, None]).any(axis=0)
    elsewhere = (changes & ~near[:, None]).any(axis=0)
    values = np.array([len(np.unique(column)) for column in seen.T])
    chosen = np.flatnonzero(at_jumps & ~elsewhere & (values > 1) & (values <= _MOST_ROOM_VALUES))
    if not len(chosen):
        return ()
    prover = Prover(emulator, ram, state, searched.button_sets)
    noise = watch_idle(emulator, ram, state)
    return tuple(
        ranked_places([RamCandidate(int(i), U8) for i in chosen], ram, noise, known, (prover,))
    )
