"""How far the members of an experiment, or the runs of a study, are while they train."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from game_rl.config.experiments.experiment import STAGES
from game_rl.config.experiments.study_config import ExperimentArm, Study
from game_rl.events.run_view import read_tail
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.experiment_status import ExperimentStatus, experiment_status
from game_rl.experiments.study.study_dir import Pair, StudyDir, pairs_of, study_dir


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
    stage = "live" if status.is_live else f"{STAGES[status.kind]} {status.generation}"
    title = stage if status.is_live else f"{stage}/{status.generations}"
    return MembersProgress(title, dict(_shares(status)))


def _shares(status: ExperimentStatus) -> Iterator[tuple[str, float]]:
    for member in status.members:
        begun = member.until * (status.generation - 1) // max(1, status.generation)
        share = (member.timesteps - begun) / max(1, member.until - begun)
        yield member.folder, 1.0 if member.has_ended_stretch else min(0.99, max(0.0, share))


def study_progress(study: Study) -> MembersProgress:
    """Return how far each pair of arm and seed is."""
    folder = study_dir(study.config)
    shares = dict[str, float]()
    for pair in pairs_of(study):
        has_result = folder.result(pair.arm, pair.seed).exists()
        shares[pair.name] = 1.0 if has_result else _share_of_pair(study, folder, pair)
    done = sum(share == 1 for share in shares.values())
    return MembersProgress(f"{done} of {len(shares)} results", shares)


def _share_of_pair(study: Study, folder: StudyDir, pair: Pair) -> float:
    run_dir = folder.run(pair.arm, pair.seed)
    arm = study.arms[pair.arm]
    if isinstance(arm, ExperimentArm):
        place = ExperimentDir(run_dir.root)
        if not place.exists():
            return 0.0
        status = experiment_status(place)
        before = (status.generation - 1) / status.generations
        shares = [share for _, share in _shares(status)]
        share = before + sum(shares) / max(1, len(shares)) / status.generations
    else:
        share = read_tail(run_dir).timesteps / max(1, arm.timesteps)
    return min(0.99, share)
