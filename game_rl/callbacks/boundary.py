"""The moments between an update and the next rollout, where the model is whole."""

from abc import abstractmethod
from collections.abc import Sequence

from stable_baselines3.common.callbacks import BaseCallback


class Interval:
    """Every so many timesteps, told by the multiples that were crossed.

    Counting timesteps, not calls, keeps the rhythm for any number of envs and over a resume.
    """

    def __init__(self, every_timesteps: int) -> None:
        self._every = every_timesteps
        self.last_timesteps = 0

    def crossed(self, timesteps: int) -> bool:
        """True once for each stretch in which a multiple was reached."""
        due = timesteps // self._every > self.last_timesteps // self._every
        self.last_timesteps = timesteps
        return due


class BoundaryCallback(BaseCallback):
    """Acts between updates: the policy, its optimiser and the counters belong together there.

    A training that is stopped in the middle of a rollout ends at the boundary before it: that
    rollout changed nothing but the timestep counter of SB3, so `boundary_timesteps` does not
    count it.

    Args:
        every_timesteps: act at boundaries only where a multiple of one of these was reached, and
            at the end; none: at each boundary. DQN has one every few vec steps.
        verbose: SB3's; here so that SB3's own callbacks can be a base beside this one.
    """

    boundary_timesteps: int = 0
    _started_at: int = 0

    def __init__(self, verbose: int = 0, *, every_timesteps: Sequence[int] = ()) -> None:
        super().__init__(verbose)
        self._rhythm = [Interval(timesteps) for timesteps in every_timesteps]

    @abstractmethod
    def on_boundary(self, *, is_last: bool) -> None:
        """Called after each update but the last and, with `is_last`, once when training ends.

        The moment at which training starts is none: a resumed run was saved after it.
        """

    def _on_training_start(self) -> None:
        self.boundary_timesteps = self._started_at = self.num_timesteps

    def _on_rollout_start(self) -> None:
        if self.num_timesteps > self._started_at:
            self.boundary_timesteps = self.num_timesteps
            due = [interval.crossed(self.num_timesteps) for interval in self._rhythm]
            if any(due) or not due:
                self.on_boundary(is_last=False)

    def _on_rollout_end(self) -> None:
        self.boundary_timesteps = self.num_timesteps

    def _on_training_end(self) -> None:
        self.on_boundary(is_last=True)

    def _on_step(self) -> bool:
        return True
