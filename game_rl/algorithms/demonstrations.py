"""Played episodes in an algorithm: kept packed, drawn, imitated before the run and while it plays.

PPO minimises the cross-entropy to the player's actions (behavioural cloning). The weight of that
falls to 0 while the run plays, as in kickstarting (Schmitt et al. 2018) and DAPG (Rajeswaran et
al. 2018). DQN and PQN minimise a large margin (Hester et al. 2018, DQfD), also before the run: as
logits of a cross-entropy, values would have no unit, and the first targets of Q-learning would
destroy what was learned. With the margin, and a regression of the values of the player's actions
to the player's returns, they are values from the beginning.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.type_aliases import ReplayBufferSamples

from game_rl.buffers.layout import Transitions
from game_rl.buffers.pond import Pond
from game_rl.buffers.replay_buffer import replay_samples
from game_rl.buffers.unpacking import Tensors
from game_rl.config.learn_from import ImitateConfig, QImitateConfig
from game_rl.envs.observation import ObservationFormat
from game_rl.played.replayed_episode import ReplayedEpisode
from game_rl.returns import LearnedRewards, discounted_returns
from game_rl.schedules import Ramp


class Imitation(NamedTuple):
    """How far a network is from a batch of played timesteps.

    Attributes:
        loss: sum of the cross-entropies or of the margin losses.
        right: number of timesteps in which the network's best action is the player's.
        values: of the observations, or of the player's actions, float32 [batch].
    """

    loss: torch.Tensor
    right: torch.Tensor
    values: torch.Tensor


def large_margin(values: torch.Tensor, actions: torch.Tensor, margin: float) -> Imitation:
    """Return sum(max_a [Q(s, a) + margin (a != a_E)] - Q(s, a_E)) with its accuracy.

    Args:
        values: Q, float32 [batch, actions].
        actions: a_E, int64 [batch, 1].
    Source: Hester et al. 2018 (Deep Q-learning from Demonstrations), section 4.
    """
    taken = values.gather(1, actions)
    raised = (values + margin).scatter(1, actions, taken)
    loss = (raised.amax(dim=1, keepdim=True) - taken).sum()
    right = (values.argmax(dim=1, keepdim=True) == actions).sum()
    return Imitation(loss, right, taken.flatten())


class Demonstrations:
    """The timesteps of played episodes.

    Args:
        episodes: what was played, at least one timestep.
        observation_format: of the run's observations.
        gamma: discount factor of the returns.
        n_step: timesteps whose rewards a target adds up.
        seed: of the draws.
        learned: makes of the game's rewards those to learn from; None: they are those.

    Attributes:
        actions: of each timestep, int64 [n].
        ends: whether an episode ends with a timestep, bool [n].
    """

    def __init__(
        self,
        episodes: Sequence[ReplayedEpisode],
        observation_format: ObservationFormat,
        *,
        n_actions: int,
        gamma: float,
        n_step: int,
        seed: int,
        learned: LearnedRewards | None,
    ) -> None:
        self._gamma = gamma
        self._n_step = n_step
        self._learned = learned
        self._rng = np.random.default_rng(seed)
        rows = sum(each.n_timesteps + 1 for each in episodes)
        self._store = Pond(
            capacity=max(rows, 2),
            n_envs=1,
            n_actions=n_actions,
            observation_format=observation_format,
            rng=self._rng,
        )
        digest = hashlib.sha256()
        for episode in episodes:
            _append(self._store, observation_format, episode)
            digest.update(episode.frames.tobytes())
        self.actions = np.concatenate([each.actions for each in episodes])
        self._rewards = np.concatenate([each.rewards for each in episodes])
        self.ends = np.zeros(len(self.actions), np.bool_)
        self.ends[np.cumsum([each.n_timesteps for each in episodes]) - 1] = True
        digest.update(self.actions.tobytes() + self._rewards.tobytes())
        self._digest = digest.hexdigest()
        _, self._numbers = self._store.held()
        self.was_other = False
        """Whether the state that was loaded last is of other frames, actions or rewards."""

    def __len__(self) -> int:
        return len(self.actions)

    def draw(self, n: int, device: torch.device) -> ReplayBufferSamples:
        """Draw timesteps uniformly, with replacement, as a replay buffer with n-step returns."""
        return self._batch(self._rng.integers(len(self), size=n), device, n_step=self._n_step)

    def take(self, which: NDArray[np.int64], device: torch.device) -> tuple[Tensors, torch.Tensor]:
        """Return the observations and the actions, int64 [batch, 1], of these timesteps."""
        batch = self._batch(which, device, n_step=1)
        return batch.observations, batch.actions

    def returns(self) -> NDArray[np.float32]:
        """Return the discounted returns of the player, float32 [n].

        Where a play ends before its episode does, nothing is added for what would have followed.
        """
        rewards = self._rewards if self._learned is None else self._learned(self._rewards)
        return discounted_returns(rewards, self.ends, gamma=self._gamma)

    def _batch(
        self, which: NDArray[np.int64], device: torch.device, *, n_step: int
    ) -> ReplayBufferSamples:
        numbers = self._numbers[which]
        batch = self._store.batch(
            np.zeros_like(numbers),
            numbers,
            n_step=n_step,
            gamma=self._gamma,
            device=device,
            learned=self._learned,
        )
        return replay_samples(
            observations=batch.observations,
            actions=batch.actions,
            next_observations=batch.next_observations,
            dones=batch.terminated,
            rewards=batch.rewards,
            discounts=batch.discounts,
        )

    def state(self) -> dict[str, Any]:
        """Return the state for `load_state`; it is JSON-serialisable."""
        return {"rng": json.dumps(self._rng.bit_generator.state), "digest": self._digest}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._rng.bit_generator.state = json.loads(state["rng"])
        self.was_other = state["digest"] != self._digest


def _append(store: Pond, form: ObservationFormat, episode: ReplayedEpisode) -> None:
    stack = np.zeros((1, form.stack, form.row_bytes), np.uint8)
    stack[0, -1] = episode.frames[0]
    first = form.unpack_stacks(stack)
    last = episode.n_timesteps - 1
    for number, action in enumerate(episode.actions):
        is_last = number == last
        store.append(
            Transitions(
                observations=first,
                frames=episode.frames[number : number + 1],
                actions=action[None],
                rewards=episode.rewards[number : number + 1],
                next_frames=episode.frames[number + 1 : number + 2],
                terminated=np.array([is_last and episode.terminated]),
                truncated=np.array([is_last and not episode.terminated]),
            )
        )


class Imitating:
    """What of each gradient step, while the run plays, learns from demonstrations.

    Args:
        timesteps: over which the schedule of the run goes.

    Attributes:
        demonstrations: what is drawn from.
        margin: of the large margin; 0 for PPO, which has none.
    """

    def __init__(
        self,
        config: ImitateConfig | QImitateConfig,
        demonstrations: Demonstrations,
        *,
        timesteps: int,
    ) -> None:
        self.demonstrations = demonstrations
        self.margin = config.margin if isinstance(config, QImitateConfig) else 0.0
        self._share = config.share
        self._weight = config.weight
        self._ramp: Ramp | None = None
        if config.fraction is not None:
            self._ramp = Ramp(config.weight, 0.0, max(1, round(config.fraction * timesteps)))

    def n_of(self, batch_size: int) -> int:
        """Return how many played timesteps belong to a batch of this size, at least one."""
        return max(1, round(self._share * batch_size))

    def weight_at(self, timestep: int) -> float:
        """Return the weight of the imitation's loss."""
        return self._weight if self._ramp is None else self._ramp.at(timestep)

    def draw(self, batch_size: int, device: torch.device) -> ReplayBufferSamples:
        """Draw the played timesteps of a batch."""
        return self.demonstrations.draw(self.n_of(batch_size), device)
