"""The file of a population: its keys, sections, mutations, and the keys it decides for members.

Editors show the docstrings of the fields, through `configs/population.schema.json`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field, JsonValue

from game_rl.config.experiments.executor_config import (
    MOST_MEMBERS,
    ExecutorConfig,
    LocalExecutorConfig,
    one_lake_problems,
)
from game_rl.config.experiments.learner_config import (
    LearnerKeys,
    LearnerStretchConfig,
    disagreements,
    lake_problems,
    learner_key_problems,
)
from game_rl.config.output_config import UploadConfig
from game_rl.config.schema import LakeConfig, RunConfig
from game_rl.config.strict_model import Key, Problem, StrictModel, value_at
from game_rl.config.values import Count, Name, NotNegative, Positive, Timesteps, named_folder

Rule = Literal["selection", "injection", "cloning", "live"]
"""How members continue after a generation. selection: copies of the best replace the worst.
injection: the same, and a copy of the learner replaces the worst. cloning: clones of the learner
replace members. live: all continue as they are, the learner among them."""

INJECT_EVERY = 2
"""Default of `inject_every`, in generations; Khadka and Tumer (2018) have 1 and 10."""

DISCOUNTS = ("gamma", "gae_lambda", "q_lambda")
"""Keys of an algorithm for which a factor multiplies 1 - x instead of x."""


class FitnessConfig(StrictModel):
    """How members are scored: on episodes at the end of each generation or round."""

    episodes: Count = 40
    """Number of episodes. All members of a generation play the same ones; the next has new ones."""
    metric: Literal["success_rate", "mean_reward"] = "success_rate"
    """The score. Of members with equal scores, the one with the higher mean reward is better, then
    the one with the lower number."""


class SelectionConfig(StrictModel):
    """Which members continue as copies of others."""

    name: Literal["truncation"] = "truncation"
    """truncation: each member of the worst share becomes a copy of one of the best share, sampled
    uniformly."""
    share: Annotated[float, Field(gt=0, le=0.5)] = 0.25
    """The worst share, and the best share, of the members; at least one member each."""
    gap: NotNegative = 0.0
    """A member is copied over only if its fitness is at least this much below the other's."""


class MutationConfig(StrictModel):
    """How a value of the config changes when a member is copied."""

    factor: Annotated[tuple[Positive, Positive], Field(examples=[[0.8, 1.25]])]
    """[least, most] factor, sampled uniformly on a log scale. For a discount (gamma, gae_lambda,
    q_lambda) it multiplies 1 - x."""
    bounds: Annotated[tuple[float, float], Field(examples=[[1e-5, 1e-2]])]
    """[least, most] value. For a schedule they bound its start, and its end changes by the same
    factor."""

    def problems(self) -> Iterator[Problem]:
        low, high = self.factor
        if low > high:
            yield Problem(("factor",), f"{low:g} is more than {high:g}; write [{high:g}, {low:g}]")
        low, high = self.bounds
        if low >= high:
            yield Problem(("bounds",), f"{low:g} is not less than {high:g}; write [least, most]")
        if low < 0:
            yield Problem(("bounds",), f"{low:g} is negative, and bounds cannot be; use at least 0")


class WeightMutationConfig(StrictModel):
    """How the weights of a copy differ from those of the member that it is copied from."""

    sigma: Annotated[float, Field(gt=0, le=1)]
    """Standard deviation of Gaussian noise that is added to the weights of each layer, in units of
    their root mean square. Biases and normalisations get no noise."""


class MutationsConfig(StrictModel):
    """Changes when a member is copied: of its weights, and of config values, by their keys."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[Name, MutationConfig]

    weights: WeightMutationConfig | None = None
    """Noise on the weights; null: a copy has the weights of its parent."""

    @property
    def values(self) -> Mapping[str, MutationConfig]:
        """Mutations of config values, by the key of a run's config, in the order of the file."""
        return self.__pydantic_extra__


