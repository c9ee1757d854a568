"""The number of updates, gradient steps, checkpoints and evaluations, counted as SB3 counts."""

from dataclasses import dataclass
from typing import Literal

from game_rl.config.algorithms import DQNConfig
from game_rl.config.learn_from import OfflineConfig
from game_rl.config.schema import RunConfig
from game_rl.config.stop_when import StopWhenConfig


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

    @property
    def played_timesteps(self) -> int:
        """Timesteps that this run plays, without those of a fork's parent."""
        return self.final_timesteps - self.began_at


def training_arithmetic(config: RunConfig, *, began_at: int = 0) -> TrainingArithmetic:
    """Count what a run will do from timestep `began_at` on, which is not 0 for a fork."""
    rollout = config.rollout_timesteps
    updates = max(1, _divide_up(config.total_timesteps - began_at, rollout))
    final = began_at + updates * rollout
    algorithm, offline = config.algorithm, config.offline
    if isinstance(algorithm, DQNConfig):
        minibatches, per_update = None, algorithm.gradient_steps
        samples: float | None = per_update * algorithm.batch_size / rollout
        waiting = max(0, algorithm.learning_starts - began_at) // rollout
        learning = max(updates - waiting, 0)
    else:
        samples = None
        minibatches, learning = _divide_up(rollout, algorithm.batch_size), updates
        per_update = algorithm.n_epochs * minibatches

    def times_due(every: int) -> int:
        periodic = min(updates, final // every - began_at // every)  # once after each update
        final_is_periodic = final // every > (final - rollout) // every
        return periodic + (not final_is_periodic)

    evaluations, stop_when = times_due(config.evaluation.every_timesteps), config.stop_when
    return TrainingArithmetic(
        timesteps_per_update=rollout,
        updates=updates,
        final_timesteps=final,
        began_at=began_at,
        frames=updates * rollout * config.env.frame_skip,
        minibatches_per_epoch=minibatches,
        gradient_steps_per_update=per_update,
        gradient_steps=learning * per_update,
        checkpoints=times_due(config.checkpoints.every_timesteps),
        evaluations=evaluations,
        samples_per_timestep=samples,
        offline_gradient_steps=0 if offline is None else offline.gradient_steps,
        offline_evaluations=0 if offline is None else _times(offline, "evaluate"),
        offline_checkpoints=0 if offline is None else _times(offline, "save"),
        may_end_early=stop_when is not None,
        confirmations=0 if stop_when is None else _confirmations(stop_when, evaluations),
    )


def _confirmations(stop_when: StopWhenConfig, evaluations: int) -> int:
    """How many evaluations new episodes may confirm: the last one ends the run in any case."""
    return max(0, evaluations - stop_when.evaluations) if stop_when.has_goal else 0


def _times(offline: OfflineConfig, what: Literal["evaluate", "save"]) -> int:
    """How often the offline phase evaluates or saves: periodically, and at its end."""
    every = (
        offline.evaluate_every_gradient_steps
        if what == "evaluate"
        else offline.save_every_gradient_steps
    )
    return _divide_up(offline.gradient_steps, every)


def _divide_up(whole: int, part: int) -> int:
    return -(-whole // part)
