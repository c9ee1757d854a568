"""Sizes of networks with parts, beside the modules themselves and torch's account of memory."""

from typing import Any

import pytest
import torch

from game_rl.algorithms.policies import DQNPolicy, LeanCnnPolicy, PQNPolicy
from game_rl.algorithms.sizes import NetworkSize
from game_rl.config.algorithms import DQNConfig, LayerNorm, PPOConfig, PQNConfig
from game_rl.config.network import ScreenNetwork
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.games.parts.part_format import PartFormat
from game_rl.system.placement import Precision
from tests.algorithms.observations import ACTIONS, EVERYTHING, PARTS, VECTORS, WITHOUT_SCREEN
from tests.preflight.torch_account import peak_of_tensors

SCREENS_ALONE = ObservationFormat(FramePacking((1, 44, 52)), 4)
FORMATS = {
    "everything": EVERYTHING,
    "without a screen": WITHOUT_SCREEN,
    "vectors": VECTORS,
    "screens": SCREENS_ALONE,
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("screen", ["nature", "impala", "small"])
@pytest.mark.parametrize("hidden", [None, [24], []])
@pytest.mark.parametrize("layer_norm", ["none", "channels", "picture"])
def test_parameters_are_those_of_the_policies(
    form: str, screen: ScreenNetwork, hidden: list[int] | None, layer_norm: LayerNorm
) -> None:
    network: dict[str, Any] = {"screen": screen, "hidden": hidden, "features": 20}
    ppo = PPOConfig.model_validate({"network": network})
    arguments: dict[str, Any] = {"name": "dqn", "network": network, "layer_norm": layer_norm}
    dqn = DQNConfig.model_validate(arguments)
    pqn = PQNConfig.model_validate(arguments | {"name": "pqn"})
    space = FORMATS[form].space
    kwargs: Any = {"network": ppo.network}
    for config, policy in (
        (ppo, LeanCnnPolicy(space, ACTIONS, lambda _: 1e-3, ortho_init=False, **kwargs)),
        (dqn, DQNPolicy(space, ACTIONS, lambda _: 1e-3, layer_norm=layer_norm, **kwargs)),
        (pqn, PQNPolicy(space, ACTIONS, lambda _: 1e-3, layer_norm=layer_norm, **kwargs)),
    ):
        size = NetworkSize.of(FORMATS[form], config, n_actions=4)
        assert size.policy_parameters == sum(p.numel() for p in policy.parameters())
        assert size.largest_parameter == max(p.numel() for p in policy.parameters())


GRID = PartFormat.of_indices("grid", (1, 20, 16), 40, is_stacked=True)
BIG_PARTS = ObservationFormat(
    FramePacking((1, 72, 80)), 4, (("status", PARTS["status"]), ("tiles", GRID))
)
PICTURES = ObservationFormat(FramePacking((1, 72, 80)), 4)
GRIDS = ObservationFormat(None, 4, (("tiles", GRID),))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "screen"),
    [
        (PICTURES, "impala"),
        (PICTURES, "small"),
        (GRIDS, "nature"),
        (BIG_PARTS, "nature"),
    ],
)
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("layer_norm", ["none", "channels", "picture"])
def test_the_step_is_what_torch_allocates(
    form: ObservationFormat, screen: ScreenNetwork, precision: Precision, layer_norm: LayerNorm
) -> None:
    config = PQNConfig.model_validate(
        {"name": "pqn", "network": {"screen": screen, "features": 64}, "layer_norm": layer_norm}
    )
    arguments: Any = {"network": config.network, "precision": precision, "layer_norm": layer_norm}
    policy = PQNPolicy(form.space, ACTIONS, lambda _: 1e-3, **arguments)
    policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    n = 128  # so many that the gradients of the weights, which come one by one, matter little
    seen: Any = {
        name: torch.zeros((n, *space.shape), dtype=getattr(torch, str(space.dtype)))
        for name, space in getattr(form.space, "spaces", {"alone": form.space}).items()
    }
    seen = seen.get("alone", seen)
    size = NetworkSize.of(form, config, n_actions=4)
    blocks = size.step_blocks(n, bf16=precision == "bf16")
    expected = max(map(sum, blocks.values())) + size.weights_bytes
    found = peak_of_tensors(lambda: policy(seen).mean().backward())
    assert found == pytest.approx(expected, rel=0.08)