class ChampionConfig(StrictModel):
    """How the best member is chosen at the end, on held-out episodes."""

    candidates: Count = 3
    """Number of members, the best at the end, that play the same new episodes. A learner is always
    a candidate, too, and so is the member of `train_on`."""
    episodes: Count = 200
    """Number of episodes that each candidate plays. The champion then plays as many again, with
    another seed."""


def candidates_problems(champion: ChampionConfig, *, members: int) -> Iterator[Problem]:
    """Check the number of candidates for the champion."""
    if champion.candidates > members:
        yield Problem(
            ("champion", "candidates"),
            f"{champion.candidates} is more than the number of members, {members}; use at most "
            f"{members}",
            (("members",),),
        )


class TrainOnConfig(StrictModel):
    """Further training of the best member of the last generation, alone."""

    timesteps: Annotated[Timesteps, Field(examples=[28_672])]
    """Timesteps beyond generations x timesteps_per_generation, along the same schedules."""


class KeepGenerationsConfig(StrictModel):
    """Generations, or rounds of a mixture, whose checkpoints are kept."""

    last: Count = 3
    """Number of newest generations or rounds that are kept."""
    every: Count | None = None
    """Also keep each generation or round whose number is a multiple of this; null: no others."""

    def keeps(self, generation: int, *, newest: int) -> bool:
        """Return whether a generation is kept when `newest` is the newest."""
        is_multiple = self.every is not None and generation % self.every == 0
        return generation > newest - self.last or is_multiple


