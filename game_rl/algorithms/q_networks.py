"""The Q-network of DQN and PQN, and their policies around it."""

from collections.abc import Mapping
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from stable_baselines3.dqn.policies import CnnPolicy, QNetwork
from torch import nn
from torch.nn import functional

from game_rl.algorithms.networks import LeanNatureCNN
from game_rl.algorithms.optimizers import Adam, RAdam
from game_rl.config.algorithms import LayerNorm
from game_rl.errors import CheckpointError
from game_rl.system.placement import Precision

_Q_NET = "q_net."  # prefix of its tensors' names in a policy's state dict
_FLAX_EPSILON = 1e-6  # of flax.linen.LayerNorm, which PQN's authors use


class NormedNatureCNN(LeanNatureCNN):
    """NatureCNN with layer normalisation before each ReLU, as in PQN.

    Args:
        layer_norm: `channels` normalises each position of a picture over its channels, as PQN's
            authors do in JAX. `picture` normalises over channels and positions together, with a
            weight for each number, as CleanRL does. The last layer is a vector, and the same in
            both. `none` is NatureCNN.
    """

    def __init__(
        self,
        observation_space: spaces.Box,
        features_dim: int = 512,
        normalized_image: bool = False,
        *,
        precision: Precision = "float32",
        layer_norm: LayerNorm = "channels",
    ) -> None:
        super().__init__(observation_space, features_dim, normalized_image, precision=precision)
        self._over_channels = layer_norm == "channels"
        self.norms = nn.ModuleList()
        if layer_norm != "none":
            shapes = self._shapes(observation_space)
            if self._over_channels:
                shapes = [shape[:1] for shape in shapes]
            self.norms.extend(nn.LayerNorm(shape, eps=_FLAX_EPSILON) for shape in shapes)

    def _shapes(self, observation_space: spaces.Box) -> list[tuple[int, ...]]:
        """Return the shape of each layer's output for one observation."""
        shapes: list[tuple[int, ...]] = []
        x = torch.zeros(1, *observation_space.shape)
        with torch.no_grad():
            for layer in self.cnn:
                x = layer(x)
                if isinstance(layer, nn.Conv2d):
                    shapes.append(tuple(x.shape[1:]))
        return [*shapes, (self.features_dim,)]

    def _activated(self, x: torch.Tensor, layer: int) -> torch.Tensor:
        if not self.norms:
            return x.relu_()
        norm = self.norms[layer]
        assert isinstance(norm, nn.LayerNorm)
        weight, bias = norm.weight.to(x.dtype), norm.bias.to(x.dtype)
        shape = list(norm.normalized_shape)
        if not self._over_channels or x.ndim == 2:
            return functional.layer_norm(x, shape, weight, bias, norm.eps).relu_()
        # x is channels_last in memory, so neither permute moves anything, as long as the ReLU comes
        # before the second one
        x = functional.layer_norm(x.permute(0, 2, 3, 1), shape, weight, bias, norm.eps)
        return x.relu_().permute(0, 3, 1, 2)


class LeanQNetwork(QNetwork):
    """Q-network of DQN and PQN: a NormedNatureCNN and a linear layer.

    Observations are bytes, uint8 [batch, C, H, W]. Values are float32 [batch, actions]. Without
    normalisation it computes the same function as the QNetwork in SB3's CnnPolicy, and has the same
    state dict.
    """

    def extract_features(
        self, obs: PyTorchObs, features_extractor: BaseFeaturesExtractor
    ) -> torch.Tensor:
        features: torch.Tensor = features_extractor(obs)
        return features


def _q_network(policy: BasePolicy) -> LeanQNetwork:
    """Build a new Q-network for the policy's spaces, with the policy's features extractor."""
    features_extractor = policy.make_features_extractor()
    assert isinstance(policy.action_space, spaces.Discrete)
    return LeanQNetwork(
        policy.observation_space,
        policy.action_space,
        features_extractor=features_extractor,
        features_dim=features_extractor.features_dim,
        net_arch=[],
        normalize_images=False,  # NatureCNN does it
    )


class DQNPolicy(CnnPolicy):
    """DQN's CnnPolicy with two LeanQNetworks.

    SB3 initialises the weights. Normalisation layers start with weight 1 and bias 0. Without them
    the state dict is CnnPolicy's.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Discrete,
        lr_schedule: Schedule,
        *,
        layer_norm: LayerNorm = "none",
        precision: Precision = "float32",
    ) -> None:
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            features_extractor_class=NormedNatureCNN,
            features_extractor_kwargs={"precision": precision, "layer_norm": layer_norm},
            normalize_images=False,  # NatureCNN does it
            optimizer_class=Adam,
            optimizer_kwargs={"fused": True},  # one pass over the weights and no temporaries
        )

    def make_q_net(self) -> LeanQNetwork:
        return _q_network(self).to(self.device)


class PQNPolicy(BasePolicy):
    """PQN's policy: one LeanQNetwork, trained with RAdam.

    Weights are initialised as PQN's authors do: from He's normal distribution (He et al. 2015),
    from LeCun's in the last layer, and with zeros for biases.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        *,
        layer_norm: LayerNorm = "channels",
        precision: Precision = "float32",
        use_sde: bool = False,  # SB3 passes it to the policy of each on-policy algorithm
    ) -> None:
        assert not use_sde
        super().__init__(
            observation_space,
            action_space,
            features_extractor_class=NormedNatureCNN,
            features_extractor_kwargs={"precision": precision, "layer_norm": layer_norm},
            normalize_images=False,  # NatureCNN does it
        )
        self.q_net = _q_network(self)
        *hidden, last = (m for m in self.modules() if isinstance(m, nn.Conv2d | nn.Linear))
        for layer in (*hidden, last):
            nn.init.kaiming_normal_(layer.weight)
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]  # both layers have one
        nn.init.kaiming_normal_(last.weight, nonlinearity="linear")
        self.optimizer = RAdam(self.parameters(), lr=lr_schedule(1))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the values of all actions, float32 [batch, actions]."""
        values: torch.Tensor = self.q_net(observations)
        return values

    def _predict(self, observation: PyTorchObs, deterministic: bool = True) -> torch.Tensor:
        return self.q_net._predict(observation, deterministic)


def load_q_network(policy: DQNPolicy | PQNPolicy, tensors: Mapping[str, torch.Tensor]) -> None:
    """Load the Q-network among `tensors` into `policy`, and into the target network of DQN.

    Args:
        policy: its optimiser is not reset, so the moments there are still those of the old weights.
        tensors: state dict of either algorithm's policy, or a checkpoint's tensors.

    Raises:
        CheckpointError: the tensors are of another network. `policy` is unchanged then.
    """
    given = {
        name.removeprefix(_Q_NET): tensor
        for name, tensor in tensors.items()
        if name.startswith(_Q_NET)
    }
    _check_fits(given, policy.q_net.state_dict())
    policy.q_net.load_state_dict(given)
    if isinstance(policy, DQNPolicy):
        policy.q_net_target.load_state_dict(given)


def _check_fits(given: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]) -> None:
    for name in dict.fromkeys((*wanted, *given)):
        found, own = (_shape(tensors.get(name)) for tensors in (given, wanted))
        if found != own:
            raise CheckpointError(
                f"the Q-network does not fit: {_Q_NET}{name} is {found} in the checkpoint, but "
                f"{own} in this run; both must have the same actions, observations, frame_stack "
                "and layer_norm"
            )


def _shape(tensor: torch.Tensor | None) -> str:
    return "missing" if tensor is None else "x".join(map(str, tensor.shape))
