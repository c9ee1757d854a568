"""An experiment whose runs share a Lake, in another folder than the one that it was begun in."""

from pathlib import Path
from typing import Any

from game_rl.config.algorithms import DQNConfig
from game_rl.config.changed_values import with_changed
from game_rl.config.loader import Source, dump_config, load_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key
from game_rl.errors import ConfigError
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.run_dir import RunDir, write_atomic

_LAKE: Key = ("member", "lake", "path")


def follow_lake(folder: ExperimentDir) -> None:
    """Let the runs look for their Lake, and for who teaches them, where the folder is now.

    What their checkpoints say of the old place is not used. Call it before the experiment's own
    config is written anew, which says whether there is something to do.
    """
    root, _ = Source(folder.config, ConfigError).tree(())
    if not root.has(_LAKE) or root.nearest(_LAKE).value == str(folder.lake.absolute()):
        return
    for path in sorted(folder.members.glob("*")):
        run_dir = RunDir(path)
        if run_dir.exists():
            config = load_config(run_dir.config, is_saved=True)
            write_atomic(run_dir.config, dump_config(_relocated(config, run_dir, folder)))


def _relocated(config: RunConfig, run_dir: RunDir, folder: ExperimentDir) -> RunConfig:
    lake, changes = folder.lake.absolute(), dict[Key, Any]()
    if config.lake is not None:
        changes["lake", "path"] = lake
    algorithm = config.algorithm
    if isinstance(algorithm, DQNConfig) and algorithm.learn_from is not None:
        changes["algorithm", "learn_from", "lakes"] = [lake]
    teacher = algorithm.teacher if isinstance(algorithm, DQNConfig) else None
    if teacher is not None and not run_dir.teacher.exists():  # else it has a copy of its own
        changes["algorithm", "teacher", "run"] = str(
            folder.members.absolute() / Path(teacher.run).name
        )
    return with_changed(config, changes)
