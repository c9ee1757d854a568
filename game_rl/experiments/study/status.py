"""The progress of a study, read from its folders alone."""

from dataclasses import asdict, dataclass
from typing import Any

from game_rl.config.experiments.study_config import ExperimentArm, Study
from game_rl.event_log import read_events
from game_rl.experiments.compare.experiments import read_everybody
from game_rl.experiments.compare.wording import share_words
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.fitness import fitness_of
from game_rl.experiments.stages import STAGES
from game_rl.experiments.status.status import experiment_status
from game_rl.experiments.study.pairs import Pair, pairs_of
from game_rl.experiments.study.registration import registered
from game_rl.experiments.study.results import Result, read_result
from game_rl.experiments.study.study_dir import StudyDir, study_dir


@dataclass(frozen=True)
class PairStatus:
    arm: str
    seed: int
    is_done: bool
    timesteps: int
    text: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def study_status(study: Study) -> list[PairStatus]:
    """Return the progress of all pairs; reading it does not disturb a process at work on the study.

    Raises:
        UsageError: the study is not registered.
        ExperimentError: it is not what was registered.
    """
    registration, folder = registered(study).sha256(), study_dir(study.config)
    rows = []
    for pair in pairs_of(study):
        found = read_result(folder, pair, registration=registration)
        if found is not None:
            words = result_words(found)
            rows.append(PairStatus(pair.arm, pair.seed, True, found.timesteps, words))
        else:
            timesteps, words = _progress(study, folder, pair)
            rows.append(PairStatus(pair.arm, pair.seed, False, timesteps, words))
    return rows


def result_words(result: Result) -> str:
    if result.played is None:
        return f"failed: {result.failure}"
    fitness = fitness_of(result.played, "mean_reward")
    words, rate = f"mean reward {fitness.mean_reward:.2f}", fitness.success_rate
    if rate is None:
        return words
    return f"{words}, success {rate:.1%} ({share_words(rate, fitness.episodes)})"


def _progress(study: Study, folder: StudyDir, pair: Pair) -> tuple[int, str]:
    """Return a pair's timesteps and a text; an experiment counts all its runs."""
    arm, run_dir = study.arms[pair.arm], folder.run(pair.arm, pair.seed)
    stage = ""
    if isinstance(arm, ExperimentArm):
        place = ExperimentDir(run_dir.root)
        timesteps = read_everybody(place, arm.players[0].env.frame_skip).timesteps
        if timesteps:
            status = experiment_status(place)
            stage = f"{STAGES[status.kind]} {status.generation} of {status.generations}, "
    else:
        timesteps = max((event.timesteps for event in read_events(run_dir)[-1:]), default=0)
    if not timesteps:
        return 0, "not begun"
    return timesteps, f"{stage}{timesteps:,} of {arm.timesteps:,} timesteps"
