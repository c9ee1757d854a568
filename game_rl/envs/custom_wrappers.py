"""`env.wrappers`: custom Gymnasium wrappers around a game, named in errors and saved.

They stand outside of our env and inside of what the vec env does with it: what a wrapper returns is
a single frame, which is packed and stacked afterwards.
"""

import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, SupportsInt, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from game_rl.config.custom_class import described, line_of
from game_rl.config.custom_part import CustomPart, PartError
from game_rl.envs.episode_tracker import EpisodeTracker
from game_rl.envs.game_boy_env import EnvState, GameBoyEnv, WrapperState
from game_rl.envs.observation import Observation
from game_rl.errors import ConfigError, GameRLError
from game_rl.files.plain_state import array_to_json, checked_json, state_from_json, state_to_json

_WRAPPER = ("gymnasium.core", "Wrapper")
_OF_GYMNASIUM = ("env", "_action_space", "_observation_space", "_metadata", "_cached_spec")

Wrapper = gymnasium.Wrapper[Any, Any, Any, Any]
_Tracker = TypeVar("_Tracker", bound=EpisodeTracker)
_Found = TypeVar("_Found")
_Arguments = ParamSpec("_Arguments")


@dataclass(frozen=True)
class UnsavedEnv:
    """Takes the place of an env's state that cannot be saved.

    Attributes:
        wrapper: name of the wrapper that changes and has no `state_dict` and `load_state_dict`.
    """

    wrapper: str


class WrappedEnv(gymnasium.Wrapper[Observation, np.int64, Observation, np.int64]):
    """A game's env in wrappers; this outermost one names them in errors and saves their state.

    A reset with a seed makes the wrappers anew. Every evaluation begins with one, so that it does
    not depend on those before it.

    Args:
        parts: the wrappers, the innermost first.
        folder: folder in which their modules are looked for before installed ones.

    Attributes:
        has_loaded_torch: whether a module of the wrappers has loaded torch.

    Raises (in any method):
        ConfigError: a class is missing, is no wrapper or changes a space, or a wrapper raised an
            error. The message names its class and line.
    """

    def __init__(self, game: GameBoyEnv, parts: Sequence[CustomPart], folder: Path) -> None:
        self._game = game
        self._parts = parts
        self._folder = folder
        had_torch = "torch" in sys.modules
        self._wrappers = _named(game, parts, folder)
        self._are_new = True
        self.has_loaded_torch = not had_torch and "torch" in sys.modules
        super().__init__(self._wrappers[-1].wrapper)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        if seed is not None and not self._are_new:
            self._wrappers = _named(self._game, self._parts, self._folder)
            self.env = self._wrappers[-1].wrapper
        self._are_new = False
        try:
            observation, info = self.env.reset(seed=seed, options=options)
            return self._checked(observation), dict(info)
        except GameRLError:
            raise
        except (Exception, SystemExit) as error:
            raise self._failure("reset", error) from error

    def step(self, action: SupportsInt) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        try:
            observation, reward, terminated, truncated, info = self.env.step(np.int64(action))
            if (terminated or truncated) and "start_state" not in info:  # a wrapper has ended it
                info = self._game.episode_summary() | info
            return (
                self._checked(observation),
                float(reward),
                bool(terminated),
                bool(truncated),
                info,
            )
        except GameRLError:
            raise
        except (Exception, SystemExit) as error:
            raise self._failure("step", error) from error

    def render(self) -> NDArray[np.uint8]:
        """Return the game's whole screen, whatever the wrappers do."""
        return self._game.render()

    def save_state(self) -> EnvState | UnsavedEnv:
        """As GameBoyEnv's, with the state of the wrappers; see `UnsavedEnv`."""
        for each in self._wrappers:
            if not each.has_state and each.has_changed():
                return UnsavedEnv(each.part.name)
        found = tuple(each.save(self._folder) for each in self._wrappers)
        return self._game.save_state().model_copy(update={"wrappers": found})

    def unsaved_wrapper(self) -> str | None:
        """Return the name of a wrapper that changes and cannot be saved, if there is one."""
        state = self.save_state()
        return state.wrapper if isinstance(state, UnsavedEnv) else None

    def load_state(self, state: EnvState) -> None:
        """As GameBoyEnv's, for the wrappers as well."""
        self._game.load_state(state)
        for each, saved in zip(self._wrappers, state.wrappers, strict=True):
            each.load(saved, self._folder)

    def tracker(self, kind: type[_Tracker]) -> _Tracker | None:
        """As GameBoyEnv's."""
        return self._game.tracker(kind)

    def call(
        self,
        function: "Callable[Concatenate[WrappedEnv, _Arguments], _Found]",
        *args: _Arguments.args,
        **kwargs: _Arguments.kwargs,
    ) -> _Found:
        """As GameBoyEnv's."""
        return function(self, *args, **kwargs)

    def _checked(self, observation: Observation) -> Observation:
        """Return the observation if it can be stored, as the game's own can."""
        observed = self._game.observed
        if isinstance(observation, Mapping) and isinstance(observed, Mapping):
            is_same = observation.keys() == observed.keys() and all(
                array is observed[name] for name, array in observation.items()
            )
        else:
            is_same = observation is observed
        if is_same:  # the very arrays that the game's own had
            return observation
        space: spaces.Space[Any] = self._game.observation_space
        found: Observation
        if isinstance(space, spaces.Dict) and isinstance(observation, Mapping):
            found = {name: np.asarray(array) for name, array in observation.items()}
        else:
            found = np.asarray(observation)
        fault = _unlike(found, space)
        if fault is None:
            try:
                self._game.packing.pack(found)
            except ValueError as error:
                fault = str(error)
            else:
                return found
        names = ", ".join(each.part.reference for each in self._wrappers)
        raise PartError(
            ("env", "wrappers"),
            f"an observation from {names} cannot be stored: {fault}; return {_form(space)} "
            "with values in the range of the game's own observations; a screen may have any value "
            "with hardware: cgb in game.yaml",
        )

    def _failure(self, method: str, error: BaseException) -> ConfigError:
        """Return an error that names the innermost wrapper which was at work."""
        at_work = None
        frame = error.__traceback__
        while frame is not None:
            caller = frame.tb_frame.f_locals.get("self")
            at_work = next((e for e in self._wrappers if e.wrapper is caller), at_work)
            frame = frame.tb_next
        key = ("env", "wrappers") if at_work is None else at_work.part.key
        who = "a wrapper" if at_work is None else at_work.part.reference
        line = line_of(error, self._folder)
        way_out = "correct it there" if line else "it must return what its env does"
        return PartError(key, f"{who} failed in {method} with {described(error)}{line}; {way_out}")


