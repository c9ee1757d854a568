"""The file of a mixture in both modes, and the keys it decides for members and learner.

Editors show the docstrings of the fields, through `configs/mixture.schema.json`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, JsonValue

from game_rl.config.experiments.executor_config import (
    MOST_MEMBERS,
    ExecutorConfig,
    LocalExecutorConfig,
    one_lake_problems,
)
from game_rl.config.experiments.learner_config import (
    BEST_MEMBER,
    FOLLOW,
    OFFLINE,
    Decided,
    LearnerKeys,
    LearnerStretchConfig,
    disagreements,
    lake_problems,
    learner_key_problems,
)
from game_rl.config.experiments.population_config import (
    ChampionConfig,
    FitnessConfig,
    KeepGenerationsConfig,
    Rule,
    candidates_problems,
)
from game_rl.config.output_config import UploadConfig
from game_rl.config.schema import LakeConfig, RunConfig
from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.config.values import Count, Timesteps, UnitInterval, named_folder
from game_rl.config.yaml_tree import Node


class CloneConfig(StrictModel):
    """How members continue as clones of the learner."""

    to: Literal["all", "worst"] = "all"
    """all: every member may become a clone. worst: only the worst member may."""
    only_if_better: bool = True
    """true: only members that the learner beats on the round's episodes become clones. false: they
    become clones however good the learner is."""
    exploration: UnitInterval = 0.02
    """Exploration rate that a clone starts with, at least exploration.end of the member's
    config. It falls to that end in a straight line, in half a round."""
    optimiser: Literal["new", "keep"] = "new"
    """new: moments start at zero. keep: take over the learner's moments; this needs members with
    the learner's algorithm."""


class MixtureConfig(LearnerKeys):
    """Members play apart and feed one Lake; a learner learns from it; members become its clones.

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
    `best_member`; other members have 1. Without them, every row is equally likely to be drawn."""
    learner_per_round: LearnerStretchConfig = LearnerStretchConfig()
    """Length of the learner's training in each round. live: timesteps from one evaluation to the
    next; rounds x this is its total."""
    learner_starts: Literal["kept", "fresh", "best_member"] = "kept"
    """State with which the learner starts a round. kept: its own at the end of the round before.
    fresh: new weights. best_member: the weights of the round's best member."""
    clone: CloneConfig = CloneConfig()
    """How members continue as clones of the learner."""
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

    # The names of a population for the same things, so that others need not ask for the kind.

    @property
    def rule(self) -> Rule:
        return "live" if self.is_live else "cloning"

    @property
    def generations(self) -> int:
        """Number of rounds; 1 in mode live, which decides nothing before its end."""
        return 1 if self.is_live else self.rounds

    @property
    def timesteps_per_generation(self) -> int:
        return self.total_timesteps // self.generations

    @property
    def learner_per_generation(self) -> LearnerStretchConfig:
        return self.learner_per_round

    @property
    def keep_generations(self) -> KeepGenerationsConfig:
        return self.keep_rounds

    @property
    def copied_share(self) -> float:
        """Share of the members for which the forecast expects that they are cloned over."""
        return 0.5

    @property
    def train_on(self) -> None:
        return None

    @property
    def is_taught(self) -> bool:
        """As in a population, but in rounds that is the default."""
        return not self.is_live and self.learner.get("teacher", BEST_MEMBER) is not None

    def problems(self) -> Iterator[Problem]:
        yield from lake_problems(self.lake)
        yield from learner_key_problems(self.learner, members=self.members)
        yield from candidates_problems(self.champion, members=self.members)
        if not self.is_live:
            yield from one_lake_problems(self.executor, kind=self.kind)
            return
        if self.executor.kind != "local":
            yield Problem(
                ("executor", "kind"),
                f"{self.executor.kind} cannot be used in mode: live; write local",
            )
        parallel = self.executor.parallel
        if parallel != "auto" and parallel <= self.members:  # the learner follows all of them
            yield Problem(
                ("executor", "parallel"),
                f"{parallel} is less than members and learner, {self.members + 1}, which train at "
                "once in mode: live; write auto",
                (("members",),),
            )
        if self.upload is not None:  # it would send nothing before the end
            yield Problem(
                ("upload",),
                "a mixture in mode: live has no breaks at which it could be sent: write upload "
                "into the sections member and learner, which sends each run on its own, or write "
                "mode: rounds",
                (("mode",),),
            )

    def run_problems(self, run: RunConfig, learner: RunConfig | None) -> Iterator[Problem]:
        """Yield what keeps members and learner from learning from one another."""
        assert learner is not None
        yield from disagreements(run, learner, are_cloned=not self.is_live)
        if self.is_live or self.clone.optimiser != "keep":
            return
        theirs = run.algorithm
        ours = learner.algorithm
        if theirs.optimiser != ours.optimiser:
            yield Problem(
                ("clone", "optimiser"),
                f"{theirs.name} cannot continue with the optimiser of {ours.name}; write new",
            )


SEAL_EVERY_TIMESTEPS = 1_024
"""With 16 emulators this makes full blocks, of 64 frames."""
FOLLOW_EVERY_S = 2.0


def keys_of_rounds(root: Node, learner: Node) -> Iterator[Problem]:
    """Yield keys that have no meaning without rounds."""
    reasons: dict[Key, str] = {
        ("learner_starts",): "the learner has one run, which starts with new weights",
        ("learner_per_round", "gradient_steps"): "the learner learns while it plays",
        ("clone",): "no member is cloned in mode: live",
        ("keep_rounds",): "there are no rounds to keep",
    }
    for key, reason in reasons.items():
        if root.has(key):
            yield Problem(key, f"{reason}: remove the line, or write mode: rounds")
    if root.has(("learner", "teacher")) and root.nearest(("learner", "teacher")).value is not None:
        message = "the best member is known only at the end: remove it, or write mode: rounds"
        yield Problem(("learner", "teacher"), message)
    if root.has(("learner", "member_shares", BEST_MEMBER)):
        message = (
            "the best member is known only at the end: write numbers of members, or mode: rounds"
        )
        yield Problem(("learner", "member_shares", BEST_MEMBER), message)
    if learner.has(OFFLINE):
        message = "the learner plays from the beginning: remove it, or write mode: rounds"
        yield Problem(("learner", *OFFLINE), message)


def keys_of_live(learner: Node) -> Iterator[Problem]:
    """Yield keys that have no meaning in rounds."""
    if learner.has(FOLLOW):
        message = "the learner reads the Lake only at breaks: remove the line, or write mode: live"
        yield Problem(("learner", *FOLLOW), message)


def decided_of_live_member(config: MixtureConfig) -> Decided:
    yield ("evaluation", "every_timesteps"), config.timesteps_per_round, "timesteps_per_round"
    if config.lake.seal_every_timesteps is None:
        yield ("lake", "seal_every_timesteps"), SEAL_EVERY_TIMESTEPS, "mode: live"


def decided_of_live_learner(config: MixtureConfig, learner: Node) -> Decided:
    """Yield keys of the learner's config that differ in mode live.

    Args:
        config: the mixture's config.
        learner: the learner's section, which may set how often it looks for new rows.
    """
    total = config.learner_per_round.timesteps * config.rounds
    yield ("total_timesteps",), total, "learner_per_round.timesteps"
    yield OFFLINE, None, "mode: live"
    if not learner.has(FOLLOW):
        yield FOLLOW, FOLLOW_EVERY_S, "mode: live"
