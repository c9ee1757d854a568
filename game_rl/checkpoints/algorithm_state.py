"""Saving and restoring the state that an algorithm adds to SB3's, and its replay."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, BinaryIO, Protocol, runtime_checkable

from pydantic import JsonValue
from stable_baselines3.common.base_class import BaseAlgorithm

from game_rl.buffers.array_file import dump_arrays, read_arrays
from game_rl.buffers.replay_buffer import PackedReplayBuffer
from game_rl.errors import CheckpointError


@runtime_checkable
class _KeepsState(Protocol):
    def state(self) -> dict[str, Any]:
        """Return JSON-serialisable data; the state of each generator has the key `rng`."""

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""


def save_own_state(model: BaseAlgorithm) -> dict[str, JsonValue]:
    return model.state() if isinstance(model, _KeepsState) else {}


def restore_own_state(
    model: BaseAlgorithm, state: Mapping[str, JsonValue], name: str, *, draws_anew: bool
) -> None:
    """Restore the model's own state; if `state` is empty, the model keeps its initial one.

    Args:
        draws_anew: whether the model's generators stay as they are.

    Raises:
        CheckpointError: the state, from the file `name`, is of another algorithm.
    """
    if not isinstance(model, _KeepsState) or not state:
        return
    try:
        model.load_state(_with_generators(state, model.state()) if draws_anew else state)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{name} does not hold a state of this algorithm: {error!r}"
        ) from None


def _with_generators(state: Mapping[str, Any], present: Mapping[str, Any]) -> dict[str, Any]:
    """Return `state` with the generators of `present`."""
    mixed = dict(state)
    for key, value in state.items():
        if key == "rng":
            mixed[key] = present[key]
        elif isinstance(value, Mapping):
            mixed[key] = _with_generators(value, present[key])
    return mixed


def dump_replay(model: BaseAlgorithm) -> Iterator[bytes] | None:
    """Yield the replay's file in pieces, without copying the replay; None if there is no replay."""
    replay = getattr(model, "replay_buffer", None)
    if not isinstance(replay, PackedReplayBuffer):
        return None
    return dump_arrays(replay.pond.state_dict())


def replay_bytes(model: BaseAlgorithm) -> int:
    """Return the approximate size of `dump_replay`'s file for a full replay."""
    replay = getattr(model, "replay_buffer", None)
    return replay.pond.nbytes if isinstance(replay, PackedReplayBuffer) else 0


def unpacked_replay_bytes(model: BaseAlgorithm) -> int:
    """Return the bytes that SB3's ReplayBuffer would need for the replay's timesteps."""
    replay = getattr(model, "replay_buffer", None)
    if not isinstance(replay, PackedReplayBuffer):
        return 0
    two_stacks, action, the_rest = 2 * prod(replay.obs_shape), 8, 3 * 4
    return len(replay.pond) * (two_stacks + action + the_rest)


def restore_replay(model: BaseAlgorithm, file: BinaryIO, name: str, *, draws_anew: bool) -> None:
    """Restore the model's replay, if it has one.

    Args:
        draws_anew: whether the replay's generator stays as it is.

    Raises:
        CheckpointError: the file, called `name`, holds no replay or one of another shape.
    """
    replay = getattr(model, "replay_buffer", None)
    if not isinstance(replay, PackedReplayBuffer):
        return
    own = {"rng": replay.pond.state_dict()["rng"]} if draws_anew else {}
    try:
        replay.pond.load_state_dict({**read_arrays(file), **own})
    except (KeyError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{name} does not hold a replay that fits this run: {error!r}"
        ) from None
