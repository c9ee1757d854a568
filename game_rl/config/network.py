"""The sections `algorithm.network` and `algorithm.memory`: how a policy sees and what it keeps."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Discriminator, Field, Tag

from game_rl.config.custom_part import CustomPart, PartItem
from game_rl.config.strict_model import Role, RunSection, StrictModel

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


class MemoryConfig(RunSection):
    """A memory of the agent: recurrent layers between the network of the screens and its outputs.

    Policy and value function have as many each, as in sb3-contrib's RecurrentPPO. The memory is
    empty when an episode begins, wherever it begins.
    """

    kind: Annotated[Literal["lstm", "gru"], Role.NETWORK] = "lstm"
    """Kind of the recurrent layers. sb3-contrib only has lstm, so policies with gru cannot be
    exchanged with it."""
    size: Annotated[int, Field(ge=1, le=16_384), Role.NETWORK] = 256
    """Number of units of each recurrent layer."""
    layers: Annotated[int, Field(ge=1, le=16), Role.NETWORK] = 1
    """Number of recurrent layers, one on top of the other."""
    sequence: Annotated[int, Field(ge=1, le=65_536), Role.LEARNING] = 64
    """Number of timesteps in a row of one env that are learned together, which is also how far back
    a gradient reaches. It must divide n_steps and batch_size. An episode's end cuts a sequence."""
    init: Annotated[Literal["chrono", "uniform"], Role.LEARNING] = "chrono"
    """Biases of the gates before the first update. chrono: units keep what they have for 1 to
    `sequence` timesteps (Tallec and Ollivier 2018). uniform: all forget half within a timestep, as
    PyTorch's and sb3-contrib's layers, so that gradients from long ago vanish."""

    @property
    def state_shape(self) -> tuple[int, int, int]:
        """Shape of one env's state: tensors of the policy and of the value function, layers, size.

        An LSTM has two tensors each, and a GRU one.
        """
        return (4 if self.kind == "lstm" else 2, self.layers, self.size)
