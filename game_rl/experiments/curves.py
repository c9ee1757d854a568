"""TensorBoard curves of an experiment over its generations; each member has its own curves, too."""

import time
from pathlib import Path
from statistics import fmean, median, pstdev

from game_rl.experiments.plans.mutation import Value
from game_rl.experiments.plans.plan import Rules
from game_rl.experiments.records import GenerationRecord, TrainedMember
from game_rl.experiments.tensorboard_file import event_file
from game_rl.run_dir import write_atomic


def write_curves(folder: Path, record: GenerationRecord, rules: Rules) -> None:
    """Write two files for the generation.

    The step of one is a member's timesteps. The step of the other, in `over_frames`, is the
    emulator frames of all runs.
    """
    values = {**_fitness(record, rules), **_hyperparameters(record)}
    steps = {folder: record.timesteps}
    frames = rules.frames_of(record.timesteps_of_all)
    if frames is not None:
        steps[folder / "over_frames"] = frames
    for place, step in steps.items():
        place.mkdir(exist_ok=True)
        path = place / f"events.out.tfevents.{record.generation:010d}.population"
        write_atomic(path, event_file(values, step=step, wall_time_s=time.time()))


def remove_curves(folder: Path, *, after: int) -> None:
    """Remove the curves of the generations after `after`."""
    for path in folder.rglob("events.out.tfevents.*.population"):
        if int(path.name.split(".")[3]) > after:
            path.unlink()


def _fitness(record: GenerationRecord, rules: Rules) -> dict[str, float]:
    """Return best, median and spread (standard deviation) over members with finite weights."""
    found = [m.fitness for m in record.members if m.fitness is not None]
    values = [fitness.value for fitness in found]
    place, metric = rules.kind, rules.fitness.metric
    learner = None if record.learner is None else record.learner.number
    own = [m for m in record.members if m.number == learner]
    return {
        **{f"{place}/{metric}_{_part(m)}": m.fitness.value for m in own if m.fitness},
        f"{place}/{metric}_best": max(values),
        f"{place}/{metric}_median": median(values),
        f"{place}/{metric}_spread": pstdev(values),
        f"{place}/mean_reward": fmean(fitness.mean_reward for fitness in found),
        f"{place}/copies": len(record.copies),
        f"{place}/timesteps_of_all": record.timesteps_of_all or 0,
        **_differences(record, place),
    }


def _differences(record: GenerationRecord, place: str) -> dict[str, float]:
    """Return the shares of the same observations on which two runs act differently.

    They are means over pairs.
    """
    found = {"members": record.differing_members, "learner": record.differing_learner}
    return {f"{place}/differing_actions_{k}": v for k, v in found.items() if v is not None}


def _part(member: TrainedMember) -> str:
    """Return the part of the folder's name before the generation: `learner` of `learner.g0002`."""
    return member.folder.partition(".")[0]


def _hyperparameters(record: GenerationRecord) -> dict[str, float]:
    return {
        f"{key}/{member.number:02d}": _number(value)
        for member in record.members
        for key, value in member.values.items()
    }


def _number(value: Value) -> float:
    """Return the number that stands for a value; of a schedule, its start."""
    return value["start"] if isinstance(value, dict) else value
