"""Reads study files and the arms in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from game_rl.config.experiments.arms import Arm, arm_of, given_away
from game_rl.config.experiments.study import StudyConfig
from game_rl.config.loader import Source, kind_in, run_dir_problems
from game_rl.config.strict_model import Problem
from game_rl.config.yaml_tree import Node
from game_rl.errors import ConfigError, UsageError

_MAY_BE_SET = ("executor", "run_dir")
"""Keys that an override may set, because they change no result."""


@dataclass(frozen=True)
class Study:
    """A study's config, with its arms before they have a seed and a folder."""

    file: Path
    config: StudyConfig
    arms: dict[str, Arm]


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
        if key.partition(".")[0] not in _MAY_BE_SET:
            raise UsageError(
                f"--set {key}: a study is what its file says; only {' and '.join(_MAY_BE_SET)} may "
                "be set. Change the file, and register it as another study"
            )
    source = Source(path, ConfigError)
    root, problems = source.tree(overrides)
    kind = kind_in(source, root)
    if kind != "study":
        raise UsageError(
            f"{path} is the config of a {kind or 'run'}, not a study, which begins with "
            "`kind: study` (docs/studies.md); to compare trainings, name their run directories"
        )
    config = source.model_of(root, problems, StudyConfig, run_dir_problems)
    sections = {name: root.nearest(("arms", name)) for name in config.arms}
    source.refuse(root, _problems(sections, config))
    arms = {name: arm_of(source, config, name, section) for name, section in sections.items()}
    return Study(path, config, arms)


def _problems(arms: dict[str, Node], config: StudyConfig) -> Iterator[Problem]:
    for name, arm in arms.items():
        yield from given_away(name, arm)
    if config.run_dir == config.results:
        yield Problem(("results",), "is run_dir, whose content may be deleted; name another folder")
