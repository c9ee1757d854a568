"""`game-rl find --number`: the bytes that always equal a number on the screen."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import Button, Emulator
from game_rl.errors import LockUpError, UsageError
from game_rl.games.start_state import ScriptStep
from game_rl.ram_search.encodings import encodings_with
from game_rl.ram_search.known_facts import KnownFact, NumberFact
from game_rl.ram_search.moments import KnownMoment, MomentPlace
from game_rl.ram_search.proof import Prover
from game_rl.ram_search.ranking import KnownPlaces, RankedPlace, ranked_places, watch_idle
from game_rl.ram_search.search import RamCandidate, Search
from game_rl.ram_search.searched_game import SearchedGame
from game_rl.ram_search.shown_numbers import (
    LAYERS,
    NumberPlace,
    Statement,
    learned_from_counter,
    stated_place,
)

_EPISODE_FRAMES = 1_200
_MOST_EPISODES = 24
_ENOUGH_NUMBERS = 16
_LONGEST_HOLD_FRAMES = 32
_STILL_FRAMES = (60, 30, 16, 8, 5, 4, 3, 2, 1, 0)
"""How long a number has stood still afterwards at the moments that count: memory is written before
the picture is drawn, and some numbers are drawn digit by digit."""
_MOST_SAMPLES = 400
_KEPT_MOMENTS = 8

Progress = Callable[[str], None]


@dataclass(frozen=True)
class _Episode:
    """What was played from one start state, a frame at a time, and what the screen showed.

    Attributes:
        held: the buttons in each frame.
        tiles: by layer, int16 [n_frames + 1, 18, 20]; the first is the beginning.
    """

    start_state: str | None
    state: bytes
    held: tuple[frozenset[Button], ...]
    tiles: dict[str, NDArray[np.int16]]


@dataclass(frozen=True)
class NumberFound:
    """What a search by a number on the screen has found.

    Attributes:
        places: the likeliest place first.
        numbers: how many different numbers the screen has shown, at `samples` moments.
        moments: some of them, to be kept as a test; `known` has the number as "number".
    """

    statement: Statement
    where: NumberPlace
    places: tuple[RankedPlace, ...]
    numbers: tuple[int, ...]
    samples: int
    frames: int
    seconds: float
    moments: tuple[KnownMoment, ...]


def find_number(
    searched: SearchedGame,
    statement: Statement,
    known: KnownPlaces,
    *,
    seed: int = 0,
    limit_s: float = 60.0,
    progress: Progress = lambda _: None,
) -> NumberFound:
    """Search for the bytes that always equal a number on the screen.

    Raises:
        UsageError: the screen does not show the number, or it never changes in random play.
    """
    begun = time.monotonic()
    with searched.emulator() as emulator:
        power_on = emulator.save_state()
        searched.bring_to_start(emulator, power_on)
        now = {name: read(emulator) for name, read in LAYERS.items()}
        options = stated_place(statement, now)
        state = emulator.save_state()
        episodes: list[_Episode] = []
        for episode in _played(searched, emulator, power_on, state, options, seed):
            episodes.append(episode)
            numbers = [_numbers(place, episodes) for place in options]
            most = max(len({n for each in one for n in each if n is not None}) for one in numbers)
            progress(f"{len(episodes)} of {_MOST_EPISODES} plays, {most} numbers seen")
            if most >= _ENOUGH_NUMBERS or time.monotonic() - begun > limit_s / 2:
                break
        best = None
        for place in _by_variety(options, episodes):
            found = _search(searched, emulator, place, episodes)
            if best is None or len(found.candidates) > 0 >= len(best.candidates):
                best = found
            if found.candidates:
                break
        assert best is not None
        if len(best.seen) < 2:
            raise UsageError(
                f"the number in {best.place.in_words} was {statement.digits} all the time in "
                f"{_frames(episodes):,} frames of random play, so nothing can be told from it; "
                "begin where it changes (--start-state, --script, --wait), or tell what you know "
                "of it at some moments (--moments FILE)"
            )
        progress(f"writing into {len(best.candidates):,} places")
        layer = LAYERS[best.place.layer]
        prover = Prover(
            emulator,
            searched.ram,
            best.state,
            searched.button_sets,
            lambda player: best.place.read(layer(player)),
        )
        noise = watch_idle(emulator, searched.ram, state)
        places = ranked_places(best.candidates, searched.ram, noise, known, (prover,))
    return NumberFound(
        statement,
        best.place,
        tuple(places),
        tuple(sorted(best.seen)),
        best.n_samples,
        _frames(episodes),
        round(time.monotonic() - begun, 1),
        tuple(best.moments),
    )


def _frames(episodes: Iterable[_Episode]) -> int:
    return sum(len(episode.held) for episode in episodes)


def _played(
    searched: SearchedGame,
    emulator: Emulator,
    power_on: bytes,
    state: bytes,
    options: Sequence[NumberPlace],
    seed: int,
) -> "Iterable[_Episode]":
    """Yield episodes of random play: from the beginning, and from the game's other start states."""
    rng = np.random.default_rng(seed)
    begins: list[tuple[str | None, bytes]] = [(searched.start_state, state)]
    if searched.start_state is not None and not searched.start:
        for other in searched.start_states:
            if other != searched.start_state:
                searched.bring_to_start(emulator, power_on, other)
                begins.append((other, emulator.save_state()))
    layers = {place.layer for place in options}
    for number in range(_MOST_EPISODES):
        name, begin = begins[number % len(begins)]
        emulator.load_state(begin)
        held = _random_held(searched.button_sets, rng)
        tiles = {layer: [LAYERS[layer](emulator)] for layer in layers}
        played = 0
        try:
            for buttons in held:
                emulator.hold(buttons)
                emulator.tick(1, render=False)
                played += 1
                for layer in layers:
                    tiles[layer].append(LAYERS[layer](emulator))
        except LockUpError:
            held = held[: max(0, played - 1)]
        grids = {layer: np.array(found[: len(held) + 1]) for layer, found in tiles.items()}
        yield _Episode(name, begin, tuple(held), grids)


