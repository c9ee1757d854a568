"""From the config's network to SB3's arguments for a policy with it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from game_rl.algorithms.networks import LeanNatureCNN, NormedNatureCNN
from game_rl.algorithms.parts_extractor import SCREEN_NETWORKS, PartsExtractor, part_kind
from game_rl.config.algorithms import LayerNorm
from game_rl.config.network import Network, NetworkConfig, hidden_layers, own_network
from game_rl.system.placement import Precision


@dataclass(frozen=True)
class NetworkChoice:
    """The features extractor and the hidden layers of a policy.

    Attributes:
        is_own: whether the class is custom. It then gets what SB3 gives one, screens as
            floats from 0 to 1 among them, while ours take bytes.
    """

    extractor: type[BaseFeaturesExtractor]
    arguments: dict[str, Any]
    hidden: list[int]
    is_own: bool = False

    @property
    def policy_arguments(self) -> dict[str, Any]:
        """Arguments for every policy of SB3, without the hidden layers."""
        return {
            "features_extractor_class": self.extractor,
            "features_extractor_kwargs": self.arguments,
            "normalize_images": self.is_own,
        }


def choose_network(
    network: Network,
    space: spaces.Space[Any],
    *,
    precision: Precision = "float32",
    layer_norm: LayerNorm | None = None,
) -> NetworkChoice:
    """Choose what the config's network is for observations of this space.

    Args:
        layer_norm: None if the algorithm has none.

    Raises:
        PartError: the network is a custom class that cannot be used.
    """
    hidden = list(hidden_layers(network, has_parts=isinstance(space, spaces.Dict)))
    if not isinstance(network, NetworkConfig):
        (own,) = own_network(network)
        found = own.load_features_extractor(Path.cwd())
        assert isinstance(found, type)
        return NetworkChoice(found, dict(own.arguments), hidden, is_own=True)
    arguments: dict[str, Any] = {"features_dim": network.features, "precision": precision}
    if layer_norm is not None:
        arguments["layer_norm"] = layer_norm
    if isinstance(space, spaces.Dict):
        return NetworkChoice(PartsExtractor, arguments | {"screen": network.screen}, hidden)
    extractor: type[BaseFeaturesExtractor] = SCREEN_NETWORKS[network.screen]
    if extractor is NormedNatureCNN and layer_norm is None:
        extractor = LeanNatureCNN
    return NetworkChoice(extractor, arguments, hidden)


def is_of_sb3(network: Network, space: spaces.Space[Any]) -> bool:
    """Whether SB3 has this network, of PPO or of DQN without normalisation, and a class for it."""
    if not isinstance(network, NetworkConfig):
        return False
    screens_agree = network.screen == "nature"
    if not isinstance(space, spaces.Dict):
        return screens_agree
    kinds = {"screen": screens_agree, "vector": True, "categories": False, "grid": False}
    return all(
        kinds[part_kind(name, part)] and not hasattr(nn.ModuleDict, name)
        for name, part in space.spaces.items()
    )
