"""Printing an experiment's events to standard output, as tables or as JSON."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from game_rl import events
from game_rl.cli.printing import forecast_shown, print_words
from game_rl.cli.progress_line import fitted, left_words
from game_rl.config.experiments.experiment import STAGES
from game_rl.errors import GameRLError
from game_rl.events import ExperimentEvent, StretchEnded
from game_rl.events.time_left import TimeLeft
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.experiment_status import (
    MembersProgress,
    differences_words,
    generation_progress,
)
from game_rl.experiments.experiment_tables import (
    champion_table,
    generation_table,
)
from game_rl.experiments.records import ChampionRecord, GenerationRecord, read_record
from game_rl.statistics import percent
from game_rl.system.units import format_bytes, format_duration

_LOOK_EVERY_S = 2.0  # at the run directories, which takes some milliseconds
_LINE_EVERY_S = 60.0  # without a terminal
_KNOWN_FROM = 0.02  # of the work, since the first look
_ORDER = ("members", "members", "left", "members", "title", "members")


class MembersLine:
    """Shows the progress of runs that other processes train, from a thread of its own.

    Args:
        look: reads how far they are.
        clock: function that returns the time in seconds.
    """

    def __init__(
        self,
        console: Console,
        look: Callable[[], MembersProgress],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._look = look
        self._clock = clock
        self._first: tuple[float, float] | None = None
        self._has_ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._live: Live | None = None

    def start(self) -> None:
        """Begin a generation."""
        self.close()
        self._first = None
        if self._console.quiet:
            return
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._has_ended.clear()
        self._thread = threading.Thread(target=self._draw, name="members", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take the line away; may be called twice."""
        self._has_ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self) -> None:
        period_s = _LINE_EVERY_S if self._live is None else _LOOK_EVERY_S
        while not self._has_ended.wait(period_s):
            # a member may be moved aside, or write a file, at this moment
            with suppress(GameRLError, OSError, ValueError):
                text = self.text()
                if self._live is None:
                    print_words(self._console, text)
                else:
                    self._live.update(Text(text, no_wrap=True, overflow="crop"), refresh=True)

    def text(self) -> str:
        """Return the line of this moment, which fits the terminal."""
        progress = self._look()
        shares = progress.shares.items()
        members = [f"{name} {'done' if share >= 1 else percent(share)}" for name, share in shares]
        running = [f"{name} {percent(share)}" for name, share in shares if 0 < share < 1]
        done = f"{progress.n_done} of {len(shares)} done"
        whole = f"{done}, {percent(progress.mean)} overall"
        texts = {
            "title": [progress.title, ""],
            "members": [", ".join(members), ", ".join([done, *running]), whole, done, ""],
            "left": left_words(self._time_left(progress.mean)),
        }
        width = self._console.width if self._console.is_terminal else 1_000
        return "  ".join(filter(None, fitted(texts, _ORDER, width).values()))

    def _time_left(self, mean: float) -> TimeLeft | None:
        """Return the time left at the pace since the first look."""
        now_s = self._clock()
        self._first = self._first or (now_s, mean)
        since_s, before = self._first
        gained = mean - before
        if gained < _KNOWN_FROM:
            return None
        left_s = (1 - mean) / gained * (now_s - since_s)
        return TimeLeft(left_s, is_about=True, is_at_most=False)


def death_words(*, name: str, code: int, deaths: int, pause_s: float | None, cause: str) -> str:
    """Describe the death of a job, and when it starts again."""
    way_on = "" if pause_s is None else f" and starts again in {format_duration(pause_s)}"
    return (
        f"{name} was killed (exit code {code}{cause and f'; {cause}'}){way_on}; deaths since its "
        f"newest checkpoint: {deaths}"
    )


class ExperimentConsole:
    """A Listener that prints a table for each generation or round, and one of the champion.

    Args:
        result: console for the champion (default: `console`).
        is_verbose: whether each member's training gets a line when it ends.

    Attributes:
        show_preflight: prints a forecast.
    """

    def __init__(
        self, console: Console, *, result: Console | None = None, is_verbose: bool = False
    ) -> None:
        self._watch = ""
        self.show_preflight = forecast_shown(console, is_verbose=is_verbose)
        self._console = console
        self._result = result or console
        self._is_verbose = is_verbose
        self._generations = 0
        self._stage = ""
        self._members: MembersLine | None = None
        self._stretches: dict[int, StretchEnded] = {}

    def notice(self, text: str) -> None:
        """Print a notice from a signal handler, which may run at any moment."""
        self._console.print(f"[yellow]{escape(text)}[/]")

    def follow(self, root: Path, *, watch: str) -> None:
        """Show from now on how far the members of the experiment at `root` are.

        Args:
            watch: command that shows the experiment in a browser.
        """
        self._watch = watch
        folder = ExperimentDir(root)
        self._members = MembersLine(self._console, lambda: generation_progress(folder))

    def close(self) -> None:
        """Take the line of the members away; may be called twice."""
        if self._members is not None:
            self._members.close()

    def __call__(self, event: ExperimentEvent) -> None:  # noqa: C901 - a case an event
        match event:
            case events.ExperimentBegun():
                self._generations = event.generations
                self._stage = STAGES.get(event.kind, "generation").capitalize()
                if self._watch:
                    self._print(f"watch it: [bold]{escape(self._watch)}[/]")
            case events.GenerationBegun():
                self._stretches.clear()
                if self._members is not None:
                    self._members.start()
                self._print(f"[bold]{self._stage} {event.generation}/{self._generations}[/]")
            case events.StretchEnded():
                self._stretches[event.number] = event
                if self._is_verbose:
                    fitness = "" if event.fitness is None else f"{event.fitness.value:.2f}"
                    text = (
                        f"{event.folder}: timestep {event.timesteps:,}, "
                        f"{event.timesteps_per_s:,.0f}/s, {format_duration(event.seconds)}, RAM "
                        f"{format_bytes(event.ram_peak_bytes)} on {event.host}; "
                        f"{event.failure or fitness}"
                    )
                    self._print(escape(text))
            case events.MemberDied():
                words = death_words(
                    name=event.name,
                    code=event.code,
                    deaths=event.deaths,
                    pause_s=event.pause_s,
                    cause=event.text,
                )
                self._print(f"[yellow]warning:[/] {escape(words)}")
            case events.ExperimentWarned():
                self._print(f"[yellow]warning:[/] {escape(event.text)}")
            case events.GenerationEnded():
                self.close()
                self._show_generation(event)
            case events.ChampionFound():
                self._show_champion(event)
            case events.ExperimentEnded():
                self.close()
            case _:
                pass

    def _print(self, text: str) -> None:
        print_words(self._console, Text.from_markup(text, emoji=False))

    def _show_generation(self, event: events.GenerationEnded) -> None:
        record = read_record(Path(event.record), GenerationRecord)
        if record is not None:
            self._console.print(generation_table(record, self._stretches))
            if words := differences_words(record):
                self._print(escape(words))
        self._print(
            f"saved {escape(event.record)}; all checkpoints take "
            f"{format_bytes(event.checkpoints_bytes)}; this took {format_duration(event.seconds)}"
        )

    def _show_champion(self, event: events.ChampionFound) -> None:
        folder = ExperimentDir(Path(event.path).parent)
        champion = read_record(folder.champion_record, ChampionRecord)
        if champion is not None:
            self._result.print(champion_table(champion))
        text = f"champion     {escape(event.path)}"
        print_words(self._result, Text.from_markup(text, emoji=False), indent=13)
