"""The frames that the envs of a run have played on by the game's `step`."""

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.envs.action_player import WAITED_FRAMES
from game_rl.events.event_log import EventLog


class WaitedFramesCallback(BaseCallback):
    """Counts them, for events, checkpoints and the curve `time/frames`.

    It comes before all callbacks that report or save.

    Args:
        frame_skip: frames of each timestep that are not counted here.
        before: number of them at the checkpoint from which the run goes on.

    Attributes:
        at_boundary: number of them at the last boundary between an update and a rollout.
    """

    def __init__(self, events: EventLog, *, frame_skip: int, before: int = 0) -> None:
        super().__init__()
        self._events = events
        self._frame_skip = frame_skip
        self._waited = self.at_boundary = before
        self._boundary = 0

    def _on_training_start(self) -> None:
        self._note_boundary()

    def _on_rollout_start(self) -> None:
        self._note_boundary()

    def _on_step(self) -> bool:
        self._waited += sum(info.get(WAITED_FRAMES, 0) for info in self.locals["infos"])
        self._publish()
        return True

    def _on_rollout_end(self) -> None:
        self._note_boundary()
        self.logger.record("time/frames", self.num_timesteps * self._frame_skip + self._waited)

    def _note_boundary(self) -> None:
        self._boundary = self.num_timesteps
        self.at_boundary = self._waited
        self._publish()

    def _publish(self) -> None:
        self._events.waited_frames = {
            self._boundary: self.at_boundary,
            self.num_timesteps: self._waited,
        }
