"""A study: a question, the arms that answer it, and the rule that says what the answer is, all
written down before the first run.

The texts under the fields are what an editor shows, through `configs/study.schema.json`.
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
    """What each arm may take for each seed."""

    timesteps: Annotated[Timesteps, Field(examples=[160_000])]
    """Of everybody: the run itself, and all that it comes from or learns from; of an experiment,
    all members and the learner together."""


class TestConfig(StrictModel):
    """The episodes that give a seed its score; nothing else is ever played on their seed."""

    episodes: Count = 200
    """Of each run, at its end."""
    seed: _Seed = 2_000_000
    """Chooses them; the same for all arms and seeds."""


class PairConfig(StrictModel):
    """One arm compared with another."""

    arm: Name
    """That might be better."""
    against: Name
    """That it is compared with."""


class DecisionConfig(StrictModel):
    """How a verdict follows from the scores: better, worse, not worse or undecided."""

    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """better, worse: the permutation test's p is at most this."""
    minimum: NotNegative = 0.0
    """And the means differ by at least this; of success rates 0.02 is 2 points."""
    margin: NotNegative | None = None
    """not worse: the lower end of the one-sided interval is above minus this; null: nobody asks."""


class StudyConfig(StrictModel):
    """Arms with the same seeds, the same budget and one question.

    `arms` is here as it is written; `config.arms` makes configs of runs and experiments of it.
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
    """What the file describes; a file without `kind` describes a run."""
    question: Annotated[Name, Field(examples=["Does PQN win more fights than PPO?"])]
    """What the study is to answer, in a sentence."""
    results: Annotated[Path, Field(examples=["studies/my_study"]), AfterValidator(named_folder)]
    """A folder for what is worth keeping: registration, a small file a run, report."""
    run_dir: Annotated[Path, Field(examples=["runs/my_study"]), AfterValidator(named_folder)]
    """A folder for the runs; once a run has its result, it may be deleted."""
    arms: Annotated[
        dict[_ArmName, dict[str, JsonValue]],
        Field(min_length=2, examples=[{"ppo": {"config": "duel_ppo.yaml"}}]),
    ]
    """By name: the config of a run, a population or a mixture, or `config: FILE` (relative to this
    file) and what differs. An experiment is tested with its champion."""
    seeds: Annotated[tuple[_Seed, ...], Field(min_length=2, examples=[[100, 101, 102]])]
    """Of the runs of every arm; take seeds that nothing was developed on."""
    budget: BudgetConfig
    """What each arm may take for each seed."""
    selection: Literal["best", "last"] = "best"
    """The checkpoint of a run that is tested: that of the best evaluation on the way, or the last.
    An experiment finds its champion by its own rule."""
    test: TestConfig = TestConfig()
    """The episodes that give a seed its score."""
    metric: Literal["success_rate", "mean_reward"] = "success_rate"
    """Of the test episodes: the score of a seed."""
    paired: bool = True
    """Runs of the same seed belong together, as they begin with the same random numbers."""
    primary: PairConfig
    """The comparison that answers the question."""
    others: tuple[PairConfig, ...] = ()
    """Further comparisons, which share their error (Holm) and answer nothing by themselves."""
    decision: DecisionConfig = DecisionConfig()
    """How a verdict follows from the scores."""
    cpus_per_run: Annotated[int, Field(ge=1, le=1_024)] = 1
    """Threads of each run, so that its numbers do not depend on how many run at once."""
    executor: LocalExecutorConfig = LocalExecutorConfig()
    """Where the runs are carried out."""

    def problems(self) -> Iterator[Problem]:
        twice = sorted({seed for seed in self.seeds if self.seeds.count(seed) > 1})
        if twice:
            yield Problem(("seeds",), f"{twice[0]} is there twice; write each seed once")
        yield from self._comparison_problems()
        smallest = self._smallest_p_value()
        if smallest > self.decision.alpha and not twice:
            yield Problem(
                ("seeds",),
                f"{len(self.seeds)} seeds can never give a p below {smallest:.4f}, which is more "
                f"than decision.alpha, {self.decision.alpha:g}; take more seeds, at best 8 or more",
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
                    message = f"{value} is no arm; there are {known}"
                    yield Problem((*key, name), message, (("arms",),))
            if pair.arm == pair.against:
                yield Problem(
                    (*key, "against"), f"{pair.arm} is compared with itself; name another"
                )

    def _smallest_p_value(self) -> float:
        n = len(self.seeds)
        return 2 / (2**n if self.paired else comb(2 * n, n))
