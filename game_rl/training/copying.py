"""A member of a population that goes on as a copy of another one."""

from collections.abc import Mapping
from pathlib import Path

from game_rl.config.strict_model import Key
from game_rl.training.forking import find_source, forked_config, make_fork, plan_fork


def copy_run(
    parent: Path, *, at: int, to: Path, values: Mapping[str, object], known_as: Path | None = None
) -> None:
    """Fork the checkpoint of timestep `at` into `to`, with these values at dotted keys.

    The folder appears in one rename; where it stands already, nothing is done.

    Args:
        known_as: the path of the parent that the fork names; None: that it has here.

    Raises:
        CheckpointError: there is no such checkpoint.
        UsageError: it cannot be forked so.
    """
    if (to / "config.yaml").exists():
        return
    source = find_source(parent, at)
    changed: dict[Key, object] = {tuple(key.split(".")): value for key, value in values.items()}
    make_fork(plan_fork(forked_config(source, to, changed), known_as=known_as))
