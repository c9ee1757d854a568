"""The section `algorithm.network`: how the policy sees, and its hidden layers."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Discriminator, Field, Tag

from game_rl.config.custom_part import CustomPart, PartItem
from game_rl.config.strict_model import StrictModel

ScreenNetwork = Literal["nature", "impala", "small"]

SMALLEST_SIDES: Mapping[ScreenNetwork, int] = {
    "nature": 36,  # smaller leaves nothing for its third convolution (8/4, 4/2, 3/1)
    "impala": 4,
    "small": 4,
}
"""Smallest side of a screen that each network takes, in pixels as the agent sees them."""

_USUAL_HIDDEN = (64, 64)  # SB3's, for all of its policies but CnnPolicy


class NetworkConfig(StrictModel):
    """The network: what it makes of an observation, and the layers before its outputs."""

    screen: ScreenNetwork = "nature"
    """Network of the screens. nature: three convolutions (Mnih et al. 2015), for screens of at
    least 36x36. impala: 15 convolutions with residual connections (Espeholt et al. 2018), which
    take several times as long. small: two convolutions, for small screens."""
    hidden: (
        Annotated[
            tuple[Annotated[int, Field(ge=1, le=65_536)], ...],
            Field(max_length=16, examples=[[256], [64, 64], []]),
        ]
        | None
    ) = None
    """Number of units of each hidden layer between the features and the outputs, as SB3's net_arch.
    PPO has such layers for the policy and as many for the value function, with tanh; DQN and PQN
    have them with ReLU. null: as in SB3, none if an observation is the screens alone, and [64, 64]
    if it has parts."""
    features: Annotated[int, Field(ge=1, le=65_536)] = 512
    """Number of features that are made of the screens, and of each part that is a grid. Vectors are
    features as they are."""


def _checked_name(value: object) -> object:
    if value in get_args(ScreenNetwork):
        raise ValueError(f"found {value}; write network: {{screen: {value}}}")
    return value


def _network(value: object) -> str:
    """Return which form a network is written in."""
    is_class = isinstance(value, str) or (isinstance(value, dict) and any(":" in k for k in value))
    return "module:Class" if is_class else "layers"


Network = Annotated[
    Annotated[NetworkConfig, Tag("layers")]
    | Annotated[PartItem, BeforeValidator(_checked_name), Tag("module:Class")],
    Discriminator(_network),
]
NATURE = NetworkConfig()
"""The network of a config that says nothing about it."""


def hidden_layers(network: Network, *, has_parts: bool) -> tuple[int, ...]:
    """Return the units of the hidden layers, by SB3's rule where the config says nothing.

    Args:
        has_parts: whether observations have parts besides the screens.
    """
    if not isinstance(network, NetworkConfig):
        return _USUAL_HIDDEN
    if network.hidden is None:
        return _USUAL_HIDDEN if has_parts else ()
    return network.hidden


def own_network(network: Network) -> Iterator[CustomPart]:
    """Yield the custom features extractor, if the network is one."""
    if isinstance(network, NetworkConfig):
        return
    written = {network: {}} if isinstance(network, str) else network
    for reference, arguments in written.items():
        yield CustomPart(("algorithm", "network"), reference, arguments)
