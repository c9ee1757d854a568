"""Trained policies as ONNX: a graph from an observation to what the policy thinks of each action.

What reads the file needs neither torch nor game_rl.
"""

import json
import logging
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from torch import nn

from game_rl.algorithms.policies import Remembers, policy_outputs
from game_rl.envs.observation import SCREEN
from game_rl.errors import UsageError
from game_rl.files.durable_files import rename, sync_file
from game_rl.playback.trained_run import TrainedRun
from game_rl.system.packages import check_extra
from game_rl.vec_env.make_vec_env import SpacesVecEnv

logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns that torchvision is missing
MEMORY = "memory"
MEMORY_AFTER = "memory_after"
_ROWS = 2  # of the example from which the graph is made; its batch may have any other number


class _ActionValues(nn.Module):
    """A policy as a function of the parts of its observation, in the order of their names.

    One with a memory takes it as well, after them, and returns it as it is afterwards.
    """

    def __init__(self, policy: BasePolicy, names: tuple[str, ...], *, has_parts: bool) -> None:
        super().__init__()
        self._policy = policy
        self._names = names
        self._has_parts = has_parts

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        found = dict(zip(self._names, tensors, strict=False))
        if SCREEN in found:  # as floats, as the networks move bytes in a way that ONNX cannot
            found[SCREEN] = found[SCREEN].float()
        observation: Any = found if self._has_parts else found[SCREEN]
        if isinstance(self._policy, Remembers):
            _, log_probabilities, memory = self._policy.outputs(observation, tensors[-1])
            return log_probabilities.exp(), memory
        _, of_actions = policy_outputs(self._policy, observation)
        return of_actions.float()


@dataclass(frozen=True)
class OnnxInput:
    """An input of the graph; `shape` without the batch."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class OnnxPolicy:
    """What an exported graph takes and gives.

    Attributes:
        output: `probabilities` or `q_values`.
        actions: names of the actions, in the order of the output.
    """

    inputs: Mapping[str, OnnxInput]
    output: str
    actions: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def export_onnx(run: TrainedRun, output: Path) -> OnnxPolicy:
    """Write an ONNX file, whole or not at all.

    Its inputs are the parts of an observation by name, each [batch, …] in its own dtype; a policy
    that sees the screen alone has the input `screen`, uint8 [batch, stack * C, H, W], the newest
    frame last. Its output is float32 [batch, actions]: `probabilities` of PPO, `q_values` of DQN
    and PQN. The largest is what the policy does when it is deterministic. A policy with a memory
    has the input `memory` and the output `memory_after`, float32 [batch, …]; it is zero where an
    episode begins.

    Raises:
        UsageError: the package is missing that torch needs for it, or ONNX has no counterpart of an
            operation of a custom network.
    """
    check_extra("onnxscript", "a file of ONNX")
    env = SpacesVecEnv(run.config.env, run.game, n_envs=1)
    observed = env.observation_space
    parts: Mapping[str, spaces.Space[Any]] = {SCREEN: observed}
    has_parts = isinstance(observed, spaces.Dict)
    if isinstance(observed, spaces.Dict):
        parts = observed.spaces
    policy = run.policy(observed, env.action_space).eval()
    output_name = "q_values" if run.config.algorithm.has_q_network else "probabilities"
    module = _ActionValues(policy, tuple(parts), has_parts=has_parts)
    example = [_zeros(part) for part in parts.values()]
    names = list(parts)
    outputs = [output_name]
    inputs = {
        name: OnnxInput(str(part.dtype), tuple(part.shape or ())) for name, part in parts.items()
    }
    if isinstance(policy, Remembers):
        example.append(torch.zeros((_ROWS, *policy.memory_shape)))
        names.append(MEMORY)
        outputs.append(MEMORY_AFTER)
        inputs[MEMORY] = OnnxInput("float32", policy.memory_shape)
    batch = torch.export.Dim("batch")
    temporary = output.with_name(f".{output.name}.tmp")
    try:
        with warnings.catch_warnings(action="ignore"):  # of torch about itself
            program = torch.onnx.export(
                module,
                tuple(example),
                dynamo=True,
                dynamic_shapes=(tuple({0: batch} for _ in example),),
                input_names=names,
                output_names=outputs,
                verbose=False,
            )
        assert program is not None
        program.model.metadata_props.update(_metadata(run))
        program.save(temporary, external_data=False)
        sync_file(temporary)
        rename(temporary, output)
    except torch.onnx.OnnxExporterError as error:
        lines = [line.strip() for line in str(error.__cause__ or error).splitlines()]
        raise UsageError(
            f"the network of {run.run_dir} cannot be written as ONNX: {next(filter(None, lines))}"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
    return OnnxPolicy(inputs, output_name, tuple(run.game.action_names))


def _zeros(part: spaces.Space[Any]) -> torch.Tensor:
    assert part.dtype is not None
    assert part.shape is not None
    return torch.zeros((_ROWS, *part.shape), dtype=getattr(torch, str(part.dtype)))


def _metadata(run: TrainedRun) -> dict[str, str]:
    return {
        "actions": json.dumps(run.game.action_names),
        "deterministic": json.dumps(run.deterministic),
        "game": run.game.definition.title,
        "frame_skip": str(run.config.env.frame_skip),
        "timesteps": str(run.state.num_timesteps),
    }
