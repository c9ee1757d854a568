"""An experiment of either kind: read, written, the configs of its runs, its budget of timesteps."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from game_rl.config.allowed_changes import (
    LEARNER,
    MEMBER_OF_MIXTURE,
    MEMBER_OF_POPULATION,
    MEMBER_WITH_LEARNER,
)
from game_rl.config.experiments.executor_config import storage_problems
from game_rl.config.experiments.learner_config import (
    FOLLOW,
    LEARN_FROM,
    OFFLINE,
    STOP_WHEN,
    Decided,
    as_run,
    decided_key_problems,
)
from game_rl.config.experiments.mixture_config import (
    MixtureConfig,
    decided_of_live_learner,
    decided_of_live_member,
    keys_of_live,
    keys_of_rounds,
)
from game_rl.config.experiments.population_config import PopulationConfig
from game_rl.config.loader import Document, dump_config, kind_in, run_based_on, run_dir_problems
from game_rl.config.output_config import UploadConfig
from game_rl.config.schema import LakeConfig, RunConfig
from game_rl.config.strict_model import Problem, flat
from game_rl.config.yaml_tree import LocatedProblem, Node
from game_rl.errors import ConfigError

ExperimentConfig = PopulationConfig | MixtureConfig
"""The file of an experiment of either kind. Names of a population hold for both."""

STAGES = {"population": "generation", "mixture": "round"}
"""What the files of each kind call a generation."""


@dataclass(frozen=True)
class BudgetShare:
    """Timesteps of some of the runs together.

    Attributes:
        text: the calculation, such as `4 members x 4 generations x 16,384`.
        rounding_timesteps: most timesteps beyond these, as each run plays to the end of an update.
    """

    text: str
    timesteps: int
    rounding_timesteps: int


@dataclass(frozen=True)
class Experiment:
    """An experiment's config, and the configs of its runs.

    Attributes:
        run: the config of a member before anything is mutated.
        learner: the config of the learner in the first generation; None if there is no learner.
    """

    config: ExperimentConfig
    run: RunConfig
    learner: RunConfig | None = None

    @property
    def players(self) -> tuple[RunConfig, ...]:
        """The config of a member, and of the learner if there is one."""
        return (self.run,) if self.learner is None else (self.run, self.learner)

    @property
    def settings(self) -> dict[str, object]:
        """All values by dotted key, with those of the runs below `member` and `learner`."""
        outside = self.config.model_dump(mode="json", exclude={"member", "learner"})
        return flat(outside | self.sections)

    @property
    def sections(self) -> dict[str, dict[str, object]]:
        """The sections `member` and `learner`, with all that was decided for the runs."""
        found = {"member": self.run.model_dump(mode="json")}
        if self.learner is not None:
            found["learner"] = self.learner.model_dump(mode="json") | self.config.learner_keys
        return found

    @property
    def budget(self) -> tuple[BudgetShare, ...]:
        """The shares of all runs that play, including those that are copied over.

        A member counts its timesteps from its beginning on, so only its last update is rounded. One
        that gets the weights of a learner counts from 0 again, with another rounded update, and so
        does the learner in each generation.
        """
        config = self.config
        update = self.run.rollout_timesteps
        members = config.members
        times = config.generations
        each = config.timesteps_per_generation
        stages = f"{times} {STAGES[config.kind]}s"
        counted_anew = 1 if self.learner is None else times
        text = f"{members} members x {stages} x {each:,}"
        shares = [BudgetShare(text, members * times * each, members * counted_anew * update)]
        if self.learner is not None:
            own = self.learner.total_timesteps
            rounding = self.learner.rollout_timesteps
            text = f"{stages} x {own:,} of the learner"
            shares.append(BudgetShare(text, times * own, times * rounding))
        if config.train_on is not None:
            more = config.train_on.timesteps
            shares.append(BudgetShare(f"{more:,} of the best, trained on", more, update))
        return tuple(shares)


def load_experiment(
    path: Path, overrides: Sequence[str] = (), *, is_saved: bool = False
) -> Experiment:
    """Return the experiment that a file describes, after overrides such as `member.env.n_envs=4`.

    Args:
        is_saved: whether `dump_experiment` wrote the file.

    Raises:
        ConfigError: the file or a run's config is wrong. The message has every problem of the file,
            or, if that has none, of the run's config.
    """
    source = Document(path, ConfigError)
    root, problems = source.tree(overrides)
    return experiment_of(source, root, problems, is_saved=is_saved)


def experiment_of(
    source: Document, root: Node, problems: Sequence[LocatedProblem], *, is_saved: bool = False
) -> Experiment:
    """As `load_experiment`, for a tree that was read from `source`, with its text's problems."""
    kind = kind_in(source, root)
    model: type[ExperimentConfig] = MixtureConfig if kind == "mixture" else PopulationConfig
    config = source.model_of(root, [*problems], model, run_dir_problems)
    member = root.nearest(("member",))
    learner = None
    section = None
    if config.learner is not None:
        section = as_run(root.nearest(("learner",)), tuple(config.learner_keys))
    first: _Groups = []
    then: _Groups = []
    if not is_saved:
        first, then = _refused(config, root, member, section)
    for problems_of_file in first:
        source.refuse(root, problems_of_file)
    run = run_based_on(source, member, tuple(_decided_of_member(config)))
    if section is not None:
        for problems_of_file in then:
            source.refuse(root, problems_of_file)
        learner = run_based_on(source, section, tuple(_decided_of_learner(config, section)))
    source.refuse(root, config.run_problems(run, learner))
    source.refuse(root, storage_problems(config.executor, run))
    source.refuse(root, upload_problems(config.upload, run, has_learner=learner is not None))
    return Experiment(config, run, learner)


