"""SB3's DQN on lean storage, built from its config."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecEnv
from torch.nn import functional

from game_rl.algorithms.data_parallel import DataParallel, data_parallel
from game_rl.algorithms.exploration import Exploration, make_exploration
from game_rl.algorithms.make_schedule import make_schedule
from game_rl.algorithms.networks import find_precision, policy_arguments
from game_rl.algorithms.q_networks import LeanQPolicy
from game_rl.buffers.feed import Feed
from game_rl.buffers.replay import PackedReplayBuffer
from game_rl.config.algorithms import DQNConfig
from game_rl.envs.packing import FramePacking


class LeanDQN(DQN):
    """SB3's DQN with a LeanQPolicy, each of whose envs explores by itself.

    SB3 decides once for a vec step whether all its envs act at random. The share of random actions
    is the same here.

    Attributes:
        double_q: the target network judges the action that the network chooses (van Hasselt 2016).
        exploration: of the actions.
    """

    policy: LeanQPolicy
    replay_buffer: PackedReplayBuffer

    def __init__(  # DQN has thirty arguments, and they stay its own
        self,
        *arguments: Any,  # noqa: ANN401
        double_q: bool,
        exploration: Exploration,
        **keywords: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, **keywords)
        self.double_q = double_q
        self.exploration = exploration
        self.exploration_schedule = lambda _: exploration.epsilon.at(self.num_timesteps)

    @property
    def feeds(self) -> Sequence[Feed]:
        """What gets every timestep beside the replay."""
        return self.replay_buffer.feeds

    @feeds.setter
    def feeds(self, feeds: Sequence[Feed]) -> None:
        self.replay_buffer.feeds = feeds

    def _sample_action(
        self,
        learning_starts: int,
        action_noise: ActionNoise | None = None,  # noqa: ARG002 - for continuous actions
        n_envs: int = 1,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        epsilon, actions = 1.0, np.zeros(n_envs, np.int64)
        if self.num_timesteps >= learning_starts:
            epsilon = self.exploration.epsilon.at(self.num_timesteps)
            assert isinstance(self._last_obs, np.ndarray)
            actions, _ = self.policy.predict(self._last_obs, deterministic=True)
        actions = self.exploration.explored(actions, epsilon)
        return actions, actions

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """As DQN.train: the same loss and curves.

        Not yet where a training that goes on has lost its replay. It would learn the few timesteps
        since then by heart; so it waits for `learning_starts` of them.
        """
        if self.replay_buffer.pond.n_appended < self.learning_starts:
            return
        # the target network keeps its weights as they are multiplied, and they may have changed
        self.q_net_target.set_training_mode(False)
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        with data_parallel(self.q_net.parameters(), self.device) as parallel:
            losses = [
                self._gradient_step(parallel, self.replay_buffer.sample(batch_size))
                for _ in range(gradient_steps)
            ]
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))

    def _gradient_step(self, parallel: DataParallel, samples: ReplayBufferSamples) -> float:
        """The loss before it."""
        n_samples = len(samples.actions)

        def loss_of(part: slice) -> tuple[torch.Tensor, float]:
            of_part = (tensor if tensor is None else tensor[part] for tensor in samples)
            loss = self._loss(ReplayBufferSamples(*of_part)) / n_samples  # type: ignore[arg-type]  # discounts
            return loss, loss.item()

        losses = parallel.gradient(loss_of, n_samples=n_samples, micro_batch_size=n_samples)
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()
        return sum(losses)

    def _loss(self, samples: ReplayBufferSamples) -> torch.Tensor:
        """Summed over the samples."""
        discounts = self.gamma if samples.discounts is None else samples.discounts
        with torch.no_grad():
            next_values = self.q_net_target(samples.next_observations)
            judge = self.q_net(samples.next_observations) if self.double_q else next_values
            best = next_values.gather(1, judge.argmax(dim=1, keepdim=True))
            targets = samples.rewards + (1 - samples.dones) * discounts * best
        values = self.q_net(samples.observations).gather(1, samples.actions.long())
        return functional.smooth_l1_loss(values, targets, reduction="sum")

    def state(self) -> dict[str, Any]:
        """What goes on from here, beside weights, optimiser, counters and replay; JSON holds it."""
        return {"exploration": self.exploration.state(), "n_calls": self._n_calls}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.exploration.load_state(state["exploration"])
        self._n_calls = int(state["n_calls"])

    def predict(
        self,
        observation: Any,  # noqa: ANN401
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """The best actions."""
        return self.policy.predict(observation, state, episode_start, deterministic)


def make_dqn(
    config: DQNConfig,
    vec_env: VecEnv,
    *,
    packing: FramePacking,
    frame_stack: int,
    seed: int,
    device: str,
    schedule_timesteps: int,
    schedule_share: float = 1.0,
) -> LeanDQN:
    """DQN for stacks of `frame_stack` frames that `packing` describes.

    Schedules go over `schedule_timesteps`, which are `schedule_share` of the training.
    """
    n_actions = int(vec_env.action_space.n)  # type: ignore[attr-defined]  # buttons are discrete
    replay_seed, exploration_seed = np.random.SeedSequence(seed).generate_state(2).tolist()
    model = LeanDQN(
        LeanQPolicy,
        vec_env,
        double_q=config.double_q,
        exploration=make_exploration(
            config.exploration,
            timesteps=schedule_timesteps,
            n_actions=n_actions,
            seed=exploration_seed,
        ),
        learning_rate=make_schedule(config.learning_rate, schedule_share),
        buffer_size=config.replay.capacity,
        learning_starts=config.learning_starts,
        batch_size=config.batch_size,
        tau=config.tau,
        gamma=config.gamma,
        train_freq=config.train_freq,
        gradient_steps=config.gradient_steps,
        replay_buffer_class=PackedReplayBuffer,
        replay_buffer_kwargs={
            "packing": packing,
            "frame_stack": frame_stack,
            "n_step": config.n_step,
            "gamma": config.gamma,
            "frames_device": config.replay.device,
            "sampling_seed": replay_seed,
        },
        target_update_interval=max(config.target_update_interval, vec_env.num_envs),
        max_grad_norm=config.max_grad_norm,
        stats_window_size=config.stats_window_size,
        policy_kwargs={
            **policy_arguments(find_precision(config.precision, device)),
            "optimizer_kwargs": {"fused": True},  # SB3's epsilon for DQN is torch's own
        },
        seed=seed,
        device=device,
    )
    # the same numbers in another order in memory: NatureCNN's update is faster so
    model.policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks it
    return model
