"""Printing a run's events to standard output, as text or as JSON."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
from rich.text import Text

from game_rl import events
from game_rl.cli.printing import print_words
from game_rl.cli.progress_line import ProgressLine, Standing
from game_rl.events import Event, MilestoneReached, TimedEvent
from game_rl.events.time_left import EndClock, TimeLeft
from game_rl.statistics import percent
from game_rl.system.units import counted, format_bytes, format_duration, with_frames

_WITHIN_S = 60.0
_MOST_LINES = 10


class CalmLines:
    """Prints milestones at once, but no more than ten a minute.

    What comes beyond them is counted, and one line says so when the minute is over.

    Args:
        show: prints a text with the timestep that it belongs to.
        clock: function that returns the time in seconds.
    """

    def __init__(
        self,
        show: Callable[[MilestoneReached, str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._show = show
        self._clock = clock
        self._since_s = -_WITHIN_S
        self._n_shown = 0
        self._held: list[MilestoneReached] = []

    def add(self, event: MilestoneReached) -> None:
        self.show_due()
        if self._clock() - self._since_s >= _WITHIN_S:
            self._since_s = self._clock()
            self._n_shown = 0
        if self._n_shown < _MOST_LINES:
            self._n_shown += 1
            self._show(event, f"milestone: {event.text}")
        else:
            self._held.append(event)

    def show_due(self) -> None:
        """Print how many were left out, if a minute has passed since the first of them."""
        if self._clock() - self._since_s >= _WITHIN_S:
            self.show_all()

    def show_all(self) -> None:
        """Print how many were left out, because the minute is over or the run ends."""
        held = self._held
        self._held = []
        if len(held) == 1:
            self._show(held[0], f"milestone: {held[0].text}")
        elif held:
            last = held[-1]
            text = f"{len(held):,} more milestones, which `game-rl status` lists, up to this one"
            self._show(last, f"{text}: {last.text}")


_LINES_A_RUN = 20  # without a terminal to draw a bar on
_REDRAWS_A_SECOND = 5
_AFTER_TIMESTEPS = 14  # where the text of a line begins


def print_json(event: TimedEvent) -> None:
    """Print an event as one line of JSON, as in events.jsonl; a Listener."""
    if event.is_kept:
        print(event.model_dump_json(exclude_none=True), flush=True)


class RunConsole:
    """A Listener that prints lines, with a live bar on a terminal.

    Without a terminal, about twenty lines of progress take the place of the bar.

    Args:
        is_verbose: whether each update gets a line.

    Attributes:
        watch: command that shows the run in a browser; empty if nobody could call it.
    """

    def __init__(self, console: Console, *, is_verbose: bool = False) -> None:
        self.watch = ""
        self._console = console
        self._is_verbose = is_verbose
        self._total = 0
        self._frame_skip = 1
        self._next_line_at = self._next_offline_at = 0
        self._clock = EndClock()
        self._clock_lock = threading.Lock()
        self._progress = ProgressLine(self._time_left)
        self._live: Live | None = None
        self._announced: set[str] = set()
        self._calm = CalmLines(self._line)
        self._work = ""
        self._uploads: Progress | None = None

    def close(self) -> None:
        """Print what waits to be printed, and stop the live bars; may be called twice."""
        self._calm.show_all()
        if self._live is not None:
            self._progress.show(replace(self._progress.standing, doing=""))
            self._live.stop()
            self._live = None
        if self._uploads is not None and self._console.is_terminal:
            self._uploads.stop()

    def announce(self, warning: str) -> None:
        """Print a warning before the training begins, which then does not repeat it here."""
        self._warn(warning)
        self._announced.add(warning)

    def _warn(self, text: str) -> None:
        if text not in self._announced:
            self._mark("warning:", text)

    def __call__(self, event: Event) -> None:  # noqa: C901 - a case an event
        with self._clock_lock:
            self._clock.hear(event)
        match event:
            case events.Begun() | events.Resumed():
                self._begin(event)
            case events.Forked():
                self._print(f"a fork of {event.parent_path}, timestep {event.parent_timesteps:,}")
                for change in event.changes:
                    self._mark("changed:", change)
                for part in event.not_taken_over:
                    self._mark("starts again:", part)
            case events.Progress() | events.RolloutEnded():
                self._show_progress(event)
            case events.OfflineProgress():
                self._show_offline(event)
            case events.Evaluating():
                self._show_evaluating(event)
            case events.Evaluated(is_final=False):
                success = _success(event.success_rate)
                best = ", the best so far" if event.is_best else ""
                text = (
                    f"evaluation of {event.episodes}{_way(event)}: "
                    f"reward {event.mean_reward:.2f} ± {event.std_reward:.2f}{success}, "
                    f"length {event.mean_length:.0f}{best}"
                )
                self._line(event, text)
            case events.Evaluated(is_final=True):
                self._progress.show_doing("recording a clip")
            case events.ConfirmationPlayed():
                reached = "reached" if event.is_reached else "not reached, so the run continues"
                self._line(event, f"confirmation{_way(event)}: {event.in_words}; {reached}")
            case events.StopConditionMet():
                self._line(event, f"the run ends here: {event.text}")
            case events.CheckpointSaved():
                took = format_duration(event.seconds)
                text = f"checkpoint of {format_bytes(event.n_bytes)} saved in {took}"
                if (saved := event.compression_saved) is not None:
                    text += f", its replay {percent(saved, 1)} smaller than whole frame stacks"
                self._line(event, text, style="dim")
            case events.ExplorationRestarted():
                text = (
                    f"exploration restarts: {percent(event.share, 1)} of the actions are random, "
                    f"falling until timestep {event.at + event.over:,}"
                )
                self._line(event, text)
            case events.TeacherReady():
                result = f"reward {event.mean_reward:.2f}{_success(event.success_rate)}"
                text = (
                    f"teacher: {event.path} at timestep {event.policy_timesteps:,}, temperature "
                    f"{event.temperature:.3g}, {result} in the episodes of the evaluations"
                )
                self._line(event, text)
            case events.EpisodesReplayed():
                self._line(event, f"learning from {event.in_words}")
            case events.Cloned():
                self._line(event, f"imitated: {event.in_words}")
            case events.Validated():
                success = _success(event.student_success_rate)
                student = f"reward {event.student_mean_reward:.2f}{success}"
                success = _success(event.teacher_success_rate)
                teacher = f"reward {event.teacher_mean_reward:.2f}{success}"
                text = (
                    f"{event.episodes} new episodes: student (timestep "
                    f"{event.student_timesteps:,}) {student}; teacher {teacher}; the best is the "
                    f"{event.best}"
                )
                self._line(event, text)
            case events.Ended():
                self.close()
            case _:
                self._show_notice(event)

    def _show_notice(self, event: Event) -> None:  # noqa: C901 - a case an event
        match event:
            case events.UploadQueued():
                size = format_bytes(event.n_bytes)
                text = f"⏳ queued checkpoint {int(event.checkpoint):,} ({size}) → {event.to}"
                self._line(event, text, style="dim")
            case events.Uploaded():
                took = format_duration(event.seconds)
                text = f"✓ checkpoint {int(event.checkpoint):,} uploaded in {took}, verified"
                self._line(event, text, style="dim")
            case events.UploadProgress(is_ending=True):
                self._show_last_uploads(event)
            case events.MilestoneReached():
                self._calm.add(event)
            case events.BaselinePlayed():
                self._line(event, f"to compare with, {event.in_words}")
            case events.HintGiven():
                self._line(event, f"hint: {event.text}")
            case events.StillWorking():
                self._show_work(event)
            case events.PlanPassed() if event.share >= 1 or self._is_verbose:
                self._line(event, event.text)
            case events.Warned() | events.WorkerRestarted():
                self._warn(event.text)
            case events.DiskForecast() | events.ResourceLow():
                self._warn(event.text)

    def _begin(self, event: events.Begun | events.Resumed) -> None:
        self._total = event.total_timesteps
        self._frame_skip = event.frame_skip or 1
        if isinstance(event, events.Resumed):
            for change in event.changes:
                self._mark("changed:", change)
            self._print(
                f"resuming from timestep {self._frames(event.timesteps, event.waited_frames)}, "
                f"checkpoint {event.checkpoint}: {', '.join(event.restored)}"
            )
            for reason in event.not_restored:
                self._mark("not bit for bit the same as an uninterrupted run:", reason)
            if event.other_code:
                self._mark("note:", f"the checkpoint was written by other code: {event.other_code}")
        if self.watch:
            print_words(self._console, Text.assemble("watch it: ", (self.watch, "bold")))
        self._print(f"the network computes in {event.precision}, on {event.device}")
        for change in event.game_changes:
            self._mark("the game is changed:", change)
        if event.stop_when:
            self._print(f"the run may end early: {', or '.join(event.stop_when)}")

    def _show_progress(self, event: events.Progress | events.RolloutEnded) -> None:
        self._calm.show_due()
        standing = Standing(
            done=event.timesteps,
            total=self._total,
            speed=event.timesteps_per_s,
            mean_reward=event.mean_reward,
            success_rate=event.success_rate,
        )
        self._progress.show(standing)
        texts = standing.texts(self._time_left())
        if self._console.is_terminal:
            self._show_live()
        if self._is_verbose and isinstance(event, events.RolloutEnded):
            more = [choices[0] for name, choices in texts.items() if name != "where"]
            self._line(event, f"update: {'  '.join(filter(None, more))}", style="dim")
        elif not self._console.is_terminal and event.timesteps >= self._next_line_at:
            self._next_line_at = event.timesteps + -(-self._total // _LINES_A_RUN)
            where, *more = [choices[0] for choices in texts.values()]
            self._print("  ".join(filter(None, (f"{where:>27}", *more))))

    def _time_left(self) -> TimeLeft | None:
        with self._clock_lock:  # the live line is drawn in a thread of its own
            return self._clock.time_left(datetime.now(UTC))

    def _show_live(self) -> None:
        if self._live is None:
            self._live = Live(
                self._progress, console=self._console, refresh_per_second=_REDRAWS_A_SECOND
            )
            self._live.start(refresh=True)

    def _show_work(self, event: events.StillWorking) -> None:
        """Show what takes long: in the live line if there is one, else once as a line."""
        if self._live is not None:
            self._progress.show_doing(f"{event.text}, {event.seconds:.0f} s")
        elif event.text != self._work:
            self._print(f"{event.text} …")
        self._work = event.text

    def _show_offline(self, event: events.OfflineProgress) -> None:
        standing = Standing(
            done=event.gradient_steps,
            total=event.total,
            unit="offline gradient steps",
            speed=event.gradient_steps_per_s,
        )
        if self._console.is_terminal:
            self._progress.show(standing)
            self._show_live()
        elif event.gradient_steps >= self._next_offline_at:
            self._next_offline_at = event.gradient_steps + -(-event.total // _LINES_A_RUN)
            self._print(
                "  ".join(filter(None, (each[0] for each in standing.texts(None).values())))
            )

    def _show_evaluating(self, event: events.Evaluating) -> None:
        what = "final evaluation" if event.is_final else "evaluating"
        what = "confirming" if event.is_confirmation else what
        episodes = counted(event.episodes, "episode")
        self._progress.show_doing(f"{what}, {episodes}")
        if event.is_final:
            self._calm.show_all()
            policy = self._frames(event.policy_timesteps, event.policy_waited_frames)
            self._print(f"evaluating the best policy, timestep {policy}, over {episodes}")

    def _show_last_uploads(self, event: events.UploadProgress) -> None:
        """Show the progress of the last uploads: a bar on a terminal, else one line."""
        if self._uploads is None:
            if not event.waiting_checkpoints:
                return
            self.close()
            self._uploads = Progress(
                TextColumn("uploading"), BarColumn(), DownloadColumn(), console=self._console
            )
            self._uploads.add_task("", total=event.waiting_bytes)
            if self._console.is_terminal:
                self._uploads.start()
            else:
                self._print(f"uploading the last {format_bytes(event.waiting_bytes)}")
        task = self._uploads.tasks[0]
        done = max(0, (task.total or 0) - event.waiting_bytes)
        self._uploads.update(task.id, completed=done)

    def _frames(self, timesteps: int, waited_frames: int | None) -> str:
        return with_frames(timesteps, self._frame_skip, waited_frames or 0)

    def _line(self, event: Event, text: str, *, style: str = "") -> None:
        steps = getattr(event, "offline_gradient_steps", None)
        when = f"{event.timesteps:>11,}" if steps is None else f"offline {steps:,}"
        print_words(self._console, f"{when}   {text}", indent=_AFTER_TIMESTEPS, style=style)

    def _print(self, text: str) -> None:
        print_words(self._console, text)

    def _mark(self, mark: str, text: str) -> None:
        print_words(self._console, Text.assemble((mark, "yellow"), f" {text}"))


def _way(event: events.Evaluated | events.ConfirmationPlayed) -> str:
    return "" if event.deterministic else ", stochastic"


def _success(rate: float | None) -> str:
    return "" if rate is None else f", success {percent(rate)}"
