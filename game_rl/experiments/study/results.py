"""What each (arm, seed) of a study leaves for good."""

from typing import Annotated, Literal

from pydantic import Field

from game_rl.config.experiments.arms import ExperimentArm
from game_rl.config.experiments.study_files import Study
from game_rl.config.saved import Saved
from game_rl.errors import ExperimentError
from game_rl.experiments.compare.evaluations import curve_of
from game_rl.experiments.compare.experiments import Everybody, read_everybody
from game_rl.experiments.compare.outcome import Arm, Outcome, Point, Score
from game_rl.experiments.compare.played import played_by, totals
from game_rl.experiments.descent import read_records
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.fitness import fitness_of
from game_rl.experiments.records import read_record
from game_rl.experiments.study.breaks import Reached, reached
from game_rl.experiments.study.pairs import Pair
from game_rl.experiments.study.study_dir import StudyDir
from game_rl.training.finished import Finished
from game_rl.training.stretch_result import Played

_Count = Annotated[int, Field(ge=0)]


class Result(Saved):
    """One (arm, seed), written once; all but the last three is the same in each attempt."""

    format: Literal[1] = 1
    registration: str
    """SHA-256 of what was registered."""
    arm: str
    seed: _Count
    timesteps: _Count
    """That the run has played itself; of an experiment, all its members and its learner."""
    total_timesteps: _Count
    """That everybody has played: these, and all that they come from."""
    total_frames: _Count
    policy_timesteps: _Count
    """Of the tested policy's own run, at which it was learned."""
    weights_sha256: str | None
    played: Played | None
    """The test's episodes; None where the run failed."""
    curve: tuple[Point, ...]
    """The evaluations on the way."""
    reached: tuple[Reached, ...] = ()
    """Of an experiment: how all have played at the end of each generation."""
    failure: str = ""
    """Why it failed; empty: it did not."""
    host: str = ""
    seconds: float = 0.0
    """Of the process that ended it."""
    versions: dict[str, str] = Field(default_factory=dict)


def result_of(
    study: Study, folder: StudyDir, pair: Pair, finished: Finished, *, registration: str
) -> Result:
    """What follows from the folder of a run or experiment, and from how that has ended."""
    everybody = _everybody(study, folder, pair)
    return Result(
        registration=registration,
        arm=pair.arm,
        seed=pair.seed,
        timesteps=everybody.timesteps,
        total_timesteps=everybody.total_timesteps,
        total_frames=everybody.total_frames,
        policy_timesteps=finished.policy_timesteps,
        weights_sha256=finished.weights_sha256,
        played=finished.played,
        curve=everybody.curve,
        reached=_reached(study, folder, pair),
        failure=finished.text if finished.failure is not None else "",
        host=finished.host,
        seconds=finished.seconds,
        versions=finished.versions,
    )


def _everybody(study: Study, folder: StudyDir, pair: Pair) -> Everybody:
    arm, run_dir = study.arms[pair.arm], folder.run(pair.arm, pair.seed)
    frame_skip = arm.players[0].env.frame_skip
    if isinstance(arm, ExperimentArm):
        return read_everybody(ExperimentDir(run_dir.root), frame_skip)
    own = played_by(run_dir, frame_skip)
    total_timesteps, total_frames = totals([own])
    return Everybody(
        timesteps=own.played_timesteps,
        total_timesteps=total_timesteps,
        total_frames=total_frames,
        curve=curve_of(run_dir, own),
    )


def _reached(study: Study, folder: StudyDir, pair: Pair) -> tuple[Reached, ...]:
    if not isinstance(study.arms[pair.arm], ExperimentArm):
        return ()
    return tuple(reached(read_records(ExperimentDir(folder.run(pair.arm, pair.seed).root))))


def read_results(study: Study, folder: StudyDir, *, registration: str) -> dict[str, list[Result]]:
    """Of each arm those that are there, in the order of seeds.

    Raises:
        ExperimentError: one is of another registration, or was moved.
    """
    return {
        arm: [
            found
            for seed in study.config.seeds
            if (found := read_result(folder, Pair(arm, seed), registration=registration))
        ]
        for arm in study.arms
    }


def read_result(folder: StudyDir, pair: Pair, *, registration: str) -> Result | None:
    """None where there is none yet; raises as `read_results`."""
    path = folder.result(pair.arm, pair.seed)
    found = read_record(path, Result)
    if found is None:
        return None
    if found.registration != registration:
        raise ExperimentError(
            f"{path} is of another registration than {folder.registration}; delete it, and it is "
            "made again, or restore the registration that it belongs to"
        )
    if (found.arm, found.seed) != (pair.arm, pair.seed):
        raise ExperimentError(
            f"{path} holds arm {found.arm}, seed {found.seed}; give it its own name back"
        )
    return found


def arm_of(name: str, results: list[Result], folder: StudyDir) -> Arm:
    return Arm(name, tuple(_outcome(result, folder) for result in results))


def _outcome(result: Result, folder: StudyDir) -> Outcome:
    score = None
    if result.played is not None:
        fitness = fitness_of(result.played, "mean_reward")
        score = Score(fitness.mean_reward, fitness.success_rate, fitness.episodes)
    return Outcome(
        name=folder.result(result.arm, result.seed).name,
        seed=result.seed,
        score=score,
        curve=result.curve,
        timesteps=result.timesteps,
        total_timesteps=result.total_timesteps,
        total_frames=result.total_frames,
        failure=result.failure,
    )
