"""Build a bundled game for `gymnasium.make`, with the frames stacked.

A module of its own, because no worker needs the wrappers.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, Literal, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.wrappers import FrameStackObservation, ReshapeObservation
from numpy.typing import NDArray
from pydantic import ValidationError

from game_rl.config.schema import EnvConfig
from game_rl.config.strict_model import Key, with_changed
from game_rl.envs.episode_tracker import VariableTeller
from game_rl.envs.make_env import innermost, make_env, make_observation_format
from game_rl.envs.observation import ObservationFormat
from game_rl.errors import UsageError
from game_rl.games.definition import Game, load_game
from game_rl.games.variables import Value

_DEFAULTS = EnvConfig()


def make_bundled_env(
    *,
    game: str | Game,
    config: EnvConfig = _DEFAULTS,
    frame_skip: int | None = None,
    frame_stack: int | None = None,
    render_mode: Literal["rgb_array"] = "rgb_array",
    info: Literal["variables"] | None = None,
) -> "StackedEnv":
    """Make the env for `gymnasium.make("game_rl/NAME-v0", frame_skip=8, frame_stack=2)`.

    Observations are uint8 [frame_stack * C, H, W], oldest frame first; before the first frame of an
    episode they are zeros. With parts they are dicts, in which the screen and the parts with
    `stack: true` are stacked. This is what an agent sees in a run, where the vec env stacks.

    Args:
        game: name of a bundled game or path of a game.yaml, or a game that was loaded.
        config: all settings of an env; n_envs, n_workers and worker_timeout_s have no effect.
        frame_skip: frames per timestep; None: the config's.
        frame_stack: number of frames in an observation; None: the config's.
        info: "variables" puts the value of each variable of the game into every `info`.

    Raises:
        UsageError: a value is not possible.
    """
    if render_mode != "rgb_array":
        raise UsageError(f"render_mode {render_mode} does not exist; use rgb_array")
    if info not in (None, "variables"):
        raise UsageError(f'info {info!r} does not exist; use "variables", or leave it out')
    frames = {"frame_skip": frame_skip, "frame_stack": frame_stack}
    given: dict[Key, object] = {(name,): n for name, n in frames.items() if n is not None}
    try:
        config = with_changed(config, given)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"{first['loc'][0]} is {first['input']!r}: {first['msg']}; use a whole number"
        ) from None
    loaded = load_game(game) if isinstance(game, str) else game
    observation_format = make_observation_format(config, loaded)
    trackers = [] if info is None else [VariableTeller.of]
    env = make_env(config, loaded, draws=True, trackers=trackers)
    if observation_format.is_dict:
        return StackedEnv(StackedParts(env, observation_format))
    stacked = FrameStackObservation(env, observation_format.stack, padding_type="zero")
    return StackedEnv(ReshapeObservation(stacked, observation_format.shape))


class StackedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A game with what a script asks of it at hand, outside of the wrappers that stack frames.

    In other wrappers around it, as those of `gymnasium.make`, Gymnasium's `get_wrapper_attr` finds
    them: `env.get_wrapper_attr("action_names")`.
    """

    @property
    def action_names(self) -> tuple[str, ...]:
        """The name of each action, in the order of the action space."""
        return innermost(self).action_names

    def read_variables(self) -> dict[str, Value]:
        """Return the present value of each variable of the game, by its name."""
        return innermost(self).read_variables()


class StackedParts(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Stacks the latest arrays of the parts of which an observation has several."""

    def __init__(self, env: gymnasium.Env[Any, Any], observation_format: ObservationFormat) -> None:
        super().__init__(env)
        self.observation_space = observation_format.space
        self._stacks = {name: n for name, n in observation_format.stacks.items() if n > 1}
        self._latest: dict[str, deque[NDArray[Any]]] = {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        for name, n in self._stacks.items():
            self._latest[name] = deque([np.zeros_like(observation[name])] * n, n)
        return self._stacked(observation), info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:  # noqa: ANN401 - as Gymnasium has it
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._stacked(observation), reward, terminated, truncated, info

    def _stacked(self, observation: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        for name, latest in self._latest.items():
            latest.append(observation[name])
        stacks = {name: np.concatenate(latest) for name, latest in self._latest.items()}
        return {**observation, **stacks}