def _random_held(
    button_sets: Sequence[frozenset[Button]], rng: np.random.Generator
) -> list[frozenset[Button]]:
    """Return the buttons of each frame; one set is preferred, so that play gets somewhere."""
    weights = np.ones(len(button_sets))
    weights[rng.integers(len(button_sets))] += len(button_sets)
    found: list[frozenset[Button]] = []
    while len(found) < _EPISODE_FRAMES:
        chosen = button_sets[int(rng.choice(len(button_sets), p=weights / weights.sum()))]
        found += [chosen] * int(rng.integers(4, _LONGEST_HOLD_FRAMES + 1))
    return found[:_EPISODE_FRAMES]


def _numbers(place: NumberPlace, episodes: Iterable[_Episode]) -> list[list[int | None]]:
    """Return the number at each frame of each episode."""
    return [[place.read(tiles) for tiles in each.tiles[place.layer]] for each in episodes]


def _by_variety(options: Sequence[NumberPlace], episodes: Sequence[_Episode]) -> list[NumberPlace]:
    """Return the places with all their digits, those that show most numbers first."""
    found = []
    for place in options:
        if len(place.digits) == 10:
            found.append(place)
        else:
            tiles = np.concatenate([each.tiles[place.layer] for each in episodes])
            found += learned_from_counter(place, tiles)
    counts = {
        index: len({n for each in _numbers(place, episodes) for n in each if n is not None})
        for index, place in enumerate(found)
    }
    order = sorted(range(len(found)), key=lambda index: -counts[index])
    return [found[index] for index in order]


@dataclass(frozen=True)
class _Outcome:
    place: NumberPlace
    candidates: list[RamCandidate]
    seen: set[int]
    n_samples: int
    state: bytes
    moments: list[KnownMoment]


