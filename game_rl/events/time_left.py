"""The time that a run still takes, and what it is doing, from its events.

The console and the page both show what `EndClock` says. It hears the events of one run in their
order, whether they come from the run itself or from its file:

    clock = EndClock()
    for event in events:
        clock.hear(event)
    left = clock.time_left(datetime.now(UTC))  # None, or a TimeLeft
    clock.phase  # "playing", "learning", "evaluating", ...
"""

from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from game_rl.events import (
    Begun,
    ConfirmationPlayed,
    CurvesRecorded,
    Ended,
    Evaluated,
    Evaluating,
    Event,
    PlannedEpisodes,
    Progress,
    Recorded,
    Resumed,
    RolloutEnded,
    StopConditionMet,
)

Phase = Literal[
    "playing", "learning", "evaluating", "confirming", "final evaluation", "recording", "ended"
]

SEVERAL_UPDATES = 4
"""Updates of a session after which its pace is known; until then, the time left is `about`."""
_SHARE_OF_WORK = 0.02
"""Share of the run's timesteps after which it is known, too: the first ones are not like others."""
_PACE_S = 1_200.0
"""The pace is measured over the newest half of the session, but at most over so many seconds."""
_CLIP_FRAMES_PER_S = 1_300.0
"""Emulator frames that are played and drawn in a second for a clip, on one core of 2.5 GHz."""
_MEASURED = 3
"""Evaluations over which the mean is taken."""


@dataclass(frozen=True)
class TimeLeft:
    """The time up to the end of a run, with all that is played after its last timestep.

    Attributes:
        seconds: the estimate.
        is_about: whether too little is known so far for a limit.
        is_at_most: whether the run ends earlier if a condition of `stop_when` is met.
    """

    seconds: float
    is_about: bool
    is_at_most: bool

    @property
    def qualifier(self) -> Literal["about", "at most"]:
        """The words before the duration."""
        return "at most" if self.is_at_most and not self.is_about else "about"


@dataclass(frozen=True)
class _Played:
    """An evaluation."""

    policy_timesteps: int
    seconds: float
    episodes: int
    length: float