class PopulationConfig(LearnerKeys):
    """Members that train side by side; after each generation copies of the best replace the worst.

    `member` and `learner` are the sections as they are written; the runs' configs are made of them.
    """

    key_hints: ClassVar[Mapping[str, str]] = {
        "total_timesteps": "a member's total is generations x timesteps_per_generation: remove it",
        "game": "the game belongs to the run: write it into the file of member.config",
        "env": "it belongs to a member: write member: {config: ..., env: {...}}",
        "algorithm": "it belongs to a member: write member: {config: ..., algorithm: {...}}",
        "executor.storage": (
            "only members on Ray reach storage: write executor: {kind: ray, storage: ...}; for a "
            "safe copy of members that train here, write upload: {to: ...}"
        ),
        "population": "did you mean members?",
        "n_members": "did you mean members?",
        "inject_every": "it belongs to the learner: write learner: {config: ..., inject_every: 2}",
        "learner_per_round": "did you mean learner_per_generation?",
    }

    kind: Literal["population"]
    """Kind of experiment that the file describes; a file without `kind` describes a run."""
    run_dir: Annotated[Path, Field(examples=["runs/my_population"]), AfterValidator(named_folder)]
    """Folder for all files of the population, relative to the current folder."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Seed of every random choice of the population."""
    member: Annotated[dict[str, JsonValue], Field(examples=[{"config": "duel_ppo.yaml"}])]
    """Config of a member: a run's config, or `config: FILE` (relative to this file's folder) with
    changes."""
    members: Annotated[int, Field(ge=2, le=MOST_MEMBERS)] = 4
    """Number of members."""
    generations: Count = 10
    """Number of generations. At the end of each, members are compared and copied."""
    timesteps_per_generation: Annotated[Timesteps, Field(examples=[16_384])]
    """Timesteps of each member in one generation. generations x this, and `train_on.timesteps` if
    there is any, is a member's total, over which its schedules go."""
    fitness: FitnessConfig = FitnessConfig()
    """How members are scored."""
    selection: SelectionConfig = SelectionConfig()
    """Which members continue as copies of others."""
    mutation: MutationsConfig = Field(
        default_factory=lambda: MutationsConfig.model_validate({}),  # mypy asks for its extra keys
    )
    """How copies change: `weights: {sigma: ...}` for noise on their weights, and {factor, bounds}
    for a key of a run's config, such as algorithm.learning_rate."""
    learner: Annotated[
        dict[str, JsonValue] | None,
        Field(examples=[{"config": "duel_dqn.yaml", "inject_every": 2}]),
    ] = None
    """Config of a run that learns from what all members have played: a run's config of dqn, or
    `config: FILE` with changes. After each `inject_every` generations (2 by default) the worst
    member continues as a copy of it. `learn_from` can stand here instead of in algorithm.
    `teacher: best_member` draws the learner towards the generation's best member. `member_shares`
    are weights of members in what it draws from the Lake, as in a mixture. null: no learner."""
    learner_per_generation: LearnerStretchConfig = LearnerStretchConfig()
    """Length of the learner's training in each generation, once the members have played."""
    lake: LakeConfig | None = None
    """With a learner, the limits of the one Lake of all members, the folder lake in run_dir."""
    control: Annotated[int, Field(ge=0, le=MOST_MEMBERS)] = 1
    """Number of control members. These first members keep the config's values and are never copied
    over."""
    train_on: TrainOnConfig | None = None
    """Further training, alone, of the best member of the last generation. It happens in a fork,
    which is a candidate for the champion whatever its fitness; null: no further training."""
    champion: ChampionConfig = ChampionConfig()
    """How the best member is chosen at the end."""
    keep_generations: KeepGenerationsConfig = KeepGenerationsConfig()
    """Generations whose checkpoints are kept, so that the population can go back to them."""
    cpus_per_member: Annotated[int, Field(ge=1, le=1_024)] = 1
    """Number of threads of each member. It is fixed, so that results do not depend on how many run
    at once."""
    executor: ExecutorConfig = LocalExecutorConfig()
    """Where the members train."""
    upload: UploadConfig | None = None
    """Upload of the population after each generation, so that it outlives the machine; null: no
    upload."""

    @property
    def total_timesteps(self) -> int:
        """Timesteps over which a member's schedules go, with those of `train_on`."""
        more = 0 if self.train_on is None else self.train_on.timesteps
        return self.generations * self.timesteps_per_generation + more

    @property
    def rule(self) -> Rule:
        return "selection" if self.learner is None else "injection"

    @property
    def copied_share(self) -> float:
        """Largest share of the members that are copied over after a generation."""
        return self.selection.share

    @property
    def learner_starts(self) -> Literal["kept"]:
        """State with which the learner starts a generation: its own after the one before."""
        return "kept"

    @property
    def inject_every(self) -> int:
        """Number of generations after which the learner replaces the worst member."""
        every = (self.learner or {}).get("inject_every", INJECT_EVERY)
        assert isinstance(every, int)
        return every

    @property
    def learner_keys(self) -> dict[str, JsonValue]:
        return super().learner_keys | {"inject_every": self.inject_every}

    def problems(self) -> Iterator[Problem]:
        if self.control > self.members:
            yield Problem(
                ("control",),
                f"{self.control} is more than the number of members, {self.members}; "
                f"use at most {self.members}",
                (("members",),),
            )
        yield from candidates_problems(self.champion, members=self.members)
        if self.learner is not None:
            yield from self._learner_problems()
        elif self.lake is not None:
            yield Problem(
                ("lake",),
                "one Lake for all members needs a learner: add learner: {config: ...}; for a Lake "
                "of each member, write member: {lake: {}}",
            )
        if self.selection.gap > 1 and self.fitness.metric == "success_rate":
            yield Problem(
                ("selection", "gap"),
                f"{self.selection.gap:g} is more than two success rates can differ; "
                "write a share, such as 0.05",
                (("fitness", "metric"),),
            )

    def _learner_problems(self) -> Iterator[Problem]:
        assert self.learner is not None
        if self.train_on is not None:
            yield Problem(
                ("train_on",),
                "with a learner, no member trains on alone: remove the section and write more "
                "generations, or write learner: null",
                (("learner",),),
            )
        yield from one_lake_problems(self.executor, kind="population with a learner")
        yield from learner_key_problems(self.learner, members=self.members)
        if self.lake is not None:
            yield from lake_problems(self.lake)
        every = self.learner.get("inject_every", INJECT_EVERY)
        if type(every) is not int or every < 1:
            yield Problem(
                ("learner", "inject_every"),
                f"found {every}; write a number of generations of at least 1, such as 2",
            )
        if self.control >= self.members:
            yield Problem(
                ("control",),
                f"{self.control} controls leave no member that the learner could replace; use at "
                f"most {self.members - 1}",
                (("members",),),
            )

    def run_problems(self, run: RunConfig, learner: RunConfig | None) -> Iterator[Problem]:
        """Yield what is wrong with the configs of a member and of the learner."""
        if run.fork is not None:
            yield Problem(("member", "fork"), "members start with new weights: remove the section")
        yield from mutation_problems(self.mutation.values, run.model_dump(mode="json"))
        if not run.algorithm.learns:
            if self.mutation.weights is None:
                yield Problem(
                    ("mutation",),
                    "members learn nothing, and nothing else changes their weights; add mutation: "
                    "{weights: {sigma: 0.02}}, or let them learn",
                    (("member",),),
                )
            if self.control:
                yield Problem(
                    ("control",),
                    f"members learn nothing, and a control is never copied over, so {self.control} "
                    "would never change; write control: 0",
                    (("member",),),
                )
        if learner is not None:
            yield from disagreements(run, learner)
            for key in self.mutation.values:
                if run.algorithm.learns and key.startswith("algorithm.reward."):
                    yield Problem(
                        ("mutation", key),
                        "members and learner learn the same rewards, as copies of the learner join "
                        "the members: remove the line",
                    )
            if run.algorithm.replay is not None:
                yield Problem(
                    ("member",),
                    f"{run.algorithm.name} members have a replay each, which copies would take "
                    "from the Lake that all members share; use pqn, such as config: duel_pqn.yaml",
                )


