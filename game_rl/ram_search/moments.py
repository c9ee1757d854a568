"""The file of moments: how each is reached, and what is known there of some numbers."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from game_rl.config.loader import load_yaml_model
from game_rl.config.strict_model import Problem, StrictModel
from game_rl.emulator.emulator import Emulator
from game_rl.envs.make_env import make_game_env
from game_rl.errors import EmulatorError, GameFileError
from game_rl.game_check.recorded_episode import (
    episode_config,
    read_recorded_episode,
    recorded_timesteps,
)
from game_rl.games.definition import unknown_name
from game_rl.games.start_state import ScriptStep, play_script, read_state
from game_rl.ram_search.known_facts import (
    KnownFact,
    NumberFact,
    PlacedFact,
    VariableFact,
    parse_fact,
    placed_facts,
)
from game_rl.ram_search.searched_game import SearchedGame

MOMENTS_FILE = "moments.yaml"
"""Name of the file beside game.yaml whose moments `check-game` repeats."""

_BASES = ("start_state", "script", "state", "recorded", "moment")
_MOST_MOMENTS = 2_000


class MomentPlace(StrictModel):
    """How a moment is reached. Without a beginning, it is played on from the moment before."""

    start_state: str | None = None
    """A start state of game.yaml."""
    script: Annotated[tuple[ScriptStep, ...], Field(min_length=1)] | None = None
    """Buttons to press from power-on."""
    state: Path | None = None
    """State file, relative to the file of moments."""
    recorded: Path | None = None
    """Recorded episode, as check-game --recorded reads it, relative to the file of moments."""
    timestep: Annotated[int, Field(ge=0)] | None = None
    """How many timesteps of the recorded episode are played; null: all."""
    moment: Annotated[int, Field(ge=1)] | None = None
    """An earlier moment by its number, from 1, to play on from there."""
    then: tuple[ScriptStep, ...] = ()
    """Buttons to press afterwards."""
    wait: Annotated[int, Field(ge=1, le=36_000)] | None = None
    """Frames to play without a button at the end."""

    def problems(self) -> Iterable[Problem]:
        given = [key for key in _BASES if getattr(self, key) is not None]
        if len(given) > 1:
            yield Problem((given[1],), f"does not go with `{given[0]}`; a moment has one beginning")
        if self.timestep is not None and self.recorded is None:
            yield Problem(("timestep",), "goes with `recorded`; name the recorded episode")

    @property
    def is_played_on(self) -> bool:
        return all(getattr(self, key) is None for key in _BASES)


class KnownMoment(StrictModel):
    """`{at: {start_state: level_1, wait: 60}, known: {health: 3}}`."""

    at: MomentPlace = MomentPlace()
    known: dict[str, int | str] = Field(default={})
    """What is known of numbers here, each by the name of the variable to find."""
    note: str = ""
    """For people."""

    def problems(self) -> Iterable[Problem]:
        for name, text in self.known.items():
            try:
                parse_fact(text)
            except ValueError as error:
                yield Problem(("known", name), str(error))


class MomentsFile(StrictModel):
    """A YAML or JSON file of moments."""

    moments: Annotated[tuple[KnownMoment, ...], Field(min_length=1, max_length=_MOST_MOMENTS)]

    def problems(self) -> Iterable[Problem]:
        for index, each in enumerate(self.moments):
            if each.at.moment is not None and each.at.moment > index:
                yield Problem(
                    ("moments", str(index), "at", "moment"),
                    f"is the number of an earlier moment, 1 to {index}; this is moment {index + 1}",
                )
        for name in self.names:
            try:
                list(self.facts_of(name, {}))
            except ValueError as error:
                yield Problem(("moments",), f"{name}: {error}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all numbers of which something is known."""
        return tuple(dict.fromkeys(name for moment in self.moments for name in moment.known))

    def facts_of(self, name: str, others: Mapping[str, Sequence[int]]) -> Iterable[KnownFact]:
        """Yield what is known of one number.

        Args:
            others: the values of variables of game.yaml at each moment, for `equals NAME`.

        Raises:
            ValueError: a fact compares with a moment or variable that is not there.
        """
        facts: list[tuple[int, PlacedFact]] = []
        for index, moment in enumerate(self.moments):
            if name not in moment.known:
                continue
            fact = parse_fact(moment.known[name])
            if isinstance(fact, VariableFact):
                values = others.get(fact.variable)
                value = 0 if values is None else values[index]
                fact = NumberFact(value, value)
            facts.append((index, fact))
        return placed_facts(facts, len(self.moments))


