"""Which panels `game-rl plot` draws for the runs and experiments that it is given."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from game_rl.errors import UsageError
from game_rl.events.run_view import PlotAxis
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.viewer.look import LIGHT
from game_rl.viewer.panels import Panel
from game_rl.viewer.run_panels import RunGroup, grouped_runs, run_panels
from game_rl.viewer.shown_experiment import ShownExperiment, fitness_panel, shown_experiment
from game_rl.viewer.shown_run import ShownRun, read_run

MOST_GROUPS = len(LIGHT.series)
_STUDY_FILE = "registration.sha256"


def plotted_panels(paths: Sequence[Path], axis: PlotAxis) -> list[Panel]:
    """Return the panels of runs and experiments.

    Raises:
        UsageError: a path is neither a run nor an experiment, nothing is recorded yet, or there are
            more different configs than colours.
    """
    runs: list[ShownRun] = []
    experiments: list[ShownExperiment] = []
    for path in paths:
        refuse_studies(path)
        if ExperimentDir(path).exists():
            experiments.append(shown_experiment(path))
        else:
            runs.append(read_run(path))
    groups = [*grouped_runs(runs), *(group for each in experiments for group in each.groups)]
    _check_number(groups)
    panels = run_panels(groups, axis)
    if len(experiments) == 1 and not runs:
        panels = [*filter(None, [fitness_panel(experiments[0], axis)]), *panels]
    if not panels:
        names = ", ".join(map(str, paths))
        raise UsageError(
            f"{names}: nothing is recorded yet; the first points come with the first update, or "
            "the first evaluation"
        )
    return panels


def _check_number(groups: Sequence[RunGroup]) -> None:
    if len(groups) > MOST_GROUPS:
        raise UsageError(
            f"these runs have {len(groups)} different configs, and a picture tells {MOST_GROUPS} "
            f"apart; name fewer runs, such as those of {groups[0].name} and {groups[1].name}"
        )


def refuse_studies(path: Path) -> None:
    """Raise UsageError if a path is a study's file or the folder of its runs."""
    if path.is_file():
        raise UsageError(
            f"{path} is a file, not the directory of a run or an experiment; if it is a study, "
            f"game-rl compare {quote(str(path))} reports and plots it"
        )
    if (path / _STUDY_FILE).is_file():
        inside = sorted(each.name for each in path.iterdir() if (each / "config.yaml").is_file())
        example = f", such as {path / inside[0]}" if inside else ""
        raise UsageError(
            f"{path} has the runs of a study: name single ones{example}, or report the whole study "
            "with game-rl compare and its file"
        )
