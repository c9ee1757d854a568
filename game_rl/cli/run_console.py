"""Printing a run's events to standard output, as text or as JSON."""

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

from game_rl import events
from game_rl.cli.calm_lines import CalmLines
from game_rl.events import Event, TimedEvent
from game_rl.system.units import format_bytes, format_duration, with_frames

_LINES_A_RUN = 20  # without a terminal to draw a bar on


def print_json(event: TimedEvent) -> None:
    """Print an event as one line of JSON, as in events.jsonl; a Listener."""
    if event.is_kept:
        print(event.model_dump_json(exclude_none=True), flush=True)


class RunConsole:
    """A Listener that prints lines, with a live bar on a terminal.

    Without a terminal, about twenty lines of progress take the place of the bar.

    Args:
        is_verbose: whether each update gets a line.
    """

    def __init__(self, console: Console, *, is_verbose: bool = False) -> None:
        self._console = console
        self._is_verbose = is_verbose
        self._total = 0
        self._frame_skip = 1
        self._may_end_early = False
        self._next_line_at = self._next_offline_at = 0
        self._bar = Progress(
            TextColumn("[bold]{task.completed:>11,.0f}[/] / {task.total:,.0f} timesteps"),
            BarColumn(),
            TextColumn("{task.fields[status]}"),
            TextColumn("{task.fields[left]}"),
            console=console,
        )
        self._announced: set[str] = set()
        self._calm = CalmLines(self._line)
        self._work = ""
        self._task: TaskID | None = None
        self._uploads: Progress | None = None

    def close(self) -> None:
        """Print what waits to be printed, and stop the live bars; may be called twice."""
        self._calm.show_all()
        if self._task is not None:
            self._bar.stop()
        if self._uploads is not None and self._console.is_terminal:
            self._uploads.stop()

    def announce(self, warning: str) -> None:
        """Print a warning before the training begins, which then does not repeat it here."""
        self._warn(warning)
        self._announced.add(warning)

    def _warn(self, text: str) -> None:
        if text not in self._announced:
            self._print("[yellow]warning:[/]", text)

    def __call__(self, event: Event) -> None:
        match event:
            case events.Begun() | events.Resumed():
                self._begin(event)
            case events.Forked():
                self._show_fork(event)
            case events.Progress() | events.RolloutEnded():
                self._show_progress(event)
            case events.OfflineProgress():
                self._show_offline(event)
            case events.Evaluating():
                self._show_evaluating(event)
            case events.Evaluated(is_final=False):
                self._line(event, _evaluation_line(event))
            case events.ConfirmationPlayed():
                self._line(event, _confirmation_line(event))
            case events.StopConditionMet():
                self._line(event, f"the run ends here: {event.text}")
            case events.CheckpointSaved():
                self._line(event, _checkpoint_line(event), style="dim")
            case events.UploadQueued():
                name, size = int(event.checkpoint), format_bytes(event.n_bytes)
                text = f"⏳ queued checkpoint {name:,} ({size}) → {event.to}"
                self._line(event, text, style="dim")
            case events.Uploaded():
                self._line(event, _uploaded_line(event), style="dim")
            case events.UploadProgress(is_ending=True):
                self._show_last_uploads(event)
            case events.ExplorationRestarted():
                self._line(event, _restart_line(event))
            case events.TeacherReady():
                self._line(event, _teacher_line(event))
            case events.Validated():
                self._line(event, _validation_line(event))
            case events.Ended():
                self.close()
            case _:
                self._show_notice(event)

    def _show_notice(self, event: Event) -> None:
        match event:
            case events.MilestoneReached() | events.HintGiven():
                self._calm.add(event)
            case events.StillWorking():
                self._show_work(event)
            case events.PlanPassed():
                self._line(event, event.text, style="dim" if event.share < 1 else "")
            case events.Warned() | events.WorkerRestarted():
                self._warn(event.text)
            case events.DiskForecast() | events.ResourceLow():
                self._warn(event.text)

    def _begin(self, event: events.Begun | events.Resumed) -> None:
        self._total = event.total_timesteps
        self._frame_skip = event.frame_skip or 1
        if isinstance(event, events.Resumed):
            for change in event.changes:
                self._print("[yellow]changed:[/]", change)
            self._print(
                f"resuming from timestep {self._frames(event.timesteps, event.waited_frames)}, "
                f"checkpoint {event.checkpoint}: " + ", ".join(event.restored)
            )
            for reason in event.not_restored:
                self._print("[yellow]not bit for bit as without the break:[/]", reason)
            if event.other_code:
                self._print("[yellow]note:[/] the checkpoint is from other code:", event.other_code)
        self._print(f"the network multiplies in {event.precision}, on {event.device}")
        for change in event.game_changes:
            self._print("[yellow]the game is changed:[/]", change)
        self._may_end_early = bool(event.stop_when)
        if self._may_end_early:
            self._print("the run may end early:", ", or ".join(event.stop_when))

    def _show_fork(self, event: events.Forked) -> None:
        self._print(f"a fork of {escape(event.parent_path)}, timestep {event.parent_timesteps:,}")
        for change in event.changes:
            self._print("[yellow]changed:[/]", change)
        for part in event.not_taken_over:
            self._print("[yellow]begins anew:[/]", part)

    def _show_progress(self, event: events.Progress | events.RolloutEnded) -> None:
        self._calm.show_due()
        status, left = _status(event), self._time_left(event)
        if self._is_verbose and isinstance(event, events.RolloutEnded):
            self._line(event, f"update: {status}  {left}".rstrip(), style="dim")
        elif self._console.is_terminal:
            self._bar.update(self._shown_bar(), completed=event.timesteps, status=status, left=left)
        elif event.timesteps >= self._next_line_at:
            self._next_line_at = event.timesteps + -(-self._total // _LINES_A_RUN)
            self._print(f"{event.timesteps:>11,} / {self._total:,} timesteps  {status}  {left}")

    def _show_work(self, event: events.StillWorking) -> None:
        """Show what takes long: in the bar if there is one, else once as a line."""
        if self._task is not None and self._console.is_terminal:
            self._bar.update(self._task, status=f"{event.text}, {event.seconds:.0f} s", left="")
        elif event.text != self._work:
            self._print(f"{event.text} …")
        self._work = event.text

    def _shown_bar(self) -> TaskID:
        if self._task is None:
            self._task = self._bar.add_task("", total=self._total, status="", left="")
            self._bar.start()
        return self._task

    def _time_left(self, event: events.Progress | events.RolloutEnded) -> str:
        """Return the time up to the total at the speed so far, evaluations included."""
        missing = self._total - event.timesteps
        if missing <= 0 or event.timesteps_per_s <= 0:
            return ""
        about = "at most" if self._may_end_early else "about"
        return f"{about} {format_duration(missing / event.timesteps_per_s)} left"

    def _show_offline(self, event: events.OfflineProgress) -> None:
        text = f"offline {event.gradient_steps:,}/{event.total:,} gradient steps"
        status = f"{text}  {event.gradient_steps_per_s:,.0f}/s"
        if self._console.is_terminal:
            self._bar.update(self._shown_bar(), completed=0, status=status)
        elif event.gradient_steps >= self._next_offline_at:
            self._next_offline_at = event.gradient_steps + -(-event.total // _LINES_A_RUN)
            self._print(status)

    def _show_evaluating(self, event: events.Evaluating) -> None:
        if event.is_final:
            self.close()
            self._print(
                f"evaluating the best policy, timestep "
                f"{self._frames(event.policy_timesteps, event.policy_waited_frames)}, "
                f"over {event.episodes} episodes"
            )
        elif self._task is not None:
            self._bar.update(self._task, status=f"evaluating, {event.episodes} episodes")

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
        line = f"{when}   {escape(text)}"
        self._console.print(line, style=style, highlight=not style, soft_wrap=True)

    def _print(self, first: str, *more: str) -> None:
        """Print texts, of which only the first may have markup."""
        self._console.print(first, *(escape(text) for text in more), soft_wrap=True)


def _status(event: events.Progress | events.RolloutEnded) -> str:
    parts = [f"{event.timesteps_per_s:,.0f}/s"]
    if event.mean_reward is not None:
        parts.append(f"reward {event.mean_reward:.2f}")
    if event.success_rate is not None:
        parts.append(f"success {event.success_rate:.0%}")
    return "  ".join(parts)


def _evaluation_line(event: events.Evaluated) -> str:
    success = _success(event.success_rate)
    best = ", the best so far" if event.is_best else ""
    way = "" if event.deterministic else ", stochastic"
    return (
        f"evaluation of {event.episodes}{way}: "
        f"reward {event.mean_reward:.2f} ± {event.std_reward:.2f}{success}, "
        f"length {event.mean_length:.0f}{best}"
    )


def _confirmation_line(event: events.ConfirmationPlayed) -> str:
    way = "" if event.deterministic else ", stochastic"
    return (
        f"confirmation by {event.episodes:,} new episodes{way}: "
        f"reward {event.mean_reward:.2f} ± {event.std_reward:.2f}{_success(event.success_rate)}"
        f"; {'reached' if event.is_reached else 'not reached, so the run continues'}"
    )


def _uploaded_line(event: events.Uploaded) -> str:
    name, took = int(event.checkpoint), format_duration(event.seconds)
    return f"✓ checkpoint {name:,} uploaded in {took}, verified"


def _restart_line(event: events.ExplorationRestarted) -> str:
    return (
        f"exploration begins again: {event.share:.1%} of the actions are random, falling until "
        f"timestep {event.at + event.over:,}"
    )


def _teacher_line(event: events.TeacherReady) -> str:
    return (
        f"teacher: {event.path} at timestep {event.policy_timesteps:,}, temperature "
        f"{event.temperature:.3g}, reward {event.mean_reward:.2f}{_success(event.success_rate)} "
        "in the episodes of the evaluations"
    )


def _validation_line(event: events.Validated) -> str:
    student = f"reward {event.student_mean_reward:.2f}{_success(event.student_success_rate)}"
    teacher = f"reward {event.teacher_mean_reward:.2f}{_success(event.teacher_success_rate)}"
    return (
        f"{event.episodes} new episodes: student (timestep {event.student_timesteps:,}) {student}; "
        f"teacher {teacher}; the best is the {event.best}"
    )


def _success(rate: float | None) -> str:
    return "" if rate is None else f", success {rate:.0%}"


def _checkpoint_line(event: events.CheckpointSaved) -> str:
    size, took = format_bytes(event.n_bytes), format_duration(event.seconds)
    contents, saved = ", ".join(event.contents), event.compression_saved
    smaller = "" if saved is None else f", its replay {saved:.1%} smaller than whole frame stacks"
    return f"checkpoint of {size} ({contents}) saved in {took}{smaller}"
