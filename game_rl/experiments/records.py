"""What an experiment writes down: members, fitness, generations, state, champion.

A record holds neither times nor hosts, so that the records of a resumed experiment are, byte for
byte, those of an experiment that was never interrupted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from game_rl.errors import ExperimentError
from game_rl.events import Fitness
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs.job_files import ActionDifferences, Played
from game_rl.files.saved import Natural, NaturalIfAny, Saved, read_saved
from game_rl.statistics import wilson_interval

_Kind = TypeVar("_Kind", bound=Saved)

Value = float | dict[str, float]
"""A number, or a schedule as the config states it: `{start: ..., end: ...}`."""


class Member(Saved):
    """The run that currently has a member's number."""

    number: Natural
    folder: str
    """Its run directory in `members`."""
    values: dict[str, Value]
    """Its values at the keys that mutate."""
    counts_from: Natural = 0
    """The generation after which its run began at timestep 0."""


class TrainedMember(Saved):
    """A member at the end of its stretch."""

    number: Natural
    folder: str
    values: dict[str, Value]
    timesteps: Natural
    waited_frames: NaturalIfAny = 0
    """Waited frames of its run up to `timesteps`."""
    checkpoint: str | None
    """Name of the checkpoint's folder; None if the weights became non-finite."""
    weights_sha256: str | None
    """None if the weights became non-finite."""
    fitness: Fitness | None
    """None if the weights became non-finite."""
    failure: str | None = None
    counts_from: Natural = 0
    """The generation after which its run began at timestep 0."""
    played_timesteps: Natural | None = None
    """Timesteps played in this generation; None in records of versions that did not count them."""


class CopyRecord(Saved):
    """A copy of a run that replaces a member."""

    number: Natural
    """Number of the member that is replaced."""
    folder: str
    """Folder of the copy."""
    parent: Natural
    parent_folder: str
    parent_checkpoint: str
    reason: Literal["worse", "non_finite", "always", "injected"]
    """Why it was replaced. worse: its fitness was lower; non_finite: its weights were not finite;
    always: the learner's clone replaces it whatever their fitness; injected: a copy of the learner
    replaced the worst member."""
    seed: Natural
    """Seed of the copy's own random numbers."""
    old_values: dict[str, Value]
    """Values before the mutation: the parent's or, if injected, the member's own."""
    new_values: dict[str, Value]
    """Values of the copy."""
    counters: Literal["keep", "new"] = "keep"
    """keep: its run continues the parent's counters; new: its run begins at timestep 0."""
    weight_noise: float = 0.0
    """Noise on its weights; see `fork.weight_noise` of a run."""


class LearnerRecord(Saved):
    """The learner of a generation, or its best member training on after the last one."""

    number: Natural
    """Its number among the members of the record."""
    parent_folder: str | None
    """Folder of the run that its weights come from; None if they are new."""
    parent_checkpoint: str | None
    """Name of the parent's checkpoint; None if the weights are new."""
    teacher: str | None
    """Folder of its teacher; None if it had none."""


class GenerationRecord(Saved):
    """One generation, written once."""

    format: Literal[1] = 1
    generation: Annotated[int, Field(ge=1)]
    timesteps: Natural
    """Timesteps of a member at the end of the generation, its ancestors' included."""
    seed: Natural
    """Seed of the episodes that give the fitness."""
    ranking: tuple[int, ...]
    """Numbers of the members, the best first."""
    members: tuple[TrainedMember, ...]
    copies: tuple[CopyRecord, ...]
    learner: LearnerRecord | None = None
    timesteps_of_all: Natural | None = None
    """Timesteps that all runs of the experiment have played so far: members, those that were copied
    over, and the learner. None in records of versions that did not count them."""
    waited_frames_of_all: NaturalIfAny = 0
    """Frames beyond `frame_skip` in each of these."""
    differences: ActionDifferences | None = None
    """How much the actions of members and learner differ at the end of their stretches. None if
    they share no Lake, if fewer than two have finite weights, or in records of versions that did
    not compare them."""

    @property
    def extra_run(self) -> TrainedMember | None:
        """The learner, or the best member that trains on; None if there is neither."""
        number = None if self.learner is None else self.learner.number
        return next((m for m in self.members if m.number == number), None)

    @property
    def members_alone(self) -> tuple[TrainedMember, ...]:
        """The members without `extra_run`."""
        return tuple(member for member in self.members if member != self.extra_run)

    @property
    def learner_folder(self) -> str | None:
        """Folder of the learner's run, or None if there is no learner."""
        return None if self.extra_run is None else self.extra_run.folder

    @property
    def differing_members(self) -> float | None:
        """The share of the same observations on which two members act differently.

        A mean over pairs of members; None if it was not measured.
        """
        names = {member.folder for member in self.members_alone}
        return None if self.differences is None else self.differences.among(names)

    @property
    def differing_learner(self) -> float | None:
        """The same share for the learner and a member, as a mean over the members."""
        learner = self.learner_folder
        if self.differences is None or learner is None:
            return None
        names = {member.folder for member in self.members_alone}
        return self.differences.between(learner, names)


