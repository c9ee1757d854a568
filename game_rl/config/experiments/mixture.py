"""A mixture: members that play apart, one Lake of all that they play, and a learner of it.

The texts under the fields are what an editor shows, through `configs/mixture.schema.json`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, JsonValue

from game_rl.config.experiments.executors import MOST_MEMBERS, ExecutorConfig, LocalExecutorConfig
from game_rl.config.experiments.learner import (
    BEST_MEMBER,
    LearnerStretchConfig,
    lake_problems,
    member_shares_of,
    member_shares_problems,
    one_lake_problems,
    teacher_problems,
)
from game_rl.config.experiments.population import (
    ChampionConfig,
    FitnessConfig,
    KeepGenerationsConfig,
)
from game_rl.config.lake import LakeConfig
from game_rl.config.strict_model import Problem, StrictModel
from game_rl.config.upload import UploadConfig
from game_rl.config.values import Count, Timesteps, UnitInterval, named_folder


class CloneConfig(StrictModel):
    """How members go on as clones of the learner."""

    to: Literal["all", "worst"] = "all"
    """all: every member may be cloned over; worst: only the worst of them."""
    only_if_better: bool = True
    """Only members that the learner beats on the round's episodes; false: whatever it is like."""
    exploration: UnitInterval = 0.3
    """The share of random actions that a clone begins with; it falls to the config's end, in a
    straight line, in half a round."""
    optimiser: Literal["new", "keep"] = "new"
    """new: moments begin at zero. keep: the learner's, where its algorithm is the members'."""


