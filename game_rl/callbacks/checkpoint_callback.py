"""Checkpoints while training; a network with NaN or infinite weights is never saved."""

import time
from typing import Any

import torch

from game_rl.callbacks.boundary import BoundaryCallback, Interval
from game_rl.callbacks.curves import WaitedFramesCallback
from game_rl.checkpoints.checkpoint_files import checkpoint_bytes
from game_rl.checkpoints.checkpoint_state import Best, CheckpointState, FixedState, StopCounters
from game_rl.checkpoints.checkpoint_store import CheckpointStore
from game_rl.checkpoints.evaluation_files import seed_of
from game_rl.errors import NonFiniteError
from game_rl.events.event_log import EventLog
from game_rl.system.stop_request import StopRequest
from game_rl.vec_env.frame_stacks import space_bytes
from game_rl.vec_env.make_vec_env import VecEnvState, save_vec_env


class CheckpointCallback(BoundaryCallback):
    """Saves at the first boundary after each multiple of `every_timesteps`, and at the end.

    Also saves after an evaluation that was the best so far, and where the run is asked to stop.
    Saves at each boundary that is more than `stop.deadline_s` after the previous one, because a
    stop could not wait for the next.

    Args:
        store: writes the checkpoints.
        stop: request to end the run.
        events: gets an event for each checkpoint.
        every_timesteps: timesteps between regular checkpoints.
        fixed: what all checkpoints of the run have in common.
        waited: counts the waited frames; None if there are none.

    Attributes:
        best: the best evaluation so far.
        evaluation_due: whether an evaluation at this boundary was interrupted by a stop.
        stop_counters: counters of `stop_when`.
        training_time: seconds of training, over all sessions of the run.
    """

    def __init__(
        self,
        store: CheckpointStore,
        stop: StopRequest,
        events: EventLog,
        *,
        every_timesteps: int,
        fixed: FixedState,
        waited: WaitedFramesCallback | None = None,
    ) -> None:
        super().__init__()
        self.best: Best | None = None
        self.evaluation_due = False
        self.stop_counters = StopCounters()
        self.training_time = TrainingTime()
        self._store = store
        self._stop = stop
        self._events = events
        self._interval = Interval(every_timesteps)
        self._fixed = fixed
        self._waited = waited
        self._offline_gradient_steps = 0
        self._saved_at: int | None = None
        self._saved_as_due = False
        self._boundary_s = 0.0

    def continue_from(self, state: CheckpointState, best: Best | None) -> None:
        """Take over the state of the checkpoint from which the run was resumed."""
        self._saved_at = state.num_timesteps
        self._offline_gradient_steps = state.offline_gradient_steps
        is_comparable = best is not None and best.seed == seed_of(self._fixed.config)
        self.best = best if is_comparable else None
        self.evaluation_due = self._saved_as_due = state.evaluation_due
        self.stop_counters = state.counters_with(self._fixed.config, self._fixed.given_callbacks)
        self.training_time = TrainingTime(state.training_s)

    def _on_training_start(self) -> None:
        super()._on_training_start()
        self._interval.last_timesteps = self.num_timesteps
        self._boundary_s = time.monotonic()
        self.training_time.start()
        self._envs()  # an env that cannot be saved should fail now, not after an hour

    def on_boundary(self, *, is_last: bool) -> None:
        due = self._interval.crossed(self.boundary_timesteps)
        if due or is_last or self._stop.is_asked or self._is_far_apart():
            self.save()

    @property
    def expected_bytes(self) -> int:
        """Approximate bytes of the next checkpoint."""
        model = self.model
        groups = model.policy.optimizer.param_groups
        return checkpoint_bytes(
            policy_weights=sum(weight.numel() for weight in model.policy.parameters()),
            optimized_weights=sum(weight.numel() for g in groups for weight in g["params"]),
            n_envs=model.n_envs,
            observation_bytes=space_bytes(model.observation_space),
            replay_bytes=self._store.replay_bytes(model),
        )

    def keep_as_best(self, mean_reward: float, *, deterministic: bool) -> None:
        """Save the present model as the run's best.

        Args:
            deterministic: whether it played its most probable actions or sampled them.
        """
        self.best = Best(
            timesteps=self.boundary_timesteps,
            mean_reward=mean_reward,
            deterministic=deterministic,
            seed=seed_of(self._fixed.config),
        )
        self.save()

    def has_won(self) -> bool:
        """Whether a condition has ended the run before its total."""
        return bool(self.stop_counters.met)

    def save(self) -> None:
        """Write a checkpoint of the last boundary, unless it exists.

        A checkpoint that was saved with its evaluation due is replaced once that was played.
        """
        played_since = self._saved_as_due and not self.evaluation_due
        is_saved = self.boundary_timesteps == self._saved_at and not played_since
        if self.boundary_timesteps == 0 or is_saved:
            return
        # NonFiniteCallback does not check every boundary of DQN
        check_finite(self.model.policy, self.boundary_timesteps)
        with self._events.telling_if_slow(f"saving checkpoint {self.boundary_timesteps:,}"):
            saved = self._store.save(self.model, self._state(), self._envs())
        self._saved_at = self.boundary_timesteps
        self._saved_as_due = self.evaluation_due
        is_best = self.best is not None and self.best.timesteps == self.boundary_timesteps
        self._events.emit(saved.event(is_best=is_best))

    def _state(self) -> CheckpointState:
        return CheckpointState(
            num_timesteps=self.boundary_timesteps,
            n_updates=self.model._n_updates,
            offline_gradient_steps=self._offline_gradient_steps,
            best=self.best,
            evaluation_due=self.evaluation_due,
            training_s=round(self.training_time.seconds(), 3),
            waited_frames=0 if self._waited is None else self._waited.at_boundary,
            stop_counters=self.stop_counters,
            events_bytes=self._events.n_bytes(),
            **vars(self._fixed),
        )

    def _is_far_apart(self) -> bool:
        before = self._boundary_s
        self._boundary_s = time.monotonic()
        return self._boundary_s - before > self._stop.deadline_s

    def _envs(self) -> VecEnvState | None:
        """Return the state of the envs, or None if it cannot be saved.

        It cannot in the middle of a rollout, because the weights belong to the boundary before it.
        """
        observations: Any = self.model._last_obs
        if self.num_timesteps != self.boundary_timesteps or observations is None:
            return None
        return save_vec_env(self.training_env, observations)


