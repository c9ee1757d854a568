"""The policies of PPO, DQN and PQN: their network, as the config says; made, loaded, converted."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import (
    ActorCriticCnnPolicy,
    ActorCriticPolicy,
    BaseModel,
    BasePolicy,
)
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, create_mlp
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from stable_baselines3.dqn.policies import CnnPolicy, QNetwork
from torch import nn
from torch.nn import functional

from game_rl import schedules
from game_rl.algorithms.networks import Adam, LeanNatureCNN, NormedNatureCNN, RAdam
from game_rl.algorithms.parts_extractor import SCREEN_NETWORKS, PartsExtractor, part_kind
from game_rl.algorithms.screen_networks import FLAX_EPSILON
from game_rl.buffers.unpacking import Tensors, observation_tensors
from game_rl.config.algorithms import DQNConfig, LayerNorm, PPOConfig, PQNConfig
from game_rl.config.network import NATURE, Network, NetworkConfig, hidden_layers, own_network
from game_rl.envs.observation import Observation
from game_rl.errors import CheckpointError
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


_Q_NET = "q_net."  # prefix of its tensors' names in a policy's state dict


class LeanQNetwork(QNetwork):
    """Q-network of DQN and PQN: a features extractor, hidden layers if any, and a linear layer.

    Screens are bytes, uint8 [batch, C, H, W], alone or in a dict of parts. Values are float32
    [batch, actions]. Without normalisation it computes the same function as the QNetwork in SB3's
    CnnPolicy or MultiInputPolicy, and has the same state dict, if the features extractor does.

    Args:
        layer_norm: whether each hidden layer is normalised before its ReLU.
    """

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401 - QNetwork's
        layer_norm: bool,
        **keywords: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, **keywords)
        if layer_norm and self.net_arch:
            layers = create_mlp(
                self.features_dim,
                int(self.action_space.n),
                self.net_arch,
                self.activation_fn,
                post_linear_modules=[_normed_vector],  # type: ignore[list-item]  # it makes one
            )
            self.q_net = nn.Sequential(*layers)

    def extract_features(
        self, obs: PyTorchObs, features_extractor: BaseFeaturesExtractor
    ) -> torch.Tensor:
        return extracted_features(self, obs, features_extractor)


def _normed_vector(size: int) -> nn.Module:
    return nn.LayerNorm(size, eps=FLAX_EPSILON)


def extracted_features(
    policy: BaseModel, obs: PyTorchObs, features_extractor: BaseFeaturesExtractor
) -> torch.Tensor:
    """Return what the features extractor makes of bytes, or of SB3's floats if it wants those."""
    if policy.normalize_images:
        return BaseModel.extract_features(policy, obs, features_extractor)
    features: torch.Tensor = features_extractor(obs)
    return features


def _q_network(policy: BasePolicy, hidden: list[int], layer_norm: LayerNorm) -> LeanQNetwork:
    """Build a new Q-network for the policy's spaces, with the policy's features extractor."""
    features_extractor = policy.make_features_extractor()
    assert isinstance(policy.action_space, spaces.Discrete)
    return LeanQNetwork(
        policy.observation_space,
        policy.action_space,
        features_extractor=features_extractor,
        features_dim=features_extractor.features_dim,
        net_arch=hidden,
        normalize_images=policy.normalize_images,
        layer_norm=layer_norm != "none",
    )


class QPolicy(BasePolicy):
    """The policy of an algorithm that has a Q-network."""

    q_net: QNetwork

    @property
    def q_networks(self) -> tuple[QNetwork, ...]:
        """The network that is trained, and those that are copies of it from time to time."""
        return (self.q_net,)


