"""SB3's DQN on packed storage."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.type_aliases import ReplayBufferSamples, RolloutReturn, TrainFreq
from stable_baselines3.common.utils import polyak_update
from stable_baselines3.common.vec_env import VecEnv
from torch import nn
from torch.nn import functional

from game_rl.algorithms.algorithm import BuildContext, LeanAlgorithm, order_channels_last
from game_rl.algorithms.automatic import find_device
from game_rl.algorithms.data_parallel import DataParallel, Threads, data_parallel
from game_rl.algorithms.demonstrations import Imitation, large_margin
from game_rl.algorithms.mixed_replay import MixedReplay, joined_samples
from game_rl.algorithms.policies import DQNPolicy
from game_rl.algorithms.qdagger import Teacher, divergence
from game_rl.algorithms.reward_scaling import (
    RewardScaling,
    take_reward_state,
)
from game_rl.algorithms.rollout import (
    Decision,
    EpsilonGreedy,
    feed_vec_step,
    vec_steps,
)
from game_rl.buffers.replay_buffer import PackedReplayBuffer
from game_rl.buffers.unpacking import Tensors, observation_tensors
from game_rl.config.algorithms import DQNConfig
from game_rl.envs.observation import Observation, n_observations, rows_of


class _Losses(NamedTuple):
    """Losses of a gradient step, before it.

    Attributes:
        total: mean over the batch.
        kl: the divergence from the teacher, likewise.
        margin: the large margin, summed over the played timesteps.
        right: how many of these have the player's action as their best one.
    """

    total: float = 0.0
    kl: float = 0.0
    margin: float = 0.0
    right: int = 0


_NOTHING = (torch.empty(0), torch.empty(0))  # DQN stores no values and no probabilities


class LeanDQN(LeanAlgorithm, DQN):
    """SB3's DQN with a DQNPolicy and exploration that is independent for each env.

    SB3 decides once per vec step whether all envs act at random. The share of random actions is the
    same here. On a HalvedVecEnv one half of the envs plays while the network chooses actions for
    the other (see `vec_steps`).

    Attributes:
        double_q: whether the target network evaluates the action that the network chooses (van
            Hasselt 2016).
        exploration: replaces actions by random ones.
        mixed_replay: draws batches that include other runs' experience; None to draw from the
            replay alone.
        teacher: policy towards which the network is drawn, if any.
    """

    policy: DQNPolicy
    replay_buffer: PackedReplayBuffer

    def __init__(  # DQN's own thirty arguments are passed through
        self,
        *arguments: Any,  # noqa: ANN401
        double_q: bool,
        exploration: EpsilonGreedy,
        reward_scaling: RewardScaling | None = None,
        **keywords: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, **keywords)
        self.double_q = double_q
        self.exploration = exploration
        self.reward_scaling = reward_scaling
        if reward_scaling is not None:
            self.replay_buffer.learned_rewards = reward_scaling
        self.mixed_replay: MixedReplay | None = None
        self.teacher: Teacher | None = None
        self._threads = Threads()
        self.exploration_schedule = lambda _: exploration.epsilon.at(self.num_timesteps)

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        train_freq: TrainFreq,
        replay_buffer: ReplayBuffer,
        action_noise: ActionNoise | None = None,
        learning_starts: int = 0,
        log_interval: int | None = None,
    ) -> RolloutReturn:
        """As DQN.collect_rollouts, with the same callback calls and the same local variables."""
        self.policy.set_training_mode(False)
        callback.on_rollout_start()
        num_collected_steps = num_collected_episodes = 0

        def collected(*, continue_training: bool) -> RolloutReturn:
            n_timesteps = num_collected_steps * env.num_envs
            return RolloutReturn(n_timesteps, num_collected_episodes, continue_training)

        def decide(observations: Observation, *_: object) -> Decision:
            return Decision(self._explored(observations, learning_starts), *_NOTHING)

        assert self._last_obs is not None
        assert self._last_episode_starts is not None
        assert isinstance(replay_buffer, PackedReplayBuffer)
        form = replay_buffer.observation_format
        n_steps = train_freq.frequency
        steps = vec_steps(
            env,
            self._last_obs,
            decide,
            n_steps,
            begins=self._last_episode_starts,
            observation_format=form,
        )
        for step in steps:
            new_obs, rewards, dones, infos = step.outcome
            self.num_timesteps += env.num_envs
            num_collected_steps += 1
            callback.update_locals(locals())
            if not callback.on_step():
                return collected(continue_training=False)
            self._update_info_buffer(infos, dones)
            feed_vec_step((replay_buffer.store, *self.feeds), self._last_obs, step)
            if self.reward_scaling is not None:
                self.reward_scaling.observe(rewards, dones)
            self._last_obs = new_obs
            self._update_current_progress_remaining(self.num_timesteps, self._total_timesteps)
            self._on_step()
            num_collected_episodes += self._count_episodes(dones, log_interval)
        callback.on_rollout_end()
        return collected(continue_training=True)

    @property
    def acting_network(self) -> nn.Module:
        return self.q_net

    def play(self, callback: BaseCallback) -> int:
        assert self.env is not None
        assert isinstance(self.train_freq, TrainFreq)
        self.collect_rollouts(
            self.env, callback, self.train_freq, self.replay_buffer, log_interval=4
        )
        return self.train_freq.frequency

    def update(self) -> None:
        self.train(self.gradient_steps, self.batch_size)

    def _count_episodes(self, dones: NDArray[np.bool_], log_interval: int | None) -> int:
        """Count the episodes that just ended, and dump the logs every `log_interval` episodes."""
        n_ended = int(np.count_nonzero(dones))
        for _ in range(n_ended):
            self._episode_num += 1
            if log_interval is not None and self._episode_num % log_interval == 0:
                self.dump_logs()
        return n_ended

    def _explored(self, observations: Observation, learning_starts: int) -> NDArray[np.int64]:
        """Choose an action for each observation; all are random before `learning_starts`."""
        epsilon = 1.0
        actions = np.zeros(n_observations(observations), np.int64)
        if self.num_timesteps >= learning_starts:
            epsilon = self.exploration.epsilon.at(self.num_timesteps)
            actions = self._best(observations)
        return self.exploration.explored(actions, epsilon)

    def values(self, observations: Observation) -> NDArray[np.float32]:
        """Return the expected discounted return of the best action, float32 [n]."""
        with torch.no_grad():
            values: torch.Tensor = self.q_net(observation_tensors(observations, self.device))
        best: NDArray[np.float32] = values.max(dim=1).values.float().cpu().numpy()
        return best

    def _best(self, observations: Observation) -> NDArray[np.int64]:
        """As `predict`, which would make the network prepare its weights again in each vec step."""
        with torch.no_grad():
            values: torch.Tensor = self.q_net(observation_tensors(observations, self.device))
        best: NDArray[np.int64] = values.argmax(dim=1).cpu().numpy()
        return best

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """As DQN.train, with the same loss and curves.

        Does nothing until the replay has got `learning_starts` timesteps. A resumed training that
        lost its replay would otherwise overfit the few timesteps since the resume. Does nothing
        either while followed Lakes have no rows, so that each batch has the configured shares.
        """
        if self.replay_buffer.store.n_appended < self.learning_starts:
            return
        if self.mixed_replay is not None and not self.mixed_replay.is_ready():
            return
        n_shown = 0 if self.imitating is None else self.imitating.n_of(batch_size)
        losses = self._learned(lambda: self._sample(batch_size), gradient_steps, n_shown)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean([each.total for each in losses]))
        if self.teacher is not None:
            weight = self._teacher_weight()
            self.logger.record("train/teacher_weight", weight)
            if weight:
                self.logger.record("train/teacher_kl", np.mean([each.kl for each in losses]))
        shown = [(each.margin, each.right) for each in losses]
        self._record_imitation(shown, n_shown * gradient_steps)
        if self.mixed_replay is not None:
            assert isinstance(self.train_freq, TrainFreq)
            timesteps = self.train_freq.frequency * self.n_envs
            replay_ratio = gradient_steps * batch_size / timesteps
            self.logger.record("learn_from/samples_per_timestep", replay_ratio)

    def learn_offline(self, gradient_steps: int, *, sync_every: int) -> None:
        """Learn from the Lakes alone, without an emulator.

        The loss, and the ages and shares of the rows drawn, are recorded as means, `offline/…`.

        Args:
            sync_every: gradient steps between updates of the target network, counted over the
                whole phase rather than from this call on.
        """
        mixed_replay = self.mixed_replay
        assert mixed_replay is not None
        left = gradient_steps
        while left:
            mixed_replay.pool.follow()
            n = min(left, sync_every - self._n_updates % sync_every)
            losses = self._learned(
                lambda: mixed_replay.sample_lakes(
                    self.batch_size, self.device, self.logger, prefix="offline"
                ),
                n,
            )
            for each in losses:
                self.logger.record_mean("offline/loss", each.total)
                if self.teacher is not None:
                    self.logger.record_mean("offline/teacher_kl", each.kl)
            left -= n
            if self._n_updates % sync_every == 0:
                self.sync_target(self.tau)

    def sync_target(self, tau: float = 1.0) -> None:
        """Move the target network's weights a share `tau` of the way to the network's; 1 copies."""
        polyak_update(self.q_net.parameters(), self.q_net_target.parameters(), tau)

    def _learned(
        self, sample: Callable[[], ReplayBufferSamples], gradient_steps: int, n_shown: int = 0
    ) -> list[_Losses]:
        """Take gradient steps and return what `_gradient_step` returns for each."""
        # discards the target network's cached weights, which are stale after a sync
        self.q_net_target.set_training_mode(False)
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        weight = self._teacher_weight()
        with data_parallel(self.q_net.parameters(), self.device, self._threads) as parallel:
            losses = [
                self._gradient_step(parallel, sample(), weight, n_shown)
                for _ in range(gradient_steps)
            ]
        self._n_updates += gradient_steps
        return losses

    def _sample(self, batch_size: int) -> ReplayBufferSamples:
        """Draw a batch; played timesteps come last."""
        if self.imitating is None:
            return self._sample_replay(batch_size)
        shown = self.imitating.draw(batch_size, self.device)
        if self.replay_buffer.n_step == 1:
            shown = shown._replace(discounts=None)
        n_own = batch_size - len(shown.actions)
        return joined_samples(self._sample_replay(n_own), shown) if n_own else shown

    def _sample_replay(self, batch_size: int) -> ReplayBufferSamples:
        if self.mixed_replay is None:
            return self.replay_buffer.sample(batch_size)
        return self.mixed_replay.sample(
            self.replay_buffer, batch_size, timestep=self.num_timesteps, curves=self.logger
        )

    def _teacher_weight(self) -> float:
        return 0.0 if self.teacher is None else self.teacher.weight_at(self.num_timesteps)

    def _gradient_step(
        self,
        parallel: DataParallel,
        samples: ReplayBufferSamples,
        weight: float = 0.0,
        n_shown: int = 0,
    ) -> _Losses:
        """Return the losses before the step.

        Args:
            weight: of the divergence from the teacher.
            n_shown: number of played timesteps, which come last.
        """
        n_samples = len(samples.actions)
        n_own = n_samples - n_shown

        def loss_of(part: slice) -> tuple[torch.Tensor, _Losses]:
            of_part = (each if each is None else rows_of(each, part) for each in samples)  # type: ignore[arg-type]  # tensors
            first_shown = max(n_own - part.start, 0)
            loss, losses = self._losses(ReplayBufferSamples(*of_part), weight, first_shown)  # type: ignore[arg-type]  # discounts
            loss = loss / n_samples
            kl = losses.kl / n_samples
            return loss, losses._replace(total=loss.item(), kl=kl)

        losses = parallel.gradient(loss_of, n_samples=n_samples, micro_batch_size=n_samples)
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()
        return _Losses(*map(sum, zip(*losses, strict=True)))

    def _losses(
        self, samples: ReplayBufferSamples, weight: float = 0.0, first_shown: int = 0
    ) -> tuple[torch.Tensor, _Losses]:
        """Return the total, summed over samples, and its unweighted parts.

        Args:
            weight: of the divergence from the teacher.
            first_shown: number of the first played timestep.
        """
        targets = self._targets(samples)
        taught = None
        if weight and self.teacher is not None:  # before the student's activations take memory
            taught = self.teacher.values(samples.observations)
        values = self.q_net(samples.observations)
        chosen = values.gather(1, samples.actions.long())
        loss = functional.smooth_l1_loss(chosen, targets, reduction="sum")
        found = _Losses()
        if taught is not None and self.teacher is not None:
            kl = divergence(values, taught, temperature=self.teacher.temperature)
            loss = loss + weight * kl
            found = found._replace(kl=kl.item())
        if self.imitating is not None and first_shown < len(values):
            actions = samples.actions[first_shown:].long()
            shown = large_margin(values[first_shown:], actions, self.imitating.margin)
            loss = loss + self.imitating.weight_at(self.num_timesteps) * shown.loss
            found = found._replace(margin=shown.loss.item(), right=int(shown.right))
        return loss, found

    def imitation(
        self, observations: Tensors, actions: torch.Tensor, *, margin: float
    ) -> Imitation:
        """As `LeanAlgorithm.imitation`, with the large margin."""
        return large_margin(self.q_net(observations), actions, margin)

    def _targets(self, samples: ReplayBufferSamples) -> torch.Tensor:
        """Return the target values, float32 [batch, 1]."""
        discounts = self.gamma if samples.discounts is None else samples.discounts
        with torch.no_grad():
            next_values = self.q_net_target(samples.next_observations)
            judge = self.q_net(samples.next_observations) if self.double_q else next_values
            best = next_values.gather(1, judge.argmax(dim=1, keepdim=True))
            targets: torch.Tensor = samples.rewards + (1 - samples.dones) * discounts * best
        return targets

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"exploration": self.exploration.state(), "n_calls": self._n_calls}
        state |= super().state()
        if self.mixed_replay is not None:
            state["learn_from"] = self.mixed_replay.state()
        return state if self.teacher is None else state | {"teacher": self.teacher.state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        if not (state := take_reward_state(self.reward_scaling, state)):
            return
        self._load_played(state)
        self.exploration.load_state(state["exploration"])
        self._n_calls = int(state["n_calls"])
        if self.mixed_replay is not None and "learn_from" in state:
            self.mixed_replay.load_state(state["learn_from"])
        if self.teacher is not None and "teacher" in state:
            self.teacher.load_state(state["teacher"])

    predict = BaseAlgorithm.predict  # the best actions, without DQN's exploration


def make_dqn(config: DQNConfig, context: BuildContext) -> LeanDQN:
    find_device(config.replay.device)  # raises if it does not exist
    vec_env = context.vec_env
    placement = context.placement
    replay_seed, exploration_seed = np.random.SeedSequence(context.seed).generate_state(2).tolist()
    model = LeanDQN(
        DQNPolicy,
        vec_env,
        double_q=config.double_q,
        exploration=context.exploration(config.exploration, seed=exploration_seed),
        reward_scaling=context.reward_scaling(config),
        learning_rate=context.schedule(config.learning_rate),
        buffer_size=config.replay.capacity,
        learning_starts=config.learning_starts,
        batch_size=config.batch_size,
        tau=config.tau,
        gamma=config.gamma,
        train_freq=config.train_freq,
        gradient_steps=config.gradient_steps,
        replay_buffer_class=PackedReplayBuffer,
        replay_buffer_kwargs={
            **context.buffer_kwargs,
            "store": config.replay.store,
            "n_step": config.n_step,
            "gamma": config.gamma,
            "frames_device": config.replay.device,
            "sampling_seed": replay_seed,
        },
        target_update_interval=max(config.target_update_interval, vec_env.num_envs),
        max_grad_norm=config.max_grad_norm,
        stats_window_size=config.stats_window_size,
        policy_kwargs={
            "layer_norm": config.layer_norm,
            "network": config.network,
            "precision": placement.precision,
        },
        seed=context.seed,
        device=placement.device,
    )
    order_channels_last(model)
    return model
