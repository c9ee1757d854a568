"""Printing an experiment's events to standard output, as tables or as JSON."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from game_rl import events
from game_rl.config.experiments.experiment import STAGES
from game_rl.events import ExperimentEvent, StretchEnded
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.experiment_status import differences_words
from game_rl.experiments.experiment_tables import champion_table, forecast_table, generation_table
from game_rl.experiments.records import ChampionRecord, GenerationRecord, read_record
from game_rl.system.units import format_bytes, format_duration

if TYPE_CHECKING:
    from game_rl.experiments.forecast.experiment_forecast import ExperimentReport


def death_words(*, name: str, code: int, deaths: int, pause_s: float | None, cause: str) -> str:
    """Describe the death of a job, and when it starts again."""
    way_on = "" if pause_s is None else f" and starts again in {format_duration(pause_s)}"
    return (
        f"{name} was killed (exit code {code}{cause and f'; {cause}'}){way_on}; deaths since its "
        f"newest checkpoint: {deaths}"
    )


class ExperimentConsole:
    """A Listener that prints a table for each generation or round."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._generations, self._stage = 0, ""
        self._stretches: dict[int, StretchEnded] = {}

    def notice(self, text: str) -> None:
        """Print a notice from a signal handler, which may run at any moment."""
        self._console.print(f"[yellow]{escape(text)}[/]")

    def show_preflight(self, report: "ExperimentReport") -> None:
        self._console.print(forecast_table(report))

    def __call__(self, event: ExperimentEvent) -> None:
        match event:
            case events.ExperimentBegun():
                self._generations = event.generations
                self._stage = STAGES.get(event.kind, "generation").capitalize()
            case events.GenerationBegun():
                self._stretches.clear()
                self._print(f"[bold]{self._stage} {event.generation}/{self._generations}[/]")
            case events.StretchEnded():
                self._stretches[event.number] = event
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
                self._show_generation(event)
            case events.ChampionFound():
                self._show_champion(event)
            case _:
                pass

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, highlight=False)

    def _warn(self, text: str) -> None:
        self._console.print("[yellow]warning:[/]", escape(text), soft_wrap=True)

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
            self._console.print(champion_table(champion))
        self._print(f"champion     {escape(event.path)}")
        self._print(f"curves       tensorboard --logdir {escape(quote(str(folder.root)))}")
