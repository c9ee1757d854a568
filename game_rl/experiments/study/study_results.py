"""A study's folders, its pairs of arm and seed, and the result of each pair."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from game_rl.config.experiments.study_config import ExperimentArm, Study, StudyConfig
from game_rl.errors import ExperimentError
from game_rl.experiments.compare.compared_folders import read_totals, totals_of_run
from game_rl.experiments.compare.comparison import Arm, Metric, Outcome, Point, Score
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs.job_files import FinishedRun, Played
from game_rl.experiments.records import GenerationRecord, fitness_of, read_record, read_records
from game_rl.files.durable_files import write_saved
from game_rl.files.run_dir import RunDir, locked
from game_rl.files.saved import Natural, Saved


@dataclass(frozen=True)
class StudyDir:
    """The two folders of one study.

    Attributes:
        results: the registration and the results, to be committed.
        runs: run directories, which may be deleted once their results exist.
    """

    results: Path
    runs: Path

    @property
    def registration(self) -> Path:
        return self.results / "registered.json"

    def result(self, arm: str, seed: int) -> Path:
        """Result of an (arm, seed), written once."""
        return self.results / "results" / f"{arm}-{seed}.json"

    def run(self, arm: str, seed: int) -> RunDir:
        return RunDir(self.runs / f"{arm}-{seed}")

    def finished(self, arm: str, seed: int) -> Path:
        """File that the run's process leaves at its end."""
        return self.runs / f"{arm}-{seed}.json"

    def output(self, arm: str, seed: int) -> Path:
        """Output of the run's process."""
        return self.runs / f"{arm}-{seed}.log"

    @property
    def registration_of_runs(self) -> Path:
        """The SHA-256 of the registration that the runs belong to."""
        return self.runs / "registration.sha256"

    def locked(self) -> AbstractContextManager[None]:
        """Hold the study's lock, so that no other process carries it out meanwhile.

        The kernel releases the lock when the process ends.

        Raises:
            UsageError: another process holds it.
        """
        busy = (
            f"another process is carrying out the study in {self.runs}; wait until it has ended, "
            "or stop it"
        )
        return locked(self.runs / "lock", busy=busy)


def study_dir(config: StudyConfig) -> StudyDir:
    return StudyDir(config.results, config.run_dir)


@dataclass(frozen=True)
class Pair:
    """An arm and a seed."""

    arm: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.arm}, seed {self.seed}"


def pairs_of(study: Study) -> Iterator[Pair]:
    """Yield all arms of the first seed, then those of the next.

    So other work on the machine affects all arms alike.
    """
    for seed in study.config.seeds:
        for arm in study.arms:
            yield Pair(arm, seed)


class Reached(Saved):
    """The score of a member or the learner at the end of a generation.

    It is over the episodes that all of them play then.
    """

    generation: Natural
    number: Natural
    is_learner: bool = False
    began_as: int | None = None
    """Number of the member whose weights it began from: its own number, or for a copy the parent's.
    None in the first generation, and for the learner."""
    mean_reward: float | None
    """None if its weights became non-finite."""
    success_rate: float | None
    """None if its weights became non-finite, or if the game does not define success."""

    def value(self, metric: Metric) -> float | None:
        return self.success_rate if metric == "success_rate" else self.mean_reward


class PairResult(Saved):
    """The result of one (arm, seed), written once.

    All fields but the last three are the same in each attempt.
    """

    format: Literal[1] = 1
    registration: str
    """SHA-256 of the registration."""
    arm: str
    seed: Natural
    timesteps: Natural
    """Timesteps that the run has played itself; of an experiment, those of all its runs."""
    total_timesteps: Natural
    """These timesteps, and those of everything that the run or the experiment's runs come from."""
    total_frames: Natural
    policy_timesteps: Natural
    """Timestep of its own run at which the tested policy was learned."""
    weights_sha256: str | None
    played: Played | None
    """The test's episodes; None if the run failed."""
    curve: tuple[Point, ...]
    """The evaluations during training."""
    reached: tuple[Reached, ...] = ()
    """Scores of all members and the learner of an experiment at the end of each generation."""
    failure: str = ""
    """Why it failed; empty if it did not."""
    host: str = ""
    seconds: float = 0.0
    """Time of the process that brought it to its end."""
    versions: dict[str, str] = Field(default_factory=dict)
    sha256: str | None = None
    """SHA-256 of all that is above; None in results of versions that did not write it."""


