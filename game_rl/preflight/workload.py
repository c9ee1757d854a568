"""How much a run does, counted as SB3 counts, and how long that takes at a measured speed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from game_rl.config.schema import EvaluationConfig, RunConfig
from game_rl.config.values import BASELINES_S
from game_rl.events import FREQUENT_BOUNDARIES_TIMESTEPS
from game_rl.statistics import MOST_BATCHES


@dataclass(frozen=True, kw_only=True)
class TrainingArithmetic:
    """Counts of a run, new or a fork, that is not cut short.

    SB3 collects whole rollouts until `total_timesteps` is reached, so the last one may overshoot.
    Between an update and the next rollout, at timestep n, something that is due every k timesteps
    happens if n // k has grown since the last such moment.

    Attributes:
        timesteps_per_update: timesteps of one rollout, of all envs together; for DQN those that
            train_freq asks for.
        updates: number of rollouts, each followed by an update of the network.
        final_timesteps: timestep at which the run ends, at least the config's total_timesteps.
        began_at: timestep at which the run starts.
        frames: emulator frames that the run plays.
        minibatches_per_epoch: None for DQN, which draws its batches.
        gradient_steps_per_update: upper bound; `target_kl` may end an update sooner.
        gradient_steps: upper bound for the whole run; DQN has none before learning_starts.
        checkpoints: periodic checkpoints, and the final one if it is not periodic.
        evaluations: counted likewise, without the final evaluation of the best policy.
        samples_per_timestep: DQN's replay ratio: samples learned from, drawn from the run's own
            play and from Lakes, for each timestep played. None for PPO and PQN.
        offline_gradient_steps: gradient steps before the first timestep.
        offline_evaluations: evaluations before the first timestep.
        offline_checkpoints: checkpoints before the first timestep.
        may_end_early: whether a condition may end the run before its total, so that all counts are
            upper bounds.
        confirmations: upper bound of how often new episodes confirm an evaluation.
        has_waits: whether the game's `step` adds to the frames, which are then a lower bound.
    """

    timesteps_per_update: int
    updates: int
    final_timesteps: int
    began_at: int
    frames: int
    minibatches_per_epoch: int | None
    gradient_steps_per_update: int
    gradient_steps: int
    checkpoints: int
    evaluations: int
    samples_per_timestep: float | None = None
    offline_gradient_steps: int = 0
    offline_evaluations: int = 0
    offline_checkpoints: int = 0
    may_end_early: bool = False
    confirmations: int = 0
    has_waits: bool = False

    @property
    def played_timesteps(self) -> int:
        """Timesteps that this run plays, without those of a fork's parent."""
        return self.final_timesteps - self.began_at


def training_arithmetic(config: RunConfig, *, began_at: int = 0) -> TrainingArithmetic:
    """Count what a run will do from timestep `began_at` on, which is not 0 for a fork."""
    rollout = config.rollout_timesteps
    updates = max(1, _divide_up(config.total_timesteps - began_at, rollout))
    final = began_at + updates * rollout
    algorithm = config.algorithm
    offline = config.offline
    per_update = algorithm.gradient_steps_per_update(config.env.n_envs)
    waiting = max(0, algorithm.learning_starts - began_at) // rollout
    learning = max(updates - waiting, 0)
    samples = None
    if algorithm.replay is not None:
        samples = per_update * algorithm.batch_size / rollout

    def times_due(every: int) -> int:
        periodic = min(updates, final // every - began_at // every)  # once after each update
        final_is_periodic = final // every > (final - rollout) // every
        return periodic + (not final_is_periodic)

    offline_steps = 0
    offline_evaluations = 0
    offline_checkpoints = 0
    if offline is not None:  # it evaluates and saves periodically, and at its end
        offline_steps = offline.gradient_steps
        offline_evaluations = _divide_up(offline_steps, offline.evaluate_every_gradient_steps)
        offline_checkpoints = _divide_up(offline_steps, offline.save_every_gradient_steps)
    evaluations = times_due(config.evaluation.every_timesteps)
    confirmations = 0
    goal = config.stop_when
    if goal is not None and (goal.success_rate is not None or goal.mean_reward is not None):
        # the last evaluation ends the run in any case
        confirmations = max(0, evaluations - goal.evaluations)
    return TrainingArithmetic(
        timesteps_per_update=rollout,
        updates=updates,
        final_timesteps=final,
        began_at=began_at,
        frames=updates * rollout * config.env.frame_skip,
        minibatches_per_epoch=algorithm.minibatches_per_epoch(config.env.n_envs),
        gradient_steps_per_update=per_update,
        gradient_steps=learning * per_update,
        checkpoints=times_due(config.checkpoints.every_timesteps),
        evaluations=evaluations,
        samples_per_timestep=samples,
        offline_gradient_steps=offline_steps,
        offline_evaluations=offline_evaluations,
        offline_checkpoints=offline_checkpoints,
        may_end_early=config.stop_when is not None,
        confirmations=confirmations,
    )


def boundaries_of(config: RunConfig, training: TrainingArithmetic) -> int:
    """Return the number of boundaries of the run, at which its callbacks act."""
    if config.algorithm.replay is None:
        return training.updates
    return min(training.updates, training.played_timesteps // FREQUENT_BOUNDARIES_TIMESTEPS)


def _divide_up(whole: int, part: int) -> int:
    return -(-whole // part)


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
    limit_s = None
    if config.stop_when is not None:
        n_envs = evaluation.envs_for(evaluation.episodes)
        batches = MOST_BATCHES * _divide_up(config.stop_when.confirm_episodes, n_envs)
        played += training.confirmations * batches
        if config.stop_when.hours is not None:
            limit_s = config.stop_when.hours * 3_600
    start_s = measured.start_s
    if evaluation.baselines and training.began_at == 0:
        start_s += BASELINES_S
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
            "start": start_s,
        },
        limit_s=limit_s,
    )


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
    return _divide_up(episodes, evaluation.envs_for(episodes))
