"""Experiments on the command line: train, status, lineage."""

import argparse
import json
from pathlib import Path

from game_rl.errors import UsageError
from game_rl.system.stop_request import stopping_experiment_on_signals


def show_status(root: Path, *, as_json: bool) -> int:
    """Print the status of the experiment at `root`."""
    from rich.console import Console

    from game_rl.experiments.experiment_dir import find_experiment
    from game_rl.experiments.experiment_status import experiment_status
    from game_rl.experiments.experiment_tables import status_table

    status = experiment_status(find_experiment(root))
    if as_json:
        print(json.dumps(status.to_json(), indent=2))
    else:
        Console().print(status_table(status))
    return 0


def show_lineage(root: Path, *, as_json: bool) -> int:
    """Print which runs descend from which in the experiment at `root`."""
    from rich.console import Console

    from game_rl.config.experiments.experiment import load_experiment
    from game_rl.experiments.descent import descent, descent_json, descent_tree
    from game_rl.experiments.experiment_dir import find_experiment
    from game_rl.experiments.records import read_records

    folder = find_experiment(root)
    branches = descent(read_records(folder))
    if as_json:
        print(json.dumps([descent_json(branch) for branch in branches], indent=2))
    else:
        experiment = load_experiment(folder.config, is_saved=True)
        kind, frame_skip = experiment.config.kind, experiment.run.env.frame_skip
        tree = descent_tree(str(root), branches, kind=kind, frame_skip=frame_skip)
        Console().print(tree)
    return 0


def is_experiment(arguments: argparse.Namespace) -> bool:
    """Whether `--config` describes an experiment, or `--resume` names one."""
    from game_rl.config.loader import kind_of
    from game_rl.experiments.experiment_dir import ExperimentDir

    if arguments.fork is not None:
        return False
    if arguments.config is not None:
        return kind_of(arguments.config, arguments.set) is not None
    return ExperimentDir(Path(arguments.resume)).exists()


def train_experiment(arguments: argparse.Namespace) -> int:
    """Begin the experiment or study of `--config`, or resume the experiment of `--resume`."""
    from game_rl.cli.studies import train_study
    from game_rl.config.loader import kind_of

    _check_combination(arguments)
    if arguments.config is not None and kind_of(arguments.config, arguments.set) == "study":
        return train_study(arguments)
    return _train_members(arguments)


def _check_combination(arguments: argparse.Namespace) -> None:
    if arguments.until is not None or arguments.at is not None:
        raise UsageError(
            "--until and --at are options for a run; in an experiment, --generation N goes back"
        )
    if arguments.generation is not None and arguments.resume is None:
        raise UsageError("--generation goes back in an experiment: name it with --resume")


def _train_members(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from game_rl.cli.experiment_console import ExperimentConsole, print_json
    from game_rl.config.experiments.experiment import load_experiment
    from game_rl.experiments.train_experiment import (
        ExperimentCommand,
        begin_experiment,
        resume_experiment,
    )
    from game_rl.system.stop_request import StopFlag

    is_json = arguments.log == "json"
    console = Console(quiet=is_json)
    watcher = ExperimentConsole(console)
    command = ExperimentCommand(
        stop=(stop := StopFlag()),
        force=arguments.force,
        take_over=arguments.take_over,
        listeners=[print_json if is_json else watcher],
        show=watcher.show_preflight,
    )
    with stopping_experiment_on_signals(stop, watcher.notice):
        if arguments.config is not None:
            begin_experiment(load_experiment(arguments.config, arguments.set), command)
        else:
            resume_experiment(
                Path(arguments.resume),
                command,
                generation=arguments.generation,
                overrides=arguments.set,
            )
    return 0
