"""The status of an experiment, from its folder alone, and how far its members are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from game_rl.config.experiments.experiment import STAGES, load_experiment
from game_rl.events import ExperimentBegun, ExperimentEnded, Fitness, LakesFollowed, RowsDrawn
from game_rl.events.event_log import read_experiment_events
from game_rl.events.lineage import read_lineage
from game_rl.events.run_view import RunState, read_tail
from game_rl.experiments.backup import stored_state
from game_rl.experiments.controller import experiment_state
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.plans.plan import Plan
from game_rl.experiments.records import (
    ExperimentState,
    GenerationRecord,
    RunCounts,
    counts_before,
    read_record,
)
from game_rl.files.run_dir import RunDir
from game_rl.statistics import percent


@dataclass(frozen=True)
class MemberStatus:
    """The progress of a member or of the learner.

    Attributes:
        timesteps: by its newest event; its newest checkpoint may be older.
        until: the timestep at which its stretch ends.
        has_ended_stretch: whether it has ended its stretch and waits for the others.
        last: fitness at the end of the last generation; None for a new copy.
        followed: what the learner of a live mixture sees of its Lake; None before that.
        waited_frames: frames beyond `frame_skip` in each timestep.
    """

    number: int
    folder: str
    timesteps: int
    until: int
    timesteps_per_s: float | None
    has_ended_stretch: bool
    last: Fitness | None
    followed: LakesFollowed | None = None
    waited_frames: int = 0


@dataclass(frozen=True)
class DrawnStatus:
    """The rows that a learner's batches were made of.

    Attributes:
        learner: folder of the learner's run; only rows that this run has drawn are counted.
        own: rows that it has played itself.
        runs: rows of each member's run, by its folder; of another run's stream, by the run's id.
        offline_runs: the same before the learner's first timestep.
    """

    learner: str
    own: int
    runs: dict[str, int]
    offline_runs: dict[str, int]

    @property
    def words(self) -> str:
        """A text for the terminal; empty if nothing was drawn yet."""
        parts = []
        if total := self.own + sum(self.runs.values()):
            found = [("its own", self.own), *_by_member(self.runs)]
            parts.append(f"{total:,} rows ({_shares(found, total)})")
        if offline := sum(self.offline_runs.values()):
            found = _by_member(self.offline_runs)
            parts.append(f"{offline:,} rows before its first timestep ({_shares(found, offline)})")
        return f"{self.learner} has drawn {'; '.join(parts)}" if parts else ""


@dataclass(frozen=True)
class DifferencesStatus:
    """How much actions differ on the same observations; see `ActionDifferences`.

    Attributes:
        members: mean over pairs of members; None if there is no pair.
        learner: mean over the members of the difference to the learner; None without a learner.
        words: a text for the terminal.
    """

    generation: int
    observations: int
    runs: tuple[str, ...]
    shares: tuple[tuple[float, ...], ...]
    members: float | None
    learner: float | None
    words: str


_FOLLOWED = {"rows", "newest_age_s", "own_drawn", "drawn"}


@dataclass(frozen=True)
class ExperimentStatus:
    """The status of an experiment.

    Attributes:
        generation: the one that is underway, or the last one.
        stretch_until: timesteps of a member at the end of `generation`.
        state: as that of a run; its controller is what trains or was killed.
        text: why the experiment has stopped or failed, or is not training; else empty.
        timesteps_of_all: timesteps that all runs have played so far, the learner's and those that
            were copied over included; None if the records do not count them.
        frames_of_all: the same in emulator frames.
        is_live: whether there is one generation in which the learner trains while the members do.
        drawn: rows drawn by the newest learner; None if none has learned yet.
        differences: None before the first generation whose actions were compared.
        safe: the newest generation in object storage and its address; None if nothing was ever
            uploaded.
    """

    path: str
    kind: str
    state: RunState
    generation: int
    generations: int
    stretch_until: int
    members: tuple[MemberStatus, ...]
    text: str
    timesteps_of_all: int | None
    frames_of_all: int | None
    is_live: bool = False
    safe: str | None = None
    drawn: DrawnStatus | None = None
    differences: DifferencesStatus | None = None

    def to_json(self) -> dict[str, Any]:
        members = []
        for member in self.members:
            last = None if member.last is None else member.last.model_dump(mode="json")
            followed = member.followed
            seen = None if followed is None else followed.model_dump(include=_FOLLOWED)
            members.append(asdict(member) | {"last": last, "followed": seen})
        return asdict(self) | {"members": members}


def experiment_status(folder: ExperimentDir) -> ExperimentStatus:
    """Return the status of an experiment; reading it does not disturb the controller or a run."""
    plan = Plan(folder, load_experiment(folder.config, is_saved=True))
    state = experiment_state(plan)
    generations = plan.config.generations
    now = min(state.generation + 1, generations)
    current, text = _state(folder, is_complete=state.complete)
    record = read_record(folder.generation(state.generation).record, GenerationRecord)
    members = _members(plan, state, record)
    timesteps = 0 if record is None else record.timesteps_of_all
    waited_frames = 0 if record is None else record.waited_frames_of_all
    if timesteps is not None and state.generation < generations:
        since = _played_since(plan, record, members)
        timesteps += since.timesteps
        waited_frames += since.waited_frames
    safe = None
    stored = stored_state(folder)
    if stored is not None:
        what = "nothing" if stored.generation is None else f"generation {stored.generation}"
        safe = f"{what} is at {stored.to}/experiments/{folder.identity().id}"
    return ExperimentStatus(
        path=str(folder.root),
        kind=plan.config.kind,
        state=current,
        generation=now,
        generations=generations,
        stretch_until=plan.timesteps(now),
        members=members,
        text=text,
        is_live=plan.config.rule == "live",
        timesteps_of_all=timesteps,
        frames_of_all=plan.frames_of(timesteps, waited_frames),
        safe=safe,
        drawn=drawn_status(plan, now),
        differences=None if record is None else differences_status(record),
    )


def _played_since(
    plan: Plan, record: GenerationRecord | None, members: Sequence[MemberStatus]
) -> RunCounts:
    """Return what the members together have played since the last record."""
    timesteps = 0
    waited_frames = 0
    began = counts_before(record)
    for member in members:
        if member.folder not in began:  # not 0 for the best member's fork that trains on
            own = read_lineage(plan.folder.member(member.folder))
            began[member.folder] = RunCounts(own.began_at, own.began_waited_frames)
        counts = began[member.folder]
        timesteps += max(0, member.timesteps - counts.timesteps)
        waited_frames += max(0, member.waited_frames - counts.waited_frames)
    return RunCounts(timesteps, waited_frames)


def _members(
    plan: Plan, state: ExperimentState, record: GenerationRecord | None
) -> tuple[MemberStatus, ...]:
    """Return the members of the generation after the last record, or of the last one."""
    folder = plan.folder
    generation = min(state.generation + 1, plan.config.generations)
    last = {} if record is None else {m.folder: m.fitness for m in record.members}
    place = folder.generation(generation)
    extra = plan.extra_member(generation)
    found = []
    # the one that trains after the others only once its run exists
    later = () if extra is None or not folder.member(extra.folder).exists() else (extra,)
    for member in (*state.members, *later):
        tail = read_tail(folder.member(member.folder))
        found.append(
            MemberStatus(
                number=member.number,
                folder=member.folder,
                timesteps=tail.timesteps,
                until=plan.until(member, generation),
                timesteps_per_s=tail.timesteps_per_s,
                has_ended_stretch=place.result(member.number).exists(),
                last=last.get(member.folder),
                followed=tail.newest(LakesFollowed),
                waited_frames=tail.waited_frames,
            )
        )
    return tuple(found)


def _state(folder: ExperimentDir, *, is_complete: bool) -> tuple[RunState, str]:
    if is_complete:
        return "completed", ""
    is_training = folder.is_locked
    if is_training:
        return "training", ""
    events = read_experiment_events(folder.events)
    ends = [event for event in events if isinstance(event, ExperimentBegun | ExperimentEnded)]
    if ends and isinstance(ends[-1], ExperimentEnded) and ends[-1].reason != "completed":
        return ends[-1].reason, ends[-1].text
    if is_training is None:
        return "unknown", f"this user may not read {folder.root / 'lock'}"
    if ends:
        return "killed", "its controller was killed"
    return "not begun", "it has not begun"


def _by_member(runs: dict[str, int]) -> list[tuple[str, int]]:
    """Sum the rows by member, over its runs before and after copies."""
    found: dict[str, int] = {}
    for name, rows in runs.items():
        member = name.partition(".")[0]
        found[member] = found.get(member, 0) + rows
    return sorted(found.items())


def _shares(found: list[tuple[str, int]], total: int) -> str:
    return ", ".join(f"{percent(rows / total, 1)} {name}" for name, rows in found)


def drawn_status(plan: Plan, generation: int) -> DrawnStatus | None:
    """Return the rows drawn by the learner of this generation, else of the one before, or None."""
    for number in (generation, generation - 1):
        learner = plan.extra_member(number)
        if plan.config.rule == "live":
            learner = plan.first_members()[-1]
        if learner is None:
            continue
        found = read_tail(plan.folder.member(learner.folder)).newest(RowsDrawn)
        if found is not None:
            files = sorted(plan.folder.members.glob("*/run.json"))
            names = {RunDir(file.parent).identity().id: file.parent.name for file in files}
            return DrawnStatus(
                learner=learner.folder,
                own=found.own,
                runs={names.get(k, k): n for k, n in found.streams.items()},
                offline_runs={names.get(k, k): n for k, n in found.offline_streams.items()},
            )
    return None


def differences_status(record: GenerationRecord) -> DifferencesStatus | None:
    """Return the differences at the end of a generation, or None if they were not measured."""
    found = record.differences
    if found is None:
        return None
    return DifferencesStatus(
        generation=record.generation,
        observations=found.observations,
        runs=found.runs,
        shares=found.shares,
        members=record.differing_members,
        learner=record.differing_learner,
        words=differences_words(record),
    )


def differences_words(record: GenerationRecord) -> str:
    """Say how much actions differ on the same observations; empty if it was not measured."""
    found = record.differences
    learner = record.learner_folder
    if found is None:
        return ""
    words = []
    pairs = [(share, a, b) for a, b, share in found.pairs() if learner not in (a, b)]
    if pairs and record.differing_members is not None:
        low, one, other = min(pairs)
        alike = f"the most alike, {one} and {other}, on {percent(low, 1)}"
        words.append(
            f"two members act differently on {percent(record.differing_members, 1)} ({alike})"
        )
    if record.differing_learner is not None:
        words.append(f"a member and the learner on {percent(record.differing_learner, 1)}")
    of = f"of the same {found.observations:,} observations, "
    return of + ", ".join(words) if words else ""


@dataclass(frozen=True)
class MembersProgress:
    """How far each of several runs is.

    Attributes:
        title: the generation, or the number of results.
        shares: by name, 0..1 of what the run has to do; 1 only once its result is there.
    """

    title: str
    shares: Mapping[str, float]

    @property
    def mean(self) -> float:
        return sum(self.shares.values()) / max(1, len(self.shares))

    @property
    def n_done(self) -> int:
        return sum(share >= 1 for share in self.shares.values())


def generation_progress(folder: ExperimentDir) -> MembersProgress:
    """Return how far the members of the generation are that is underway."""
    status = experiment_status(folder)
    title = f"{STAGES[status.kind]} {status.generation}/{status.generations}"
    if status.is_live:
        title = "live"
    return MembersProgress(title, dict(shares_done(status)))


def shares_done(status: ExperimentStatus) -> Iterator[tuple[str, float]]:
    """Yield how far each member of the generation is, 1 only once it has ended its stretch."""
    for member in status.members:
        begun = member.until * (status.generation - 1) // max(1, status.generation)
        share = (member.timesteps - begun) / max(1, member.until - begun)
        yield member.folder, 1.0 if member.has_ended_stretch else min(0.99, max(0.0, share))
