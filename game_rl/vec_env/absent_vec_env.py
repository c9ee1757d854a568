"""The training's envs while nothing is played."""

from collections.abc import Iterable
from typing import Any, NoReturn

from stable_baselines3.common.vec_env import VecEnv

_Indices = int | Iterable[int] | None


class AbsentVecEnv(VecEnv):
    """Has spaces and a number of envs, and no emulators: an algorithm can be built on it.

    Whatever would play raises RuntimeError.
    """

    def __init__(self, like: VecEnv, *, n_envs: int) -> None:
        super().__init__(n_envs, like.observation_space, like.action_space)

    def reset(self) -> NoReturn:
        raise _nothing_plays()

    def step_async(self, actions: Any) -> NoReturn:  # noqa: ANN401, ARG002
        raise _nothing_plays()

    def step_wait(self) -> NoReturn:
        raise _nothing_plays()

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: _Indices = None) -> list[Any]:
        """Of SB3's own attributes there are none."""
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
    return RuntimeError("nothing is played while a run learns from Lakes alone")
