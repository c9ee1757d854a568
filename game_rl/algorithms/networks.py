"""SB3's CnnPolicy with fewer copies, in the number format in which the hardware is fast."""

from typing import Any, Self

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticCnnPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, NatureCNN
from stable_baselines3.common.type_aliases import PyTorchObs
from torch import nn
from torch.nn import functional

from game_rl.algorithms.optimizers import Adam
from game_rl.system.caches import cache_bytes_per_cpu
from game_rl.system.machine import cpu_has_bf16, effective_cpus
from game_rl.system.placement import Hardware, Precision

_Weights = list[tuple[torch.Tensor, torch.Tensor]]


class LeanNatureCNN(NatureCNN):
    """NatureCNN that takes bytes as input and multiplies in float32 or bfloat16.

    It computes the same function as NatureCNN and has the same state dict. The first convolution,
    8 x 8 with stride 4, is computed as the equivalent 2 x 2 convolution of 4 x 4 blocks, whose many
    channels suit the processor (twice as fast in bfloat16). The division by 255 is folded into the
    few weights of that convolution, so the observations are copied to floats only once. The ReLUs
    work in place.

    In bfloat16 the weights, gradients, optimiser and features stay float32.

    In evaluation mode without gradients, which is how SB3 collects a rollout, the prepared weights
    are cached until the next call of `train` or `eval`. For the few observations of a vec step,
    preparing them takes as long as the multiplication.

    Observations are numbers from 0 to 255, uint8 or float32 [batch, C, H, W]. Features are float32
    [batch, features_dim].
    """

    def __init__(
        self,
        observation_space: spaces.Box,
        features_dim: int = 512,
        normalized_image: bool = False,
        *,
        precision: Precision = "float32",
    ) -> None:
        super().__init__(observation_space, features_dim, normalized_image)
        self._number = torch.bfloat16 if precision == "bf16" else torch.float32
        self._kept: _Weights = []
        self.register_load_state_dict_post_hook(_forget_weights)  # type: ignore[no-untyped-call]

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        if self.training or torch.is_grad_enabled():
            weights = self._weights()
        else:
            self._kept = weights = self._kept or _for_small_batches(self._weights())
        first, second, third, last = weights
        x = _blocks(observations, self._number)
        x = self._activated(functional.conv2d(x, *first), 0)
        x = self._activated(functional.conv2d(x, *second, stride=2), 1)
        x = self._activated(functional.conv2d(x, *third), 2)
        return self._activated(functional.linear(x.flatten(1), *last), 3).float()

    def _activated(self, x: torch.Tensor, layer: int) -> torch.Tensor:  # noqa: ARG002 - see NormedNatureCNN
        return x.relu_()

    def _weights(self) -> _Weights:
        """Prepare (weight, bias) of each layer for the multiplication."""
        pairs: _Weights = []
        for layer in (*self.cnn, *self.linear):
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                weight, bias = layer.parameters()
                pairs.append((weight if pairs else _block_weight(weight) / 255.0, bias))
        return [(weight.to(self._number), bias.to(self._number)) for weight, bias in pairs]

    def train(self, mode: bool = True) -> Self:
        self._kept = []
        return super().train(mode)


def _for_small_batches(weights: _Weights) -> _Weights:
    """Store the linear layer's weight column by column, if it is float32.

    For up to 32 rows Intel's processors then multiply twice as fast. AMD's are somewhat slower,
    which did not show in rollouts.
    """
    *convolutions, (weight, bias) = weights
    if weight.dtype == torch.float32:
        weight = weight.t().contiguous().t()
    return [*convolutions, (weight, bias)]


def _forget_weights(network: LeanNatureCNN, _: object) -> None:
    network.train(network.training)