class EndClock:
    """Estimates the end of a run from its events; see the module's docstring.

    Attributes:
        phase: what the run is doing, as far as events say. A run whose process was killed says
            nothing, so whoever asks must know that it is training. In a file, which has no
            `Progress`, "learning" may last until the next rollout has ended.
    """

    def __init__(self) -> None:
        self.phase: Phase = "playing"
        self._phase_since: datetime | None = None
        self._total = 0
        self._frame_skip = 1
        self._may_end_early = False
        self._is_won = False
        self._planned = PlannedEpisodes()
        self._began_at = 0
        self._evaluated_at = 0
        self._evaluating_s = 0.0  # of this session
        self._points: deque[tuple[datetime, float, int]] = deque()
        self._n_rollouts = 0
        self._first_rollout: datetime | None = None
        self._newest_played: deque[_Played] = deque(maxlen=_MEASURED)
        self._episode_length: float | None = None
        self._timesteps_per_s = 0.0

    def hear(self, event: Event) -> None:
        """Take the next event; those that are not kept in the file may be left out."""
        match event:
            case Begun() | Resumed():
                self._begin(event)
            case Progress():
                self._enter("playing", event.time)
            case RolloutEnded():
                self._end_rollout(event)
            case CurvesRecorded():
                self._episode_length = event.values.get("rollout/ep_len_mean", self._episode_length)
            case Evaluating():
                confirming: Phase = "confirming" if event.is_confirmation else "evaluating"
                self._enter("final evaluation" if event.is_final else confirming, event.time)
            case Evaluated() | ConfirmationPlayed():
                self._take_played(event)
            case StopConditionMet():
                self._is_won = True
            case Recorded() | Ended():
                self._enter("ended", event.time)
            case _:
                pass

    def time_left(self, now: datetime) -> TimeLeft | None:
        """Return the time from `now` on, which does not grow as long as nothing is heard.

        None if the run has ended, or its pace is not known, which takes one update.
        """
        if self.phase == "ended":
            return None
        training_s = 0.0
        if not self._is_training_over:
            if len(self._points) < 2:
                return None
            training_s = self._training_s(now)
        later_s = self._evaluations_s + self._confirmation_s + self._final_s + self._clip_s
        spent_s = min(self._played_s(now), self._phase_s)
        return TimeLeft(
            seconds=training_s + max(0.0, later_s - spent_s),
            is_about=not self._is_known,
            is_at_most=self._may_end_early and not self._is_won,
        )

    @property
    def _is_training_over(self) -> bool:
        at_total = bool(self._points) and self._points[-1][2] >= self._total
        return self._is_won or at_total or self.phase in ("final evaluation", "recording")

    @property
    def _is_known(self) -> bool:
        if self._is_training_over:
            return True
        done = self._points[-1][2] - self._began_at
        is_played = bool(self._newest_played) or not self._planned.episodes
        enough = done >= _SHARE_OF_WORK * (self._total - self._began_at)
        return self._n_rollouts > SEVERAL_UPDATES and enough and is_played

    def _begin(self, event: Begun | Resumed) -> None:
        self._total = event.total_timesteps
        self._frame_skip = event.frame_skip or 1
        self._may_end_early = bool(event.stop_when)
        self._planned = event.planned or PlannedEpisodes()
        self._began_at = self._evaluated_at = event.timesteps
        self._evaluating_s = 0.0
        self._n_rollouts = 0
        self._first_rollout = None
        self._points.clear()
        self._is_won = False
        self._enter("playing", event.time)

    def _enter(self, phase: Phase, time: datetime) -> None:
        if phase != self.phase:
            self.phase = phase
            self._phase_since = time

    def _end_rollout(self, event: RolloutEnded) -> None:
        self._enter("learning", event.time)
        self._first_rollout = self._first_rollout or event.time
        self._n_rollouts += 1
        self._timesteps_per_s = event.timesteps_per_s
        self._points.append((event.time, self._evaluating_s, event.timesteps))
        window = min(timedelta(seconds=_PACE_S), (event.time - self._first_rollout) / 2)
        while len(self._points) > 2 and event.time - self._points[0][0] > window:
            self._points.popleft()

    def _take_played(self, event: Evaluated | ConfirmationPlayed) -> None:
        self._evaluating_s += event.seconds
        if isinstance(event, Evaluated) and event.is_final:
            self._enter("recording" if self._planned.clip_episodes else "ended", event.time)
            return
        at = event.policy_timesteps if isinstance(event, Evaluated) else event.timesteps
        played = _Played(at, event.seconds, event.episodes, event.mean_length)
        self._newest_played.append(played)
        self._evaluated_at = max(self._evaluated_at, at)
        self._enter("playing", event.time)

    def _training_s(self, now: datetime) -> float:
        """Return the seconds of rollouts and updates that are still to come."""
        oldest = self._points[0]
        newest = self._points[-1]
        took_s = (newest[0] - oldest[0]).total_seconds()
        if self._planned.every_timesteps:  # else evaluations are only counted with the pace
            took_s -= newest[1] - oldest[1]
        since_s = (now - newest[0]).total_seconds() - (self._evaluating_s - newest[1])
        since_s -= self._played_s(now)
        pace = max(took_s, 0.0) / max(1, newest[2] - oldest[2])
        return max(0.0, (self._total - newest[2]) * pace - max(since_s, 0.0))

    def _played_s(self, now: datetime) -> float:
        """Return for how long the run has played the evaluation or clip that it is at."""
        if self._phase_since is None or self.phase in ("playing", "learning"):
            return 0.0
        return max(0.0, (now - self._phase_since).total_seconds())

    @property
    def _episode_s(self) -> float:
        """The seconds of an episode of an evaluation, several of which are played at once."""
        episodes = sum(each.episodes for each in self._newest_played)
        if episodes:
            return sum(each.seconds for each in self._newest_played) / episodes
        if self._episode_length is None or self._timesteps_per_s <= 0:
            return 0.0
        return self._episode_length / self._timesteps_per_s

    @property
    def _evaluations_s(self) -> float:
        every = self._planned.every_timesteps
        total = self._total
        if not every or self.phase in ("final evaluation", "recording"):
            return 0.0
        if self._is_won or self._evaluated_at >= total:
            return 0.0
        n_left = total // every - self._evaluated_at // every + bool(total % every)
        n_left -= self.phase == "confirming"  # which follows one that is reported after it
        return n_left * self._planned.episodes * self._episode_s

    @property
    def _confirmation_s(self) -> float:
        is_to_come = not self._is_training_over or self.phase == "confirming"
        return self._planned.confirm_episodes * self._episode_s if is_to_come else 0.0

    @property
    def _final_s(self) -> float:
        if self.phase == "recording":
            return 0.0
        return self._planned.final_episodes * self._episode_s

    @property
    def _clip_s(self) -> float:
        length = self._newest_played[-1].length if self._newest_played else self._episode_length
        frames = self._planned.clip_episodes * (length or 0.0) * self._frame_skip
        if self._planned.clip_frames is not None:
            frames = min(frames, self._planned.clip_frames)
        return frames / _CLIP_FRAMES_PER_S

    @property
    def _phase_s(self) -> float:
        """The seconds that the present phase takes in all, as far as it is counted above."""
        match self.phase:
            case "evaluating":
                return self._planned.episodes * self._episode_s
            case "confirming":
                return self._confirmation_s
            case "final evaluation":
                return self._final_s
            case "recording":
                return self._clip_s
            case _:
                return 0.0
