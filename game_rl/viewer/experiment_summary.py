"""An experiment as its page shows it: members, generations, and which run descends from which."""

import functools
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from game_rl.config.experiments.experiment import STAGES, load_experiment
from game_rl.events import ExperimentEvent, GenerationBegun, GenerationEnded
from game_rl.events.event_log import read_experiment_events
from game_rl.experiments.descent import changes_words
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.experiment_status import ExperimentStatus, experiment_status
from game_rl.experiments.records import (
    ChampionRecord,
    GenerationRecord,
    TrainedMember,
    read_record,
    read_records,
)
from game_rl.files.run_dir import RunDir
from game_rl.viewer.event_words import happening
from game_rl.viewer.followed_run import clips_of

_NEWEST = 3
"""Generations over which the mean is taken: what slows the machine now counts, one outlier less."""


def experiment_seconds_left(
    status: ExperimentStatus, events: Sequence[ExperimentEvent], now: datetime
) -> float | None:
    """Return the seconds up to the end of the last generation; None if nothing is known of it.

    The champion's episodes, which follow, are not counted.
    """
    if status.state != "training":
        return None
    if status.is_live:
        return _of_slowest(status)
    took = _whole_generations(events)
    begun = [event for event in events if isinstance(event, GenerationBegun)]
    if not took or not begun:
        return None
    for event in events[events.index(begun[-1]) :]:
        if isinstance(event, GenerationEnded) and event.generation >= status.generations:
            return None  # the champion is sought
    mean = fmean(took[-_NEWEST:])
    in_this = mean - (now - begun[-1].time).total_seconds()
    after = max(0, status.generations - begun[-1].generation)
    left = after * mean + max(0.0, in_this)
    return left or None


def _whole_generations(events: Sequence[ExperimentEvent]) -> list[float]:
    """Return the seconds of the generations that one controller has carried out from the start."""
    found: list[float] = []
    starts = 0
    for event in events:
        if isinstance(event, GenerationBegun):
            starts += 1
        elif isinstance(event, GenerationEnded):
            if starts == 1:
                found.append(event.seconds)
            starts = 0
    return found


def _of_slowest(status: ExperimentStatus) -> float | None:
    """Return the seconds until the last of those that train at once has trained."""
    left = []
    for member in status.members:
        if member.has_ended_stretch:
            continue
        if not member.timesteps_per_s:
            return None
        left.append(max(0, member.until - member.timesteps) / member.timesteps_per_s)
    return max(left, default=None) or None


_MOST_LINES = 300

Json = dict[str, Any]


def experiment_summary(root: Path) -> Json:
    """Return the experiment's state as JSON."""
    folder = ExperimentDir(root)
    status = experiment_status(folder)
    records = read_records(folder)
    events = read_experiment_events(folder.events)
    config = folder.config.stat()
    lines = [(event, line) for event in events if (line := happening(event)) is not None]
    mixing = (status.drawn, status.differences)
    return {
        **_what_is_learned(folder.config, config.st_mtime_ns),
        "kind": status.kind,
        "stage": STAGES[status.kind],
        "state": status.state,
        "text": status.text,
        "generation": status.generation,
        "generations": status.generations,
        "is_live": status.is_live,
        "seconds_left": experiment_seconds_left(status, events, datetime.now(UTC)),
        "timesteps_of_all": status.timesteps_of_all,
        "frames_of_all": status.frames_of_all,
        "members": _members(folder, status, records),
        "table": [_generation(record) for record in records],
        "lineage": _lineage(records),
        "champion": _champion(folder),
        "mixing": [each.words for each in mixing if each is not None and each.words],
        "happenings": [
            {"time": event.time.isoformat(), **asdict(line)} for event, line in lines[-_MOST_LINES:]
        ],
    }


def experiment_brief(root: Path) -> Json:
    """Return what a row of a folder of runs shows of the experiment.

    `best_member` is the fittest one of the newest generation, `training` has the members that train
    now, `timesteps_per_s` their speed together. The clip is the champion's, or that of the
    best member; `clip_of` is the run that it is of.
    """
    folder = ExperimentDir(root)
    status = experiment_status(folder)
    newest = read_experiment_events(folder.events)[-1:]
    playing = [member for member in status.members if folder.member(member.folder).is_locked]
    speeds = [member.timesteps_per_s for member in playing if member.timesteps_per_s is not None]
    best = _best_member(folder)
    clips = [(run, clip) for run in _shown_runs(folder, best) for clip in clips_of(run)]
    clip_of, clip = clips[0] if clips else (None, None)
    return {
        "kind": status.kind,
        "state": status.state,
        "text": status.text,
        "stage": STAGES[status.kind],
        "generation": status.generation,
        "generations": status.generations,
        "n_members": len(status.members),
        "timesteps": status.timesteps_of_all,
        "timesteps_per_s": sum(speeds) if speeds else None,
        "training": [member.folder for member in playing],
        "last_event": newest[0].time.isoformat() if newest else None,
        "champion": _champion(folder),
        "best_member": None if best is None else _fitness_of(best),
        "clip_of": None if clip_of is None else clip_of.root.name,
        "clip": None if clip is None else clip.name,
    }


