"""A mixture: members that play apart, one Lake of all that they play, and a learner from it.

Editors show the docstrings of the fields, through `configs/mixture.schema.json`.
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
    candidates_problems,
)
from game_rl.config.schema import LakeConfig
from game_rl.config.strict_model import Problem, StrictModel
from game_rl.config.upload import UploadConfig
from game_rl.config.values import Count, Timesteps, UnitInterval, named_folder


class CloneConfig(StrictModel):
    """How members go on as clones of the learner."""

    to: Literal["all", "worst"] = "all"
    """all: every member may become a clone. worst: only the worst member may."""
    only_if_better: bool = True
    """true: only members that the learner beats on the round's episodes become clones. false: they
    become clones however good the learner is."""
    exploration: UnitInterval = 0.02
    """Share of random actions that a clone begins with, at least exploration.end of the member's
    config. It falls to that end in a straight line, in half a round."""
    optimiser: Literal["new", "keep"] = "new"
    """new: moments begin at zero. keep: take over the learner's moments; this needs members with
    the learner's algorithm."""


class MixtureConfig(StrictModel):
    """Members play apart and feed one Lake; a learner learns from it; members go on as its clones.

    `member` and `learner` are the sections as they are written; the runs' configs are made of them.
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
    """Kind of experiment that the file describes; a file without `kind` describes a run."""
    run_dir: Annotated[Path, Field(examples=["runs/my_mixture"]), AfterValidator(named_folder)]
    """Folder for all files of the mixture, relative to the current folder."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Seed of every random choice of the mixture."""
    mode: Literal["rounds", "live"] = "rounds"
    """rounds: the learner learns at breaks, after which members may become its clones; the results
    are exact. live: members play without breaks while the learner plays and learns; no member is
    cloned, and what the learner draws depends on how fast each run is."""
    member: Annotated[dict[str, JsonValue], Field(examples=[{"config": "duel_pqn.yaml"}])]
    """Config of a member: a run's config, or `config: FILE` (relative to this file's folder) with
    changes."""
    members: Annotated[int, Field(ge=2, le=MOST_MEMBERS - 1)] = 4
    """Number of members."""
    rounds: Count = 4
    """Number of rounds. In each, members play, the learner learns, and members may be cloned. live:
    number of evaluations."""
    timesteps_per_round: Annotated[Timesteps, Field(examples=[16_384])]
    """Timesteps of each member in one round. rounds x this is a member's total, over which its
    schedules go. live: timesteps from one evaluation to the next."""
    lake: LakeConfig = LakeConfig()
    """The one Lake of all members, the folder lake in run_dir."""
    learner: Annotated[dict[str, JsonValue], Field(examples=[{"config": "duel_dqn.yaml"}])]
    """Config of the learner: a run's config of dqn, or `config: FILE` with changes. `learn_from`
    can stand here instead of in algorithm. `teacher: best_member`, the default in rounds, draws the
    learner towards the round's best member; `teacher: null`: no teacher. `member_shares:
    {best_member: 3}` are weights of members in what the learner draws from the Lake, by number or
    `best_member`; other members have 1. Without them, every row is drawn alike."""
    learner_per_round: LearnerStretchConfig = LearnerStretchConfig()
    """Length of the learner's training in each round. live: timesteps from one evaluation to the
    next; rounds x this is its total."""
    learner_starts: Literal["kept", "fresh", "best_member"] = "kept"
    """State with which the learner begins a round. kept: its own at the end of the round before.
    fresh: new weights. best_member: the weights of the round's best member."""
    clone: CloneConfig = CloneConfig()
    """How members go on as clones of the learner."""
    fitness: FitnessConfig = FitnessConfig()
    """How members and the learner are scored."""
    champion: ChampionConfig = ChampionConfig()
    """How the best of the members and the learner is chosen at the end."""
    keep_rounds: KeepGenerationsConfig = KeepGenerationsConfig()
    """Rounds whose checkpoints are kept."""
    cpus_per_member: Annotated[int, Field(ge=1, le=1_024)] = 1
    """Number of threads of each member and of the learner. It is fixed, so that results do not
    depend on how many run at once."""
    executor: ExecutorConfig = LocalExecutorConfig()
    """Where the members and the learner train."""
    upload: UploadConfig | None = None
    """Upload of the mixture after each round, so that it outlives the machine; null: no upload."""

    @property
    def total_timesteps(self) -> int:
        """Timesteps of one member in all rounds."""
        return self.rounds * self.timesteps_per_round

    @property
    def is_live(self) -> bool:
        return self.mode == "live"

    @property
    def learner_timesteps(self) -> int:
        """Timesteps that one run of the learner plays."""
        return self.learner_per_round.timesteps * (self.rounds if self.is_live else 1)

    @property
    def member_shares(self) -> dict[str, float] | None:
        """Weights of members in what the learner draws, or None if every row is drawn alike.

        They are by a member's number or `best_member`; a member that is not named has 1.
        """
        return member_shares_of(self.learner)

    @property
    def learner_keys(self) -> dict[str, JsonValue]:
        """The keys of the section `learner` that a run does not have, with their values."""
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
        yield from candidates_problems(self.champion, members=self.members)

    def _problems_of_executor(self) -> Iterator[Problem]:
        """Check that all runs can train at once, so that the learner has members to follow."""
        if self.executor.kind != "local":
            yield Problem(
                ("executor", "kind"),
                f"{self.executor.kind} cannot be used in mode: live; write local",
            )
        parallel = self.executor.parallel
        if parallel != "auto" and parallel <= self.members:
            yield Problem(
                ("executor", "parallel"),
                f"{parallel} is less than members and learner, {self.members + 1}, which train at "
                "once in mode: live; write auto",
                (("members",),),
            )

    def _problems_of_upload(self) -> Iterator[Problem]:
        """Refuse an upload, which would have nothing to send before the end.

        The machine may be lost before that.
        """
        if self.upload is not None:
            yield Problem(
                ("upload",),
                "a mixture in mode: live has no breaks at which it could be sent: write upload "
                "into the sections member and learner, which sends each run on its own, or write "
                "mode: rounds",
                (("mode",),),
            )
