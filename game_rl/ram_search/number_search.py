"""`game-rl find --number`: the bytes that always equal a number on the screen."""

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import Button, Emulator, Press, play_presses
from game_rl.envs.make_env import make_emulator, make_game_env
from game_rl.errors import LockUpError, UsageError
from game_rl.game_check.recorded_episode import (
    episode_config,
    read_recorded_episode,
    recorded_timesteps,
)
from game_rl.games.definition import Game
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
_MOST_RECORDED_FRAMES = 36_000  # ten minutes, the last ones of an episode
_OTHER_START = "start where it changes (--start-state, --script, --wait)"
_OTHER_PLAY = "record an episode in which it changes"

Progress = Callable[[str], None]


Watch = Callable[[Emulator], bool]
"""Is called with the emulator at the beginning of a play and after each of its frames; returns
whether to go on."""


class _Play(Protocol):
    """A play that can be repeated, frame by frame."""

    def play(self, emulator: Emulator, watch: Watch) -> None:
        """Play it; a game that locks up ends it.

        Args:
            emulator: may be used for it, and ends up in any state.
        """

    def place_of(self, frame: int) -> MomentPlace:
        """Return how the moment after so many frames is reached; it was played before."""


@dataclass(frozen=True)
class _RandomPlay:
    """Random buttons from a start state.

    Attributes:
        start_state: name of the start state; None for power-on.
        start: the steps from there to where the play begins.
        state: where it begins.
        held: the buttons in each frame.
    """

    start_state: str | None
    start: tuple[ScriptStep, ...]
    state: bytes
    held: tuple[frozenset[Button], ...]

    def play(self, emulator: Emulator, watch: Watch) -> None:
        emulator.load_state(self.state)
        goes_on = watch(emulator)
        with suppress(LockUpError):
            for buttons in self.held:
                if not goes_on:
                    break
                emulator.hold(buttons)
                emulator.tick(1, render=False)
                goes_on = watch(emulator)

    def place_of(self, frame: int) -> MomentPlace:
        then = (*self.start, *as_steps(self.held[:frame]))
        if self.start_state is not None:
            return MomentPlace(start_state=self.start_state, then=then)
        return MomentPlace(script=then) if then else MomentPlace()


class _RecordedPlay:
    """A recorded episode, played in the game's env, which may write to memory as it does.

    Attributes:
        end_state: the state at its end, once it was played.
    """

    def __init__(self, path: Path, game: Game) -> None:
        self._path = path
        self._game = game
        self._episode = read_recorded_episode(path, game)
        self._ends: list[int] = []  # frames at the ends of timesteps
        self._held: list[frozenset[Button]] = []
        self.end_state = b""

    def play(self, emulator: Emulator, watch: Watch) -> None:  # noqa: ARG002 - the env has its own
        episode = self._episode
        self._ends = [0]
        self._held = []
        emulator_of_env = make_emulator(self._game)
        watched = _FrameByFrame(emulator_of_env, self._held)
        config = episode_config(self._game, episode)
        with closing(make_game_env(config, self._game, cast("Emulator", watched))) as env:
            env.reset(seed=episode.seed, options=dict(episode.options))
            self._held.clear()
            watched.watch = watch
            watched.goes_on = watch(emulator_of_env)
            for timestep in recorded_timesteps(episode, self._game):
                if not (watched.goes_on and env.episode.running):
                    break
                timestep.play(env)
                self._ends.append(len(self._held))
            self.end_state = emulator_of_env.save_state()

    def place_of(self, frame: int) -> MomentPlace:
        timestep = bisect_right(self._ends, frame) - 1
        then = tuple(as_steps(self._held[self._ends[timestep] : frame]))
        return MomentPlace(recorded=self._path, timestep=timestep, then=then)


class _FrameByFrame:
    """A wrapper of an emulator that is watched after each frame."""

    def __init__(self, emulator: Emulator, held: list[frozenset[Button]]) -> None:
        self._emulator = emulator
        self._buttons: frozenset[Button] = frozenset()
        self._held = held
        self.watch: Watch = lambda _: True
        self.goes_on = True

    def hold(self, buttons: Iterable[Button]) -> None:
        self._buttons = frozenset(buttons)
        self._emulator.hold(self._buttons)

    def tick(self, frames: int, *, render: bool) -> None:
        for left in range(frames, 0, -1):
            self._emulator.tick(1, render=render and left == 1)
            self._held.append(self._buttons)
            self.goes_on = self.goes_on and self.watch(self._emulator)

    def play(self, presses: Sequence[Press], *, render: bool) -> None:
        play_presses(cast("Emulator", self), presses, render=render)

    def __getattr__(self, name: str) -> object:
        return getattr(self._emulator, name)