class NonFiniteCallback(BoundaryCallback):
    """Raises NonFiniteError when an update left a weight that is NaN or infinite.

    It must come before the callbacks that save, because they act at the same boundary.
    """

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002 - every boundary is checked
        check_finite(self.model.policy, self.boundary_timesteps)


def check_finite(policy: torch.nn.Module, timesteps: int) -> None:
    for name, parameter in policy.named_parameters():
        # the extremes are NaN where any weight is, and are found faster than by isfinite on all
        extremes = torch.stack(parameter.detach().aminmax())
        if not torch.isfinite(extremes).all():
            raise NonFiniteError(
                f"the update before timestep {timesteps:,} made weight {name} non-finite; "
                "nothing was saved from it. Lower algorithm.learning_rate or "
                "algorithm.max_grad_norm, or look for an exploding reward in TensorBoard's game/…, "
                "then resume from the last checkpoint"
            )


class TrainingTime:
    """A stopwatch that adds up the seconds of training over all sessions of a run.

    Args:
        seconds: of earlier sessions.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._counted_s: float | None = None

    def start(self) -> None:
        """Count from now on, and not what went by since the last reading."""
        self._counted_s = time.monotonic()

    def seconds(self) -> float:
        """Return the seconds so far."""
        if self._counted_s is not None:
            before = self._counted_s
            self._counted_s = time.monotonic()
            self._seconds += self._counted_s - before
        return self._seconds
