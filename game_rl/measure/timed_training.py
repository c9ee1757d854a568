"""A short training whose pieces can be timed."""

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import lcm, prod
from pathlib import Path
from statistics import fmean, median
from types import TracebackType
from typing import Any, Self

import torch
from stable_baselines3 import DQN
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import TrainFreq
from torch import nn

from game_rl.algorithms.automatic import placement_of
from game_rl.config.algorithms import DQNConfig, PPOConfig
from game_rl.config.schema import RunConfig
from game_rl.config.values import nearest_divisors
from game_rl.envs.make_env import make_frame_format
from game_rl.games.definition import Game
from game_rl.preflight.arithmetic import training_arithmetic
from game_rl.run_dir import RunDir
from game_rl.system.process_memory import PssSampler
from game_rl.training.session import TrainingSession, training_process
from game_rl.vec_env.worker_cores import TRIALS_S

# A rollout and an update of PPO and PQN are not much shorter than this (unless the run's own are),
# so that work that is done once in each of them does not weigh too much.
_ROLLOUT_TIMESTEPS = 1_024
_GRADIENT_STEPS = 8
_AVERAGED_TIMESTEPS = 256  # in which some episodes begin; a reset takes as long as many timesteps
_LEARNED_BATCHES = 4  # of the largest size, for an update to learn from, over all its epochs
_MOST_REPLAYED = 20_000
_NEVER_TIMESTEPS = 10**12
_LEARNING_RATE = 1e-9  # takes as long as any other, and the training cannot diverge
# Observations of a gradient step in bytes. A CPU takes about a second for so many, and its time
# grows in proportion. On a GPU the time for each timestep falls with the size of the batch.
_LARGEST_BATCH_BYTES = {"cpu": 2**25, "cuda": 2**30}


@dataclass(frozen=True)
class VecStepTime:
    """Seconds of one vec step.

    Attributes:
        inference_s: time in which the network chooses actions.
        emulation_s: the rest of the time: waiting for emulators and storing what they returned.
    """

    inference_s: float
    emulation_s: float

    @property
    def total_s(self) -> float:
        return self.emulation_s + self.inference_s


def median_of(rollouts: Sequence[VecStepTime], *, n_averaged: int = 1) -> VecStepTime:
    """Return the `median_of_means` of both times."""
    return VecStepTime(
        inference_s=median_of_means([rollout.inference_s for rollout in rollouts], n_averaged),
        emulation_s=median_of_means([rollout.emulation_s for rollout in rollouts], n_averaged),
    )


def median_of_means(seconds: Sequence[float], n_averaged: int) -> float:
    """Return the median of the means of `n_averaged` times in a row.

    If there are fewer times, it is their mean. The median leaves out other programs' busy moments,
    and the means keep costs that occur only now and then.
    """
    starts = range(0, len(seconds) - n_averaged + 1, n_averaged) or (0,)
    return median(fmean(seconds[start : start + n_averaged]) for start in starts)