GameEnv = GameBoyEnv | WrappedEnv


def _unlike(observation: Observation, space: spaces.Space[Any]) -> str | None:
    """Say how the arrays differ in form from those of the space; None if they do not."""
    if not isinstance(space, spaces.Dict):
        assert not isinstance(observation, Mapping)
        is_alike = observation.shape == space.shape and observation.dtype == space.dtype
        return None if is_alike else f"it is {observation.dtype} {observation.shape}"
    if not isinstance(observation, Mapping):
        return f"it is {observation.dtype} {observation.shape}, not a dict of parts"
    if observation.keys() != set(space):
        return f"it has the parts {', '.join(map(str, observation))}"
    faults = ((name, _unlike(observation[name], space[name])) for name in space)
    return next((f"part {name}: {fault}" for name, fault in faults if fault is not None), None)


def _form(space: spaces.Space[Any]) -> str:
    if isinstance(space, spaces.Dict):
        return "a dict of " + ", ".join(f"{name} ({_form(each)})" for name, each in space.items())
    return f"{space.dtype} {space.shape}"


class _Named:
    """A wrapper with its name in the config.

    Attributes:
        has_state: whether it has `state_dict` and `load_state_dict`.
    """

    def __init__(self, part: CustomPart, wrapper: Wrapper) -> None:
        self.part = part
        self.wrapper = wrapper
        self._own: Any = wrapper
        self.has_state = all(
            hasattr(type(wrapper), name) for name in ("state_dict", "load_state_dict")
        )
        self._when_new = {} if self.has_state else _traces(wrapper)

    def has_changed(self) -> bool:
        """Whether an attribute is another one than when the wrapper was new."""
        return _traces(self.wrapper) != self._when_new

    def save(self, folder: Path) -> WrapperState:
        if not self.has_state:
            return WrapperState(wrapper=self.part.reference)
        try:
            state = state_to_json(self._own.state_dict(), "its state", array_to_json)
            return WrapperState(wrapper=self.part.reference, state=checked_json(state))
        except (Exception, SystemExit) as error:
            raise PartError(
                self.part.key,
                f"{self.part.reference} cannot be saved in a checkpoint: {described(error)}"
                f"{line_of(error, folder)}; let state_dict return plain data (numbers, strings, "
                "NumPy arrays, and lists, tuples and dicts of them)",
            ) from error

    def load(self, saved: WrapperState, folder: Path) -> None:
        if not self.has_state:
            return
        try:
            self._own.load_state_dict(state_from_json(saved.state))
        except (Exception, SystemExit) as error:
            raise PartError(
                self.part.key,
                f"{self.part.reference} failed in load_state_dict with {described(error)}"
                f"{line_of(error, folder)}; correct it there",
            ) from error


def _named(game: GameBoyEnv, parts: Sequence[CustomPart], folder: Path) -> tuple[_Named, ...]:
    """Make the wrappers, each around the one before it."""
    named: list[_Named] = []
    env: gymnasium.Env[Any, Any] = game
    for part in parts:
        make = part.load(folder, base=_WRAPPER, of_what="a Gymnasium wrapper", before=(env,))
        try:
            env = wrapper = make(env, **part.arguments)
        except GameRLError:
            raise
        except (Exception, SystemExit) as error:
            raise PartError(
                part.key,
                f"{part.reference}(env, …) failed with {described(error)}{line_of(error, folder)}; "
                "correct it, or its arguments",
            ) from error
        if wrapper.observation_space != game.observation_space:
            raise PartError(
                part.key,
                f"{part.reference} makes the observations {wrapper.observation_space} of "
                f"{game.observation_space}; a wrapper may change the numbers in a frame but not "
                "its shape or type: frames are packed and stacked outside of it. For others use "
                "env.observation, env.frame_stack, or observation.crop and parts in game.yaml",
            )
        if wrapper.action_space != game.action_space:
            raise PartError(
                part.key,
                f"{part.reference} makes the actions {wrapper.action_space} of "
                f"{game.action_space}; a wrapper may replace an action by another one but not "
                "change their number, which is that of the network's outputs: list the actions in "
                "game.yaml",
            )
        named.append(_Named(part, wrapper))
    return tuple(named)


def _traces(wrapper: Wrapper) -> dict[str, bytes | int]:
    """Return a trace of each attribute, which differs if the attribute has changed."""
    traces: dict[str, bytes | int] = {}
    for name in vars(wrapper).keys() - set(_OF_GYMNASIUM):
        value = vars(wrapper)[name]
        try:
            traces[name] = pickle.dumps(value)  # of our own process, and never read
        except Exception:  # noqa: BLE001 - whatever a class of theirs raises
            traces[name] = id(value)
    return traces
