"""From what was measured in some seconds to how long a run takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from game_rl.config.schema import EvaluationConfig, RunConfig
from game_rl.preflight.arithmetic import TrainingArithmetic

Part = Literal["inference", "emulation", "update", "evaluation", "checkpoints", "start"]


@dataclass(frozen=True, kw_only=True)
class MeasuredSpeed:
    """What one machine takes for each thing that a run does often, in seconds.

    Attributes:
        inference_s: of one vec step of the training, the network at work.
        emulation_s: of one vec step, the rest: waiting for emulators, as far as they do not play
            while the network works, and storing what they gave.
        gradient_step_s: at the config's batch_size.
        evaluation_vec_step_s: of one vec step of the evaluation's envs, the network included.
        checkpoint_s: to write one.
        start_s: to start workers and build the network, once for training and evaluation.
    """

    inference_s: float
    emulation_s: float
    gradient_step_s: float
    evaluation_vec_step_s: float
    checkpoint_s: float
    start_s: float


@dataclass(frozen=True)
class ExperimentSpeed:
    """What one machine takes for the runs of an experiment.

    Attributes:
        member: beside as many others as train at once.
        learner: alone, or beside the members where it trains beside them; None: there is none.
    """

    member: MeasuredSpeed
    learner: MeasuredSpeed | None = None


@dataclass(frozen=True, kw_only=True)
class SpeedForecast:
    """How long a run takes from its start to its last evaluation.

    Attributes:
        timesteps: that the run trains for.
        seconds: of each part of the run; their sum is `wall_s`.
    """

    timesteps: int
    seconds: Mapping[Part, float]

    @property
    def wall_s(self) -> float:
        return sum(self.seconds.values())

    @property
    def timesteps_per_s(self) -> float:
        """Of training, over the whole run: evaluations make it less."""
        return self.timesteps / self.wall_s

    def share(self, *parts: Part) -> float:
        """Of the run's time, 0..1."""
        return sum(self.seconds[part] for part in parts) / self.wall_s


def forecast_speed(
    config: RunConfig,
    training: TrainingArithmetic,
    measured: MeasuredSpeed,
    *,
    episode_timesteps: float,
) -> SpeedForecast:
    """A run at the measured speed.

    Each way in which evaluations are played takes as long as the other; the one that ends the run
    is played in one. Every evaluation counts as one that is better than those before it, so that
    it writes a checkpoint, and `target_kl` as if it never ended an update early.

    Args:
        episode_timesteps: mean length of an evaluation's episode.
    """
    vec_steps = training.played_timesteps // config.env.n_envs
    evaluation = config.evaluation
    times = (training.evaluations + training.offline_evaluations) * len(config.evaluation_ways)
    played = times * _longest_share(evaluation, evaluation.episodes)
    played += _longest_share(evaluation, evaluation.final_episodes)
    saved = training.checkpoints + training.offline_checkpoints
    saved += training.evaluations + training.offline_evaluations
    if config.validation_episodes:  # by student and teacher
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
    )


def playing_s(
    evaluation: EvaluationConfig,
    episodes: int,
    measured: MeasuredSpeed,
    *,
    episode_timesteps: float,
) -> float:
    """Seconds that so many episodes take, played in one way as an evaluation plays them."""
    vec_steps = _longest_share(evaluation, episodes) * episode_timesteps
    return vec_steps * measured.evaluation_vec_step_s


def _longest_share(evaluation: EvaluationConfig, episodes: int) -> int:
    """Episodes of the busiest env, for which an evaluation waits."""
    return -(-episodes // evaluation.envs_for(episodes))
