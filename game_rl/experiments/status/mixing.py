"""The mix of learner and members: the rows that it draws, and how much their actions differ."""

from dataclasses import dataclass

from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.plans.plan import Plan
from game_rl.experiments.records import GenerationRecord, read_record
from game_rl.experiments.status.run_tail import read_tail
from game_rl.experiments.tables import differences_words
from game_rl.run_dir import RunDir


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


def _by_member(runs: dict[str, int]) -> list[tuple[str, int]]:
    """Sum the rows by member, over its runs before and after copies."""
    found: dict[str, int] = {}
    for name, rows in runs.items():
        member = name.partition(".")[0]
        found[member] = found.get(member, 0) + rows
    return sorted(found.items())


def _shares(found: list[tuple[str, int]], total: int) -> str:
    return ", ".join(f"{rows / total:.1%} {name}" for name, rows in found)


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


def drawn_status(plan: Plan, generation: int) -> DrawnStatus | None:
    """Return the rows drawn by the learner of this generation, else of the one before, or None."""
    for number in (generation, generation - 1):
        learner = _learner(plan, number)
        found = None if learner is None else read_tail(plan.folder.member(learner).events).drawn
        if learner is not None and found is not None:
            names = _names_of_streams(plan.folder)
            return DrawnStatus(
                learner=learner,
                own=found["own"],
                runs={names.get(k, k): n for k, n in found["streams"].items()},
                offline_runs={names.get(k, k): n for k, n in found["offline_streams"].items()},
            )
    return None


def _learner(plan: Plan, generation: int) -> str | None:
    """Return the folder of the learner's run in a generation, or None without a learner."""
    if plan.rules.is_live:
        return plan.first_members()[-1].folder
    found = plan.apprentice_of(generation)
    return None if found is None else found.folder


def _names_of_streams(folder: ExperimentDir) -> dict[str, str]:
    """Return the name of each run directory, by the id of its run."""
    files = sorted(folder.members.glob("*/run.json"))
    return {RunDir(file.parent).identity().id: file.parent.name for file in files}


def differences_status(plan: Plan, generation: int) -> DifferencesStatus | None:
    """Return the differences at the end of a generation, or None if they were not measured."""
    record = read_record(plan.folder.generation(generation).record, GenerationRecord)
    if record is None or record.differences is None:
        return None
    found = record.differences
    return DifferencesStatus(
        generation=record.generation,
        observations=found.observations,
        runs=found.runs,
        shares=found.shares,
        members=record.differing_members,
        learner=record.differing_learner,
        words=differences_words(record),
    )
