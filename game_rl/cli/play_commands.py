"""`game-rl evaluate`, `record`."""

import argparse
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from game_rl.checkpoints.named import check_playable
from game_rl.cli.arguments import (
    add_command,
    add_run_arguments,
    check_output,
    named_policy,
    not_negative,
    positive,
)
from game_rl.cli.printing import add_json, print_facts, print_result
from game_rl.envs.episode_starts import chosen_start_states, game_changes
from game_rl.system.output import as_printed

if TYPE_CHECKING:
    from game_rl.callbacks.evaluation import Evaluation
    from game_rl.cli.arguments import Commands
    from game_rl.events import StartStateResult


def add_evaluate(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "evaluate",
        _evaluate,
        summary=summary,
        example="game-rl evaluate runs/duel_ppo --checkpoint latest --episodes 50",
    )
    add_run_arguments(parser)
    parser.add_argument(
        "--episodes",
        type=positive,
        default=100,
        metavar="N",
        help="episodes to play (default: 100)",
    )
    _add_episode_choice(
        parser,
        default="that of the run's final evaluation",
        states="play N episodes from each of these start states",
    )
    add_json(parser)


def _add_episode_choice(parser: argparse.ArgumentParser, *, default: str, states: str) -> None:
    parser.add_argument(
        "--seed",
        type=not_negative,
        metavar="N",
        help=f"seed of the episodes (default: {default})",
    )
    parser.add_argument(
        "--start-states",
        nargs="+",
        metavar="NAME",
        help=f"{states} instead of those of the training; they may be ones that the training never "
        "used",
    )


def add_record(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "record",
        _record,
        summary=summary,
        example="game-rl record runs/duel_ppo --output fight.gif --episodes 3",
    )
    add_run_arguments(parser)
    parser.add_argument(
        "--episodes", type=positive, default=2, metavar="N", help="episodes to record (default: 2)"
    )
    _add_episode_choice(
        parser,
        default="that of the run's own clip",
        states="begin each episode in one of these start states, drawn evenly,",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="file to write, .gif or .mp4 (default: a GIF in the run's videos/)",
    )
    add_json(parser)


def evaluation_table(evaluation: "Evaluation", title: str) -> Table:
    """Return a table of one row, and of one more for each start state if there are several."""
    cells, apart = _evaluation_cells(evaluation), evaluation.by_start_state
    if apart is not None:
        whole = f"{title}, {cells.pop('policy')}"
        rows = {name: _start_state_cells(result) for name, result in apart.items()}
        return _start_states_table({"all": cells, **rows}, whole)
    table = Table(title=Text(title), title_justify="left")
    for name in cells:
        table.add_column(name, justify="right")
    table.add_row(*cells.values())
    return table


def _start_state_cells(result: "StartStateResult") -> dict[str, str]:
    success = result.success_rate
    return {
        "episodes": f"{result.episodes}",
        "success": "not defined" if success is None else f"{success:.0%}",
        "mean reward": f"{result.mean_reward:.2f}",
    }


def _evaluation_cells(evaluation: "Evaluation") -> dict[str, str]:
    success = evaluation.success_rate
    return {
        "episodes": f"{evaluation.episodes}",
        "policy": "deterministic" if evaluation.deterministic else "stochastic",
        "success": "not defined" if success is None else f"{success:.0%}",
        "mean reward": as_printed(f"{evaluation.mean_reward:.2f} ± {evaluation.std_reward:.2f}"),
        "mean length": f"{evaluation.mean_length:.0f} timesteps",
    }


def _start_states_table(rows: Mapping[str, Mapping[str, str]], title: str) -> Table:
    table = Table(title=Text(title), title_justify="left")
    table.add_column("start state")
    for name in next(iter(rows.values())):
        table.add_column(name, justify="right")
    for name, cells in rows.items():
        table.add_row(Text(name), *cells.values())
    return table


def _evaluate(arguments: argparse.Namespace) -> int:
    root, checkpoint = named_policy(arguments)
    game = check_playable(root, checkpoint)
    chosen_start_states(arguments.start_states, game)
    from game_rl.playback.trained_run import evaluate_run, open_trained_run

    run = open_trained_run(root, checkpoint)
    title = f"{root}, {run.name}"
    changes = game_changes(game, arguments.start_states or run.config.env.start_states)
    learned = run.policy_facts() | ({"game_changes": changes} if changes else {})
    play = functools.partial(evaluate_run, run, episodes=arguments.episodes, seed=arguments.seed)
    if arguments.start_states is None:
        evaluation = play()
        table, report = evaluation_table(evaluation, title), evaluation.to_json() | learned
    else:
        evaluations = {name: play(start_state=name) for name in arguments.start_states}
        cells = {name: _evaluation_cells(each) for name, each in evaluations.items()}
        table = _start_states_table(cells, title)
        report = {name: evaluation.to_json() | learned for name, evaluation in evaluations.items()}
    if arguments.json:
        print_facts(report)
    else:
        Console().print(table)
        for change in changes:
            print(f"the game is changed: {change}")
    return 0


def _record(arguments: argparse.Namespace) -> int:
    from game_rl.playback.clip import clip_writer

    root, checkpoint = named_policy(arguments)
    game = check_playable(root, checkpoint)
    chosen_start_states(arguments.start_states, game)
    if arguments.output is not None:
        clip_writer(arguments.output)
        check_output(arguments.output)
    from game_rl.playback.recording import record_run
    from game_rl.playback.trained_run import open_trained_run

    run = open_trained_run(root, checkpoint)
    output = arguments.output or run.run_dir.videos / f"{run.checkpoint.path.name}.gif"
    made = record_run(
        run,
        episodes=arguments.episodes,
        output=output,
        seed=arguments.seed,
        start_states=arguments.start_states,
    )
    changes = game_changes(game, arguments.start_states or run.config.env.start_states)
    facts = run.policy_facts() | ({"game_changes": changes} if changes else {})
    told = "".join(f"\nthe game is changed: {change}" for change in changes)
    print_result(arguments, {"file": str(made), **facts}, f"{made}{told}")
    return 0
