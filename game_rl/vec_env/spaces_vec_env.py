"""A vec env without envs, on which an algorithm can be built that does not play."""

from collections.abc import Iterable
from typing import Any, NoReturn

from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_observation_format
from game_rl.games.definition import Game

_Indices = int | Iterable[int] | None


class SpacesVecEnv(VecEnv):
    """A vec env that has the spaces of a run's envs but no emulators.

    Methods that would play raise RuntimeError.
    """

    def __init__(self, config: EnvConfig, game: Game, *, n_envs: int) -> None:
        actions = spaces.Discrete(len(game.action_names))
        super().__init__(n_envs, make_observation_format(config, game).space, actions)

    def reset(self) -> NoReturn:
        raise _nothing_plays()

    def step_async(self, actions: Any) -> NoReturn:  # noqa: ANN401, ARG002
        raise _nothing_plays()

    def step_wait(self) -> NoReturn:
        raise _nothing_plays()

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: _Indices = None) -> list[Any]:
        """Return None for each env's `render_mode`, the only attribute that exists."""
        if attr_name == "render_mode":
            return [None] * self.num_envs
        raise AttributeError(f"{attr_name} of {indices}: there are no envs")

    def set_attr(self, attr_name: str, value: Any, indices: _Indices = None) -> NoReturn:  # noqa: ANN401, ARG002
        raise _nothing_plays()

    def env_method(
        self,
        method_name: str,  # noqa: ARG002
        *method_args: Any,  # noqa: ANN401, ARG002
        indices: _Indices = None,  # noqa: ARG002
        **method_kwargs: Any,  # noqa: ANN401, ARG002
    ) -> NoReturn:
        raise _nothing_plays()

    def env_is_wrapped(self, wrapper_class: Any, indices: _Indices = None) -> list[bool]:  # noqa: ANN401, ARG002
        return [False] * self.num_envs


def _nothing_plays() -> RuntimeError:
    return RuntimeError("nothing is played on spaces alone")
