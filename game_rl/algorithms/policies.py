"""The policies of PPO, DQN and PQN around the network: made, loaded and converted."""

from collections.abc import Mapping
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticCnnPolicy, BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from stable_baselines3.dqn.policies import CnnPolicy, QNetwork
from torch import nn
from torch.nn import functional

from game_rl import schedules
from game_rl.algorithms.networks import Adam, LeanNatureCNN, NormedNatureCNN, RAdam
from game_rl.config.algorithms import AlgorithmConfig, DQNConfig, LayerNorm, PPOConfig
from game_rl.errors import CheckpointError
from game_rl.system.placement import Precision

_Q_NET = "q_net."  # prefix of its tensors' names in a policy's state dict


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


_NO_LEARNING = schedules.constant(0.0)


def make_policy(
    config: AlgorithmConfig,
    observation_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
) -> BasePolicy:
    """Build a float32 policy on the CPU, whose weights are to be replaced by `make_algorithm`'s."""
    if isinstance(config, PPOConfig):
        return ActorCriticCnnPolicy(
            observation_space,
            action_space,
            _NO_LEARNING,
            ortho_init=False,  # takes half a second for weights that nobody uses
            optimizer_class=Adam,
        )
    assert isinstance(action_space, spaces.Discrete)
    kind: type[DQNPolicy | PQNPolicy] = DQNPolicy if isinstance(config, DQNConfig) else PQNPolicy
    return kind(observation_space, action_space, _NO_LEARNING, layer_norm=config.layer_norm)


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
