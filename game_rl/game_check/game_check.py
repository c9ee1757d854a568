"""`game-rl check-game`: plays a game, and reports what its game.yaml does."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from game_rl.config.loader import load_yaml_model
from game_rl.config.schema import MOST_FRAME_SKIP, EnvConfig, ObservationConfig
from game_rl.config.strict_model import Problem, StrictModel
from game_rl.emulator.emulator import Emulator
from game_rl.envs.action_player import WAITED_FRAMES
from game_rl.envs.episode_ends import EpisodeConditions
from game_rl.envs.episode_starts import game_changes
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import make_emulator, make_game_env
from game_rl.envs.observation import parts_seen
from game_rl.errors import GameFileError, LockUpError
from game_rl.game_check.env_checks import check_reward, check_starts, start_fault
from game_rl.game_check.episode_courses import StartCourses
from game_rl.game_check.game_trace import GameTrace
from game_rl.game_check.seed_search import SeedSearch, SeedsFound
from game_rl.game_check.sheets import Moment
from game_rl.game_check.variable_checks import BankCheck, DecimalCheck
from game_rl.games.actions import least_frame_skip
from game_rl.games.definition import Game, unknown_name
from game_rl.games.parts.episode_parts import part_formats
from game_rl.games.start_states import ScriptStep, play_script
from game_rl.games.variables import Value, Values


class RecordedEpisode(StrictModel):
    """A JSON file `{"start_state": "level_1", "seed": 0, "actions": ["right", "punch", …]}`."""

    start_state: str
    seed: Annotated[int, Field(ge=0)] = 0
    frame_skip: Annotated[int, Field(ge=1, le=MOST_FRAME_SKIP)] | None = None
    """Frames of a timestep; null: those of check-game."""
    actions: Annotated[tuple[str, ...], Field(min_length=1)]
    """Name of the action at each timestep."""


def read_recorded_episode(path: Path, game: Game) -> RecordedEpisode:
    """Read the episode in the JSON (or YAML) file at `path`.

    Raises:
        GameFileError: the file is not a recorded episode, or it names a start state or action that
            the game does not have.
    """

    def unknown_names(episode: RecordedEpisode) -> Iterable[Problem]:
        known_states = game.definition.start_states
        if episode.start_state not in known_states:
            message = unknown_name(episode.start_state, "start state", known_states)
            yield Problem(("start_state",), message)
        for index, name in enumerate(episode.actions):
            if name not in game.definition.actions:
                message = unknown_name(name, "action", game.action_names)
                yield Problem(("actions", str(index)), message)

    return load_yaml_model(path, RecordedEpisode, error=GameFileError, more_checks=unknown_names)


_LONGEST_HOLD_TIMESTEPS = 8  # a random player that never holds a button makes no progress
_REACTION_TIMESTEPS = 10
_FURTHER_FRAMES = (30, 120, 480)  # to wait for the game to obey
_PICTURES_OF_PLAY = 8
_MOST_OF_SCRIPTS = 64  # screens of scripts, and frames between two of a wait
_SCRIPT_FRAMES = 60
_EPISODE_TIMESTEPS = 1_000_000  # so many that only the endings end episodes


@dataclass(frozen=True)
class VariableRange:
    """The lowest and highest value of a variable, for an array those of its numbers."""

    name: str
    minimum: float
    maximum: float
    changes: int


@dataclass(frozen=True)
class TermSum:
    """The sum that a reward term earned over all episodes, and in how many timesteps."""

    name: str
    total: float
    times: int


@dataclass(frozen=True)
class PartFacts:
    """A part of observations: its kind in game.yaml, its form, and its size as it is stored."""

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    stored_bytes: int


@dataclass(frozen=True)
class GameCheck:
    """The result of a check: what happened during play, and what looks wrong.

    Attributes:
        episodes: number of episodes begun; `ended` of them reached an ending, and `successes`
            counts those that ended with a success.
        courses: how many different episodes some seeds gave from each start state.
        warnings: sentences that each name an entry of game.yaml.
        game_changes: how start states change the game, in words.
        errors: such sentences about values that cannot be right.
        starts: each start state, for the contact sheet.
        moments: some moments of the play.
        scripts: what the scripts of start states lead to, step by step.
    """

    title: str
    timesteps: int
    episodes: int
    ended: int
    successes: int
    variables: tuple[VariableRange, ...]
    reward_terms: tuple[TermSum, ...]
    parts: tuple[PartFacts, ...]
    courses: tuple[StartCourses, ...]
    warnings: tuple[str, ...]
    game_changes: tuple[str, ...]
    errors: tuple[str, ...]
    starts: tuple[Moment, ...] = field(repr=False)
    moments: tuple[Moment, ...] = field(repr=False)
    scripts: tuple[Moment, ...] = field(repr=False)

    def to_json(self) -> dict[str, object]:
        """Return all but the pictures."""
        found = asdict(replace(self, starts=(), moments=(), scripts=()))
        del found["starts"], found["moments"], found["scripts"]
        return found


def check_game(
    game: Game,
    *,
    seed: int,
    timesteps: int,
    recorded: RecordedEpisode | None = None,
    trace: GameTrace | None = None,
) -> GameCheck:
    """Play random timesteps, divided among the start states, then the recorded episode if any.

    Args:
        trace: gets the recorded episode, or the random play if there is none.
    """
    emulator = make_emulator(game)
    config = _config_for(game)
    if recorded is not None and recorded.frame_skip is not None:
        config = config.model_copy(update={"frame_skip": recorded.frame_skip})
    with closing(make_game_env(config, game, emulator)) as env:
        courses, unvarying = check_starts(env, list(game.definition.start_states))
        start_states = [_look_at(env, game, name, seed) for name in game.definition.start_states]
        log = _PlayLog(game, emulator)
        for action_names, start_state, play_seed in _plays(game, seed, timesteps, recorded):
            is_traced = recorded is None or action_names is recorded.actions
            _play(env, log, action_names, start_state, play_seed, trace if is_traced else None)
        of_starts = (*_start_state_warnings(start_states), *unvarying)
        conditions = env.tracker(EpisodeConditions)
        has_endings = conditions is not None and conditions.has_endings
        of_play = (*log.warnings(game, has_endings=has_endings), check_reward(env))
    return GameCheck(
        title=game.definition.title,
        timesteps=log.timesteps,
        episodes=log.episodes,
        ended=log.ended,
        successes=log.successes,
        variables=log.variable_ranges(),
        reward_terms=log.term_sums(),
        parts=_part_facts(game),
        courses=tuple(courses),
        warnings=tuple(filter(None, (*game.warnings, *of_starts, *of_play))),
        game_changes=game_changes(game),
        errors=tuple(log.banks.errors()),
        starts=tuple(Moment(f"start: {state.name}", state.screen) for state in start_states),
        moments=tuple(log.some_moments()),
        scripts=tuple(islice(_script_moments(game), _MOST_OF_SCRIPTS)),
    )


def _script_moments(game: Game) -> Iterator[Moment]:
    """Yield the screen after each step of the scripts, and every 60 frames of a long one.

    What scripts have in common is shown once.
    """
    shown: set[tuple[ScriptStep, ...]] = set()
    with closing(make_emulator(game)) as emulator:
        power_on = emulator.save_state()
        for name, spec in game.definition.start_states.items():
            if spec.script is None or spec.battery is not None:
                continue
            emulator.load_state(power_on)
            frame = 0
            played = list[ScriptStep]()
            for part in (part for step in spec.script for part in _parts_of(step)):
                play_script(emulator, (part,))
                frame += part.wait or part.frames or 0
                played.append(part)
                if tuple(played) not in shown:
                    shown.add(tuple(played))
                    what = "wait" if part.hold is None else "+".join(part.hold)
                    yield Moment(f"{name} {frame:,}: {what}", emulator.screen().copy())


def _parts_of(step: ScriptStep) -> Iterator[ScriptStep]:
    left = step.wait or 0
    while left > _SCRIPT_FRAMES:
        yield ScriptStep(wait=_SCRIPT_FRAMES)
        left -= _SCRIPT_FRAMES
    yield step if step.wait is None else ScriptStep(wait=left)


def find_seed(
    game: Game,
    *,
    limit_s: float,
    progress: Callable[[int, int], None],
    only: Sequence[str] | None = None,
) -> SeedsFound:
    """Search the memory for the game's random numbers; see `SeedSearch`.

    Args:
        only: start states to begin from; None for all.
    """
    with closing(make_game_env(_config_for(game), game)) as env:
        search = SeedSearch(env, list(only or game.definition.start_states))
        return search.run(limit_s=limit_s, progress=progress)


def _config_for(game: Game) -> EnvConfig:
    least = least_frame_skip(game.definition.actions)
    return EnvConfig(
        max_episode_timesteps=_EPISODE_TIMESTEPS,
        frame_skip=max(EnvConfig().frame_skip, least),
        observation=ObservationConfig(parts=tuple(game.definition.parts)),
    )


def _part_facts(game: Game) -> tuple[PartFacts, ...]:
    definition = game.definition
    return tuple(
        PartFacts(name, definition.parts[name].kind, form.shape, form.dtype.name, form.nbytes)
        for name, form in part_formats(definition).items()
    )


@dataclass(frozen=True, eq=False)
class _StartState:
    name: str
    screen: NDArray[np.uint8]
    sets: str  # the variables that it sets, in words
    fault: str | None


def _look_at(env: GameBoyEnv, game: Game, name: str, seed: int) -> _StartState:
    fault = start_fault(env, name)
    first = _Reactions(env, game, name, seed, idle_frames=0)
    if fault is None and first.always_over:
        fault = (
            f"start_states.{name}: every action ends the episode in its first timestep; let it "
            "begin earlier, or correct the `endings` of the reward class"
        )
    elif fault is None and not first.differ:
        fault = first.fault(_reacts_after(env, game, name, seed))
    sets = game.definition.start_states[name].in_words
    return _StartState(name, first.screen, sets, fault)


def _reacts_after(env: GameBoyEnv, game: Game, name: str, seed: int) -> int | None:
    """Return frames without a button after which actions make a difference, if some do."""
    for frames in _FURTHER_FRAMES:
        try:
            if _Reactions(env, game, name, seed, idle_frames=frames).differ:
                return frames
        except LockUpError:
            return None
    return None


class _Reactions:
    """What each action leads to if it is played for some timesteps from a start state.

    Attributes:
        screen: the picture before the first timestep.
        differ: whether an action leads to something else than another.
        always_over: whether each action ends the episode in its first timestep.
    """

    def __init__(
        self, env: GameBoyEnv, game: Game, name: str, seed: int, *, idle_frames: int
    ) -> None:
        self._name = name
        outcomes = set()
        lengths = []
        for action in range(len(game.definition.actions)):
            env.reset(seed=seed, options={"start_state": name, "idle_frames": idle_frames})
            self.screen = env.render()
            before = env.read_variables()
            length = 0
            over = False
            while length < _REACTION_TIMESTEPS and not over:
                _, _, terminated, truncated, _ = env.step(action)
                length = length + 1
                over = terminated or truncated
            lengths.append(length if over else length + 1)
            after = env.read_variables()
            self._last = env.render()
            outcomes.add((self._last.tobytes(), tuple(after.values())))
        self.differ = len(outcomes) > 1
        self.always_over = set(lengths) == {1}
        self._changed = [name for name, value in after.items() if value != before[name]]

    def fault(self, reacts_after: int | None) -> str:
        """Say that no action makes a difference, and what happens meanwhile."""
        moves = "stands still" if np.array_equal(self.screen, self._last) else "changes by itself"
        changed = ", ".join(self._changed) or "no variable"
        if reacts_after is None:
            way_out = "the game may wait for a button that no action holds, such as start"
        else:
            way_out = f"they do after {reacts_after} more frames: add {{wait: {reacts_after}}}"
        return (
            f"start_states.{self._name}: no action makes a difference within {_REACTION_TIMESTEPS} "
            f"timesteps, in which the screen {moves} and {changed} changed; {way_out}; the screens "
            "of the script are in the sheet of scripts"
        )


def _start_state_warnings(states: list[_StartState]) -> Iterator[str]:
    for index, state in enumerate(states):
        where = f"start_states.{state.name}"
        if state.fault is not None:
            yield state.fault
        if np.ptp(state.screen) == 0:
            yield f"{where}: the screen is blank; let the script run until it shows the game"
        for other in states[:index]:
            if state.sets == other.sets and np.array_equal(state.screen, other.screen):
                yield f"{where}: shows the same screen as {other.name}; change one of the scripts"


def _plays(
    game: Game, seed: int, timesteps: int, recorded: RecordedEpisode | None
) -> Iterator[tuple[tuple[str, ...], str, int]]:
    """Yield (actions, start state, seed) of everything to play."""
    rng = np.random.default_rng(seed)
    names = list(game.definition.start_states)
    for index, name in enumerate(names):
        share = timesteps // len(names) + (index < timesteps % len(names))
        yield _random_actions(game, rng, share), name, seed + index
    if recorded is not None:
        yield recorded.actions, recorded.start_state, recorded.seed


def _random_actions(game: Game, rng: np.random.Generator, timesteps: int) -> tuple[str, ...]:
    actions: list[str] = []
    while len(actions) < timesteps:
        name = game.action_names[rng.integers(len(game.action_names))]
        actions += [name] * int(rng.integers(1, _LONGEST_HOLD_TIMESTEPS + 1))
    return tuple(actions[:timesteps])


def _play(
    env: GameBoyEnv,
    log: "_PlayLog",
    actions: Sequence[str],
    start_state: str,
    seed: int,
    trace: GameTrace | None,
) -> None:
    indices = {name: index for index, name in enumerate(log.action_names)}
    over = True
    for name in actions:
        if over:
            env.reset(seed=seed, options={"start_state": start_state, "idle_frames": 0})
            log.begin(env)
            if trace is not None:
                trace.begin(env, start_state)
            seed += 1_000_003  # another game seed for the next episode
        _, reward, terminated, truncated, info = env.step(indices[name])
        log.add(env, start_state, info)
        if log.timesteps.bit_count() == 1:  # early, and again as its state grows
            check_reward(env)
        over = terminated or truncated
        if trace is not None:
            trace.add(env, name, reward, info.get("ending", "locked up" if over else ""))


class _PlayLog:
    """The ranges, sums and pictures of everything played."""

    def __init__(self, game: Game, emulator: Emulator) -> None:
        self._emulator = emulator
        self._decimals = DecimalCheck(game.variables)
        self.banks = BankCheck(game.variables, game.rom, is_colour=game.is_colour)
        self.action_names = game.action_names
        self.timesteps = self.episodes = self.ended = self.successes = 0
        self._minima: dict[str, float] = {}
        self._maxima: dict[str, float] = {}
        self._firsts: dict[str, Value] = {}
        self._vary: set[str] = set()
        self._changes: dict[str, int] = dict.fromkeys(game.definition.variables, 0)
        self._values: Values = {}
        self._sums: dict[str, float] = dict.fromkeys(game.definition.rewards, 0.0)
        self._times: dict[str, int] = dict.fromkeys(game.definition.rewards, 0)
        self._earned: dict[str, float] = {}
        self._waited: list[int] = []
        self._moments: list[Moment] = []
        self._every = 1

    def begin(self, env: GameBoyEnv) -> None:
        self.episodes += 1
        self._values = env.read_variables()
        self._earned = env.reward_terms
        self._widen(self._values)
        self._decimals.look(self._emulator)
        self.banks.look(self._emulator)

    def add(self, env: GameBoyEnv, start_state: str, info: Mapping[str, Any]) -> None:
        self.timesteps += 1
        self.ended += "ending" in info
        self.successes += bool(info.get("is_success"))
        self._waited.append(info.get(WAITED_FRAMES, 0))
        values = env.read_variables()
        earned = env.reward_terms
        for name, value in values.items():
            self._changes[name] += value != self._values[name]
        for name, total in earned.items():
            gain = total - self._earned.get(name, 0.0)
            self._sums[name] = self._sums.get(name, 0.0) + gain
            self._times[name] = self._times.get(name, 0) + (gain != 0)
        self._values = values
        self._earned = earned
        self._widen(values)
        self._decimals.look(self._emulator)
        self.banks.look(self._emulator)
        self._keep_picture(env, f"{start_state}, timestep {self.timesteps}")

    def _widen(self, values: Mapping[str, Value]) -> None:
        for name, value in values.items():
            if value != self._firsts.setdefault(name, value):
                self._vary.add(name)
            numbers = value if isinstance(value, tuple) else (value,)
            self._minima[name] = min(*numbers, self._minima.get(name, numbers[0]))
            self._maxima[name] = max(*numbers, self._maxima.get(name, numbers[0]))

    def _keep_picture(self, env: GameBoyEnv, label: str) -> None:
        """Keep a picture of every n-th timestep; n doubles whenever there are too many."""
        if self.timesteps % self._every == 0:
            self._moments.append(Moment(label, env.render(), parts_seen(env.observed)))
            if len(self._moments) == 2 * _PICTURES_OF_PLAY:
                self._moments = self._moments[1::2]
                self._every *= 2

    def some_moments(self) -> list[Moment]:
        """Return at most eight moments, spread evenly over the play."""
        kept = min(_PICTURES_OF_PLAY, len(self._moments))
        return [self._moments[i * len(self._moments) // kept] for i in range(kept)]

    def _awaited(self, game: Game) -> frozenset[str]:
        """Return the variables for which `step` has waited, which are seen in one state only."""
        step = game.definition.step
        if step is None or not any(self._waited) or step.at_most_frames in self._waited:
            return frozenset()
        return frozenset(name for _, name in step.until.references())

    def _step_warnings(self, game: Game) -> Iterator[str]:
        step = game.definition.step
        if step is None:
            return
        in_vain = self._waited.count(step.at_most_frames)
        if in_vain:
            yield (
                f"step: in {in_vain:,} of {self.timesteps:,} timesteps, `until` did not hold "
                f"within {step.at_most_frames:,} frames; check it, or raise `at_most_frames`"
            )
        elif not any(self._waited):
            yield (
                f"step: `until` held after the action of each of {self.timesteps:,} timesteps; "
                "check it, or play a recorded episode in which the game ignores the buttons"
            )

    def variable_ranges(self) -> tuple[VariableRange, ...]:
        return tuple(
            VariableRange(name, self._minima[name], self._maxima[name], changes)
            for name, changes in self._changes.items()
        )

    def term_sums(self) -> tuple[TermSum, ...]:
        return tuple(TermSum(name, self._sums[name], self._times[name]) for name in self._sums)

    def warnings(self, game: Game, *, has_endings: bool) -> Iterator[str]:
        awaited = self._awaited(game)
        for name, value in self._firsts.items():
            if name not in self._vary and name not in awaited:
                always = "" if isinstance(value, tuple) else f", it is always {value}"
                operation = game.definition.variables[name].operation
                what = "its address" if operation is None else f"`{operation}`"
                yield (
                    f"variables.{name}: never changes{always}; "
                    f"check {what}, or play a recorded episode in which it does"
                )
        yield from self._decimals.warnings()
        yield from self.banks.warnings()
        for name, times in self._times.items():
            if not times:
                yield (
                    f"rewards.{name}: earned nothing; check its variable, or play a recorded "
                    "episode that earns it"
                )
        yield from self._step_warnings(game)
        if not has_endings:
            yield "endings: there are none, so only env.max_episode_timesteps ends an episode"
        elif not self.ended:
            yield (
                f"endings: no episode ended in {self.timesteps:,} timesteps; check them, or play "
                "a recorded episode that ends"
            )