def _best_member(folder: ExperimentDir) -> TrainedMember | None:
    """Return the first of the newest generation's ranking; None before there is one."""
    for number in folder.kept_generations()[-1:]:
        record = read_record(folder.generation(number).record, GenerationRecord)
        if record is not None and record.ranking:
            return next(m for m in record.members if m.number == record.ranking[0])
    return None


def _fitness_of(member: TrainedMember) -> Json:
    fitness = member.fitness
    found = None if fitness is None else fitness.model_dump(mode="json")
    return {"folder": member.folder, "fitness": found}


def _shown_runs(folder: ExperimentDir, best: TrainedMember | None) -> list[RunDir]:
    """Return the runs whose clip may stand for the experiment, the champion's before another."""
    return [RunDir(folder.champion), *([] if best is None else [folder.member(best.folder)])]


def _champion(folder: ExperimentDir) -> Json | None:
    """Return the champion with its final result and its clip; None before there is one."""
    champion = read_record(folder.champion_record, ChampionRecord)
    if champion is None:
        return None
    final = champion.final.model_dump(mode="json")
    clips = [clip.name for clip in clips_of(RunDir(folder.root / "champion"))]
    found: Json = {"folder": champion.folder, "number": champion.number, "final": final}
    return found | {"clip": next(iter(clips), None)}


@functools.lru_cache(maxsize=8)
def _what_is_learned(config: Path, mtime_ns: int) -> Json:
    """Return the game and algorithm of the members, read again once the file has changed."""
    assert mtime_ns >= 0
    run = load_experiment(config, is_saved=True).run
    file = Path(run.game)
    name = file.parent.name if file.name == "game.yaml" else file.stem
    return {"game": name, "algorithm": run.algorithm.name, "n_envs": run.env.n_envs}


def _members(
    folder: ExperimentDir, status: ExperimentStatus, records: Sequence[GenerationRecord]
) -> list[Json]:
    copies = {copy.folder: copy for record in records for copy in record.copies}
    found = []
    for member in status.members:
        copy = copies.get(member.folder)
        found.append(
            {
                "number": member.number,
                "folder": member.folder,
                "timesteps": member.timesteps,
                "until": member.until,
                "timesteps_per_s": member.timesteps_per_s,
                "is_done": member.has_ended_stretch,
                "is_training": folder.member(member.folder).is_locked,
                "fitness": None if member.last is None else member.last.model_dump(mode="json"),
                "copy_of": None if copy is None else copy.parent_folder,
                "changes": "" if copy is None else changes_words(copy),
            }
        )
    return found


def _generation(record: GenerationRecord) -> Json:
    values = [m.fitness.value for m in record.members if m.fitness is not None]
    by_number = {member.number: member.folder for member in record.members}
    return {
        "generation": record.generation,
        "best": max(values, default=None),
        "mean": fmean(values) if values else None,
        "worst": min(values, default=None),
        "best_member": by_number.get(record.ranking[0]) if record.ranking else None,
        "copies": [f"{copy.folder} from {copy.parent_folder}" for copy in record.copies],
        "timesteps_of_all": record.timesteps_of_all,
    }


def _lineage(records: Sequence[GenerationRecord]) -> list[Json]:
    """Return the runs of each generation by member, with the number that each was copied from."""
    parents: dict[str, tuple[int, int]] = {}
    found = []
    for record in records:
        for member in record.members:
            copied = parents.get(member.folder)
            is_new = copied is not None and copied[0] == record.generation - 1
            found.append(
                {
                    "generation": record.generation,
                    "number": member.number,
                    "folder": member.folder,
                    "value": None if member.fitness is None else member.fitness.value,
                    "from": copied[1] if is_new and copied is not None else None,
                }
            )
        for copy in record.copies:
            parents[copy.folder] = (record.generation, copy.parent)
    return found
