"""The relocation of an experiment whose runs share a Lake, after its folder was moved."""

from pathlib import Path
from typing import Any

from game_rl.config.algorithms import DQNConfig
from game_rl.config.loader import Source, dump_config, load_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, with_changed
from game_rl.errors import ConfigError
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.run_dir import RunDir, write_atomic

_LAKE: Key = ("member", "lake", "path")


def follow_lake(folder: ExperimentDir) -> None:
    """Point the configs of the runs to the Lake and the teachers in the folder's new place.

    Paths in their checkpoints are not used. Call it before the experiment's own config is
    rewritten, as the Lake's path in there shows whether the folder was moved.
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
    if teacher is not None and not run_dir.teacher.exists():  # else the run reads its own copy
        changes["algorithm", "teacher", "run"] = str(
            folder.members.absolute() / Path(teacher.run).name
        )
    return with_changed(config, changes)