def _blocks(pictures: torch.Tensor, number: torch.dtype) -> torch.Tensor:
    """Rearrange [N, C, H, W] into [N, 16 C, H // 4, W // 4] of type `number`.

    The 16 numbers of a 4 x 4 block become channels, in the order (row, C, column). The result is
    channels_last in memory.
    """
    n, channels, height, width = pictures.shape
    rows, columns = height // 4, width // 4
    pictures = pictures[:, :, : 4 * rows, : 4 * columns]
    if pictures.dtype == torch.uint8:  # moving four bytes at a time is four times as fast
        quads = _quads(pictures).view(n, channels, rows, 4, columns, 1)
    else:
        quads = pictures.reshape(n, channels, rows, 4, columns, 4)
    blocks = quads.permute(0, 2, 4, 3, 1, 5).contiguous().view(pictures.dtype).to(number)
    return blocks.view(n, rows, columns, 16 * channels).permute(0, 3, 1, 2)


def _quads(pixels: torch.Tensor) -> torch.Tensor:
    """View each four neighbouring bytes as one int32; copy only if some are not aligned to four."""
    if any(number % 4 for number in (pixels.storage_offset(), *pixels.stride()[:-1])):
        pixels = pixels.contiguous()
    return pixels.view(torch.int32)


def _block_weight(weight: torch.Tensor) -> torch.Tensor:
    """Rearrange [filters, C, 8, 8] into [filters, 16 C, 2, 2], in the order of `_blocks`."""
    filters, channels = weight.shape[:2]
    blocks = weight.reshape(filters, channels, 2, 4, 2, 4).permute(0, 3, 1, 5, 2, 4)
    return blocks.reshape(filters, 16 * channels, 2, 2).contiguous(
        memory_format=torch.channels_last
    )


class LeanCnnPolicy(ActorCriticCnnPolicy):
    """CnnPolicy whose features extractor gets the observations unconverted, as bytes.

    Supports Discrete actions and an `mlp_extractor` without layers, as CnnPolicy has.
    """

    action_space: spaces.Discrete

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return actions int64 [batch], values [batch, 1] and log probabilities [batch].

        They are CnnPolicy's, from the same random numbers. A torch.distributions.Categorical is
        avoided because its checks take a third of the network's time in a vec step. An action with
        weights p is drawn as the argmax of p / q with exponentially distributed q, as
        torch.multinomial does.
        """
        values, log_probs = self._values_and_log_probs(obs)
        weights = log_probs.exp()
        if not deterministic:
            weights /= torch.empty_like(weights).exponential_()
        actions = weights.argmax(dim=1)
        return actions, values, log_probs.gather(1, actions[:, None]).flatten()

    def evaluate_actions(
        self, obs: PyTorchObs, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return values [batch, 1], log probabilities [batch] of `actions` and entropies [batch].

        As CnnPolicy's, but thread-safe: CnnPolicy stores the distribution in the policy.
        """
        values, log_probs = self._values_and_log_probs(obs)
        chosen = log_probs.gather(1, actions.long()[:, None]).flatten()
        return values, chosen, -(log_probs.exp() * log_probs).sum(dim=1)

    def _values_and_log_probs(self, obs: PyTorchObs) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.extract_features(obs)
        return self.value_net(features), functional.log_softmax(self.action_net(features), dim=1)

    def extract_features(
        self, obs: PyTorchObs, features_extractor: BaseFeaturesExtractor | None = None
    ) -> torch.Tensor:
        features: torch.Tensor = (features_extractor or self.features_extractor)(obs)
        return features


def policy_arguments(precision: Precision) -> dict[str, Any]:
    """Return PPO's `policy_kwargs` for LeanCnnPolicy."""
    return {
        "features_extractor_class": LeanNatureCNN,
        "features_extractor_kwargs": {"precision": precision},
        "normalize_images": False,  # LeanNatureCNN does
        "optimizer_class": Adam,
        # eps is SB3's default, which SB3 drops as soon as it gets any optimizer_kwargs; fused makes
        # one pass over the weights, without temporaries
        "optimizer_kwargs": {"eps": 1e-5, "fused": True},
        "net_arch": [],  # CnnPolicy's choice for NatureCNN, which it does not make for a subclass
    }


def this_hardware() -> Hardware:
    """Return the hardware of this machine that torch can use."""
    return Hardware(
        has_gpu=torch.cuda.device_count() > 0,
        cpu_has_bf16=cpu_has_bf16(),
        cpus=effective_cpus(),
        cache_bytes=cache_bytes_per_cpu(),
    )
