"""What an algorithm of ours keeps beside what every algorithm of SB3's has, and its replay."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import safetensors.numpy
from pydantic import JsonValue
from safetensors import SafetensorError
from stable_baselines3.common.base_class import BaseAlgorithm

from game_rl.buffers.replay import PackedReplayBuffer
from game_rl.errors import CheckpointError


@runtime_checkable
class _KeepsState(Protocol):
    def state(self) -> dict[str, Any]:
        """Plain data, which JSON gives back as it was."""

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""


def save_own_state(model: BaseAlgorithm) -> dict[str, JsonValue]:
    return model.state() if isinstance(model, _KeepsState) else {}


def restore_own_state(model: BaseAlgorithm, state: Mapping[str, JsonValue], name: str) -> None:
    """Raise CheckpointError if the state in the file `name` is of another algorithm."""
    if not isinstance(model, _KeepsState):
        return
    try:
        model.load_state(state)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{name} has no state of this algorithm: {error!r}") from None


def dump_replay(model: BaseAlgorithm) -> bytes | None:
    """None if it has none. While it is written, the replay is in memory twice."""
    replay = getattr(model, "replay_buffer", None)
    if not isinstance(replay, PackedReplayBuffer):
        return None
    return safetensors.numpy.save(replay.pond.state_dict())


def replay_bytes(model: BaseAlgorithm) -> int:
    """About what `dump_replay` gives when the replay is full."""
    replay = getattr(model, "replay_buffer", None)
    return replay.pond.nbytes if isinstance(replay, PackedReplayBuffer) else 0


def restore_replay(model: BaseAlgorithm, data: bytes, name: str) -> None:
    """Raise CheckpointError if the file `name` holds no replay, or one of another shape."""
    replay = getattr(model, "replay_buffer", None)
    if not isinstance(replay, PackedReplayBuffer):
        return
    try:
        replay.pond.load_state_dict(safetensors.numpy.load(data))
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise CheckpointError(f"{name} holds no replay: {error!r}") from None
