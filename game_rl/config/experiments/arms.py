"""The arms of a study: each is a run, or an experiment that counts as one."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from game_rl.config.experiments.everybody import everybody
from game_rl.config.experiments.experiment_files import Experiment, experiment_of, players_of
from game_rl.config.experiments.learner_runs import STOP_WHEN, WHOLE_BUDGET
from game_rl.config.experiments.study import StudyConfig
from game_rl.config.loader import Source, based_on, kind_in, named_file, run_based_on, with_decided
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, Problem, with_changed
from game_rl.config.yaml_tree import LocatedProblem, Node

_EXECUTOR: Key = ("executor",)
_SECTIONS = ("member", "learner")
"""Sections of an experiment that are configs of runs."""


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

    source: Source
    tree: Node
    experiment: Experiment
    files: tuple[Path, ...]

    @property
    def players(self) -> tuple[RunConfig, ...]:
        """The config of each sort of run in the arm."""
        return players_of(self.experiment)

    @property
    def timesteps(self) -> int:
        """Timesteps of all members and the learner together."""
        return sum(share.timesteps for share in everybody(self.experiment))

    @property
    def rounding_timesteps(self) -> int:
        """Most timesteps that the runs may play beyond `timesteps`, to complete an update."""
        return sum(share.rounding_timesteps for share in everybody(self.experiment))

    def of(self, seed: int, run_dir: Path) -> Experiment:
        return _experiment(self.source, self.tree, seed=seed, run_dir=run_dir)


Arm = RunArm | ExperimentArm


def arm_of(source: Source, config: StudyConfig, name: str, section: Node) -> Arm:
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
        shares = " + ".join(share.text for share in everybody(arm.experiment))
        message = (
            f"its runs play {shares} = {arm.timesteps:,} timesteps together, more than "
            f"budget.timesteps, {config.budget.timesteps:,}; lower one of these numbers"
        )
        source.fail([LocatedProblem(section.place, ("arms", name), message)])
    return arm


def given_away(name: str, section: Node) -> Iterator[Problem]:
    """Yield keys of an arm's own section that the study decides, or that an arm cannot have."""
    key: Key = ("arms", name)
    reasons: dict[Key, str] = {
        ("run_dir",): "runs are in run_dir of the study",
        ("seed",): "every arm has the seeds of the study",
        STOP_WHEN: WHOLE_BUDGET,
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


def _run_arm(source: Source, config: StudyConfig, name: str, section: Node) -> RunArm:
    run = run_based_on(source, section, tuple(_decided_of_run(config, name, section)))
    if run.total_timesteps > config.budget.timesteps:
        node = section.nearest(("total_timesteps",))
        message = f"{run.total_timesteps:,} is more than budget.timesteps; remove the line"
        source.fail([LocatedProblem(node.place, ("arms", name, "total_timesteps"), message)])
    file = named_file(source, section)
    return RunArm(run, () if file is None else (file,))


def _decided_of_run(
    config: StudyConfig, name: str, section: Node
) -> Iterator[tuple[Key, Any, str]]:
    yield ("run_dir",), str(config.run_dir / name), "run_dir"
    yield ("seed",), config.seeds[0], "seeds"
    if not section.has(("total_timesteps",)):
        yield ("total_timesteps",), config.budget.timesteps, "budget.timesteps"
    yield STOP_WHEN, None, "study"
    yield ("recording", "episodes"), 0, "study"


def _experiment_arm(source: Source, config: StudyConfig, name: str, section: Node) -> ExperimentArm:
    base, written = based_on(source, section)
    if written.has(("mode",)) and written.nearest(("mode",)).value == "live":
        message = (
            "a live mixture trains all its runs at once, but the runs of an arm train one after "
            "the other; write mode: rounds in its file"
        )
        source.fail([LocatedProblem(section.place, ("arms", name), message)])
    tree = with_decided(written.without(_EXECUTOR), tuple(_decided_of_experiment(config)))
    experiment = _experiment(base, tree, seed=config.seeds[0], run_dir=config.run_dir / name)
    base.refuse(tree, _uploads(experiment))
    named = [named_file(source, section)]
    named += [named_file(base, tree.nearest((key,))) for key in _SECTIONS if tree.has((key,))]
    files = tuple(dict.fromkeys(file for file in named if file is not None))
    return ExperimentArm(base, tree, experiment, files)


def _experiment(source: Source, tree: Node, *, seed: int, run_dir: Path) -> Experiment:
    decided = ((("seed",), seed, "seeds"), (("run_dir",), str(run_dir), "run_dir"))
    return experiment_of(source, with_decided(tree, decided))


def _decided_of_experiment(config: StudyConfig) -> Iterator[tuple[Key, Any, str]]:
    yield (*_EXECUTOR, "kind"), "local", "study"
    yield (*_EXECUTOR, "parallel"), 1, "study"
    yield ("cpus_per_member",), config.cpus_per_run, "cpus_per_run"


def _uploads(experiment: Experiment) -> Iterator[Problem]:
    for name, run in zip(_SECTIONS, players_of(experiment), strict=False):
        if run.upload is not None:
            yield Problem(
                (name, "upload"),
                "a study uploads nothing, as its runs may be deleted; remove the section, or write "
                f"{name}: {{upload: null}} into the arm",
            )
