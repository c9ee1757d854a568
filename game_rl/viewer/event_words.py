"""What happened in a run or an experiment, in short lines for the page and the report."""

import re
from dataclasses import dataclass, replace
from typing import Literal

from game_rl import events
from game_rl.events import TimedEvent
from game_rl.statistics import percent
from game_rl.system.units import counted, format_bytes, format_duration

Tone = Literal["plain", "good", "bad", "quiet"]

_RESOURCES = {"disk": "disk", "ram": "memory"}
_FREQUENT = {"rollout_ended", "lakes_followed", "rows_drawn", "curves_recorded", "evaluating"}

_TITLES: dict[str, tuple[str, Tone]] = {
    "milestone_reached": ("milestone", "good"),
    "hint_given": ("hint", "bad"),
    "plan_passed": ("plan", "plain"),
}


@dataclass(frozen=True)
class Happening:
    """A line of the list of events.

    Attributes:
        title: what kind of event it is.
        text: what it says; may be empty.
        tone: how the page shows it.
    """

    title: str
    text: str
    tone: Tone = "plain"


def happening(event: TimedEvent) -> Happening | None:
    """Return the line of an event, or None for those that come too often to be listed."""
    kind = str(getattr(event, "event", ""))
    if kind in _FREQUENT:
        return None
    found = _of_run(event) or _of_experiment(event)
    if found is None:
        title, tone = _TITLES.get(kind, (kind.replace("_", " "), "plain"))
        found = Happening(title, str(getattr(event, "text", "")), tone)
    return replace(found, text=percents_spaced(found.text))


def percents_spaced(text: str) -> str:
    """Return a text with percentages as page and reports have them; the terminal writes "25%"."""
    return re.sub(r"(?<=\d) ?%(?!\w)", "\u00a0%", text)


def _of_run(event: TimedEvent) -> Happening | None:  # noqa: C901 - a case an event
    match event:
        case events.Begun():
            return Happening("begun", f"{event.algorithm.upper()} on {event.device}")
        case events.Resumed():
            words = [f"from timestep {int(event.checkpoint.rpartition('/')[2]):,}"]
            if event.not_restored:
                words.append(f"not restored: {'; '.join(event.not_restored)}")
            if event.changes:
                changes = [change.replace(" -> ", " → ") for change in event.changes]
                words.append(f"changed: {', '.join(changes)}")
            if event.other_code:
                words.append(event.other_code)
            return Happening("resumed", "; ".join(words))
        case events.Forked():
            text = f"from {event.parent_path} at timestep {event.parent_timesteps:,}"
            return Happening("forked", text)
        case events.Evaluated():
            way = "" if event.deterministic else "stochastic, "
            result = _result(event.success_rate, event.mean_reward)
            text = f"{way}{counted(event.episodes, 'episode')}: {result}"
            if event.is_final:
                return Happening("final evaluation", text, "good")
            if event.is_best:
                return Happening("evaluation", f"{text}; the best so far", "good")
            return Happening("evaluation", text)
        case events.BaselinePlayed():
            return Happening("baseline", event.in_words)
        case events.ConfirmationPlayed():
            reached = "the goal is reached" if event.is_reached else "the goal is not reached"
            text = f"{event.in_words}; {reached}"
            return Happening("confirmation", text, "good" if event.is_reached else "plain")
        case events.StopConditionMet():
            return Happening("the run ends", event.text, "good")
        case events.CheckpointSaved():
            best = ", the best so far" if event.is_best else ""
            size = format_bytes(event.n_bytes)
            took = format_duration(event.seconds)
            return Happening("checkpoint", f"{size}, saved in {took}{best}", "quiet")
        case events.Warned() | events.ExperimentWarned():
            return Happening("warning", event.text, "bad")
        case events.WorkerRestarted():
            return Happening("worker restarted", event.text, "bad")
        case events.DiskForecast():
            return Happening("disk", event.text, "bad")
        case events.ResourceLow():
            return Happening(f"little {_RESOURCES[event.resource]} left", event.text, "bad")
        case events.Ended():
            return _ended(event.reason, event.text)
        case events.UploadQueued():
            return Happening("upload", f"checkpoint {int(event.checkpoint):,} waits", "quiet")
        case events.Uploaded():
            text = f"checkpoint {int(event.checkpoint):,} in {format_duration(event.seconds)}"
            return Happening("uploaded", text, "quiet")
        case events.Recorded():
            return Happening("clip recorded", "", "quiet")
        case events.ExplorationRestarted():
            return Happening(
                "exploration", f"{percent(event.share, 1)} of the actions are random again"
            )
        case events.TeacherReady():
            text = _result(event.success_rate, event.mean_reward)
            return Happening("teacher", f"timestep {event.policy_timesteps:,}: {text}")
        case events.EpisodesReplayed():
            return Happening("played episodes", event.in_words)
        case events.Cloned():
            return Happening("imitated", event.in_words)
        case events.Validated():
            student = _result(event.student_success_rate, event.student_mean_reward)
            teacher = _result(event.teacher_success_rate, event.teacher_mean_reward)
            text = f"student {student}; teacher {teacher}; the best is the {event.best}"
            return Happening("validation", text)
    return None


def _of_experiment(event: TimedEvent) -> Happening | None:  # noqa: C901 - a case an event
    match event:
        case events.ExperimentBegun():
            return Happening("begun", f"{event.members} members")
        case events.WentBack():
            return Happening("went back", f"to generation {event.generation}")
        case events.GenerationBegun():
            return Happening(f"generation {event.generation}", "begins", "quiet")
        case events.StretchEnded():
            if event.failure is not None:
                return Happening(f"member {event.folder}", event.failure, "bad")
            fitness = event.fitness
            if fitness is None:
                return Happening(f"member {event.folder}", "has trained", "quiet")
            text = _result(fitness.success_rate, fitness.mean_reward)
            return Happening(f"member {event.folder}", text, "quiet")
        case events.MemberDied():
            text = event.text or f"ended with exit code {event.code}"
            return Happening(event.name, text, "bad")
        case events.GenerationEnded():
            copies = f"{event.copies} copied" if event.copies else "no copies"
            return Happening(f"generation {event.generation}", f"ended, {copies}")
        case events.ChampionFound():
            text = _result(event.final.success_rate, event.final.mean_reward)
            return Happening("champion", f"{event.folder}: {text}", "good")
        case events.ExperimentEnded():
            return _ended(event.reason, event.text)
    return None


def _ended(reason: str, text: str) -> Happening:
    tones: dict[str, Tone] = {"completed": "good", "failed": "bad"}
    title = "ended" if text.startswith(reason) else "paused" if reason == "until" else reason
    return Happening(title, text, tones.get(reason, "plain"))


def _result(success_rate: float | None, mean_reward: float) -> str:
    success = "" if success_rate is None else f"success {percent(success_rate)}, "
    return f"{success}reward {mean_reward:.2f}"
