"""`check-game --trace`: each timestep of play as a row of a CSV file."""

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from game_rl.envs.episode_ends import EpisodeConditions
from game_rl.envs.episode_tracker import RunningEpisode
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.observation import parts_seen
from game_rl.errors import UsageError
from game_rl.games.conditions import Condition
from game_rl.games.definition import Game, GameDefinition
from game_rl.games.variables import Value, as_tuple


@contextmanager
def game_trace(path: Path, game: Game) -> Iterator["GameTrace"]:
    """Yield a trace of `game` that is written to `path`.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            yield GameTrace(file, game)
    except OSError as error:
        raise UsageError(
            f"the trace {path} cannot be written ({error.strerror}); name another file"
        ) from None


class GameTrace:
    """A CSV file with a row for the beginning of each episode and for each timestep.

    A row has the variables (the numbers of an array are separated by spaces), the parts as the
    agent sees them (so are theirs, and the rows of a grid by /), what each reward term and the
    game's own reward class earned, and 1 or 0 for each condition: every ending, success, and `when`
    and `unless` of reward terms. `end` is what ended the episode. The beginning of an episode is
    timestep 0, which has neither rewards nor conditions.
    """

    def __init__(self, file: TextIO, game: Game) -> None:
        self._rows = csv.writer(file, lineterminator="\n")
        definition = game.definition
        self._variables = list(definition.variables)
        self._terms = list(definition.rewards)
        self._parts = list(definition.parts)
        self._has_class = definition.reward is not None
        place = definition.place or ()
        self._conditions = {
            name: EpisodeConditions({}, condition, place)
            for name, condition in _conditions(definition)
        }
        self._episode = self._timestep = 0
        self._sums: Mapping[str, float] = {}
        self._rows.writerow(
            [
                *("episode", "start_state", "timestep", "action"),
                *self._variables,
                *(f"parts.{name}" for name in self._parts),
                "reward",
                *(f"rewards.{name}" for name in self._terms),
                *(["reward class"] if self._has_class else []),
                *self._conditions,
                "end",
            ]
        )

    def begin(self, env: GameBoyEnv, start_state: str) -> None:
        """Write the beginning of an episode."""
        self._episode = self._episode + 1
        self._timestep = 0
        self._start_state = start_state
        self._sums = env.reward_terms
        values = env.read_variables()
        for condition in self._conditions.values():
            condition.reset(RunningEpisode(values=values))
        n_empty = 1 + len(self._terms) + self._has_class + len(self._conditions)
        self._write(env, "", values, [""] * n_empty, "")

    def add(self, env: GameBoyEnv, action: str, reward: float, end: str) -> None:
        """Write a timestep, after the env has played it."""
        self._timestep += 1
        values = env.read_variables()
        sums = env.reward_terms
        gains = {name: total - self._sums.get(name, 0.0) for name, total in sums.items()}
        self._sums = sums
        earned = [gains.pop(name) for name in self._terms]
        if self._has_class:
            earned.append(sum(gains.values()))
        held = []
        for condition in self._conditions.values():
            condition.step(RunningEpisode(values=values, reward=reward))
            held.append(int(bool(condition.is_success(values))))
        rest = [_digits(reward), *map(_digits, earned), *held]
        self._write(env, action, values, rest, end)

    def _write(
        self,
        env: GameBoyEnv,
        action: str,
        values: Mapping[str, Value],
        rest: list[Any],
        end: str,
    ) -> None:
        where = self._episode, self._start_state, self._timestep, action
        variables = [" ".join(map(_digits, as_tuple(values[n]))) for n in self._variables]
        seen = parts_seen(env.observed)
        grids = (seen[name].reshape(-1, seen[name].shape[-1]) for name in self._parts)
        parts = ["/".join(" ".join(map(_shortest, row)) for row in rows) for rows in grids]
        self._rows.writerow([*where, *variables, *parts, *rest, end])


def _conditions(definition: GameDefinition) -> Iterator[tuple[str, Condition]]:
    for name, ending in definition.endings.items():
        yield f"endings.{name}", ending
    if definition.success is not None:
        yield "success", definition.success
    for name, term in definition.rewards.items():
        for key, condition in term.conditions():
            yield ".".join(("rewards", name, *key)), condition


def _shortest(number: np.generic) -> str:
    """Return the fewest digits that are this number and no other of its type."""
    if isinstance(number, np.floating):
        return np.format_float_positional(number, trim="-")
    return str(number)


def _digits(number: float) -> str:
    """Return few digits that are exact for all but sums of floats."""
    return f"{number:.10g}" if isinstance(number, float) else str(number)