def _search(
    searched: SearchedGame,
    emulator: Emulator,
    place: NumberPlace,
    episodes: Sequence[_Episode],
) -> _Outcome:
    numbers = _numbers(place, episodes)
    every = {n for one in numbers for n in one if n is not None}
    outcome = None
    for still in _STILL_FRAMES:
        samples = _samples(numbers, still)
        seen = {number for _, _, number in samples}
        if len(seen) < min(_ENOUGH_NUMBERS, max(2, 0.7 * len(every))) and still:
            continue
        snapshots, state = _snapshots(searched, emulator, episodes, samples)
        zero = place.zero
        zeros = () if zero is None else (zero,) if zero else ()
        search = Search(searched.ram, snapshots, encodings_with(zeros))
        facts = [
            KnownFact(index, NumberFact(number, number), None)
            for index, (_, _, number) in enumerate(samples)
        ]
        found = list(search.candidates(facts)) if len(seen) > 1 else []
        moments = _moments(searched, episodes, samples)
        outcome = _Outcome(place, found, seen, len(samples), state, moments)
        if found or not still:
            break
    assert outcome is not None
    return outcome


_Sample = tuple[int, int, int]
"""Episode, frame and number."""


def _samples(numbers: Sequence[Sequence[int | None]], still: int) -> list[_Sample]:
    """Return moments after which the number stands still for so many frames."""
    found: list[_Sample] = []
    for episode, row in enumerate(numbers):
        frame = 0
        for number, run in groupby(row):
            length = len(list(run))
            usable = length - still
            if number is not None and usable > 0:
                wanted = {0, usable // 2, usable - 1}
                found += [(episode, frame + offset, number) for offset in sorted(wanted)]
            frame += length
    if len(found) > _MOST_SAMPLES:
        chosen = np.linspace(0, len(found) - 1, _MOST_SAMPLES).astype(int)
        found = [found[index] for index in chosen]
    return found


def _snapshots(
    searched: SearchedGame,
    emulator: Emulator,
    episodes: Sequence[_Episode],
    samples: Sequence[_Sample],
) -> tuple[NDArray[np.uint8], bytes]:
    """Play the episodes again; return RAM at each sample, and the state at a middle one."""
    found = []
    states: list[bytes] = []
    middle = len(samples) // 2
    for number, of_episode in groupby(samples, key=lambda sample: sample[0]):
        episode = episodes[number]
        emulator.load_state(episode.state)
        at = 0
        for _, frame, _ in of_episode:
            for buttons in episode.held[at:frame]:
                emulator.hold(buttons)
                emulator.tick(1, render=False)
            at = frame
            found.append(searched.ram.read(emulator))
            if len(found) - 1 <= middle:
                states[:] = [emulator.save_state()]
    empty = np.zeros((0, searched.ram.n_bytes), np.uint8)
    state = states[0] if states else episodes[0].state
    return (np.array(found) if found else empty), state


def _moments(
    searched: SearchedGame, episodes: Sequence[_Episode], samples: Sequence[_Sample]
) -> list[KnownMoment]:
    """Return a moment for each of some numbers, as game-rl check-game can repeat them."""
    first: dict[int, _Sample] = {}
    for sample in samples:
        first.setdefault(sample[2], sample)
    every = sorted(first.values(), key=lambda sample: sample[:2])
    even = np.linspace(0, len(every) - 1, min(len(every), _KEPT_MOMENTS)).astype(int)
    chosen = [every[index] for index in even]
    found = []
    for number, frame, shown in chosen:
        episode = episodes[number]
        then = tuple(as_steps(episode.held[:frame]))
        if episode.start_state == searched.start_state:
            then = (*searched.start, *then)
        if episode.start_state is None:
            at = MomentPlace(script=then) if then else MomentPlace()
        else:
            at = MomentPlace(start_state=episode.start_state, then=then)
        found.append(KnownMoment(at=at, known={"number": shown}))
    return found


def as_steps(held: Iterable[frozenset[Button]]) -> "Iterable[ScriptStep]":
    """Yield the steps of a script that holds these buttons, a frame each."""
    for buttons, run in groupby(held):
        frames = len(list(run))
        if buttons:
            yield ScriptStep(hold=tuple(sorted(buttons)), frames=frames)
        else:
            yield ScriptStep(wait=frames)
