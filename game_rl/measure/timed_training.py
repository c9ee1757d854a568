"""A short training whose pieces are timed, for the speed of this machine."""

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, fields
from math import lcm
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch
from torch import nn

from game_rl.algorithms.automatic import placement_of
from game_rl.algorithms.data_parallel import torch_threads
from game_rl.callbacks.resources import TRIALS_S
from game_rl.config.algorithms import DQNConfig
from game_rl.config.experiments.experiment import Experiment
from game_rl.config.schema import RunConfig, without_first_phase
from game_rl.config.strict_model import Key, with_changed
from game_rl.config.values import nearest_divisors
from game_rl.envs.make_env import make_observation_format
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import Game
from game_rl.preflight.random_play import write_random_play
from game_rl.preflight.workload import ExperimentSpeed, MeasuredSpeed, training_arithmetic
from game_rl.system.process_memory import PssSampler
from game_rl.system.processes import changed_environment, python_variables, take_cpu_share
from game_rl.training.session import TrainingSession, training_process

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


class TimedTraining(AbstractContextManager["TimedTraining"]):
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
                observation_bytes=make_observation_format(config.env, game).nbytes,
                device=placement_of(config).device,
            )
            self.session = stack.enter_context(
                TrainingSession(
                    short, game, RunDir(Path(folder)), memory=memory, cores_trials_s=trials_s
                )
            )
            stack.callback(self.session.release)
            self._closing = stack.pop_all()
        model = self.session.model
        self._callback = self.session.callbacks.all
        self.n_averaged = -(-_AVERAGED_TIMESTEPS // short.rollout_timesteps)
        self._gradient_steps = training_arithmetic(short).gradient_steps_per_update
        self._batch_share = short.algorithm.batch_size / config.algorithm.batch_size
        self._network = _NetworkClock(model.acting_network)
        self.start_s = time.perf_counter() - started

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def warm_up(self) -> None:
        """Train until vec steps are as fast as in a run.

        The first vec steps are slow, and so is the first update. Then the workers' cores are found.
        """
        self.session.learn_until(1)
        while not self.session.callbacks.cores.is_settled:
            self.session.model.play(self._callback)

    def collect(self) -> VecStepTime:
        """Time a rollout."""
        network_s = self._network.seconds
        started = time.perf_counter()
        vec_steps = self.session.model.play(self._callback)
        total_s = (time.perf_counter() - started) / vec_steps
        inference_s = (self._network.seconds - network_s) / vec_steps
        return VecStepTime(inference_s, total_s - inference_s)

    def update(self) -> float:
        """Update the network and return the seconds of a gradient step at the config's batch_size.

        `collect` must have been called before. The result is 0 if the run takes no gradient steps.
        """
        if not self._gradient_steps:
            return 0.0
        started = time.perf_counter()
        self.session.model.update()
        seconds = time.perf_counter() - started
        return seconds / self._gradient_steps / self._batch_share


def shortened(config: RunConfig, *, observation_bytes: int, device: str) -> RunConfig:
    """Return the config with short rollouts, few epochs and batches that take seconds at most.

    The batch size is the config's or a divisor of it, so a rollout still has whole batches. DQN
    learns from the first rollout on, from a small replay. The run writes no Lake, never ends, and
    has no phase before the first timestep, no evaluations and no checkpoints.
    """
    config = _endless(without_first_phase(config))
    algorithm = config.algorithm
    largest = _LARGEST_BATCH_BYTES["cuda" if device.startswith("cuda") else "cpu"]
    batch = algorithm.batch_size
    whole = algorithm.whole_timesteps
    if batch * observation_bytes > largest and batch > whole:
        most = largest // observation_bytes // whole
        batch = whole * (nearest_divisors(most + 1, batch // whole) or [1])[0]
    changes: dict[str, Any] = {"batch_size": batch, "learning_rate": _LEARNING_RATE}
    if isinstance(algorithm, DQNConfig):
        capacity = min(algorithm.replay.capacity, _MOST_REPLAYED)
        replay = algorithm.replay.model_copy(update={"capacity": capacity})
        changes |= {"learning_starts": 0, "replay": replay}
        small = algorithm.model_copy(update=changes)
        return config.model_copy(update={"algorithm": small, "lake": None})
    whole = lcm(batch, config.env.n_envs * whole)
    learned = _LEARNED_BATCHES * largest // observation_bytes
    wanted = min(_ROLLOUT_TIMESTEPS, learned)
    rollout = min(config.rollout_timesteps, -(-wanted // whole) * whole)
    n_epochs = max(learned // rollout, -(-_GRADIENT_STEPS * batch // rollout))
    changes |= {
        "n_steps": rollout // config.env.n_envs,
        "n_epochs": min(algorithm.n_epochs, n_epochs),
    }
    if algorithm.target_kl is not None:
        changes["target_kl"] = None
    changed = algorithm.model_copy(update=changes)
    return config.model_copy(update={"algorithm": changed, "lake": None})


def _endless(config: RunConfig) -> RunConfig:
    never = {"every_timesteps": _NEVER_TIMESTEPS}
    return config.model_copy(
        update={
            "total_timesteps": _NEVER_TIMESTEPS,
            "stop_when": None,
            "callbacks": (),  # custom: they may write elsewhere than into this folder
            "evaluation": config.evaluation.model_copy(update=never),
            "checkpoints": config.checkpoints.model_copy(update={**never, "deadline_s": 86_400.0}),
        }
    )


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


TRAINING_S = 6.0
_CORES_S = 2.0  # to find the workers' cores; a run spends more time on it and is more certain
_FEWEST_UPDATES = 2
_EVALUATION_S = 1.0
_EVALUATION_WARM_UP = 5  # vec steps


def measure_speed(
    config: RunConfig, game: Game, *, training_s: float = TRAINING_S
) -> MeasuredSpeed:
    """Time a short training. It takes some twenty seconds, or more if a single update takes long.

    Each figure of rollouts and updates is a median, so other programs' busy moments are left out.

    Args:
        config: config of the run.
        game: game that it plays.
        training_s: seconds for rollouts and updates, which alternate as in the run.
    """
    with TimedTraining(config, game, trials_s=_CORES_S) as training:
        training.warm_up()
        training.collect()
        training.update()  # the first update is slower and does not count
        rollouts: list[VecStepTime] = []
        updates: list[float] = []
        deadline = time.perf_counter() + training_s
        while time.perf_counter() < deadline or len(updates) < _FEWEST_UPDATES:
            rollouts.append(training.collect())
            updates.append(training.update())
        vec_step = median_of(rollouts, n_averaged=training.n_averaged)
        return MeasuredSpeed(
            inference_s=vec_step.inference_s,
            emulation_s=vec_step.emulation_s,
            gradient_step_s=median_of_means(updates, training.n_averaged),
            evaluation_vec_step_s=_evaluation_vec_step_s(training.session, config),
            checkpoint_s=_checkpoint_s(training.session),
            start_s=training.start_s,
        )


def _evaluation_vec_step_s(session: TrainingSession, config: RunConfig) -> float:
    """Return the mean time of a vec step over a second of play as in an evaluation."""
    vec_env = session.evaluation_env
    model = session.model
    with torch_threads(1):
        observations: Any = vec_env.reset()
        state: Any = None  # of a policy with a memory
        vec_steps = -_EVALUATION_WARM_UP
        started = 0.0
        while vec_steps < 1 or time.perf_counter() < started + _EVALUATION_S:
            if vec_steps == 0:
                started = time.perf_counter()
            # the last way draws actions, if any does, which takes a little longer
            way = config.evaluation_ways[-1]
            actions, state = model.predict(observations, state=state, deterministic=way)
            observations, _, _, _ = vec_env.step(actions)
            vec_steps += 1
        return (time.perf_counter() - started) / vec_steps


def _checkpoint_s(session: TrainingSession) -> float:
    started = time.perf_counter()
    session.save()
    return time.perf_counter() - started


def measure_experiment_speed(
    experiment: Experiment, game: Game, *, members_at_once: int
) -> ExperimentSpeed:
    """Time short trainings of `members_at_once` members at once, then of the learner if any.

    The learner of a live mixture trains at the same time as the members, as in the experiment. A
    learner draws from a Lake of random play instead of the experiment's, and it has no teacher.
    """
    members = [experiment.run] * members_at_once
    cpus = experiment.config.cpus_per_member
    if experiment.learner is None:
        return ExperimentSpeed(_mean(measure_at_once(members, game, cpus=cpus)))
    with tempfile.TemporaryDirectory(prefix="game_rl_") as folder:
        write_random_play(experiment.run, game, Path(folder))
        changes: dict[Key, Any] = {("algorithm", "learn_from", "lakes"): [folder]}
        learner = with_changed(experiment.learner, changes)
        if experiment.config.rule == "live":
            *measured, learned = measure_at_once([*members, learner], game, cpus=cpus)
        else:
            measured = measure_at_once(members, game, cpus=cpus)
            (learned,) = measure_at_once([learner], game, cpus=cpus)
    return ExperimentSpeed(_mean(measured), learned)


def measure_at_once(configs: Sequence[RunConfig], game: Game, *, cpus: int) -> list[MeasuredSpeed]:
    """Run `measure_speed` for each config, in as many processes at once.

    A single run's workers play on one core while its network computes on another. Where other runs
    train on all cores, they wait for each other and share the caches.

    Args:
        cpus: number of CPUs that each process may use.
    """
    spawn = get_context("spawn")
    with (
        changed_environment(python_variables()),
        ProcessPoolExecutor(len(configs), spawn, take_cpu_share, (cpus,)) as pool,
    ):
        runs = [pool.submit(measure_speed, config, game) for config in configs]
        return [run.result() for run in runs]


def _mean(measured: Sequence[MeasuredSpeed]) -> MeasuredSpeed:
    names = [field.name for field in fields(MeasuredSpeed)]
    return MeasuredSpeed(**{name: fmean(getattr(m, name) for m in measured) for name in names})