def read_moments(path: Path, searched: SearchedGame) -> MomentsFile:
    """Read a file of moments.

    Raises:
        GameFileError: it cannot be read, or names what the game does not have.
    """

    def unknown(file: MomentsFile) -> Iterable[Problem]:
        game = searched.game
        for index, moment in enumerate(file.moments):
            at = ("moments", str(index), "at")
            name = moment.at.start_state
            if name is not None and game is None:
                yield Problem((*at, "start_state"), "needs a game.yaml; write a `script`")
            elif name is not None and name not in searched.start_states:
                message = unknown_name(name, "start state", searched.start_states)
                yield Problem((*at, "start_state"), message)
            if moment.at.recorded is not None and game is None:
                yield Problem((*at, "recorded"), "needs a game.yaml, which says what actions do")
            for known, text in moment.known.items():
                fact = parse_fact(text)
                if not isinstance(fact, VariableFact):
                    continue
                numbers = () if game is None else game.number_names
                if fact.variable not in numbers:
                    message = unknown_name(fact.variable, "variable", numbers)
                    yield Problem(("moments", str(index), "known", known), message)

    return load_yaml_model(path, MomentsFile, error=GameFileError, more_checks=unknown)


@dataclass(frozen=True)
class PlayedMoments:
    """What was seen at each moment.

    Attributes:
        snapshots: uint8 [n_moments, n_bytes], copies of RAM.
        states: the emulator's states.
        variables: values of the variables of game.yaml, where there is one.
    """

    snapshots: NDArray[np.uint8]
    states: tuple[bytes, ...]
    variables: Mapping[str, tuple[int, ...]]


def play_moments(
    moments: Sequence[KnownMoment], searched: SearchedGame, folder: Path
) -> PlayedMoments:
    """Play all moments in turn.

    Args:
        folder: folder that state files and recorded episodes are relative to.

    Raises:
        GameFileError: a file of a moment cannot be read, or is not of this game.
    """
    snapshots = []
    states: list[bytes] = []
    seen: dict[str, list[int]] = {}
    game = searched.game
    readable = [] if game is None else [v for v in game.variables if hasattr(v, "address")]
    with searched.emulator() as emulator:
        power_on = emulator.save_state()
        for number, moment in enumerate(moments, start=1):
            try:
                _bring(emulator, moment.at, searched, folder, power_on, states)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise GameFileError(f"moment {number} cannot be played ({reason})") from None
            except EmulatorError as error:
                raise GameFileError(f"moment {number} cannot be played: {error}") from error
            snapshots.append(searched.ram.read(emulator))
            states.append(emulator.save_state())
            for variable in readable:
                value = variable.read(emulator)
                if isinstance(value, int):
                    seen.setdefault(variable.name, []).append(value)
    variables = {name: tuple(values) for name, values in seen.items()}
    return PlayedMoments(np.array(snapshots), tuple(states), variables)


def _bring(
    emulator: Emulator,
    at: MomentPlace,
    searched: SearchedGame,
    folder: Path,
    power_on: bytes,
    states: Sequence[bytes],
) -> None:
    if at.script is not None:
        emulator.load_state(power_on)
        play_script(emulator, at.script)
    elif at.start_state is not None:
        searched.bring_to_start(emulator, power_on, at.start_state)
    elif at.state is not None:
        path = folder / at.state
        emulator.load_state(
            read_state(path, searched.rom, colour=searched.is_colour, accepts_older=True)
        )
    elif at.recorded is not None:
        emulator.load_state(_state_in_episode(at, searched, folder))
    elif at.moment is not None:
        emulator.load_state(states[at.moment - 1])
    elif states:
        emulator.load_state(states[-1])
    else:
        searched.bring_to_start(emulator, power_on)
    if at.then:
        play_script(emulator, at.then)
    if at.wait is not None:
        play_script(emulator, (ScriptStep(wait=at.wait),))


def _state_in_episode(at: MomentPlace, searched: SearchedGame, folder: Path) -> bytes:
    game = searched.game
    assert game is not None
    assert at.recorded is not None
    episode = read_recorded_episode(folder / at.recorded, game)
    timesteps = recorded_timesteps(episode, game)
    if at.timestep is not None and at.timestep > len(timesteps):
        raise ValueError(f"{at.recorded} has {len(timesteps):,} timesteps, not {at.timestep:,}")
    with closing(make_game_env(episode_config(game, episode), game)) as env:
        env.reset(seed=episode.seed, options=episode.options)
        wanted = timesteps[: at.timestep]
        for number, timestep in enumerate(wanted, start=1):
            _, _, terminated, truncated, _ = timestep.play(env)
            if (terminated or truncated) and number < len(wanted):
                raise ValueError(f"the episode of {at.recorded} is over at timestep {number:,}")
        return env.emulator.save_state()