class ExperimentState(Saved):
    """The state of an experiment.

    Its file is replaced in one rename, after everything that it refers to is on the disk.
    """

    format: Literal[1] = 1
    generation: Natural
    """The last generation whose decision was carried out; 0 if there is none."""
    members: tuple[Member, ...]
    """The members that train next."""
    complete: bool = False
    going_back_to: int | None = None
    """The generation that the population is going back to; None if it is not going back."""


class Candidate(Saved):
    """A member of the last generation that might be the champion."""

    number: Natural
    folder: str
    checkpoint: str
    selection: Fitness
    """The fitness that made it a candidate."""
    validation: Fitness
    """Its fitness on other episodes; the candidate with the highest one is the champion."""


class ChampionRecord(Saved):
    """How the champion was found, written once."""

    format: Literal[1] = 1
    candidates: tuple[Candidate, ...]
    number: Natural
    folder: str
    checkpoint: str
    final: Fitness
    """Its fitness on episodes that were not used for any selection."""
    timesteps_of_all: Natural | None = None
    """Timesteps that all runs of the experiment have played, as in the last generation's record."""
    frames_of_all: Natural | None = None
    """The same in emulator frames."""


def read_record(path: Path, kind: type[_Kind]) -> _Kind | None:
    """Read a record; return None if there is no file.

    Raises:
        ExperimentError: the file does not hold a record of this kind.
    """
    return read_saved(kind, path, error=ExperimentError)


def fitness_of(played: Played, metric: str) -> Fitness:
    """Return the fitness of the policy that has played these episodes.

    Raises:
        ExperimentError: the metric is the success rate, and the game does not define success.
    """
    episodes = len(played.rewards)
    successes = sum(played.successes)
    knows_success = len(played.successes) == episodes
    if metric == "success_rate" and not knows_success:
        raise ExperimentError(
            "the game does not say in every episode whether it was a success; give its game file a "
            "success condition, or write fitness: {metric: mean_reward}"
        )
    mean = fmean(played.rewards)
    rate = successes / episodes if knows_success else None
    return Fitness(
        value=mean if metric == "mean_reward" or rate is None else rate,
        seed=played.seed,
        episodes=episodes,
        deterministic=played.deterministic,
        success_rate=rate,
        success_interval=wilson_interval(successes, episodes) if knows_success else None,
        mean_reward=mean,
        std_reward=pstdev(played.rewards),
    )


def read_records(folder: ExperimentDir) -> list[GenerationRecord]:
    """Read all records that exist, in the order of generations."""
    found = (
        read_record(folder.generation(number).record, GenerationRecord)
        for number in folder.kept_generations()
    )
    return [record for record in found if record is not None]


@dataclass(frozen=True)
class RunCounts:
    """Timesteps of a run, and the frames beyond `frame_skip` in each of them."""

    timesteps: int
    waited_frames: int


def counts_before(before: GenerationRecord | None) -> dict[str, RunCounts]:
    """Return, by run folder, with which counts a run begins the generation after `before`.

    A run that is missing begins at 0.
    """
    if before is None:
        return {}
    found = {m.folder: RunCounts(m.timesteps, m.waited_frames) for m in before.members}
    for copy in before.copies:
        own = RunCounts(0, 0)
        if copy.counters == "keep":
            parent = found.get(copy.parent_folder, own)
            own = RunCounts(int(copy.parent_checkpoint), parent.waited_frames)
        found[copy.folder] = own
    return found


def parents_of(records: Sequence[GenerationRecord]) -> dict[str, str]:
    """Return the folder of each run's parent, if it has one, by the run's folder."""
    parents = {copy.folder: copy.parent_folder for record in records for copy in record.copies}
    for record in records:
        learner = record.learner
        run = record.extra_run
        if learner is not None and learner.parent_folder is not None and run is not None:
            parents[run.folder] = learner.parent_folder
    return parents