def dump_experiment(experiment: Experiment) -> str:
    """Return YAML that `load_experiment` reads back as an equal experiment, in any folder."""
    return dump_config(experiment.config.model_copy(update=experiment.sections))


# ---------------------------------------------------------------------- what is decided for runs


def _decided_of_member(config: ExperimentConfig) -> Decided:
    """Yield keys of a member's config, each with its value and the name of what decides it."""
    stretch = config.timesteps_per_generation
    stage = STAGES[config.kind]
    yield ("run_dir",), str(config.run_dir / "members" / "00"), "run_dir"
    yield ("seed",), config.seed, "seed"
    yield ("total_timesteps",), config.total_timesteps, f"{stage}s x timesteps_per_{stage}"
    yield ("evaluation", "every_timesteps"), stretch, f"timesteps_per_{stage}"
    yield ("evaluation", "episodes"), config.fitness.episodes, "fitness.episodes"
    yield STOP_WHEN, None, f"kind: {config.kind}"
    yield ("recording", "episodes"), 0, f"kind: {config.kind}"
    if config.learner is not None:
        lake = config.lake or LakeConfig()
        for name, value in lake.model_dump(mode="json", exclude={"path"}).items():
            yield ("lake", name), value, "lake"
        yield ("lake", "path"), _lake_path(config), "run_dir"
    if isinstance(config, MixtureConfig) and config.is_live:
        yield from decided_of_live_member(config)


def _decided_of_learner(config: ExperimentConfig, learner: Node) -> Decided:
    """As `_decided_of_member`, for the learner's config."""
    stretch = config.learner_per_generation
    kind = config.kind
    key = f"learner_per_{STAGES[kind]}"
    yield ("run_dir",), str(config.run_dir / "members" / "learner"), "run_dir"
    yield ("total_timesteps",), stretch.timesteps, f"{key}.timesteps"
    yield STOP_WHEN, None, f"kind: {kind}"
    yield ("evaluation", "every_timesteps"), stretch.timesteps, f"{key}.timesteps"
    yield ("checkpoints", "save_replay_buffer"), True, f"kind: {kind}"
    yield (*LEARN_FROM, "lakes"), [_lake_path(config)], "run_dir"
    yield (*OFFLINE, "gradient_steps"), stretch.gradient_steps, f"{key}.gradient_steps"
    yield ("seed",), config.seed, "seed"
    yield ("evaluation", "episodes"), config.fitness.episodes, "fitness.episodes"
    yield ("recording", "episodes"), 0, f"kind: {kind}"
    if isinstance(config, MixtureConfig) and config.is_live:
        yield from decided_of_live_learner(config, learner)
    elif isinstance(config, MixtureConfig):
        yield FOLLOW, None, "mode: rounds"


def _lake_path(config: ExperimentConfig) -> str:
    return str((config.run_dir / "lake").absolute())


_Groups = list[Iterable[Problem]]


def _refused(
    config: ExperimentConfig, root: Node, member: Node, learner: Node | None
) -> tuple[_Groups, _Groups]:
    """Return groups of problems of the file: keys that others decide, or that mean nothing.

    The second list is for after a member's config was read.
    """
    kind = config.kind
    stage = STAGES[kind]
    rule = MEMBER_OF_POPULATION if config.learner is None else MEMBER_WITH_LEARNER
    example = "duel_ppo.yaml"
    if isinstance(config, MixtureConfig):
        rule = MEMBER_OF_MIXTURE
        example = "duel_pqn.yaml"
    of_member = decided_key_problems(
        member, "member", rule, kind=kind, stage=stage, example=example
    )
    if learner is None:
        return [of_member], []
    of_learner = decided_key_problems(
        learner, "learner", LEARNER, kind=kind, stage=stage, example="duel_dqn.yaml"
    )
    if isinstance(config, MixtureConfig):
        not_here = keys_of_rounds(root, learner) if config.is_live else keys_of_live(learner)
        return [chain(of_member, of_learner), not_here], []
    then: _Groups = [of_learner]
    if learner.has(FOLLOW):
        message = "the learner learns only once all members have played: remove the line"
        then.append([Problem(("learner", *FOLLOW), message)])
    return [of_member], then


def upload_problems(
    upload: UploadConfig | None, run: RunConfig, *, has_learner: bool
) -> Iterator[Problem]:
    """Yield settings with which the upload would leave out what the runs need.

    Args:
        upload: the experiment's section `upload`; None: there is nothing to check.
        run: the config of a member.
        has_learner: whether members feed one Lake, in run_dir.
    """
    if upload is None:
        return
    if "checkpoints" not in upload.what:
        yield Problem(
            ("upload", "what"),
            "an experiment is uploaded whole, and is of no use without its checkpoints: add "
            "checkpoints, or remove the section and copy the files",
        )
    if run.lake is None:
        return
    if run.lake.path is not None and not has_learner:
        yield Problem(
            ("upload",),
            f"it sends run_dir, but members have their Lake elsewhere, at {run.lake.path}: remove "
            "member.lake.path, so that each has its own in run_dir, or remove this section",
            (("member", "lake", "path"),),
        )
    elif "lake" not in upload.what:
        way_out = "add lake" if has_learner else "add lake, or write member: {lake: null}"
        yield Problem(
            ("upload", "what"),
            f"no member could be resumed from its checkpoint without the Lake: {way_out}",
            (("member", "lake"),),
        )