class DQNPolicy(QPolicy, CnnPolicy):
    """DQN's CnnPolicy or MultiInputPolicy with two LeanQNetworks.

    SB3 initialises the weights. Normalisation layers start with weight 1 and bias 0. Without them
    the state dict is SB3's where the features extractor's is.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Discrete,
        lr_schedule: Schedule,
        *,
        layer_norm: LayerNorm = "none",
        network: Network = NATURE,
        precision: Precision = "float32",
    ) -> None:
        chosen = choose_network(
            network, observation_space, precision=precision, layer_norm=layer_norm
        )
        self._layer_norm = layer_norm  # SB3's constructor calls make_q_net
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            net_arch=chosen.hidden,
            **chosen.policy_arguments,
            optimizer_class=Adam,
            optimizer_kwargs={"fused": True},  # one pass over the weights and no temporaries
        )

    def make_q_net(self) -> LeanQNetwork:
        return _q_network(self, self.net_arch, self._layer_norm).to(self.device)

    @property
    def q_networks(self) -> tuple[QNetwork, ...]:
        return (self.q_net, self.q_net_target)


class PQNPolicy(QPolicy):
    """PQN's policy: one LeanQNetwork, trained with RAdam.

    Weights are initialised as PQN's authors do: from He's normal distribution (He et al. 2015),
    from LeCun's in the last layer, and with zeros for biases. Embeddings keep torch's normal
    distribution, and a custom features extractor keeps its weights.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        *,
        layer_norm: LayerNorm = "channels",
        network: Network = NATURE,
        precision: Precision = "float32",
        use_sde: bool = False,  # SB3 passes it to the policy of each on-policy algorithm
    ) -> None:
        assert not use_sde
        chosen = choose_network(
            network, observation_space, precision=precision, layer_norm=layer_norm
        )
        super().__init__(observation_space, action_space, **chosen.policy_arguments)
        self.q_net = _q_network(self, chosen.hidden, layer_norm)
        drawn = self.q_net.q_net if chosen.is_own else self
        *hidden, last = (m for m in drawn.modules() if isinstance(m, nn.Conv2d | nn.Linear))
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


def load_q_network(policy: QPolicy, tensors: Mapping[str, torch.Tensor]) -> None:
    """Load the Q-network among `tensors` into `policy`, and into its target network.

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
    for network in policy.q_networks:
        network.load_state_dict(given)


def _check_fits(given: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]) -> None:
    for name in dict.fromkeys((*wanted, *given)):
        found, own = (_shape(tensors.get(name)) for tensors in (given, wanted))
        if found != own:
            raise CheckpointError(
                f"the Q-network does not fit: {_Q_NET}{name} is {found} in the checkpoint, but "
                f"{own} in this run; both must have the same actions, observations, frame_stack, "
                "network and layer_norm"
            )


def _shape(tensor: torch.Tensor | None) -> str:
    return "missing" if tensor is None else "x".join(map(str, tensor.shape))


class LeanCnnPolicy(ActorCriticCnnPolicy):
    """CnnPolicy or MultiInputPolicy whose features extractor gets the screens as bytes.

    Supports Discrete actions. The hidden layers are SB3's: separate ones for the policy and for the
    value, with tanh. It has SB3's state dict where the features extractor has.
    """

    action_space: spaces.Discrete

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        *,
        network: Network = NATURE,
        precision: Precision = "float32",
        ortho_init: bool = True,
        use_sde: bool = False,  # SB3 passes it to the policy of each on-policy algorithm
    ) -> None:
        assert not use_sde
        chosen = choose_network(network, observation_space, precision=precision)
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            net_arch=chosen.hidden,
            ortho_init=ortho_init,
            **chosen.policy_arguments,
            optimizer_class=Adam,
            # eps is SB3's default, which SB3 drops as soon as it gets any optimizer_kwargs; fused
            # makes one pass over the weights, without temporaries
            optimizer_kwargs={"eps": 1e-5, "fused": True},
        )

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return actions int64 [batch], values [batch, 1] and log probabilities [batch].

        They are CnnPolicy's, from the same random numbers. A torch.distributions.Categorical is
        avoided because its checks take a third of the network's time in a vec step. An action with
        weights p is drawn as the argmax of p / q with exponentially distributed q, as
        torch.multinomial does.
        """
        values, log_probs = self.values_and_log_probs(obs)
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
        values, log_probs = self.values_and_log_probs(obs)
        chosen = log_probs.gather(1, actions.long()[:, None]).flatten()
        return values, chosen, -(log_probs.exp() * log_probs).sum(dim=1)

    def values_and_log_probs(self, obs: PyTorchObs) -> tuple[torch.Tensor, torch.Tensor]:
        """Return values [batch, 1] and the log probabilities of all actions [batch, actions]."""
        of_policy, of_value = self.mlp_extractor(self.extract_features(obs))
        return self.value_net(of_value), functional.log_softmax(self.action_net(of_policy), dim=1)

    def extract_features(
        self, obs: PyTorchObs, features_extractor: BaseFeaturesExtractor | None = None
    ) -> torch.Tensor:
        return extracted_features(self, obs, features_extractor or self.features_extractor)


