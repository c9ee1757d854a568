"""Measure how fast this machine trains, with the run's own parts, in some seconds."""

import time
from typing import Any

from game_rl.config.schema import RunConfig
from game_rl.games.definition import Game
from game_rl.measure.timed_training import TimedTraining, VecStepTime, median_of, median_of_means
from game_rl.preflight.speed import MeasuredSpeed
from game_rl.system.threads import torch_threads
from game_rl.training.session import TrainingSession

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
    vec_env, model = session.evaluation_env, session.model
    with torch_threads(1):
        observations: Any = vec_env.reset()
        vec_steps, started = -_EVALUATION_WARM_UP, 0.0
        while vec_steps < 1 or time.perf_counter() < started + _EVALUATION_S:
            if vec_steps == 0:
                started = time.perf_counter()
            # the last way draws actions, if any does, which takes a little longer
            actions, _ = model.predict(observations, deterministic=config.evaluation_ways[-1])
            observations, _, _, _ = vec_env.step(actions)
            vec_steps += 1
        return (time.perf_counter() - started) / vec_steps


def _checkpoint_s(session: TrainingSession) -> float:
    started = time.perf_counter()
    session.save()
    return time.perf_counter() - started