class TimedTraining:
    """A training session of a config, with its emulators, workers and network but short rollouts.

    A rollout has only some minibatches, and a minibatch that would take seconds is reduced to a
    part of it. The class is a context manager, which closes the session. Call `warm_up` before
    timing anything.

    Args:
        config: config of the run.
        game: game that it plays.
        trials_s: seconds in which `warm_up` finds the workers' cores.

    Attributes:
        session: session of the shortened run; untrained.
        n_averaged: number of rollouts or updates in one measurement, see `median_of_means`.
        start_s: seconds that building the session took.
    """

    def __init__(self, config: RunConfig, game: Game, *, trials_s: float = TRIALS_S) -> None:
        started = time.perf_counter()
        with ExitStack() as stack:
            stack.enter_context(training_process())
            memory = stack.enter_context(PssSampler())  # as in a run, it takes some of the time
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="game_rl_"))
            short = shortened(
                config,
                observation_bytes=_observation_bytes(config, game),
                device=placement_of(config).device,
            )
            self.session = stack.enter_context(
                TrainingSession(
                    short, game, RunDir(Path(folder)), memory=memory, cores_trials_s=trials_s
                )
            )
            stack.callback(self.session.release_lakes)
            self._closing = stack.pop_all()
        model = self.session.model
        self._callback = self.session.callbacks.all
        self.n_averaged = -(-_AVERAGED_TIMESTEPS // short.rollout_timesteps)
        self._gradient_steps = training_arithmetic(short).gradient_steps_per_update
        self._batch_share = short.algorithm.batch_size / config.algorithm.batch_size
        self._network = _NetworkClock(model.q_net if isinstance(model, DQN) else model.policy)
        self.start_s = time.perf_counter() - started

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closing.__exit__(kind, error, traceback)

    def warm_up(self) -> None:
        """Train until vec steps are as fast as in a run.

        The first vec steps are slow, and so is the first update. Then the workers' cores are found.
        """
        self.session.learn_until(1)
        while not self.session.callbacks.cores.is_settled:
            self._rollout()

    def collect(self) -> VecStepTime:
        """Time a rollout."""
        network_s, started = self._network.seconds, time.perf_counter()
        vec_steps = self._rollout()
        total_s = (time.perf_counter() - started) / vec_steps
        inference_s = (self._network.seconds - network_s) / vec_steps
        return VecStepTime(inference_s, total_s - inference_s)

    def _rollout(self) -> int:
        """Collect a rollout and return its number of vec steps."""
        model = self.session.model
        assert model.env is not None
        if isinstance(model, OnPolicyAlgorithm):
            model.collect_rollouts(
                model.env, self._callback, model.rollout_buffer, n_rollout_steps=model.n_steps
            )
            return model.n_steps
        assert isinstance(model, DQN)
        assert isinstance(model.train_freq, TrainFreq)
        assert model.replay_buffer is not None
        model.collect_rollouts(
            model.env, self._callback, model.train_freq, model.replay_buffer, log_interval=4
        )
        return model.train_freq.frequency

    def update(self) -> float:
        """Update the network and return the seconds of a gradient step at the config's batch_size.

        `collect` must have been called before. The result is 0 if the run takes no gradient steps.
        """
        if not self._gradient_steps:
            return 0.0
        model, started = self.session.model, time.perf_counter()
        if isinstance(model, DQN):
            model.train(model.gradient_steps, model.batch_size)
        elif isinstance(model, OnPolicyAlgorithm):
            model.logger.dump(model.num_timesteps)
            model.train()
        seconds = time.perf_counter() - started
        return seconds / self._gradient_steps / self._batch_share


def shortened(config: RunConfig, *, observation_bytes: int, device: str) -> RunConfig:
    """Return the config with short rollouts, few epochs and batches that take seconds at most.

    The batch size is the config's or a divisor of it, so a rollout still has whole batches. DQN
    learns from the first rollout on, from a small replay. The run writes no Lake, never ends, and
    has no evaluations and no checkpoints.
    """
    config = _endless(config)
    algorithm = config.algorithm
    largest = _LARGEST_BATCH_BYTES["cuda" if device.startswith("cuda") else "cpu"]
    batch = algorithm.batch_size
    if batch * observation_bytes > largest:
        batch = nearest_divisors(largest // observation_bytes + 1, batch)[0]
    changes: dict[str, Any] = {"batch_size": batch, "learning_rate": _LEARNING_RATE}
    if isinstance(algorithm, DQNConfig):
        capacity = min(algorithm.replay.capacity, _MOST_REPLAYED)
        replay = algorithm.replay.model_copy(update={"capacity": capacity})
        changes |= {"learning_starts": 0, "replay": replay}
        if algorithm.learn_from is not None:
            changes["learn_from"] = algorithm.learn_from.model_copy(update={"offline": None})
        small = algorithm.model_copy(update=changes)
        return config.model_copy(update={"algorithm": small, "lake": None})
    whole = lcm(batch, config.env.n_envs)
    learned = _LEARNED_BATCHES * largest // observation_bytes
    wanted = min(_ROLLOUT_TIMESTEPS, learned)
    rollout = min(config.rollout_timesteps, -(-wanted // whole) * whole)
    n_epochs = max(learned // rollout, -(-_GRADIENT_STEPS * batch // rollout))
    changes |= {
        "n_steps": rollout // config.env.n_envs,
        "n_epochs": min(algorithm.n_epochs, n_epochs),
    }
    if isinstance(algorithm, PPOConfig):
        changes["target_kl"] = None
    changed = algorithm.model_copy(update=changes)
    return config.model_copy(update={"algorithm": changed, "lake": None})


def _endless(config: RunConfig) -> RunConfig:
    never = {"every_timesteps": _NEVER_TIMESTEPS}
    return config.model_copy(
        update={
            "total_timesteps": _NEVER_TIMESTEPS,
            "stop_when": None,
            "evaluation": config.evaluation.model_copy(update=never),
            "checkpoints": config.checkpoints.model_copy(update={**never, "deadline_s": 86_400.0}),
        }
    )


def _observation_bytes(config: RunConfig, game: Game) -> int:
    """Return the bytes of one stack of frames."""
    return prod(make_frame_format(config.env.observation, game).shape) * config.env.frame_stack


class _NetworkClock:
    """Counts the seconds that calls of the network take, in `seconds`, which only grows."""

    def __init__(self, network: nn.Module) -> None:
        self.seconds = 0.0
        self._is_on_gpu = next(network.parameters()).device.type == "cuda"
        network.register_forward_pre_hook(self._begin)
        network.register_forward_hook(self._end)

    def _begin(self, *_: object) -> None:
        self._began = time.perf_counter()

    def _end(self, *_: object) -> None:
        if self._is_on_gpu:
            torch.cuda.synchronize()
        self.seconds += time.perf_counter() - self._began
