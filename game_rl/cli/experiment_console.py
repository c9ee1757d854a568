"""Printing an experiment's events to standard output, as tables or as JSON."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from game_rl import events
from game_rl.cli.members_line import MembersLine
from game_rl.cli.printing import forecast_shown, print_words
from game_rl.config.experiments.experiment import STAGES
from game_rl.events import ExperimentEvent, StretchEnded
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.experiment_status import differences_words, generation_progress
from game_rl.experiments.experiment_tables import (
    champion_table,
    generation_table,
)
from game_rl.experiments.records import ChampionRecord, GenerationRecord, read_record
from game_rl.system.units import format_bytes, format_duration


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
        watch: command that shows the experiment in a browser; empty if nobody could call it.
    """

    def __init__(
        self, console: Console, *, result: Console | None = None, is_verbose: bool = False
    ) -> None:
        self.watch = ""
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

    def follow(self, root: Path) -> None:
        """Show from now on how far the members of the experiment at `root` are."""
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
                if self.watch:
                    self._print(f"watch it: [bold]{escape(self.watch)}[/]")
            case events.GenerationBegun():
                self._stretches.clear()
                if self._members is not None:
                    self._members.start()
                self._print(f"[bold]{self._stage} {event.generation}/{self._generations}[/]")
            case events.StretchEnded():
                self._stretches[event.number] = event
                if self._is_verbose:
                    self._print(escape(_stretch_line(event)))
            case events.MemberDied():
                self._warn(
                    death_words(
                        name=event.name,
                        code=event.code,
                        deaths=event.deaths,
                        pause_s=event.pause_s,
                        cause=event.text,
                    )
                )
            case events.ExperimentWarned():
                self._warn(event.text)
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

    def _warn(self, text: str) -> None:
        print_words(self._console, Text.assemble(("warning:", "yellow"), f" {text}"))

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


def _stretch_line(event: StretchEnded) -> str:
    fitness = event.failure or ("" if event.fitness is None else f"{event.fitness.value:.2f}")
    return (
        f"{event.folder}: timestep {event.timesteps:,}, {event.timesteps_per_s:,.0f}/s, "
        f"{format_duration(event.seconds)}, RAM {format_bytes(event.ram_peak_bytes)} on "
        f"{event.host}; {fitness}"
    )
