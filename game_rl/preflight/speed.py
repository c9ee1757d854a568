"""Forecast how long a run takes from a measurement of some seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from game_rl.config.schema import EvaluationConfig, RunConfig
from game_rl.preflight.arithmetic import TrainingArithmetic

Part = Literal["inference", "emulation", "update", "evaluation", "checkpoints", "start"]


@dataclass(frozen=True, kw_only=True)
class MeasuredSpeed:
    """Seconds that one machine takes for each step of a run.

    Attributes:
        inference_s: time in the network, in one vec step of the training.
        emulation_s: the rest of that vec step: waiting for emulators that do not play while the
            network computes, and storing what they returned.
        gradient_step_s: time of a gradient step at the config's batch_size.
        evaluation_vec_step_s: time of one vec step of the evaluation's envs, the network included.
        checkpoint_s: time to write a checkpoint.
        start_s: time to build the network and start the workers of training and evaluation.
    """

    inference_s: float
    emulation_s: float
    gradient_step_s: float
    evaluation_vec_step_s: float
    checkpoint_s: float
    start_s: float


@dataclass(frozen=True)
class ExperimentSpeed:
    """Speed of one machine at the runs of an experiment.

    Attributes:
        member: speed of a member while as many others train as in the experiment.
        learner: speed of the learner: alone, or with the members if it trains at the same time.
            None if there is no learner.
    """

    member: MeasuredSpeed
    learner: MeasuredSpeed | None = None


@dataclass(frozen=True, kw_only=True)
class SpeedForecast:
    """How long a run takes from its start to its last evaluation.

    Attributes:
        timesteps: timesteps that the run plays in training.
        seconds: time of each part of the run; their sum is `wall_s`.
        limit_s: training time after which the run ends in any case; None: no limit.
    """

    timesteps: int
    seconds: Mapping[Part, float]
    limit_s: float | None = None

    @property
    def wall_s(self) -> float:
        return sum(self.seconds.values())

    @property
    def timesteps_per_s(self) -> float:
        """Training timesteps per second of the whole run, evaluations included."""
        return self.timesteps / self.wall_s

    def share(self, *parts: Part) -> float:
        """Return the share of these parts in the run's time, 0..1."""
        return sum(self.seconds[part] for part in parts) / self.wall_s


def forecast_speed(
    config: RunConfig,
    training: TrainingArithmetic,
    measured: MeasuredSpeed,
    *,
    episode_timesteps: float,
) -> SpeedForecast:
    """Forecast the duration of a run from a measured speed.

    An evaluation may be played in two ways (deterministic or drawn actions), which are assumed to
    take the same time. The final evaluation is played in one way. Every evaluation counts as the
    best so far, which writes a checkpoint. `target_kl` is assumed never to end an update early, and
    `stop_when` never to end the run; its new episodes are played as often as they can be.

    Args:
        episode_timesteps: mean length of an evaluation's episode.
    """
    vec_steps = training.played_timesteps // config.env.n_envs
    evaluation = config.evaluation
    times = (training.evaluations + training.offline_evaluations) * len(config.evaluation_ways)
    played = times * _longest_share(evaluation, evaluation.episodes)
    played += _longest_share(evaluation, evaluation.final_episodes)
    played += training.confirmations * _confirmation_share(config)
    saved = training.checkpoints + training.offline_checkpoints
    saved += training.evaluations + training.offline_evaluations
    if config.validation_episodes:  # student and teacher play as many each
        played += 2 * _longest_share(evaluation, config.validation_episodes)
    return SpeedForecast(
        timesteps=training.played_timesteps,
        seconds={
            "inference": vec_steps * measured.inference_s,
            "emulation": vec_steps * measured.emulation_s,
            "update": (training.gradient_steps + training.offline_gradient_steps)
            * measured.gradient_step_s,
            "evaluation": played * episode_timesteps * measured.evaluation_vec_step_s,
            "checkpoints": saved * measured.checkpoint_s,
            "start": measured.start_s,
        },
        limit_s=_limit_s(config),
    )


def _limit_s(config: RunConfig) -> float | None:
    hours = None if config.stop_when is None else config.stop_when.hours
    return None if hours is None else hours * 3_600


def _confirmation_share(config: RunConfig) -> int:
    """As `_longest_share`, of the new episodes that the usual evaluation's envs play."""
    if config.stop_when is None:
        return 0
    n_envs = config.evaluation.envs_for(config.evaluation.episodes)
    return -(-config.stop_when.confirm_episodes // n_envs)


def playing_s(
    evaluation: EvaluationConfig,
    episodes: int,
    measured: MeasuredSpeed,
    *,
    episode_timesteps: float,
) -> float:
    """Return the seconds that an evaluation of `episodes` episodes takes, played in one way."""
    vec_steps = _longest_share(evaluation, episodes) * episode_timesteps
    return vec_steps * measured.evaluation_vec_step_s


def _longest_share(evaluation: EvaluationConfig, episodes: int) -> int:
    """Return the number of episodes of the busiest env, for which an evaluation waits."""
    return -(-episodes // evaluation.envs_for(episodes))