def policy_values(model: BaseAlgorithm, observations: Observation) -> NDArray[np.float32]:
    """Return, for each observation, its value and then that of each action, float32 [n, 1 + A].

    PPO has the value of its critic and the actions' probabilities, DQN and PQN the largest Q-value
    and the Q-values. Random generators stay as they are, even if a network draws numbers.
    """
    on_gpu = [model.device] if model.device.type == "cuda" else []
    with torch.no_grad(), torch.random.fork_rng(on_gpu):
        tensors = observation_tensors(observations, model.device)
        value, of_actions = policy_outputs(model.policy, tensors)
        rows: NDArray[np.float32] = torch.cat((value, of_actions), dim=1).float().cpu().numpy()
    return rows


def policy_outputs(policy: BasePolicy, tensors: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
    """Return values [n, 1] and those of the actions [n, A], as `policy_values` says."""
    if isinstance(policy, ActorCriticPolicy):
        of_policy, of_value = policy.mlp_extractor(policy.extract_features(tensors))
        log_probs = functional.log_softmax(policy.action_net(of_policy), dim=1)
        return policy.value_net(of_value), log_probs.exp()
    q_values: torch.Tensor = policy.q_net(tensors)  # type: ignore[operator]  # a QPolicy
    return q_values.amax(dim=1, keepdim=True), q_values


@runtime_checkable
class Remembers(Protocol):
    """A policy with a memory, float32 [n, *memory_shape], zero where an episode begins."""

    memory_shape: tuple[int, ...]

    def outputs(
        self, obs: Tensors, memory: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return values, log probabilities, and the memory after it."""


class ExpectedReturns:
    """The value of each observation of one episode after the other, as a policy sees it.

    It is the value of PPO, and the highest Q of the others, in units of the rewards as they were
    learned. A policy with a memory remembers the observations since `begin`.
    """

    def __init__(self, policy: BasePolicy) -> None:
        self._policy = policy
        self.begin()

    def begin(self) -> None:
        """Begin an episode."""
        if isinstance(self._policy, Remembers):
            self._memory = torch.zeros(1, *self._policy.memory_shape, device=self._policy.device)

    def after(self, observations: Observation) -> float:
        """Return the value of the next observation of the episode, a batch of one."""
        tensors = observation_tensors(observations, self._policy.device)
        with torch.no_grad():
            if isinstance(self._policy, Remembers):
                values, _, self._memory = self._policy.outputs(tensors, self._memory)
            else:
                values, _ = policy_outputs(self._policy, tensors)
        return float(values)


_NO_LEARNING = schedules.constant(0.0)


def ppo_policy_to_load(
    config: PPOConfig, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
) -> BasePolicy:
    """Return a float32 policy on the CPU, whose weights are to be replaced by a LeanPPO's.

    Where SB3 has the network, it is SB3's, which is the one that plays since the first release.
    """
    network = config.network
    is_plain = isinstance(network, NetworkConfig) and network.screen == "nature"
    if isinstance(observation_space, spaces.Dict) or not is_plain:
        return LeanCnnPolicy(
            observation_space, action_space, _NO_LEARNING, network=network, ortho_init=False
        )
    chosen = choose_network(network, observation_space)
    return ActorCriticCnnPolicy(
        observation_space,
        action_space,
        _NO_LEARNING,
        net_arch=chosen.hidden,
        ortho_init=False,  # takes half a second for weights that nobody uses
        features_extractor_kwargs={"features_dim": chosen.arguments["features_dim"]},
        optimizer_class=Adam,
    )


def q_policy_to_load(
    kind: type[DQNPolicy | PQNPolicy],
    config: DQNConfig | PQNConfig,
    observation_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
) -> BasePolicy:
    """As `ppo_policy_to_load`, for the weights of an algorithm with a Q-network."""
    assert isinstance(action_space, spaces.Discrete)
    return kind(
        observation_space,
        action_space,
        _NO_LEARNING,
        layer_norm=config.layer_norm,
        network=config.network,
    )
