"""The file of a study with its arms.

All of it is written down before the first run. Editors show the docstrings of the fields, through
`configs/study.schema.json`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, JsonValue

from game_rl.config.allowed_changes import RUN_OF_STUDY, STUDY_FILE
from game_rl.config.experiments.executor_config import LocalExecutorConfig
from game_rl.config.experiments.experiment import Experiment, experiment_of
from game_rl.config.experiments.learner_config import STOP_WHEN
from game_rl.config.loader import (
    Document,
    based_on,
    kind_in,
    named_file,
    run_based_on,
    run_dir_problems,
    with_decided,
)
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, Problem, StrictModel, with_changed
from game_rl.config.values import Count, Name, NotNegative, Timesteps, named_folder
from game_rl.config.yaml_tree import LocatedProblem, Node
from game_rl.errors import ConfigError, UsageError

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

    `arms` has the sections as they are written; a run's config is made of each.
    """

    key_hints: ClassVar[Mapping[str, str]] = {
        "seed": "did you mean seeds?",
        "total_timesteps": "write budget: {timesteps: ...}",
        "timesteps": "write budget: {timesteps: ...}",
        "game": "the game belongs to an arm: write it into the file of its config",
        "episodes": "write test: {episodes: ...}",
        "alpha": "write decision: {alpha: ...}",
        "margin": "write decision: {margin: ...}",
        "paired": "it is a key of the study itself, next to primary",
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
    """Whether runs with the same seed are compared in pairs, as they start with the same random
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
        n = len(self.seeds)
        smallest = 2 / (2**n if self.paired else comb(2 * n, n))
        if smallest > self.decision.alpha and not twice:
            yield Problem(
                ("seeds",),
                f"{n} seeds can never give a p below {smallest:.4f}, which is more "
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
                    message = f"{value} is not an arm; the arms are {known}"
                    yield Problem((*key, name), message, (("arms",),))
            if pair.arm == pair.against:
                yield Problem(
                    (*key, "against"), f"{pair.arm} is compared with itself; name another"
                )


@dataclass(frozen=True)
class RunArm:
    """An arm that is a run, before it has a seed and a folder of its own.

    Attributes:
        files: files that it is based on; none if it is written out in the study's file.
    """

    run: RunConfig
    files: tuple[Path, ...]

    @property
    def players(self) -> tuple[RunConfig, ...]:
        """The config of each sort of run in the arm."""
        return (self.run,)

    @property
    def timesteps(self) -> int:
        return self.run.total_timesteps

    @property
    def rounding_timesteps(self) -> int:
        """Most timesteps that the runs may play beyond `timesteps`, to complete an update."""
        return self.run.rollout_timesteps

    def of(self, seed: int, run_dir: Path) -> RunConfig:
        return with_changed(self.run, {("seed",): seed, ("run_dir",): run_dir})


@dataclass(frozen=True)
class ExperimentArm:
    """An arm that is a population or a mixture, before it has a seed and a folder of its own.

    Attributes:
        source: the file that `tree` is based on.
        tree: the experiment as it is written, with the keys that the study decides.
        experiment: the experiment with the study's first seed.
        files: files that it is based on.
    """

    source: Document
    tree: Node
    experiment: Experiment
    files: tuple[Path, ...]

    @property
    def players(self) -> tuple[RunConfig, ...]:
        """The config of each sort of run in the arm."""
        return self.experiment.players

    @property
    def timesteps(self) -> int:
        """Timesteps of all members and the learner together."""
        return sum(share.timesteps for share in self.experiment.budget)

    @property
    def rounding_timesteps(self) -> int:
        """Most timesteps that the runs may play beyond `timesteps`, to complete an update."""
        return sum(share.rounding_timesteps for share in self.experiment.budget)

    def of(self, seed: int, run_dir: Path) -> Experiment:
        return _experiment(self.source, self.tree, seed=seed, run_dir=run_dir)


StudyArm = RunArm | ExperimentArm


@dataclass(frozen=True)
class Study:
    """A study's config, with its arms before they have a seed and a folder."""

    file: Path
    config: StudyConfig
    arms: dict[str, StudyArm]


def load_study(path: Path, overrides: Sequence[str] = ()) -> Study:
    """Return the study that a file describes.

    Args:
        overrides: overrides of `executor` and `run_dir`; no others are allowed.

    Raises:
        ConfigError: the file or an arm's config is wrong. The message has every problem of the
            file, or, if that has none, of the arm's config.
        UsageError: the file describes no study, or an override would make it another study.
    """
    for override in overrides:
        key = override.partition("=")[0].strip()
        if STUDY_FILE.binds(key):
            raise UsageError(
                f"--set {key}: a study is what its file says; only "
                f"{' and '.join(STUDY_FILE.free)} may be set. Change the file, and register it as "
                "another study"
            )
    source = Document(path, ConfigError)
    root, problems = source.tree(overrides)
    kind = kind_in(source, root)
    if kind != "study":
        raise UsageError(
            f"{path} is the config of a {kind or 'run'}, not a study, which starts with "
            "`kind: study` (docs/how-to/studies.md); to compare trainings, name their run "
            "directories"
        )
    config = source.model_of(root, problems, StudyConfig, run_dir_problems)
    sections = {name: root.nearest(("arms", name)) for name in config.arms}
    refused = [found for name, arm in sections.items() for found in _given_away(name, arm)]
    if config.run_dir == config.results:
        message = "is run_dir, whose content may be deleted; name another folder"
        refused.append(Problem(("results",), message))
    source.refuse(root, refused)
    arms = {name: _arm_of(source, config, name, section) for name, section in sections.items()}
    return Study(path, config, arms)


_EXECUTOR: Key = ("executor",)
_SECTIONS = ("member", "learner")
"""Sections of an experiment that are configs of runs."""


def _arm_of(source: Document, config: StudyConfig, name: str, section: Node) -> StudyArm:
    """Return the arm that a section of a study's file describes.

    Args:
        source: the study's file.

    Raises:
        ConfigError: the section describes no valid arm, or its runs together would play more than
            the budget.
    """
    base, tree = based_on(source, section)
    kind = kind_in(base, tree)
    if kind is None:
        return _run_arm(source, config, name, section)
    if kind == "study":
        message = "a study cannot be an arm; name a run, a population or a mixture"
        source.fail([LocatedProblem(section.place, ("arms", name), message)])
    arm = _experiment_arm(source, config, name, section)
    if arm.timesteps > config.budget.timesteps:
        shares = " + ".join(share.text for share in arm.experiment.budget)
        message = (
            f"its runs play {shares} = {arm.timesteps:,} timesteps together, more than "
            f"budget.timesteps, {config.budget.timesteps:,}; lower one of these numbers"
        )
        source.fail([LocatedProblem(section.place, ("arms", name), message)])
    return arm


def _given_away(name: str, section: Node) -> Iterator[Problem]:
    """Yield keys of an arm's own section that the study decides, or that an arm cannot have."""
    key: Key = ("arms", name)
    reasons: dict[Key, str] = {
        **{(each,): reason for each, reason in RUN_OF_STUDY.bound.items()},
        ("cpus_per_member",): "it is cpus_per_run of the study",
        _EXECUTOR: "members of an arm train one after the other, so that cpus_per_run holds; "
        "executor of the study sets how many runs there are at once",
    }
    for inner, reason in reasons.items():
        if section.has(inner):
            yield Problem((*key, *inner), f"{reason}: remove the line")
    if not section.has(("config",)):
        return
    value = section.nearest(("config",)).value
    if not (isinstance(value, str) and value):
        yield Problem((*key, "config"), "names no file; write one, such as duel_ppo.yaml")
    if section.has(("kind",)):
        yield Problem((*key, "kind"), "the file that config names has its kind: remove the line")


def _run_arm(source: Document, config: StudyConfig, name: str, section: Node) -> RunArm:
    decided: list[tuple[Key, object, str]] = [
        (("run_dir",), str(config.run_dir / name), "run_dir"),
        (("seed",), config.seeds[0], "seeds"),
        (STOP_WHEN, None, "study"),
        (("recording", "episodes"), 0, "study"),
    ]
    if not section.has(("total_timesteps",)):
        decided.append((("total_timesteps",), config.budget.timesteps, "budget.timesteps"))
    run = run_based_on(source, section, decided)
    if run.total_timesteps > config.budget.timesteps:
        node = section.nearest(("total_timesteps",))
        message = f"{run.total_timesteps:,} is more than budget.timesteps; remove the line"
        source.fail([LocatedProblem(node.place, ("arms", name, "total_timesteps"), message)])
    file = named_file(source, section)
    return RunArm(run, () if file is None else (file,))


def _experiment_arm(
    source: Document, config: StudyConfig, name: str, section: Node
) -> ExperimentArm:
    base, written = based_on(source, section)
    if written.has(("mode",)) and written.nearest(("mode",)).value == "live":
        message = (
            "a live mixture trains all its runs at once, but the runs of an arm train one after "
            "the other; write mode: rounds in its file"
        )
        source.fail([LocatedProblem(section.place, ("arms", name), message)])
    decided: tuple[tuple[Key, object, str], ...] = (
        ((*_EXECUTOR, "kind"), "local", "study"),
        ((*_EXECUTOR, "parallel"), 1, "study"),
        (("cpus_per_member",), config.cpus_per_run, "cpus_per_run"),
    )
    tree = with_decided(written.without(_EXECUTOR), decided)
    experiment = _experiment(base, tree, seed=config.seeds[0], run_dir=config.run_dir / name)
    base.refuse(tree, _uploads(experiment))
    named = [named_file(source, section)]
    named += [named_file(base, tree.nearest((key,))) for key in _SECTIONS if tree.has((key,))]
    files = tuple(dict.fromkeys(file for file in named if file is not None))
    return ExperimentArm(base, tree, experiment, files)


def _experiment(source: Document, tree: Node, *, seed: int, run_dir: Path) -> Experiment:
    decided = ((("seed",), seed, "seeds"), (("run_dir",), str(run_dir), "run_dir"))
    return experiment_of(source, with_decided(tree, decided), [])


def _uploads(experiment: Experiment) -> Iterator[Problem]:
    for name, run in zip(_SECTIONS, experiment.players, strict=False):
        if run.upload is not None:
            yield Problem(
                (name, "upload"),
                "a study uploads nothing, as its runs may be deleted; remove the section, or write "
                f"{name}: {{upload: null}} into the arm",
            )