@dataclass(frozen=True)
class _Episode:
    """What the screen showed in a play.

    Attributes:
        first: number of the first frame that is kept.
        n_frames: how many were played.
        tiles: by layer, int16 [n, 18, 20], the beginning and each frame from `first` on.
    """

    play: _Play
    first: int
    n_frames: int
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
    recorded: Sequence[Path] = (),
    progress: Progress = lambda _: None,
) -> NumberFound:
    """Search for the bytes that always equal a number on the screen.

    Args:
        recorded: recorded episodes to read the number in, in place of random play. The statement is
            about the end of the first one.

    Raises:
        UsageError: the screen does not show the number, or it never changes while it is played.
        GameFileError: a file is no recorded episode of the game.
    """
    begun = time.monotonic()
    with searched.emulator() as emulator:
        episodes: list[_Episode] = []
        plays: Iterable[_Play]
        if recorded:
            first, *others = (_RecordedPlay(path, searched.known_game) for path in recorded)
            episodes.append(_watched(first, emulator, LAYERS))
            plays = others
            state = first.end_state
            now = {name: tiles[-1] for name, tiles in episodes[0].tiles.items()}
        else:
            power_on = emulator.save_state()
            searched.bring_to_start(emulator, power_on)
            state = emulator.save_state()
            plays = _random_plays(searched, emulator, power_on, state, seed)
            now = {name: read(emulator) for name, read in LAYERS.items()}
        options = stated_place(statement, now)
        layers = {place.layer for place in options}
        n_plays = len(recorded) or _MOST_EPISODES
        for play in plays:
            episodes.append(_watched(play, emulator, layers))
            numbers = [_numbers(place, episodes) for place in options]
            most = max(len({n for each in one for n in each if n is not None}) for one in numbers)
            progress(f"{len(episodes)} of {n_plays} plays, {most} numbers seen")
            is_enough = most >= _ENOUGH_NUMBERS and not recorded
            if is_enough or time.monotonic() - begun > limit_s / 2:
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
                f"the number in {best.place.in_words} stayed {statement.digits} in "
                f"{_frames(episodes):,} frames of {'recorded' if recorded else 'random'} play, so "
                f"it shows nothing; {_OTHER_PLAY if recorded else _OTHER_START}, or describe what "
                "you know of it at some moments (--moments FILE)"
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


def end_of_episode(path: Path, searched: SearchedGame) -> bytes:
    """Return the state at the end of a recorded episode.

    Raises:
        UsageError, GameFileError: as `find_number` does.
    """
    play = _RecordedPlay(path, searched.known_game)
    with searched.emulator() as emulator:
        play.play(emulator, lambda _: True)
    return play.end_state


def _frames(episodes: Iterable[_Episode]) -> int:
    return sum(episode.n_frames for episode in episodes)


def _random_plays(
    searched: SearchedGame, emulator: Emulator, power_on: bytes, state: bytes, seed: int
) -> Iterator[_RandomPlay]:
    """Yield random plays: from the beginning, and from the game's other start states."""
    rng = np.random.default_rng(seed)
    begins: list[tuple[str | None, bytes]] = [(searched.start_state, state)]
    if searched.start_state is not None and not searched.start:
        for other in searched.start_states:
            if other != searched.start_state:
                searched.bring_to_start(emulator, power_on, other)
                begins.append((other, emulator.save_state()))
    for number in range(_MOST_EPISODES):
        name, begin = begins[number % len(begins)]
        held = _random_held(searched.button_sets, rng)
        yield _RandomPlay(name, searched.start, begin, tuple(held))


def _watched(play: _Play, emulator: Emulator, layers: Collection[str]) -> _Episode:
    """Play, and keep what the screen shows at each frame."""
    tiles: dict[str, deque[NDArray[np.int16]]] = {
        layer: deque(maxlen=_MOST_RECORDED_FRAMES) for layer in layers
    }
    n_seen = 0

    def watch(player: Emulator) -> bool:
        nonlocal n_seen
        n_seen += 1
        for layer in layers:
            tiles[layer].append(LAYERS[layer](player))
        return True

    play.play(emulator, watch)
    grids = {layer: np.array(found) for layer, found in tiles.items()}
    return _Episode(play, max(0, n_seen - _MOST_RECORDED_FRAMES), n_seen - 1, grids)


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
        samples = _samples(numbers, [each.first for each in episodes], still)
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
        moments = _moments(episodes, samples)
        outcome = _Outcome(place, found, seen, len(samples), state, moments)
        if found or not still:
            break
    assert outcome is not None
    return outcome


_Sample = tuple[int, int, int]
"""Episode, frame and number."""


def _samples(
    numbers: Sequence[Sequence[int | None]], firsts: Sequence[int], still: int
) -> list[_Sample]:
    """Return moments after which the number stands still for so many frames.

    Args:
        numbers: those of each episode, frame by frame.
        firsts: the number of the first of these frames.
    """
    found: list[_Sample] = []
    for episode, row in enumerate(numbers):
        frame = firsts[episode]
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
    found: list[NDArray[np.uint8]] = []
    states: list[bytes] = []
    middle = len(samples) // 2
    for number, of_episode in groupby(samples, key=lambda sample: sample[0]):
        left = [frame for _, frame, _ in of_episode]
        left.reverse()
        at = 0

        def watch(player: Emulator, left: list[int] = left) -> bool:
            nonlocal at
            if at == left[-1]:
                left.pop()
                found.append(searched.ram.read(player))
                if len(found) - 1 == middle:
                    states.append(player.save_state())
            at += 1
            return bool(left)

        episodes[number].play.play(emulator, watch)
    empty = np.zeros((0, searched.ram.n_bytes), np.uint8)
    if not states:
        return empty, emulator.save_state()
    return np.array(found), states[0]


def _moments(episodes: Sequence[_Episode], samples: Sequence[_Sample]) -> list[KnownMoment]:
    """Return a moment for each of some numbers, as game-rl check-game can repeat them."""
    first: dict[int, _Sample] = {}
    for sample in samples:
        first.setdefault(sample[2], sample)
    every = sorted(first.values(), key=lambda sample: sample[:2])
    even = np.linspace(0, len(every) - 1, min(len(every), _KEPT_MOMENTS)).astype(int)
    return [
        KnownMoment(at=episodes[number].play.place_of(frame), known={"number": shown})
        for number, frame, shown in (every[index] for index in even)
    ]


def as_steps(held: Iterable[frozenset[Button]]) -> "Iterable[ScriptStep]":
    """Yield the steps of a script that holds these buttons, a frame each."""
    for buttons, run in groupby(held):
        frames = len(list(run))
        if buttons:
            yield ScriptStep(hold=tuple(sorted(buttons)), frames=frames)
        else:
            yield ScriptStep(wait=frames)
