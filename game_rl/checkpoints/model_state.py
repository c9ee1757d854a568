"""What of a training is saved: weights, optimiser, own state, replay, random generators."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol, runtime_checkable

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from pydantic import JsonValue
from safetensors import SafetensorError
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import set_random_seed
from torch import nn

from game_rl.buffers.array_file import dump_arrays, read_arrays
from game_rl.buffers.replay_buffer import packed_replay
from game_rl.checkpoints.checkpoint_state import NumpyRandom, PythonRandom, RandomNumbers
from game_rl.errors import CheckpointError
from game_rl.vec_env.frame_stacks import space_bytes


@runtime_checkable
class _KeepsState(Protocol):
    def state(self) -> dict[str, Any]:
        """Return JSON-serialisable data; the state of each generator has the key `rng`."""

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""


@runtime_checkable
class _KeepsEnvArrays(Protocol):
    def env_arrays(self) -> Mapping[str, NDArray[np.float32]]:
        """Return arrays by name, each with a row for each env."""

    def load_env_arrays(self, arrays: Mapping[str, NDArray[np.float32]]) -> None:
        """Restore these arrays."""


def save_env_arrays(model: BaseAlgorithm) -> Mapping[str, NDArray[np.float32]]:
    """Return what the model keeps of the running episodes."""
    return model.env_arrays() if isinstance(model, _KeepsEnvArrays) else {}


def restore_env_arrays(model: BaseAlgorithm, arrays: Mapping[str, NDArray[np.float32]]) -> None:
    if isinstance(model, _KeepsEnvArrays):
        model.load_env_arrays(arrays)


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
        elif isinstance(value, Mapping) and key in present:
            mixed[key] = _with_generators(value, present[key])
    return mixed


def dump_replay(model: BaseAlgorithm) -> Iterator[bytes] | None:
    """Yield the replay's file in pieces, without copying the replay; None if there is no replay."""
    replay = packed_replay(model)
    return None if replay is None else dump_arrays(replay.store.state_dict())


def replay_bytes(model: BaseAlgorithm) -> int:
    """Return the approximate size of `dump_replay`'s file for a full replay."""
    replay = packed_replay(model)
    return 0 if replay is None else replay.store.nbytes


def unpacked_replay_bytes(model: BaseAlgorithm) -> int:
    """Return the bytes that SB3's ReplayBuffer would need for the replay's timesteps."""
    if (replay := packed_replay(model)) is None:
        return 0
    two_stacks = 2 * space_bytes(replay.observation_space)
    action = 8
    the_rest = 3 * 4
    return len(replay.store) * (two_stacks + action + the_rest)


def restore_replay(model: BaseAlgorithm, file: BinaryIO, name: str, *, draws_anew: bool) -> None:
    """Restore the model's replay, if it has one.

    Args:
        draws_anew: whether the replay's generator stays as it is.

    Raises:
        CheckpointError: the file, called `name`, holds no replay or one of another shape.
    """
    if (replay := packed_replay(model)) is None:
        return
    own = {"rng": replay.store.state_dict()["rng"]} if draws_anew else {}
    try:
        replay.store.load_state_dict({**read_arrays(file), **own})
    except (KeyError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{name} does not hold a replay that fits this run: {error!r}"
        ) from None


Tensors = Mapping[str, torch.Tensor]


def dump_tensors(tensors: Tensors) -> Iterator[bytes]:
    """Yield the file in pieces; it does not depend on the order of the tensors in the mapping.

    Only tensors that are not in C order are copied whole.
    """
    return dump_arrays(
        {name: tensor.detach().contiguous() for name, tensor in sorted(tensors.items())}
    )


def parse_tensors(data: bytes, name: str) -> Tensors:
    """Parse a file of `dump_tensors`.

    Raises:
        CheckpointError: the file, called `name`, is not a safetensors file.
    """
    try:
        return safetensors.torch.load(data)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise CheckpointError(f"{name} is not a safetensors file: {error}") from None


def module_tensors(module: nn.Module) -> Tensors:
    """Return each weight once, under the first of its names; SB3's policies name some thrice."""
    state = module.state_dict()
    return {name: state[name] for name in dict.fromkeys(_first_names(state).values())}


