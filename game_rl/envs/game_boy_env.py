"""A Game Boy game as a Gymnasium environment."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any, Concatenate, NoReturn, ParamSpec, SupportsInt, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray
from pydantic import Field, JsonValue, model_validator

from game_rl.emulator.emulator import FRAMES_PER_SECOND
from game_rl.envs.action_player import WAITED_FRAMES, ActionPlayer
from game_rl.envs.episode_starts import EpisodeStarts
from game_rl.envs.episode_tracker import EpisodeTracker, RunningEpisode
from game_rl.envs.observation import Observation, ObservationFormat
from game_rl.errors import LockUpError
from game_rl.files.saved import Blob, Saved
from game_rl.games.definition import Game
from game_rl.games.variables import Value, VariableReader, numbers_of

_Tracker = TypeVar("_Tracker", bound=EpisodeTracker)
_Found = TypeVar("_Found")
_Arguments = ParamSpec("_Arguments")


POOL_STATE = "pool_state"
"""Key of an episode's first and last `info`: number of the state of a pool in which it began."""


class WrapperState(Saved):
    """The state of a custom wrapper."""

    wrapper: str
    """`module:Class`."""
    state: JsonValue = None
    """What its `state_dict` returned; None if it has none, as it never changes."""


_FORMER_FIELDS = (
    "reward",
    "limit_from",
    "conditions",
    "over_at_start",
    "parts",
    "milestones",
    "repetition",
    "notes",
)


class EnvState(Saved):
    """The state of an env, apart from its game and settings."""

    emulator: Blob
    random: dict[str, JsonValue]
    """State of the env's NumPy bit generator."""
    start_state: str
    pool_state: Annotated[int | None, Field(exclude_if=lambda number: number is None)] = None
    """Number of the state of a pool in which the episode began; it is left out if it did not."""
    timesteps: int
    running: bool
    last_action: int | None = None
    """The action that the last timestep played, if a timestep may repeat it."""
    trackers: dict[str, JsonValue]
    """What the trackers of the episode have saved, each under keys of its own."""
    wrappers: tuple[WrapperState, ...] = ()
    """State of each custom wrapper, the innermost first."""

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, data: object) -> object:
        """Put what trackers saved into `trackers`; it once lay beside the env's own state."""
        if not isinstance(data, dict) or "trackers" in data:
            return data
        own = {key: value for key, value in data.items() if key not in _FORMER_FIELDS}
        return own | {"trackers": {key: data[key] for key in _FORMER_FIELDS if key in data}}


