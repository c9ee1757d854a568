"""Study files, and the configs of the runs that their arms are made of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from game_rl.config.experiments import refuse_problems, run_based_on
from game_rl.config.loader import Source, run_dir_problems
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, Problem
from game_rl.config.study import StudyConfig
from game_rl.config.values import expanded_path
from game_rl.config.yaml_tree import LocatedProblem, Node
from game_rl.errors import ConfigError, UsageError

_MAY_BE_SET = ("executor", "run_dir")
"""Keys that change no result."""


@dataclass(frozen=True)
class Study:
    """A study's config, and the config of each arm's run before it has a seed and a folder.

    Attributes:
        config_files: by arm: the file that its run is based on; one that is written out has none.
    """

    file: Path
    config: StudyConfig
    runs: dict[str, RunConfig]
    config_files: dict[str, Path]


def load_study(path: Path, overrides: Sequence[str] = ()) -> Study:
    """The study that a file describes.

    Args:
        overrides: of `executor` and `run_dir` alone.

    Raises:
        ConfigError: with every problem of the file, then of an arm's config.
        UsageError: an override would make it another study.
    """
    for override in overrides:
        key = override.partition("=")[0].strip()
        if key.partition(".")[0] not in _MAY_BE_SET:
            raise UsageError(
                f"--set {key}: a study is what its file says; only {' and '.join(_MAY_BE_SET)} may "
                "be set. Change the file, and register it as another study"
            )
    source = Source(path, ConfigError)
    root, problems = source.tree(overrides)
    config = source.model_of(root, problems, StudyConfig, run_dir_problems)
    arms = {name: root.nearest(("arms", name)) for name in config.arms}
    refuse_problems(source, root, _given_away(arms, config))
    runs = {name: _run(source, config, name, node) for name, node in arms.items()}
    files = {
        name: path.parent / expanded_path(str(node.nearest(("config",)).value))
        for name, node in arms.items()
        if node.has(("config",))
    }
    return Study(path, config, runs, files)


def _run(source: Source, config: StudyConfig, name: str, arm: Node) -> RunConfig:
    run = run_based_on(source, arm, tuple(_decided(config, name, arm)))
    if run.total_timesteps > config.budget.timesteps:
        node = arm.nearest(("total_timesteps",))
        message = f"{run.total_timesteps:,} is more than budget.timesteps; remove the line"
        source.fail([LocatedProblem(node.place, ("arms", name, "total_timesteps"), message)])
    return run


def _decided(config: StudyConfig, name: str, arm: Node) -> Iterator[tuple[Key, Any, str]]:
    yield ("run_dir",), str(config.run_dir / name), "run_dir"
    yield ("seed",), config.seeds[0], "seeds"
    if not arm.has(("total_timesteps",)):
        yield ("total_timesteps",), config.budget.timesteps, "budget.timesteps"
    yield ("recording", "episodes"), 0, "study"


def _given_away(arms: dict[str, Node], config: StudyConfig) -> Iterator[Problem]:
    """Keys of an arm's own section that the plan decides."""
    reasons: dict[Key, str] = {
        ("run_dir",): "runs live in run_dir of the study",
        ("seed",): "every arm has the seeds of the study",
    }
    for name, arm in arms.items():
        for key, reason in reasons.items():
            if arm.has(key):
                yield Problem(("arms", name, *key), f"{reason}: remove the line")
        if arm.has(("config",)):
            value = arm.nearest(("config",)).value
            if not (isinstance(value, str) and value):
                message = "names no file; write one, such as duel_ppo.yaml"
                yield Problem(("arms", name, "config"), message)
        if arm.has(("kind",)):
            yield Problem(("arms", name, "kind"), "an arm is a run: remove the line")
    if config.run_dir == config.results:
        yield Problem(("results",), "is run_dir, whose content may be deleted; name another folder")