def load_module_tensors(module: nn.Module, tensors: Tensors, name: str) -> None:
    """Load the tensors that `module_tensors` returned for a module of the same kind.

    Raises:
        CheckpointError: the tensors, from the file `name`, are of another network. The module is
            unchanged then.
    """
    state = module.state_dict()
    first_names = _first_names(state)
    _check_same(tensors, {first: state[first] for first in first_names.values()}, name)
    module.load_state_dict({alias: tensors[first] for alias, first in first_names.items()})


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> Tensors:
    """Return the moments and counts as `INDEX.NAME`; the settings come from the config."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": torch.as_tensor(value)
        for index, values in state.items()
        for name, value in values.items()
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, tensors: Tensors, file_name: str
) -> None:
    """Load the tensors that `optimizer_tensors` returned, in the memory layout of the weights.

    Raises:
        CheckpointError: the tensors are of another network or optimiser.
    """
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        index, _, name = key.partition(".")
        if not index.isdecimal() or int(index) >= len(weights):
            raise CheckpointError(f"{file_name} has {key}, but the network has no such weight")
        weight = weights[int(index)]
        if tensor.ndim and tensor.shape != weight.shape:
            raise CheckpointError(
                f"{file_name} has {key} of shape {_shape(tensor)}, but the weight's shape is "
                f"{_shape(weight)}"
            )
        value = (
            torch.empty_like(weight, dtype=tensor.dtype).copy_(tensor) if tensor.ndim else tensor
        )
        state.setdefault(int(index), {})[name] = value.detach()
    if state and len(state) != len(weights):
        raise CheckpointError(
            f"{file_name} belongs to a network with {len(state)} weights, not {len(weights)}"
        )
    optimizer.load_state_dict(optimizer.state_dict() | {"state": state})


def _first_names(state: Tensors) -> dict[str, str]:
    """Map each name to the first name of the same tensor."""
    seen: dict[tuple[int, torch.Size], str] = {}
    return {
        name: seen.setdefault((tensor.data_ptr(), tensor.shape), name)
        for name, tensor in state.items()
    }


def _check_same(found: Tensors, wanted: Tensors, name: str) -> None:
    faults = [f"{key} is missing" for key in wanted.keys() - found.keys()]
    faults += [f"{key} is unknown" for key in found.keys() - wanted.keys()]
    faults += [
        f"{key} is {found[key].dtype} {_shape(found[key])}, not {tensor.dtype} {_shape(tensor)}"
        for key, tensor in wanted.items()
        if key in found and (found[key].shape, found[key].dtype) != (tensor.shape, tensor.dtype)
    ]
    if faults:
        shown = "; ".join(sorted(faults)[:3]) + (
            f"; and {len(faults) - 3} more" if faults[3:] else ""
        )
        raise CheckpointError(f"{name} belongs to another network: {shown}")


def _shape(tensor: torch.Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "()"


_PQN_HEAD = {"head.weight": "q_net.q_net.0.weight", "head.bias": "q_net.q_net.0.bias"}


def with_present_names(policy: Tensors) -> Tensors:
    """Return a policy's tensors under their present names; PQN's had others."""
    if not policy.keys() >= _PQN_HEAD.keys():
        return policy
    return {_PQN_HEAD.get(name, f"q_net.{name}"): tensor for name, tensor in policy.items()}


def save_random_numbers() -> RandomNumbers:
    version, words, gauss_next = random.getstate()
    state = np.random.get_state(legacy=False)  # noqa: NPY002 - what SB3 draws from
    assert isinstance(state, dict)
    return RandomNumbers(
        python=PythonRandom(version=version, words=words, gauss_next=gauss_next),
        numpy=NumpyRandom(
            words=tuple(state["state"]["key"].tolist()),
            position=int(state["state"]["pos"]),
            has_gauss=int(state["has_gauss"]),
            cached_gaussian=float(state["gauss"]),
        ),
        torch=torch.get_rng_state().numpy().tobytes(),
        cuda=tuple(state.numpy().tobytes() for state in torch.cuda.get_rng_state_all()),
    )


def restore_random_numbers(saved: RandomNumbers | None, *, otherwise: int | None = None) -> None:
    """Restore all generators; of the GPUs, only those that both machines have.

    Args:
        saved: the states, or None to seed all generators anew.
        otherwise: seed for that; None counts as 0.
    """
    if saved is None:
        set_random_seed(otherwise or 0, using_cuda=torch.cuda.is_available())
        return
    python = saved.python
    numpy = saved.numpy
    random.setstate((python.version, python.words, python.gauss_next))
    words = np.array(numpy.words, np.uint32)
    state = ("MT19937", words, numpy.position, numpy.has_gauss, numpy.cached_gaussian)
    np.random.set_state(state)  # noqa: NPY002
    torch.set_rng_state(_bytes(saved.torch))
    for index, blob in enumerate(saved.cuda[: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(_bytes(blob), index)


@contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """Seed torch's generator inside the block; restore all generators afterwards."""
    saved = save_random_numbers()
    torch.manual_seed(seed)
    try:
        yield
    finally:
        restore_random_numbers(saved)


def _bytes(blob: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(blob), dtype=torch.uint8)
