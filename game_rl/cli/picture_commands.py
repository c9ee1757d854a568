"""`game-rl plot`, `report`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from game_rl.cli.arguments import add_command
from game_rl.cli.outputs import HTM, HTML, PNG, SVG, add_output
from game_rl.cli.printing import add_json, print_result
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.files.durable_files import write_atomic
from game_rl.viewer.plotted_runs import plotted_panels, refuse_studies
from game_rl.viewer.shown_experiment import shown_experiment
from game_rl.viewer.shown_run import read_run

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands

_AXIS_HELP = "x axis: timesteps, emulator frames or hours of training (default: timesteps)"


def add_plot(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "plot",
        _plot,
        summary=summary,
        example="game-rl plot runs/ppo_* runs/pqn_* --x frames --output curves.png",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="RUN",
        help="directories of runs; those whose configs differ only by the seed share a colour. An "
        "experiment stands for its members",
    )
    _add_axis(parser)
    add_output(parser, "--output", PNG, SVG, required=True, text="file to write, .png or .svg")
    add_json(parser)


def add_report(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "report",
        _report,
        summary=summary,
        example="game-rl report runs/duel_ppo --output report.html",
    )
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="run directory, or the directory of an experiment"
    )
    _add_axis(parser)
    add_output(parser, "--output", HTML, HTM, required=True, text="file to write, .html")
    add_json(parser)


def _add_axis(parser: argparse.ArgumentParser) -> None:
    choices = ["timesteps", "frames", "hours"]
    parser.add_argument("--x", choices=choices, default="timesteps", help=_AXIS_HELP)


def _plot(arguments: argparse.Namespace) -> int:
    output: Path = arguments.output
    from game_rl.viewer.panel_figure import panels_png, panels_svg

    panels = plotted_panels(list(dict.fromkeys(arguments.runs)), arguments.x)
    draw = panels_png if output.suffix.lower() == ".png" else panels_svg
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, draw(panels))
    names = [panel.name for panel in panels]
    print_result(arguments, {"file": str(output), "panels": names}, str(output))
    return 0


def _report(arguments: argparse.Namespace) -> int:
    output: Path = arguments.output
    from game_rl.viewer.experiment_report import experiment_report
    from game_rl.viewer.run_report import run_report

    refuse_studies(arguments.run)
    if ExperimentDir(arguments.run).exists():
        text = experiment_report(shown_experiment(arguments.run), arguments.x)
    else:
        text = run_report(read_run(arguments.run), arguments.x)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, text)
    print_result(arguments, {"file": str(output), "bytes": len(text.encode())}, str(output))
    return 0
