"""Create a member of an experiment from another run's checkpoint."""

from collections.abc import Mapping
from pathlib import Path

from game_rl.config.strict_model import Key
from game_rl.training.forking import find_source, forked_config, make_fork, plan_fork


def copy_run(
    parent: Path,
    *,
    at: int,
    to: Path,
    values: Mapping[str, object],
    fork: Mapping[str, object] | None = None,
    run_id: str | None = None,
    known_as: Path | None = None,
) -> None:
    """Fork the checkpoint of timestep `at` into `to`, with these values at dotted keys.

    The folder appears in one rename. If it exists already, nothing is done.

    Args:
        fork: values of the config's section `fork`, apart from `run`; None: the defaults.
        run_id: see `RunDir.identity`.
        known_as: path under which the fork names its parent; None: `parent`.

    Raises:
        CheckpointError: there is no such checkpoint.
        UsageError: it cannot be forked in this way.
    """
    if (to / "config.yaml").exists():
        return
    source = find_source(parent, at)
    changed: dict[Key, object] = {tuple(key.split(".")): value for key, value in values.items()}
    plan = plan_fork(forked_config(source, to, changed, fork=fork), known_as=known_as)
    make_fork(plan, run_id=run_id)
