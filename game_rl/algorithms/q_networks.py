"""Networks that say what each action is worth, on LeanNatureCNN."""

from typing import Any, Literal

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from stable_baselines3.dqn.policies import CnnPolicy, QNetwork
from torch import nn
from torch.nn import functional

from game_rl.algorithms.networks import LeanNatureCNN, Precision
from game_rl.algorithms.optimizers import RAdam

LayerNorm = Literal["channels", "picture", "none"]

_FLAX_EPSILON = 1e-6  # flax.linen.LayerNorm's, with which PQN was published


class LeanQNetwork(QNetwork):
    """QNetwork whose features extractor gets the observations as they are, bytes."""

    def extract_features(
        self, obs: PyTorchObs, features_extractor: BaseFeaturesExtractor
    ) -> torch.Tensor:
        features: torch.Tensor = features_extractor(obs)
        return features


class LeanQPolicy(CnnPolicy):
    """DQN's CnnPolicy of two LeanQNetworks; its state dict is CnnPolicy's."""

    def make_q_net(self) -> LeanQNetwork:
        arguments = self._update_features_extractor(self.net_args, features_extractor=None)
        return LeanQNetwork(**arguments).to(self.device)


class NormedNatureCNN(LeanNatureCNN):
    """NatureCNN with layer normalisation before each ReLU, as in PQN.

    Args:
        layer_norm: `channels` normalises each place of a picture over its channels, as PQN's
            authors do in JAX; `picture` over channels and places together, with a weight for each,
            as CleanRL does; the last layer is a vector and the same in both. `none` is NatureCNN.
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
        """What each layer gives for one observation."""
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
        # channels last in memory already, so that nothing is moved, if the ReLU comes first too
        x = functional.layer_norm(x.permute(0, 2, 3, 1), shape, weight, bias, norm.eps)
        return x.relu_().permute(0, 3, 1, 2)


class PQNPolicy(BasePolicy):
    """A NormedNatureCNN and a linear layer: what each action is worth, uint8 stacks in.

    Weights begin as PQN's authors have them: He's normal distribution (He et al. 2015), LeCun's in
    the last layer, and zeros for biases.
    """

    action_space: spaces.Discrete

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
        self.features_extractor = self.make_features_extractor()
        self.head = nn.Linear(self.features_extractor.features_dim, int(self.action_space.n))
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight)
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]  # both layers have one
        nn.init.kaiming_normal_(self.head.weight, nonlinearity="linear")
        self.optimizer = RAdam(self.parameters(), lr=lr_schedule(1))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """float32 [batch, actions]."""
        values: torch.Tensor = self.head(self.features_extractor(observations))
        return values

    def _predict(self, observation: PyTorchObs, deterministic: bool = True) -> torch.Tensor:  # noqa: ARG002
        assert isinstance(observation, torch.Tensor)
        return self(observation).argmax(dim=1)  # type: ignore[no-any-return]
