"""Tensors of a policy and its optimiser as safetensors, which hold no code."""

from collections.abc import Iterator, Mapping

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import nn

from game_rl.buffers.array_file import dump_arrays
from game_rl.errors import CheckpointError

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
