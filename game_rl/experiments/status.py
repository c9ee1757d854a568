"""Where an experiment is, from its folder alone: for another terminal, and for programs."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from game_rl.config.experiments import Population, load_population
from game_rl.experiments.account import ExperimentBegun, ExperimentEnded, read_account
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.fitness import Fitness
from game_rl.experiments.population import read_state
from game_rl.experiments.records import GenerationRecord, read_record
from game_rl.experiments.safe_copy import stored_state

_LAST_BYTES = 16_384  # of a member's events: more than its last hundred


@dataclass(frozen=True)
class MemberStatus:
    """Attributes:
    timesteps: as far as its account says; the newest checkpoint may be older.
    has_ended_stretch: it waits for the others.
    last: what it reached in the last generation; None for a new copy.
    """

    number: int
    folder: str
    timesteps: int
    timesteps_per_s: float | None
    has_ended_stretch: bool
    last: Fitness | None


@dataclass(frozen=True)
class ExperimentStatus:
    """`generation` is the one that is underway, or the last one."""

    path: str
    state: Literal["training", "complete", "stopped", "failed", "not training"]
    generation: int
    generations: int
    stretch_until: int
    members: tuple[MemberStatus, ...]
    text: str
    safe: str | None = None
    """What of it is where in object storage; None: nothing was ever sent."""

    def to_json(self) -> dict[str, Any]:
        members = [
            asdict(m) | {"last": None if m.last is None else m.last.model_dump(mode="json")}
            for m in self.members
        ]
        return asdict(self) | {"members": members}


def experiment_status(folder: ExperimentDir) -> ExperimentStatus:
    """Read only; the controller and its members do not notice."""
    population = load_population(folder.config, is_saved=True)
    config, state = population.config, read_state(folder, population)
    now = min(state.generation + 1, config.generations)
    how, text = _how_it_is(folder, is_complete=state.complete)
    return ExperimentStatus(
        path=str(folder.root),
        state=how,
        generation=now,
        generations=config.generations,
        stretch_until=now * config.timesteps_per_generation,
        members=_members(folder, population, now),
        text=text,
        safe=_safe(folder),
    )


def _members(
    folder: ExperimentDir, population: Population, generation: int
) -> tuple[MemberStatus, ...]:
    state = read_state(folder, population)
    record = read_record(folder.generation(state.generation).record, GenerationRecord)
    last = {} if record is None else {m.folder: m.fitness for m in record.members}
    place, found = folder.generation(generation), []
    for member in state.members:
        timesteps, speed = _progress(folder.member(member.folder).events)
        found.append(
            MemberStatus(
                number=member.number,
                folder=member.folder,
                timesteps=timesteps,
                timesteps_per_s=speed,
                has_ended_stretch=place.result(member.number).exists(),
                last=last.get(member.folder),
            )
        )
    return tuple(found)


def _how_it_is(
    folder: ExperimentDir, *, is_complete: bool
) -> tuple[Literal["training", "complete", "stopped", "failed", "not training"], str]:
    if is_complete:
        return "complete", ""
    if _is_held(folder):
        return "training", ""
    ends = [
        e for e in read_account(folder.events) if isinstance(e, ExperimentBegun | ExperimentEnded)
    ]
    if ends and isinstance(ends[-1], ExperimentEnded) and ends[-1].reason != "completed":
        return ends[-1].reason, ends[-1].text
    return "not training", "its controller was killed"


def _safe(folder: ExperimentDir) -> str | None:
    stored = stored_state(folder)
    if stored is None:
        return None
    place = f"{stored.to}/experiments/{folder.identity().id}"
    what = "nothing" if stored.generation is None else f"generation {stored.generation}"
    return f"{what} is at {place}"


def _is_held(folder: ExperimentDir) -> bool:
    try:
        with FileLock(folder.root / "lock", timeout=0):
            return False
    except Timeout:
        return True


def _progress(events: Path) -> tuple[int, float | None]:
    """The last timestep and speed that a run's account tells of."""
    if not events.exists():
        return 0, None
    with events.open("rb") as file:
        file.seek(max(0, events.stat().st_size - _LAST_BYTES))
        lines = file.read().splitlines()
    timesteps, speed = 0, None
    for line in lines:
        try:
            event = json.loads(line)
            timesteps = int(event.get("timesteps", timesteps))
            speed = event.get("timesteps_per_s", speed)
        except (ValueError, AttributeError, TypeError):
            continue  # torn, or the middle of a line
    return timesteps, speed
