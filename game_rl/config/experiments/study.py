"""A study: a question, the arms that answer it, and the rule that decides what the answer is.

All of it is written down before the first run. Editors show the docstrings of the fields, through
`configs/study.schema.json`.
"""

from collections.abc import Iterator, Mapping
from math import comb
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, JsonValue

from game_rl.config.experiments.executors import LocalExecutorConfig
from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.config.values import Count, Name, NotNegative, Timesteps, named_folder

_Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
_ArmName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_]*$", max_length=40)]


class BudgetConfig(StrictModel):
    """Limits of what each arm may play for each seed."""

    timesteps: Annotated[Timesteps, Field(examples=[160_000])]
    """Limit of the timesteps that a run, and all runs that it comes from or learns from, play
    together. Of an experiment, all members and the learner count."""


class TestConfig(StrictModel):
    """The test episodes that give each run its score. Their seed is used for nothing else."""

    episodes: Count = 200
    """Number of test episodes that each run plays at its end."""
    seed: _Seed = 2_000_000
    """Seed of the test episodes, which are the same for all arms and seeds."""


class PairConfig(StrictModel):
    """One arm compared with another."""

    arm: Name
    """Name of the arm that might be better."""
    against: Name
    """Name of the arm that it is compared with."""


class DecisionConfig(StrictModel):
    """How a verdict follows from the scores: better, worse, not worse or undecided."""

    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Largest p of the permutation test for the verdicts better and worse."""
    minimum: NotNegative = 0.0
    """Smallest difference of the means for the verdicts better and worse; with success rates, 0.02
    is 2 points."""
    margin: NotNegative | None = None
    """For the verdict not worse, the lower end of the one-sided interval of the difference must be
    above minus this; null: there is no such verdict."""


class StudyConfig(StrictModel):
    """Arms with the same seeds, the same budget and one question.

    `arms` has the sections as they are written; `config.experiments.arms` makes configs of them.
    """

    key_hints: ClassVar[Mapping[str, str]] = {
        "seed": "did you mean seeds?",
        "total_timesteps": "write budget: {timesteps: ...}",
        "timesteps": "write budget: {timesteps: ...}",
        "game": "the game belongs to an arm: write it into the file of its config",
        "episodes": "write test: {episodes: ...}",
        "alpha": "write decision: {alpha: ...}",
        "margin": "write decision: {margin: ...}",
        "paired": "it is a key of the study itself, beside primary",
    }

    kind: Literal["study"]
    """Kind of experiment that the file describes; a file without `kind` describes a run."""
    question: Annotated[Name, Field(examples=["Does PQN win more fights than PPO?"])]
    """The question that the study answers, in one sentence."""
    results: Annotated[Path, Field(examples=["studies/my_study"]), AfterValidator(named_folder)]
    """Folder for what should be kept: the registration, a small file for each run, the report."""
    run_dir: Annotated[Path, Field(examples=["runs/my_study"]), AfterValidator(named_folder)]
    """Folder for the runs. A run may be deleted once it has its result."""
    arms: Annotated[
        dict[_ArmName, dict[str, JsonValue]],
        Field(min_length=2, examples=[{"ppo": {"config": "duel_ppo.yaml"}}]),
    ]
    """The arms by name. Each is the config of a run, a population or a mixture, or `config: FILE`
    (relative to this file's folder) with changes. Of an experiment, the champion is tested."""
    seeds: Annotated[tuple[_Seed, ...], Field(min_length=2, examples=[[100, 101, 102]])]
    """Seeds of the runs of every arm. Take seeds that nothing was developed on."""
    budget: BudgetConfig
    """Limits of what each arm may play for each seed."""
    selection: Literal["best", "last"] = "best"
    """Checkpoint of a run that is tested: that of the best evaluation during training, or the last.
    An experiment chooses its champion by its own rule."""
    test: TestConfig = TestConfig()
    """The test episodes that give each run its score."""
    metric: Literal["success_rate", "mean_reward"] = "success_rate"
    """The score of a run over its test episodes."""
    paired: bool = True
    """Whether runs with the same seed are compared in pairs, as they begin with the same random
    numbers."""
    primary: PairConfig
    """The comparison that answers the question."""
    others: tuple[PairConfig, ...] = ()
    """Further comparisons. Their p values are adjusted for their number (Holm). They do not answer
    the question."""
    decision: DecisionConfig = DecisionConfig()
    """How a verdict follows from the scores."""
    cpus_per_run: Annotated[int, Field(ge=1, le=1_024)] = 1
    """Number of threads of each run. It is fixed, so that results do not depend on how many run at
    once."""
    executor: LocalExecutorConfig = LocalExecutorConfig()
    """Where the runs train."""

    def problems(self) -> Iterator[Problem]:
        twice = sorted({seed for seed in self.seeds if self.seeds.count(seed) > 1})
        if twice:
            yield Problem(("seeds",), f"{twice[0]} is named twice; write each seed once")
        yield from self._comparison_problems()
        smallest = self._smallest_p_value()
        if smallest > self.decision.alpha and not twice:
            yield Problem(
                ("seeds",),
                f"{len(self.seeds)} seeds can never give a p below {smallest:.4f}, which is more "
                f"than decision.alpha, {self.decision.alpha:g}; take more seeds, best 8 or more",
                (("decision", "alpha"), ("paired",)),
            )

    def _comparison_problems(self) -> Iterator[Problem]:
        pairs: list[tuple[Key, PairConfig]] = [(("primary",), self.primary)]
        pairs += [(("others", str(place)), pair) for place, pair in enumerate(self.others)]
        for key, pair in pairs:
            for name in ("arm", "against"):
                value = getattr(pair, name)
                if value not in self.arms:
                    known = ", ".join(self.arms)
                    message = f"{value} is no arm; the arms are {known}"
                    yield Problem((*key, name), message, (("arms",),))
            if pair.arm == pair.against:
                yield Problem(
                    (*key, "against"), f"{pair.arm} is compared with itself; name another"
                )

    def _smallest_p_value(self) -> float:
        n = len(self.seeds)
        return 2 / (2**n if self.paired else comb(2 * n, n))