def result_of(
    study: Study, folder: StudyDir, pair: Pair, finished: FinishedRun, *, registration: str
) -> PairResult:
    """Return the result of a run or experiment that has ended, from its folder."""
    arm = study.arms[pair.arm]
    run_dir = folder.run(pair.arm, pair.seed)
    scores: tuple[Reached, ...] = ()
    if isinstance(arm, ExperimentArm):
        place = ExperimentDir(run_dir.root)
        totals = read_totals(place, arm.experiment)
        scores = tuple(reached(read_records(place)))
    else:
        totals = totals_of_run(run_dir, arm.run.env.frame_skip)
    return PairResult(
        registration=registration,
        arm=pair.arm,
        seed=pair.seed,
        **vars(totals),
        policy_timesteps=finished.policy_timesteps,
        weights_sha256=finished.weights_sha256,
        played=finished.played,
        reached=scores,
        failure="" if finished.failure is None else finished.text,
        host=finished.host,
        seconds=finished.seconds,
        versions=finished.versions,
    )


def write_result(folder: StudyDir, result: PairResult) -> PairResult:
    """Write a result with the hash of its content, and return it."""
    sealed = result.model_copy(update={"sha256": _sha256(json.loads(result.model_dump_json()))})
    write_saved(folder.result(result.arm, result.seed), sealed)
    return sealed


def _sha256(content: dict[str, Any]) -> str:
    """Return the hash of a result file's values, whatever its spaces and the order of its keys."""
    values = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def read_results(
    study: Study, folder: StudyDir, *, registration: str
) -> dict[str, list[PairResult]]:
    """Read the results that exist of each arm, in the order of seeds.

    Raises:
        ExperimentError: one was changed after it was written, or belongs to another registration,
            or its file was renamed.
    """
    results: dict[str, list[PairResult]] = {arm: [] for arm in study.arms}
    for pair in pairs_of(study):
        found = read_study_result(folder, pair, registration=registration)
        if found is not None:
            results[pair.arm].append(found)
    return results


def read_study_result(folder: StudyDir, pair: Pair, *, registration: str) -> PairResult | None:
    """Read a result, or return None if there is none yet; raises as `read_results`."""
    path = folder.result(pair.arm, pair.seed)
    found = read_record(path, PairResult)
    if found is None:
        return None
    now = _sha256(json.loads(path.read_bytes()))
    if found.sha256 is not None and found.sha256 != now:
        raise ExperimentError(
            f"{path} was changed after it was written: its content has the SHA-256 {now[:16]}, and "
            f"it says {found.sha256[:16]}; restore it (git checkout -- {path}), or delete it to "
            "have it made again"
        )
    if found.registration != registration:
        raise ExperimentError(
            f"{path} belongs to another registration than {folder.registration}; delete it to "
            "have it made again, or restore the registration that it belongs to"
        )
    if (found.arm, found.seed) != (pair.arm, pair.seed):
        raise ExperimentError(
            f"{path} holds arm {found.arm}, seed {found.seed}; give the file its old name back"
        )
    return found


def arm_of_results(name: str, results: list[PairResult], folder: StudyDir) -> Arm:
    outcomes = []
    for result in results:
        score = None
        if result.played is not None:
            fitness = fitness_of(result.played, "mean_reward")
            score = Score(fitness.mean_reward, fitness.success_rate, fitness.episodes)
        outcomes.append(
            Outcome(
                name=folder.result(result.arm, result.seed).name,
                seed=result.seed,
                score=score,
                curve=result.curve,
                timesteps=result.timesteps,
                total_timesteps=result.total_timesteps,
                total_frames=result.total_frames,
                failure=result.failure,
            )
        )
    return Arm(name, tuple(outcomes))


def reached(records: Sequence[GenerationRecord]) -> Iterator[Reached]:
    """Yield the scores of all generations, the earliest first."""
    copies: dict[int, int] = {}
    for place, record in enumerate(records):
        for member in record.members:
            is_learner = member == record.extra_run
            fitness = member.fitness
            went_on = place and not is_learner
            yield Reached(
                generation=record.generation,
                number=member.number,
                is_learner=is_learner,
                began_as=copies.get(member.number, member.number) if went_on else None,
                mean_reward=None if fitness is None else fitness.mean_reward,
                success_rate=None if fitness is None else fitness.success_rate,
            )
        copies = {copy.number: copy.parent for copy in record.copies}