def is_discount(key: str) -> bool:
    """Whether the factor of a mutation multiplies 1 - x at this key."""
    return key.rpartition(".")[2] in DISCOUNTS


def mutation_problems(
    mutation: Mapping[str, MutationConfig], run: Mapping[str, Any]
) -> Iterator[Problem]:
    """Yield keys at which the run's config, dumped, has no value that can be mutated as asked."""
    for key, rule in mutation.items():
        place: Key = ("mutation", key)
        found = value_at(run, key)
        start = found.get("start") if isinstance(found, dict) else found
        if isinstance(start, bool) or not isinstance(start, float):
            said = "the run has no such key" if found is None else f"the run has {found} there"
            yield Problem(
                place,
                f"{said}, and only a fraction or a schedule can be mutated, "
                "such as algorithm.learning_rate",
                (("member",),),
            )
        elif (1 - start if is_discount(key) else start) <= 0:
            yield Problem(
                place,
                f"the run has {start:g} there, and no factor changes that; write another value "
                f"into member, such as member: {{{_nested(key, rule.bounds[0])}}}",
                (("member",),),
            )
        elif not rule.bounds[0] <= start <= rule.bounds[1]:
            low, high = rule.bounds
            yield Problem(
                (*place, "bounds"),
                f"the run's own value, {start:g}, is not between {low:g} and {high:g}; "
                "widen the bounds, or change the value in member",
                (("member",),),
            )
        elif is_discount(key) and rule.bounds[1] >= 1:
            yield Problem(
                (*place, "bounds"), "a discount of 1 cannot be mutated; use less, such as 0.999"
            )


def _nested(key: str, value: float) -> str:
    *sections, last = key.split(".")
    text = f"{last}: {value:g}"
    for name in reversed(sections):
        text = f"{name}: {{{text}}}"
    return text
