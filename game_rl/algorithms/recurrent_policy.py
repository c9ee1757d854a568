"""The policy of PPO with a memory: sb3-contrib's, with our network of the screens before it."""

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticCnnPolicy
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import nn
from torch.nn import functional

from game_rl import schedules
from game_rl.algorithms.networks import Adam
from game_rl.algorithms.policies import choose_network, extracted_features
from game_rl.config.algorithms import PPOConfig
from game_rl.config.network import NATURE, MemoryConfig, Network
from game_rl.system.placement import Precision

Layers = nn.LSTM | nn.GRU


class RecurrentPolicy(RecurrentActorCriticCnnPolicy):
    """CnnLstmPolicy or MultiInputLstmPolicy whose features extractor gets the screens as bytes.

    Policy and value function have recurrent layers of their own, after a shared features extractor
    and before their hidden layers, which are SB3's. It has sb3-contrib's state dict where the
    features extractor has. With a GRU, the layers have the same names, and a state has one tensor
    where an LSTM's has two.

    A state of n envs is also called a memory: float32 [n, *memory_shape], one row for each env.
    Supports Discrete actions.
    """

    action_space: spaces.Discrete
    lstm_actor: Layers  # type: ignore[assignment]  # sb3-contrib has an LSTM alone
    lstm_critic: Layers  # type: ignore[assignment]

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        *,
        memory: MemoryConfig,
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
            # as LeanCnnPolicy
            optimizer_kwargs={"eps": 1e-5, "fused": True},
            lstm_hidden_size=memory.size,
            n_lstm_layers=memory.layers,
        )
        if memory.kind == "gru":
            self.lstm_actor = nn.GRU(self.features_dim, memory.size, memory.layers)
            self.lstm_critic = nn.GRU(self.features_dim, memory.size, memory.layers)
            self.optimizer = Adam(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)
        if memory.init == "chrono":
            keep_long(self.lstm_actor, memory.sequence)
            keep_long(self.lstm_critic, memory.sequence)
        self.memory_shape = memory.state_shape
        self._sequence = memory.sequence

    def forward(  # type: ignore[override]  # of memories
        self,
        obs: PyTorchObs,
        memory: torch.Tensor,
        deterministic: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return actions int64 [n], values [n, 1], log probabilities [n] and the memory after it.

        The actions are drawn as LeanCnnPolicy draws them.

        Args:
            obs: one observation of each env.
            memory: before it, zero where an episode begins.
        """
        values, log_probs, memory = self.outputs(obs, memory)
        weights = log_probs.exp()
        if not deterministic:
            weights /= torch.empty_like(weights).exponential_()
        actions = weights.argmax(dim=1)
        return actions, values, log_probs.gather(1, actions[:, None]).flatten(), memory

    def outputs(
        self, obs: PyTorchObs, memory: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return values [n, 1], log probabilities of all actions [n, A] and the memory after."""
        features = self.extract_features(obs)
        states = rnn_states(memory)
        of_policy, after_pi = _one_timestep(features, states.pi, self.lstm_actor)
        of_value, after_vf = _one_timestep(features, states.vf, self.lstm_critic)
        values, log_probs = self._heads(of_policy, of_value)
        return values, log_probs, memory_of(RNNStates(after_pi, after_vf))

    def values_after(self, obs: PyTorchObs, memory: torch.Tensor) -> torch.Tensor:
        """Return the values [n, 1] of one observation of each env; see `forward`."""
        features = self.extract_features(obs)
        of_value, _ = _one_timestep(features, rnn_states(memory).vf, self.lstm_critic)
        values: torch.Tensor = self.value_net(self.mlp_extractor.forward_critic(of_value))
        return values

    def evaluate_pieces(
        self,
        obs: PyTorchObs,
        actions: torch.Tensor,
        lengths: NDArray[np.int64],
        memory: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """As `LeanCnnPolicy.evaluate_actions`, of pieces of episodes, one after the other.

        Args:
            obs: observations of all timesteps, n in all.
            actions: int64 [n].
            lengths: timesteps of each piece, int64 [pieces].
            memory: before each piece.
        """
        features = self.extract_features(obs)
        layout = _PaddedLayout(lengths, self._sequence, self.device)
        states = rnn_states(layout.memories(memory))
        padded = layout.padded(features)
        # thread-safe: nothing is stored in the policy
        of_policy = layout.flat(self.lstm_actor(padded, _given(self.lstm_actor, states.pi))[0])
        of_value = layout.flat(self.lstm_critic(padded, _given(self.lstm_critic, states.vf))[0])
        values, log_probs = self._heads(of_policy, of_value)
        chosen = log_probs.gather(1, actions[:, None]).flatten()
        return values, chosen, -(log_probs.exp() * log_probs).sum(dim=1)

    def _heads(
        self, of_policy: torch.Tensor, of_value: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        of_policy = self.mlp_extractor.forward_actor(of_policy)
        of_value = self.mlp_extractor.forward_critic(of_value)
        return self.value_net(of_value), functional.log_softmax(self.action_net(of_policy), dim=1)

    def extract_features(
        self, obs: PyTorchObs, features_extractor: BaseFeaturesExtractor | None = None
    ) -> torch.Tensor:
        return extracted_features(self, obs, features_extractor or self.features_extractor)

    def get_distribution(  # type: ignore[override]  # sb3-contrib's, which has states
        self,
        obs: PyTorchObs,
        lstm_states: tuple[torch.Tensor, ...],
        episode_starts: torch.Tensor,
    ) -> tuple[Distribution, tuple[torch.Tensor, ...]]:
        """As sb3-contrib's, for `predict`; a GRU's state has an empty second tensor there."""
        features = self.extract_features(obs)
        kept = (1.0 - episode_starts).view(1, -1, 1)
        n = 2 if isinstance(self.lstm_actor, nn.LSTM) else 1
        before = tuple(kept * state for state in lstm_states[:n])
        latent, after = _one_timestep(features, before, self.lstm_actor)
        distribution = self._get_action_dist_from_latent(self.mlp_extractor.forward_actor(latent))
        return distribution, (*after, *lstm_states[n:])


@torch.no_grad()
def keep_long(layers: Layers, timesteps: int) -> None:
    """Set the biases so that units keep what they have for 1 to so many timesteps.

    A unit that keeps a share f of what it has at each timestep forgets within 1 / (1 - f) of them.
    The bias of its forget gate (of a GRU: of its update gate) is log(t - 1) for a t drawn evenly,
    which gives f = 1 - 1 / t, and the one of an LSTM's input gate is the negative. All other biases
    are zero (Tallec and Ollivier 2018, "Can recurrent neural networks warp time?", section 2.2).
    """
    n = layers.hidden_size
    for name, bias in layers.named_parameters():
        if not name.startswith("bias"):
            continue
        bias.zero_()
        if name.startswith("bias_hh"):
            kept = torch.empty(n).uniform_(1, max(2, timesteps - 1)).log()
            bias[n : 2 * n] = kept  # the second gate is the forget gate, or the update gate
            if isinstance(layers, nn.LSTM):
                bias[:n] = -kept


def rnn_states(memory: torch.Tensor) -> RNNStates:
    """Return a memory as sb3-contrib's states, each tensor [layers, n, size]."""
    tensors = memory.permute(1, 2, 0, 3).contiguous().unbind()
    half = len(tensors) // 2
    return RNNStates(tensors[:half], tensors[half:])


def memory_of(states: RNNStates) -> torch.Tensor:
    """Return sb3-contrib's states as a memory."""
    return torch.stack((*states.pi, *states.vf)).permute(2, 0, 1, 3)


def _given(layers: Layers, state: tuple[torch.Tensor, ...]) -> Any:  # noqa: ANN401 - of two kinds
    """Return a state as the layers take it."""
    return state if isinstance(layers, nn.LSTM) else state[0]


def _one_timestep(
    features: torch.Tensor, state: tuple[torch.Tensor, ...], layers: Layers
) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
    """Return the output [n, size] of the layers for one timestep of n envs, and their state after.

    Layer by layer it takes half of the time that the layers' own call takes for one timestep.
    """
    found = []
    x = features
    for number, weights in enumerate(layers.all_weights):
        after: tuple[torch.Tensor, ...]
        if isinstance(layers, nn.LSTM):
            after = torch.lstm_cell(x, [state[0][number], state[1][number]], *weights)
        else:
            after = (torch.gru_cell(x, state[0][number], *weights),)
        found.append(after)
        x = after[0]
    return x, tuple(torch.stack(tensors) for tensors in zip(*found, strict=True))


class _PaddedLayout:
    """Where the timesteps of pieces are in a batch [longest, columns], as recurrent layers take it.

    Both numbers are rounded up, as PyTorch keeps the kernels that it has compiled for up to a
    thousand shapes on a CPU.

    Args:
        lengths: timesteps of each piece, int64 [pieces].
        sequence: the most timesteps that a piece has.
    """

    def __init__(self, lengths: NDArray[np.int64], sequence: int, device: torch.device) -> None:
        n_columns = _rounded_up(len(lengths))
        self._shape = (min(_rounded_up(int(lengths.max())), sequence), n_columns)
        n = int(lengths.sum())
        pieces = np.repeat(np.arange(len(lengths)), lengths)
        positions = np.arange(n) - np.repeat(lengths.cumsum() - lengths, lengths)
        places = positions * n_columns + pieces
        timesteps = np.full(self._shape[0] * self._shape[1], n)  # of a row of zeros
        timesteps[places] = np.arange(n)
        self._has_gaps = n < len(timesteps)
        self._places = torch.from_numpy(places).to(device)
        self._timesteps = torch.from_numpy(timesteps).to(device)

    def memories(self, of_pieces: torch.Tensor) -> torch.Tensor:
        """Return the memories [pieces, ...] with zeros for the columns that have no piece."""
        n_gaps = self._shape[1] - len(of_pieces)
        return torch.cat((of_pieces, of_pieces.new_zeros(n_gaps, *of_pieces.shape[1:])))

    def padded(self, rows: torch.Tensor) -> torch.Tensor:
        """Return rows of timesteps [n, size] as [longest, columns, size], with zeros in gaps."""
        if self._has_gaps:
            rows = functional.pad(rows, (0, 0, 0, 1))
        return rows.index_select(0, self._timesteps).view(*self._shape, -1)

    def flat(self, padded: torch.Tensor) -> torch.Tensor:
        """Return [longest, columns, size] as the timesteps' rows [n, size]."""
        return padded.flatten(0, 1).index_select(0, self._places)


def _rounded_up(n: int) -> int:
    """Return the next number in which only the first three bits are set, such as 5, 6, 7, 8, 10."""
    step = 1 << max(0, n.bit_length() - 3)
    return -(-n // step) * step


def recurrent_policy_to_load(
    config: PPOConfig, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
) -> RecurrentPolicy:
    """As `ppo_policy_to_load`, for the weights of a LeanRecurrentPPO."""
    assert config.memory is not None
    return RecurrentPolicy(
        observation_space,
        action_space,
        schedules.constant(0.0),
        memory=config.memory,
        network=config.network,
        ortho_init=False,
    )
