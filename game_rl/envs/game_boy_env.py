"""A Game Boy game as a Gymnasium environment."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, NamedTuple, NoReturn, SupportsInt

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from game_rl.config.schema import GrowingLimit
from game_rl.emulator.emulator import FRAMES_PER_SECOND, Emulator
from game_rl.envs.action_player import WAITED_FRAMES, ActionPlayer
from game_rl.envs.button_log import EPISODE_LOG, EpisodeLog, EpisodeNotes, NotesState
from game_rl.envs.episode_courses import CoursePlayer, StartCourses, StartVariety
from game_rl.envs.episode_limit import EpisodeLimit
from game_rl.envs.episode_starts import ChosenStarts, EpisodeStarts
from game_rl.envs.milestone_watch import MILESTONES, MilestoneState, MilestoneWatch
from game_rl.envs.observation import FrameFormat, Observation, ObservationFormat
from game_rl.envs.observer import Observer
from game_rl.envs.repetition import RepetitionGuard, RepetitionState
from game_rl.envs.seed_search import SeedSearch
from game_rl.errors import LockUpError
from game_rl.files.saved import Blob, Saved
from game_rl.games.custom_reward import ACTION, MEMORY, SCREEN_ARGUMENT, GameMemory
from game_rl.games.definition import Game
from game_rl.games.derived_variables import VariableReader
from game_rl.games.episode_conditions import ConditionState, EpisodeConditions
from game_rl.games.parts.episode_parts import custom_part_names
from game_rl.games.parts.part_spec import PartsState
from game_rl.games.place_tally import PlaceTally, Visits
from game_rl.games.rewards import EpisodeReward, RewardState
from game_rl.games.variables import Value, Values, numbers_of

OWN_ENDINGS = "own_endings"
"""Key of an episode's `info`: the names of the endings of the game's own reward class."""

OVER_AT_START = "over_at_start"
"""Key of an episode's last `info`, there only if an ending or success held before the first action:
the name of that ending, or "success". Such an episode says nothing about who played it."""

VARIABLES = "variables"
"""Key of every `info` of an env that tells them: the value of each variable, by its name."""

_TRIED_TIMESTEPS = 8
_MOST_LOOKED_AT = 8  # start states at the beginning of a training; each takes some 50 ms


class ShownStep(NamedTuple):
    """What a game shows after a timestep.

    Attributes:
        screen: view of the whole screen, uint8 [144, 160, 3].
        reward_terms: what each has earned in the episode so far.
    """

    screen: NDArray[np.uint8]
    start_state: str
    episode_timestep: int
    reward_terms: Mapping[str, float]
    variables: Values


class WrapperState(Saved):
    """The state of a custom wrapper."""

    wrapper: str
    """`module:Class`."""
    state: JsonValue = None
    """What its `state_dict` returned; None if it has none, as it never changes."""


class EnvState(Saved):
    """The state of an env, apart from its game and settings."""

    emulator: Blob
    random: dict[str, JsonValue]
    """State of the env's NumPy bit generator."""
    reward: RewardState
    start_state: str
    timesteps: int
    running: bool
    limit_from: int | float | None = None
    """Value, at the episode's beginning, of the variable with which its limit grows."""
    conditions: ConditionState = ConditionState()
    """What endings and success remember; checkpoints of earlier versions have none."""
    last_action: int | None = None
    """The action that the last timestep played, if a timestep may repeat it."""
    parts: PartsState = PartsState()
    """What the parts of observations remember."""
    milestones: MilestoneState = MilestoneState()
    """What the episode has reached; checkpoints of earlier versions have none."""
    repetition: RepetitionState = RepetitionState()
    """What the guard against loops remembers of the episode."""
    wrappers: tuple[WrapperState, ...] = ()
    """State of each custom wrapper, the innermost first."""
    notes: Annotated[NotesState | None, Field(exclude_if=lambda notes: notes is None)] = None
    """What was noted of the running episode; None if the env notes nothing."""
    over_at_start: Annotated[str, Field(exclude_if=lambda name: not name)] = ""
    """What held before the first action; see `OVER_AT_START`."""

    def with_spoiled_notes(self, fault: str) -> "EnvState":
        """Return the state with the reason why the running episode cannot be played again."""
        if self.notes is None:
            return self
        notes = self.notes.model_copy(update={"fault": self.notes.fault or fault})
        return self.model_copy(update={"notes": notes})