class MixtureConfig(StrictModel):
    """Members play apart and feed one Lake; a learner learns from it; members go on as its clones.

    `member` and `learner` are as they stand in the file, which the configs of runs are made of.
    """

    key_hints: ClassVar[Mapping[str, str]] = {
        "total_timesteps": "a member's total is rounds x timesteps_per_round: remove it",
        "game": "the game belongs to the runs: write it into the files of member and learner",
        "env": "it belongs to a run: write member: {config: ..., env: {...}}",
        "algorithm": "it belongs to a run: write member: {config: ..., algorithm: {...}}",
        "generations": "did you mean rounds?",
        "timesteps_per_generation": "did you mean timesteps_per_round?",
        "keep_generations": "did you mean keep_rounds?",
        "learn_from": "it belongs to the learner: write learner: {config: ..., learn_from: {...}}",
        "teacher": "it belongs to the learner: write learner: {config: ..., teacher: best_member}",
    }

    kind: Literal["mixture"]
    """What the file describes; a file without `kind` describes a run."""
    run_dir: Annotated[Path, Field(examples=["runs/my_mixture"]), AfterValidator(named_folder)]
    """The folder that everything is written to, relative to the current one."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Every random choice follows from it."""
    mode: Literal["rounds", "live"] = "rounds"
    """rounds: the learner learns at breaks, and members are cloned; exact. live: members play on
    without breaks, and the learner learns and plays beside them; nobody is cloned."""
    member: Annotated[dict[str, JsonValue], Field(examples=[{"config": "duel_pqn.yaml"}])]
    """A run's config, or `config: FILE` (relative to this file's folder) and what differs."""
    members: Annotated[int, Field(ge=2, le=MOST_MEMBERS - 1)] = 4
    """How many runs play apart."""
    rounds: Count = 4
    """How often members play, the learner learns, and members are cloned; live: evaluations."""
    timesteps_per_round: Annotated[Timesteps, Field(examples=[16_384])]
    """Of each member in one round; rounds x this is its total, which schedules go over. live: from
    one evaluation to the next."""
    lake: LakeConfig = LakeConfig()
    """The Lake of all members; it is the folder lake in run_dir."""
    learner: Annotated[dict[str, JsonValue], Field(examples=[{"config": "duel_dqn.yaml"}])]
    """A run's config of dqn, or `config: FILE` and what differs. Three keys may stand here, too:
    `learn_from`; `teacher: best_member`, by default: the round's best member draws the learner
    towards it, null: none does; `member_shares: {best_member: 3}`: the learner draws three times as
    many rows of that member as of each other, and a member's number may stand there instead; by
    default it draws all rows alike."""
    learner_per_round: LearnerStretchConfig = LearnerStretchConfig()
    """What the learner does in each round. live: timesteps are those from one evaluation to the
    next, and rounds x this its total."""
    learner_starts: Literal["kept", "fresh", "best_member"] = "kept"
    """kept: from its own end of the round before; fresh: from new weights; best_member: from the
    weights of the round's best member."""
    clone: CloneConfig = CloneConfig()
    """How members go on as clones of the learner."""
    fitness: FitnessConfig = FitnessConfig()
    """How good members and learner are."""
    champion: ChampionConfig = ChampionConfig()
    """How the best of members and learner is chosen at the end."""
    keep_rounds: KeepGenerationsConfig = KeepGenerationsConfig()
    """Rounds whose checkpoints are kept."""
    cpus_per_member: Annotated[int, Field(ge=1, le=1_024)] = 1
    """Threads of each member and of the learner, so that numbers do not depend on how many run."""
    executor: ExecutorConfig = LocalExecutorConfig()
    """Where members and learner run."""
    upload: UploadConfig | None = None
    """Where the mixture goes after each round, to outlive the machine; null: nowhere."""

    @property
    def total_timesteps(self) -> int:
        """Of one member."""
        return self.rounds * self.timesteps_per_round

    @property
    def is_live(self) -> bool:
        return self.mode == "live"

    @property
    def learner_timesteps(self) -> int:
        """That one run of the learner plays."""
        return self.learner_per_round.timesteps * (self.rounds if self.is_live else 1)

    @property
    def member_shares(self) -> dict[str, float] | None:
        """Weights in what the learner draws, by a member's number or `best_member`; others have 1.

        None: all rows are alike.
        """
        return member_shares_of(self.learner)

    @property
    def learner_keys(self) -> dict[str, JsonValue]:
        """The keys of the section `learner` that no run has, with their defaults."""
        teacher = BEST_MEMBER if self.is_taught else None
        return {"teacher": teacher, "member_shares": self.learner.get("member_shares")}

    @property
    def is_taught(self) -> bool:
        """Whether the round's best member teaches the learner."""
        return not self.is_live and self.learner.get("teacher", BEST_MEMBER) is not None

    def problems(self) -> Iterator[Problem]:
        yield from lake_problems(self.lake)
        yield from teacher_problems(self.learner)
        yield from member_shares_problems(self.learner, members=self.members)
        if self.is_live:
            yield from self._problems_of_executor()
            yield from self._problems_of_upload()
        else:
            yield from one_lake_problems(self.executor, kind=self.kind)
        if self.champion.candidates > self.members + 1:
            yield Problem(
                ("champion", "candidates"),
                f"{self.champion.candidates} is more than members and learner, "
                f"{self.members + 1}; use at most that",
                (("members",),),
            )

    def _problems_of_executor(self) -> Iterator[Problem]:
        """All train at once, or the learner has nobody to follow."""
        if self.executor.kind != "local":
            yield Problem(
                ("executor", "kind"), f"{self.executor.kind} is not for mode: live; write local"
            )
        parallel = self.executor.parallel
        if parallel != "auto" and parallel <= self.members:
            yield Problem(
                ("executor", "parallel"),
                f"{parallel} is less than members and learner, {self.members + 1}, who train at "
                "once in mode: live; write auto",
                (("members",),),
            )

    def _problems_of_upload(self) -> Iterator[Problem]:
        """There is nothing to send before the end, which may be what the machine does not see."""
        if self.upload is not None:
            yield Problem(
                ("upload",),
                "a mixture in mode: live has no breaks in which it could be sent: write upload "
                "into the sections member and learner, which sends each run as one of its own, or "
                "write mode: rounds",
                (("mode",),),
            )