class GameBoyEnv(gymnasium.Env[Observation, np.int64]):
    """A Game Boy game; one timestep plays an action for some frames.

    Observations are new uint8 [C, H, W] arrays that belong to the caller; with parts they are new
    dicts of new arrays, and "screen" is such an array, if there is one. `info` has "start_state"
    at a reset. It is "(pool)" if the episode begins in a state of a pool, whose number "pool_state"
    is (see `EpisodeStarts`). During the episode `info` is empty, but for "waited_frames", the
    frames that a timestep has played on by the game's `step`, and for what the trackers add. At its
    end it has "start_state" or "pool_state" again, "game" (each variable that is a number), and
    what the trackers say of the episode. When the game locks up the CPU, the episode is truncated,
    and `info` has "lock_up".

    The env plays, and calls its trackers in order: after each reset and timestep, at the end of an
    episode, and to save and load its state. Whatever else there is to an episode, such as rewards,
    endings and observations, is theirs (see `make_env`).

    The env owns the emulator, and `close` closes it. The same seed and actions give the same
    episodes.

    Attributes:
        game: the game that is played.
        emulator: the emulator, which the env owns.
        starts: where episodes begin.
        player: plays the actions.
        packing: format of the observations, in which they are stored.
        trackers: what follows the episodes, in order.
        watched: reads the variables that the trackers need.
        episode: the episode, as the trackers know it.
        draws: whether each timestep draws its last frame.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's name; replaced, never changed
        "render_modes": ["rgb_array"],
        "render_fps": round(FRAMES_PER_SECOND),
    }
    render_mode = "rgb_array"
    has_loaded_torch = False
    """Whether a wrapper of the game has; there is none here."""

    def __init__(
        self,
        game: Game,
        starts: EpisodeStarts,
        player: ActionPlayer,
        packing: ObservationFormat,
        trackers: Sequence[EpisodeTracker],
        *,
        draws: bool,
    ) -> None:
        """Make an env that takes over the emulator of `starts` and `player`.

        Args:
            trackers: what follows the episodes; one of them makes observations in `packing`.
        """
        self.game = game
        self.emulator = starts.emulator
        self.starts = starts
        self.player = player
        self.packing = packing
        self.trackers = trackers
        self.draws = draws
        specs = game.definition.variables
        watched = {name for tracker in trackers for name in tracker.variables}
        self.watched = VariableReader(game.variables, specs, watched)
        self._all = VariableReader(game.variables, specs)
        self._steps = tuple(tracker.step for tracker in trackers)
        self.episode = RunningEpisode()
        self.observation_space: spaces.Space[Any] = packing.frame_space
        self.action_space = spaces.Discrete(player.n_actions)
        fps = round(FRAMES_PER_SECOND / player.frame_skip)
        self.metadata = self.metadata | {"render_fps": fps}

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an env cannot be copied or pickled, as it holds a running emulator; make another one "
            "with make_env(config), and give it the state of this one with "
            "`other.unwrapped.load_state(env.unwrapped.save_state())`"
        )

    @property
    def action_names(self) -> tuple[str, ...]:
        """The name of each action, in the order of the action space."""
        return self.game.action_names

    @property
    def observed(self) -> Observation | None:
        """The last observation, with the very arrays that were returned."""
        return self.episode.observation

    @property
    def reward_terms(self) -> dict[str, float]:
        """The sum that each reward term has earned so far in this episode."""
        return dict(self.episode.reward_terms)

    def tracker(self, kind: type[_Tracker]) -> _Tracker | None:
        """Return the tracker of this class; None if the env has none."""
        return next((each for each in self.trackers if isinstance(each, kind)), None)

    def call(
        self,
        function: "Callable[Concatenate[GameBoyEnv, _Arguments], _Found]",
        *args: _Arguments.args,
        **kwargs: _Arguments.kwargs,
    ) -> _Found:
        """Call a function of the env, in the process where the env runs.

        So a vec env's `env_method("call", function)` reaches what a tracker knows.
        """
        return function(self, *args, **kwargs)

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
        starts = self.starts
        starts.draws = self.draws
        start_state = starts.begin_alive(self.np_random, options or {})
        self.player.last = None
        self.episode = RunningEpisode(
            start_state=start_state,
            idle_frames=starts.idle_frames,
            game_seed=starts.game_seed,
            running=True,
            values=self.read_variables(),
        )
        if starts.begun is not None:
            self.episode.pool_state = starts.begun.number
            self.episode.beginning = starts.begun
        self.episode.info = self._beginning()
        for tracker in self.trackers:
            tracker.reset(self.episode)
        return self._handed_out(), self.episode.info

    def step(self, action: SupportsInt) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        episode = self.episode
        if not episode.running:
            raise ResetNeeded("the episode is over, or none has begun; call reset()")
        player = self.player
        episode.chosen = int(action)
        try:
            player.play(action, self.np_random, render=self.draws)
        except LockUpError as error:
            return self._cut_short(error)
        self.starts.hold_values(episode.start_state)
        episode.played = player.played
        episode.timesteps += 1
        episode.values = self.watched.read(self.emulator)
        episode.info = {}
        for step in self._steps:
            step(episode)
        if player.waited_frames:
            episode.info[WAITED_FRAMES] = player.waited_frames
        if episode.terminated or episode.truncated:
            episode.running = False
            episode.info = self.episode_summary() | episode.info
        observation = self._handed_out()
        return observation, episode.reward, episode.terminated, episode.truncated, episode.info

    def _cut_short(
        self, error: LockUpError
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Truncate the episode: the agent has run into a bug of the game that locks up the CPU."""
        episode = self.episode
        episode.running = False
        episode.played = self.player.played
        info: dict[str, Any] = {"lock_up": str(error), **self._beginning()}
        if self.player.waited_frames:
            info[WAITED_FRAMES] = self.player.waited_frames
        for tracker in self.trackers:
            info |= tracker.cut_short(episode)
        return self._handed_out(), 0.0, False, True, info

    def _beginning(self) -> dict[str, Any]:
        """Return what `info` says of the beginning of the episode."""
        found: dict[str, Any] = {"start_state": self.episode.began_in}
        if self.episode.pool_state is not None:
            found[POOL_STATE] = self.episode.pool_state
        return found

    def _handed_out(self) -> Observation:
        """Return the observation; a dict of parts is a copy, as that of the trackers stays."""
        observation = self.episode.observation
        assert observation is not None
        return observation if isinstance(observation, np.ndarray) else dict(observation)

    def episode_summary(self) -> dict[str, Any]:
        """Return the `info` of an episode that ends now."""
        episode = self.episode
        episode.values = self.read_variables()
        found = {"game": numbers_of(episode.values), **self._beginning()}
        for tracker in self.trackers:
            found |= tracker.summary(episode)
        return found

    def read_variables(self) -> dict[str, Value]:
        """Return the current values of the game's variables, by name."""
        return self._all.read(self.emulator)

    def render(self) -> NDArray[np.uint8]:
        """Return a copy of the whole screen, uncropped and in full size, uint8 [144, 160, 3].

        Where no observation has the screen, the first call draws the frame after the present one,
        from a saved state. From then on each timestep draws its last frame.
        """
        emulator = self.emulator
        if self.draws:
            return emulator.screen().copy()
        self.draws = True
        state = emulator.save_state()
        with suppress(LockUpError):
            emulator.tick(1, render=True)
        picture = emulator.screen().copy()
        emulator.load_state(state)  # the game goes on as if that frame had not been drawn
        return picture

    def save_state(self) -> EnvState:
        """Return the env's state between two timesteps.

        An env that loads it continues identically, given the same actions. The last picture is in
        it only if every timestep draws one, so that it is the same whether somebody watches or not.

        Raises:
            GameFileError: the game's own reward class cannot be saved.
        """
        saved: dict[str, JsonValue] = {}
        for tracker in self.trackers:
            saved |= tracker.save_state()
        return EnvState(
            emulator=self.emulator.save_state(picture=self.draws),
            random=dict(self.np_random.bit_generator.state),
            start_state=self.episode.start_state,
            pool_state=self.episode.pool_state,
            timesteps=self.episode.timesteps,
            running=self.episode.running,
            last_action=self.player.last,
            trackers=saved,
        )

    def unsaved_wrapper(self) -> str | None:
        """Return the name of a wrapper that changes and cannot be saved; there is none here."""
        return None

    def load_state(self, state: EnvState) -> None:
        """Continue from `state`, which was saved by an env of the same game and settings.

        Raises:
            EmulatorError: the emulator's state is damaged, or of another game or version.
            CheckpointError: the state of a tracker is damaged or missing.
        """
        self.emulator.load_state(state.emulator)
        self.np_random.bit_generator.state = dict(state.random)
        self.player.last = state.last_action
        self.episode = RunningEpisode(
            start_state=state.start_state,
            pool_state=state.pool_state,
            running=state.running,
            timesteps=state.timesteps,
            values=self.watched.read(self.emulator) if state.running else {},
            observation=self.episode.observation,
        )
        for tracker in self.trackers:
            tracker.load_state(state.trackers, self.episode)

    def close(self) -> None:
        self.episode.running = False
        self.emulator.close()