class GameBoyEnv(gymnasium.Env[Observation, np.int64]):
    """A Game Boy game; one timestep plays an action for `frame_skip` frames.

    Observations are new uint8 [C, H, W] arrays that belong to the caller; with parts they are new
    dicts of new arrays, and "screen" is such an array, if there is one. `info` has "start_state"
    at a reset. During the episode it is empty, but for "waited_frames", the frames that a timestep
    has played on by the game's `step`, and "milestones", what the episode has just reached for the
    first time. At its end it has "is_success" (if the game defines success), "reward_terms" (the
    sum of each term), "game" (each variable that is a number), "start_state", "stuck_timesteps" and
    "looped_terms" (see RepetitionGuard) and, unless a limit was reached, "ending" (the name of the
    ending that held); "own_endings" has the names of those of the game's own reward class. When
    the game locks up the CPU, the episode is truncated without success, and `info` has "lock_up".
    If an ending or success held before the first action, it has "over_at_start".
    An env that logs has "episode_log", an `EpisodeLog`, as well; one that tells variables has
    "variables" in each `info`.

    The env owns the emulator, and `close` closes it. The same seed and actions give the same
    episodes.

    Attributes:
        draws: whether each timestep draws its last frame; True if observations or the game's own
            reward class take the screen.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's name; replaced, never changed
        "render_modes": ["rgb_array"],
        "render_fps": round(FRAMES_PER_SECOND),
    }
    render_mode = "rgb_array"
    _start_state = ""
    _timesteps = 0
    _running = False
    _draws_next = False
    _tally: PlaceTally | None = None
    _notes: EpisodeNotes | None = None
    _tells_variables = False
    _over_at_start = ""

    def __init__(
        self,
        emulator: Emulator,
        game: Game,
        *,
        frame_skip: int,
        frame_format: FrameFormat | None,
        max_episode_timesteps: int | GrowingLimit | None,
        start_states: ChosenStarts | None = None,
        max_idle_frames: int = 0,
        sticky_actions: float = 0.0,
        parts: Collection[str] = (),
    ) -> None:
        """Make an env that takes over `emulator`.

        Args:
            emulator: an emulator that was just switched on, with the game's cartridge.
            game: the game, which defines actions, rewards and endings.
            frame_skip: frames per timestep.
            frame_format: format of the screen in observations; None if they have parts only.
            max_episode_timesteps: limit at which episodes are truncated; None needs `endings`.
            start_states: start states to begin from, evenly or by weights; None for all, evenly.
            max_idle_frames: an episode begins after 0 to this many frames without a button.
            sticky_actions: probability that a timestep repeats the action of the one before.
            parts: names of the game's parts that observations have.
        """
        self._emulator = emulator
        self._game = game
        self._starts = EpisodeStarts(emulator, game, start_states, max_idle_frames)
        self._limit = EpisodeLimit(max_episode_timesteps, game)
        self._player = ActionPlayer(emulator, game, frame_skip, sticky_actions)
        self._frame_skip = frame_skip
        self._conditions = _conditions_of(game)
        self._reward = _reward_of(game, emulator, self._player, parts)
        self._observer = Observer(emulator, game, frame_format, parts, self._reward.parts)
        self.draws = frame_format is not None or self._reward.needs_screen
        self._all, self._watched = _variable_readers(game, self._conditions, self._observer)
        self._milestones = MilestoneWatch(game.definition.milestones)
        self._repetition = RepetitionGuard(game.definition)
        self.observation_space = self._observer.space
        self.action_space = spaces.Discrete(self._player.n_actions)
        self.metadata = self.metadata | {"render_fps": round(FRAMES_PER_SECOND / frame_skip)}

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an env cannot be copied or pickled, as it holds a running emulator; make another one "
            "with make_env(config), and give it the state of this one with "
            "`other.unwrapped.load_state(env.unwrapped.save_state())`"
        )

    @property
    def action_names(self) -> tuple[str, ...]:
        """The name of each action, in the order of the action space."""
        return self._game.action_names

    @property
    def packing(self) -> ObservationFormat:
        """Format of the observations, in which they are stored."""
        return self._observer.format

    @property
    def observed(self) -> Observation | None:
        """The last observation, with the very arrays that were returned."""
        return self._observer.observed

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; `options={"start_state": name, "idle_frames": n, "game_seed": s}` can
        fix where.

        If the game locks up before the first timestep, another beginning is drawn.

        Raises:
            LockUpError: the game locked up at every attempt.
            UsageError: an option is unknown, or cannot have its value.
        """
        super().reset(seed=seed)
        self._starts.draws = self.draws
        starts = self._starts
        self._start_state = starts.begin_alive(self.np_random, options or {})
        if self._notes is not None:
            self._notes.begin(idle_frames=starts.idle_frames, game_seed=starts.game_seed)
        values = self.read_variables()
        self._reward.reset(values)
        self._conditions.reset(values)
        self._limit.begin(self._emulator)
        self._player.last = None
        self._timesteps = 0
        self._running = True
        self._observer.reset(values)
        self._milestones.reset(values)
        self._repetition.reset()
        self._over_at_start = self._conditions.held_at_start(values)
        info = {"start_state": self._start_state} | self._told_variables()
        return self._observer.observe(), info

    def step(self, action: SupportsInt) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if not self._running:
            raise ResetNeeded("the episode is over, or none has begun; call reset()")
        try:
            self._player.play(action, self.np_random, render=self.draws or self._draws_next)
        except LockUpError as error:
            return self._cut_short(error, int(action))
        if self._notes is not None:
            self._notes.add(self._player.played, int(action))
        self._starts.hold_values(self._start_state)
        values = self._watched.read(self._emulator)
        reward = self._reward.step(values)
        self._timesteps += 1
        if self._tally is not None:
            self._tally.add(values)
        ending, truncates = ended = self._conditions.step(values, reward)
        own: dict[str, Any] = {}
        if self._reward.has_endings:
            found = self._reward.endings(values)
            (ending, truncates) = found.joined(ended)
            own = {OWN_ENDINGS: found.names}
        terminated = ending is not None and not truncates
        is_long = self._limit.is_reached(self._timesteps, self._emulator)
        truncated = not terminated and (truncates or is_long)
        self._running = not (terminated or truncated)
        self._observer.step(values, int(action))
        observation = self._observer.observe()
        gained = self._reward.gained
        self._repetition.step(self._timesteps, values, observation, gained)
        info = self._waited() if self._running else self.episode_summary() | own | self._waited()
        if ending is not None:
            info["ending"] = ending
        if reached := self._milestones.step(values, gained):
            info[MILESTONES] = reached
        if self._tells_variables:
            info |= self._told_variables()
        return observation, reward, terminated, truncated, info

    def _cut_short(
        self, error: LockUpError, action: int
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Truncate the episode: the agent has run into a bug of the game that locks up the CPU."""
        self._running = False
        failed = {} if self._game.definition.success is None else {"is_success": False}
        info = failed | {"lock_up": str(error), "start_state": self._start_state} | self._waited()
        if self._notes is not None:
            self._notes.add(self._player.played, action)
            info[EPISODE_LOG] = self.episode_log()
        info |= self._told_variables()
        return self._observer.observe(), 0.0, False, True, info

    def tell_variables(self) -> None:
        """Put the value of each variable into every `info` from now on, as "variables"."""
        self._tells_variables = True

    def _told_variables(self) -> dict[str, Any]:
        return {VARIABLES: self.read_variables()} if self._tells_variables else {}

    def _waited(self) -> dict[str, Any]:
        waited = self._player.waited_frames
        return {WAITED_FRAMES: waited} if waited else {}

    def render(self) -> NDArray[np.uint8]:
        """Return a copy of the whole screen, uncropped and in full size, uint8 [144, 160, 3].

        Where no observation has the screen, the first call draws the frame after the present one,
        from a saved state. From then on each timestep draws its last frame.
        """
        if not self.draws:
            self.draws = True
            return _next_picture(self._emulator)
        return self._emulator.screen().copy()

    def draw_next(self) -> None:
        """Let the next timestep draw its last frame, whatever the observations have."""
        self._draws_next = True

    def show(self) -> ShownStep:
        """Return what the game shows after the timestep that `draw_next` has announced."""
        self._draws_next = False
        return ShownStep(
            self._emulator.screen(),
            self._start_state,
            self._timesteps,
            self.reward_terms,
            self.read_variables(),
        )

    def save_state(self) -> EnvState:
        """Return the env's state between two timesteps.

        An env that loads it continues identically, given the same actions. The last picture is in
        it only if every timestep draws one, so that it is the same whether somebody watches or not.

        Raises:
            GameFileError: the game's own reward class cannot be saved.
        """
        return EnvState(
            emulator=self._emulator.save_state(picture=self.draws),
            random=dict(self.np_random.bit_generator.state),
            reward=self._reward.save_state(),
            start_state=self._start_state,
            timesteps=self._timesteps,
            running=self._running,
            limit_from=self._limit.first,
            conditions=self._conditions.save_state(),
            parts=self._observer.save_state(),
            milestones=self._milestones.save_state(),
            repetition=self._repetition.save_state(),
            last_action=self._player.last,
            notes=None if self._notes is None else self._notes.save_state(),
            over_at_start=self._over_at_start,
        )

    def load_state(self, state: EnvState) -> None:
        """Continue from `state`, which was saved by an env of the same game and settings.

        Raises:
            EmulatorError: the emulator's state is damaged, or of another game or version.
        """
        self._emulator.load_state(state.emulator)
        self.np_random.bit_generator.state = dict(state.random)
        self._reward.load_state(state.reward)
        self._conditions.load_state(state.conditions)
        self._start_state = state.start_state
        self._limit.begin(self._emulator, state.limit_from)
        self._player.last = state.last_action
        self._timesteps = state.timesteps
        self._running = state.running
        if self._notes is not None:
            self._notes.load_state(state.notes)
        values = self._watched.read(self._emulator) if self._running else None
        self._observer.load_state(state.parts, values)
        self._milestones.load_state(state.milestones, values)
        self._repetition.load_state(state.repetition)
        self._over_at_start = state.over_at_start

    def start_warnings(self) -> list[str]:
        """Say quickly what is wrong with where episodes begin; the next call must be `reset`.

        Every episode may be the same, for instance, or already over.
        """
        starts = self._starts
        found = [self.start_fault(name) for name in starts.names[:_MOST_LOOKED_AT]]
        return [*filter(None, found), *self.check_starts(starts.names[:1], is_thorough=False)[1]]

    def check_starts(
        self, names: Sequence[str], *, is_thorough: bool = True
    ) -> tuple[list[StartCourses], list[str]]:
        """Return how episodes from these start states vary, and warnings; then call `reset`."""
        starts = self._starts
        variety = StartVariety(self._course_player(), self._game, starts, is_thorough=is_thorough)
        unkept = [text for name in names for text in starts.unkept(name)]
        courses = [variety.count(name) for name in names]
        return courses, [*unkept, *variety.warnings(courses)]

    def seed_search(self, names: Sequence[str]) -> SeedSearch:
        """Return a search for the game's random numbers, after which `reset` must come."""
        return SeedSearch(self._course_player(), self._starts, names)

    def _course_player(self) -> CoursePlayer:
        return CoursePlayer(
            self._emulator,
            self._game,
            self._watched,
            frame_skip=self._frame_skip,
            seed=self._starts.seed_variable,
        )

    def start_fault(self, name: str) -> str | None:
        """Say if an episode is over or won in this start state; the next call must be `reset`."""
        self._starts.bring(name, game_seed=0, idle_frames=0)
        held = self._conditions.held_at_start(self.read_variables())
        if held in self._game.definition.endings:
            return (
                f"start_states.{name}: the ending {held} holds already, so each episode from there "
                "is over in its first timestep, whatever the agent does; let it begin earlier, or "
                f"correct endings.{held}"
            )
        if held:
            return (
                f"start_states.{name}: success holds already, so episodes from there count as won, "
                "whatever the agent does; let it begin earlier, or correct `success`"
            )
        return None

    def try_reward(self) -> None:
        """Check the game's own reward class after a few timesteps; the next call must be `reset`.

        Raises:
            GameFileError: it fails, or what it holds then cannot be saved or loaded.
        """
        if self._game.definition.reward is None:
            return
        self.reset(seed=0)
        for number in range(_TRIED_TIMESTEPS):
            if self._running:
                self.step(number % self._player.n_actions)
                if self._running:
                    self._reward.check_parts(self.read_variables())
                self.check_reward()
        self._running = False

    @property
    def has_endings(self) -> bool:
        """Whether the game file or its own reward class has an ending."""
        return bool(self._game.definition.endings) or self._reward.has_endings

    def check_reward(self) -> str | None:
        """Return a warning about the rewards so far, if there is one.

        The env goes on with a saved and loaded copy of the game's own reward class, as a resumed
        run does, so that what cannot be saved is found now.

        Raises:
            GameFileError: the class cannot be saved or loaded.
        """
        if self._running:
            self._reward.renew_custom()
        return self._reward.largest.warning

    def read_variables(self) -> dict[str, Value]:
        """Return the current values of the game's variables, by name."""
        return self._all.read(self._emulator)

    def count_places(self) -> None:
        """Count timesteps by place from now on, if the game names one; see `take_visits`."""
        place = self._game.definition.place
        if place is not None:
            self._tally = PlaceTally(place)
            _, self._watched = _variable_readers(
                self._game, self._conditions, self._observer, place
            )

    def take_visits(self) -> Visits | None:
        """Return where timesteps ended since the last call; None if places are not counted."""
        return None if self._tally is None else self._tally.take()

    @property
    def reward_terms(self) -> dict[str, float]:
        """The sum that each reward term has earned so far in this episode."""
        return self._reward.sums

    def episode_summary(self) -> dict[str, Any]:
        """Return the `info` of an episode that ends now."""
        values = self.read_variables()
        is_success = self._conditions.is_success(values)
        known: dict[str, Any] = {} if is_success is None else {"is_success": is_success}
        if self._over_at_start:
            known[OVER_AT_START] = self._over_at_start
        logged = {} if self._notes is None else {EPISODE_LOG: self.episode_log()}
        ended = {
            "reward_terms": self.reward_terms,
            "game": numbers_of(values),
            "start_state": self._start_state,
            "stuck_timesteps": self._repetition.stuck_timesteps,
            "looped_terms": self._repetition.looped_terms,
        }
        return known | ended | logged

    def log_episodes(self) -> None:
        """Note each episode from now on, so that it can be played again."""
        self._notes = EpisodeNotes(self._player.n_actions, sticky=self._player.is_sticky)

    def episode_log(self) -> EpisodeLog:
        """Return what was noted of the episode, which ends now; only of an env that logs."""
        assert self._notes is not None
        return self._notes.log(self._start_state, sum(self.reward_terms.values()))

    def spoil_log(self, fault: str) -> None:
        """Note why the running episode cannot be played again."""
        if self._notes is not None:
            self._notes.spoil(fault)

    def close(self) -> None:
        self._running = False
        self._emulator.close()


def _next_picture(emulator: Emulator) -> NDArray[np.uint8]:
    """Return the picture of the next frame; the emulator goes on as if it had not been drawn."""
    state = emulator.save_state()
    with suppress(LockUpError):
        emulator.tick(1, render=True)
    picture = emulator.screen().copy()
    emulator.load_state(state)
    return picture


def _conditions_of(game: Game) -> EpisodeConditions:
    definition = game.definition
    return EpisodeConditions(definition.endings, definition.success, definition.place or ())


def _reward_of(
    game: Game, emulator: Emulator, player: ActionPlayer, parts: Collection[str]
) -> EpisodeReward:
    """Return the game's rewards; the methods of its own reward class may take what is named."""
    memory = GameMemory(emulator)
    names = game.action_names
    own = game.custom_reward(
        {
            SCREEN_ARGUMENT: lambda: emulator.screen().copy(),
            MEMORY: lambda: memory,
            ACTION: lambda: names[player.played],
        }
    )
    makes = custom_part_names(game.definition, parts)
    return EpisodeReward(game.definition.rewards, own, makes)


def _variable_readers(
    game: Game, conditions: EpisodeConditions, observer: Observer, place: Sequence[str] = ()
) -> tuple[VariableReader, VariableReader]:
    """Return readers of all variables, and of those that a step needs.

    These are the ones that rewards, endings, parts and milestones use, and those of the place; a
    custom reward class may use all.
    """
    definition = game.definition
    every = VariableReader(game.variables, definition.variables)
    if definition.reward is not None:
        return every, every
    of_terms = {name for t in definition.rewards.values() for _, name in t.references()}
    watched = of_terms.union(conditions.variables, observer.variables, definition.milestones, place)
    return every, VariableReader(game.variables, definition.variables, watched)
