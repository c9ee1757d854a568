"""`game-rl evaluate` and `game-rl record`: a trained agent plays."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from game_rl.cli.arguments import add_command, add_run_arguments, not_negative, positive

if TYPE_CHECKING:
    from game_rl.callbacks.evaluate import Evaluation
    from game_rl.cli.arguments import Commands


def add_evaluate(commands: "Commands") -> None:
    parser = add_command(
        commands,
        "evaluate",
        _evaluate,
        summary="play a trained agent's episodes and sum them up",
        example="game-rl evaluate runs/duel_ppo --checkpoint latest --episodes 50",
    )
    add_run_arguments(parser)
    parser.add_argument("--episodes", type=positive, default=100, metavar="N")
    parser.add_argument(
        "--seed",
        type=not_negative,
        metavar="N",
        help="chooses the episodes (default: those of the run's final evaluation)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_record(commands: "Commands") -> None:
    parser = add_command(
        commands,
        "record",
        _record,
        summary="write a GIF or MP4 of a trained agent's episodes",
        example="game-rl record runs/duel_ppo --output fight.mp4 --episodes 3",
    )
    add_run_arguments(parser)
    parser.add_argument("--episodes", type=positive, default=2, metavar="N")
    parser.add_argument("--output", type=Path, metavar="FILE", help="ends in .gif or .mp4")


def evaluation_table(evaluation: "Evaluation", title: str) -> Table:
    table = Table(title=Text(title), title_justify="left")
    success = evaluation.success_rate
    cells = {
        "episodes": f"{evaluation.episodes}",
        "actions": "likeliest" if evaluation.deterministic else "drawn",
        "success": "not defined" if success is None else f"{success:.0%}",
        "mean reward": f"{evaluation.mean_reward:.2f} ± {evaluation.std_reward:.2f}",
        "mean length": f"{evaluation.mean_length:.0f} timesteps",
    }
    for name in cells:
        table.add_column(name, justify="right")
    table.add_row(*cells.values())
    return table


def _evaluate(arguments: argparse.Namespace) -> int:
    from game_rl.playback.evaluate import evaluate_run
    from game_rl.playback.policy import open_trained_run

    run = open_trained_run(arguments.run, arguments.checkpoint)
    evaluation = evaluate_run(run, episodes=arguments.episodes, seed=arguments.seed)
    if arguments.json:
        print(json.dumps(evaluation.to_json(), indent=2))
    else:
        title = f"{arguments.run}, {run.name}"
        Console().print(evaluation_table(evaluation, title))
    return 0


def _record(arguments: argparse.Namespace) -> int:
    from game_rl.playback.policy import open_trained_run
    from game_rl.playback.record import record_run

    run = open_trained_run(arguments.run, arguments.checkpoint)
    output = arguments.output or run.run_dir.videos / f"{run.checkpoint.path.name}.gif"
    print(record_run(run, episodes=arguments.episodes, output=output))
    return 0
