"""What an algorithm of ours keeps beside what every algorithm of SB3's has, and its replay."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, BinaryIO, Protocol, runtime_checkable

from pydantic import JsonValue
from stable_baselines3.common.base_class import BaseAlgorithm

from game_rl.buffers.array_file import dump_arrays, read_arrays
from game_rl.buffers.replay import PackedReplayBuffer
from game_rl.errors import CheckpointError


@runtime_checkable
class _KeepsState(Protocol):
    def state(self) -> dict[str, Any]:
        """Plain data, which JSON gives back as it was; a generator's state is called `rng`."""

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""


def save_own_state(model: BaseAlgorithm) -> dict[str, JsonValue]:
    return model.state() if isinstance(model, _KeepsState) else {}


def restore_own_state(
    model: BaseAlgorithm, state: Mapping[str, JsonValue], name: str, *, draws_anew: bool
) -> None:
    """What is empty begins anew.

    Args:
        draws_anew: the model's generators stay as they are.

    Raises:
        CheckpointError: the state in the file `name` is of another algorithm.
    """
    if not isinstance(model, _KeepsState) or not state:
        return
    try:
        model.load_state(_with_generators(state, model.state()) if draws_anew else state)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{name} has no state of this algorithm: {error!r}") from None


def _with_generators(state: Mapping[str, Any], present: Mapping[str, Any]) -> dict[str, Any]:
    """`state` with the generators of `present`."""
    mixed = dict(state)
    for key, value in state.items():
        if key == "rng":
            mixed[key] = present[key]
        elif isinstance(value, Mapping):
            mixed[key] = _with_generators(value, present[key])
    return mixed


def dump_replay(model: BaseAlgorithm) -> Iterator[bytes] | None:
    """The pieces of its file, for which no copy of the replay is made; None if it has none."""
    replay = getattr(model, "replay_buffer", None)
    if not isinstance(replay, PackedReplayBuffer):
        return None
    return dump_arrays(replay.pond.state_dict())


def replay_bytes(model: BaseAlgorithm) -> int:
    """About what `dump_replay` gives when the replay is full."""
    replay = getattr(model, "replay_buffer", None)
    return replay.pond.nbytes if isinstance(replay, PackedReplayBuffer) else 0


def unpacked_replay_bytes(model: BaseAlgorithm) -> int:
    """What SB3's ReplayBuffer would take for the timesteps that the replay holds."""
    replay = getattr(model, "replay_buffer", None)
    if not isinstance(replay, PackedReplayBuffer):
        return 0
    two_stacks, action, the_rest = 2 * prod(replay.obs_shape), 8, 3 * 4
    return len(replay.pond) * (two_stacks + action + the_rest)


def restore_replay(model: BaseAlgorithm, file: BinaryIO, name: str, *, draws_anew: bool) -> None:
    """Raise CheckpointError if the file `name` holds no replay, or one of another shape.

    Args:
        draws_anew: its generator stays as it is.
    """
    replay = getattr(model, "replay_buffer", None)
    if not isinstance(replay, PackedReplayBuffer):
        return
    own = {"rng": replay.pond.state_dict()["rng"]} if draws_anew else {}
    try:
        replay.pond.load_state_dict({**read_arrays(file), **own})
    except (KeyError, ValueError, TypeError) as error:
        raise CheckpointError(f"{name} holds no replay: {error!r}") from None
