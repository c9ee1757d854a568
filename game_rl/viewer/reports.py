"""The report of what a folder holds: a run or an experiment."""

from pathlib import Path

from game_rl.events.run_view import PlotAxis
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.viewer.experiment_report import experiment_report
from game_rl.viewer.plotted_runs import refuse_studies
from game_rl.viewer.run_report import run_report
from game_rl.viewer.shown_experiment import shown_experiment
from game_rl.viewer.shown_run import read_run


def html_report(root: Path, axis: PlotAxis) -> str:
    """Return the report of a run or an experiment as one HTML page.

    Raises:
        UsageError: `root` is neither.
    """
    refuse_studies(root)
    if ExperimentDir(root).exists():
        return experiment_report(shown_experiment(root), axis)
    return run_report(read_run(root), axis)
