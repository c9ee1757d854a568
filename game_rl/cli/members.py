"""`game-rl member`: the jobs of experiments and studies, which can also be run by hand."""

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from game_rl.cli.arguments import add_command, not_negative, positive

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands


def add_member(commands: "Commands") -> None:
    parser = commands.add_parser(
        "member",
        help="carry out one job of an experiment or a study",
        description="Jobs that the controller of an experiment or a study starts. You need them "
        "only to repeat one by hand.",
    )
    steps = parser.add_subparsers(title="steps", metavar="STEP", required=True)
    train = add_command(
        steps,
        "train",
        _train,
        summary="train a run up to a timestep, evaluate it there and write the result",
        example="game-rl member train runs/x/members/03 --until 16384 --seed 7 --result 03.json",
        trains=True,
    )
    train.add_argument("run", type=Path, metavar="RUN", help="run directory")
    train.add_argument(
        "--until", type=positive, required=True, metavar="T", help="timestep to train to"
    )
    _add_seed_and_result(train, seed="episodes")
    _add_finish(steps)
    _add_finish_experiment(steps)
    _add_copy(steps)
    _add_play(steps)
    _add_actions(steps)


def _add_copy(steps: "Commands") -> None:
    copy = add_command(
        steps,
        "copy",
        _copy,
        summary="fork a run's checkpoint into a new run directory, with other values",
        example="game-rl member copy runs/x/members/01 --at 16384 --to runs/x/members/03.g0001 "
        "--values '{\"seed\": 5}'",
    )
    copy.add_argument("run", type=Path, metavar="RUN", help="run directory")
    copy.add_argument("--at", type=positive, required=True, metavar="T", help="checkpoint to copy")
    copy.add_argument("--to", type=Path, required=True, metavar="NEW", help="run directory to make")
    copy.add_argument(
        "--values",
        type=json.loads,
        default={},
        metavar="JSON",
        help="values at dotted keys of the config",
    )
    copy.add_argument(
        "--fork", type=json.loads, default={}, metavar="JSON", help="keys of the section fork"
    )
    copy.add_argument("--id", metavar="ID", help="id of the new run (default: random)")
    copy.add_argument(
        "--known-as", type=Path, metavar="PATH", help="RUN's path in the copy's files"
    )


def _add_play(steps: "Commands") -> None:
    play = add_command(
        steps,
        "play",
        _play,
        summary="play episodes with a run's checkpoint and write their results",
        example="game-rl member play runs/x/members/03 --checkpoint 16384 --episodes 200 --seed 7 "
        "--result 03.json",
    )
    play.add_argument("run", type=Path, metavar="RUN", help="run directory")
    play.add_argument("--checkpoint", required=True, metavar="T", help="checkpoint to play with")
    _add_episodes(play)


def _add_actions(steps: "Commands") -> None:
    actions = add_command(
        steps,
        "actions",
        _actions,
        summary="compare the actions of checkpoints on the same observations of a Lake, and write "
        "how often two of them differ",
        example='game-rl member actions runs/x/members --checkpoints \'{"00": 16384, '
        '"01": 16384}\' --lake runs/x/lake --seed 7 --result actions.json',
    )
    actions.add_argument("members", type=Path, metavar="DIR", help="folder of the runs")
    actions.add_argument(
        "--checkpoints",
        type=json.loads,
        required=True,
        metavar="JSON",
        help="checkpoint of each run",
    )
    actions.add_argument(
        "--lake", type=Path, required=True, metavar="LAKE", help="Lake to draw from"
    )
    actions.add_argument(
        "--observations",
        type=positive,
        default=512,
        metavar="N",
        help="observations to draw (default: 512)",
    )
    _add_seed_and_result(actions, seed="observations")


def _add_finish(steps: "Commands") -> None:
    finish = add_command(
        steps,
        "finish",
        _finish,
        summary="train a run to its end, play a test with it and write the result",
        example="game-rl member finish runs/x/ppo-100 --episodes 200 --seed 7 --result ppo.json",
        trains=True,
    )
    finish.add_argument("run", type=Path, metavar="RUN", help="run directory")
    finish.add_argument(
        "--selection", choices=["best", "last"], default="best", help="checkpoint to play with"
    )
    _add_episodes(finish)


def _add_finish_experiment(steps: "Commands") -> None:
    finish = add_command(
        steps,
        "finish-experiment",
        _finish_experiment,
        summary="bring an experiment to its end, play a test with its champion and write the "
        "result",
        example="game-rl member finish-experiment runs/x/four-100 --episodes 200 --seed 7 "
        "--result four.json",
        trains=True,
    )
    finish.add_argument("run", type=Path, metavar="DIR", help="directory of the experiment")
    _add_episodes(finish)


def _add_episodes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--episodes", type=positive, required=True, metavar="N", help="episodes to play"
    )
    _add_seed_and_result(parser, seed="episodes")


def _add_seed_and_result(parser: argparse.ArgumentParser, *, seed: str) -> None:
    parser.add_argument(
        "--seed", type=not_negative, required=True, metavar="N", help=f"seed of the {seed}"
    )
    parser.add_argument(
        "--result", type=Path, required=True, metavar="FILE", help="JSON file to write"
    )


def _actions(arguments: argparse.Namespace) -> int:
    from game_rl.lake.lake import Lake

    Lake.open(arguments.lake)  # a mistake is reported before torch is loaded
    from game_rl.jobs.member_jobs import compare_actions

    compare_actions(
        arguments.members,
        arguments.checkpoints,
        lake=arguments.lake,
        observations=arguments.observations,
        seed=arguments.seed,
        result=arguments.result,
    )
    return 0


def _finish_experiment(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from game_rl.cli.experiment_console import ExperimentConsole
    from game_rl.experiments.train_experiment import ExperimentCommand, finish_experiment
    from game_rl.system.stop_request import StopRequest, stopping_on_signals

    console, stop = ExperimentConsole(Console()), StopRequest(math.inf)
    command = ExperimentCommand(stop=stop, force=True, listeners=[console])
    with stopping_on_signals(stop, console.notice):
        finish_experiment(
            arguments.run,
            command,
            episodes=arguments.episodes,
            seed=arguments.seed,
            result=arguments.result,
        )
    return 0


def _finish(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from game_rl.checkpoints.named import open_run

    open_run(arguments.run)
    from game_rl.cli.run_console import RunConsole
    from game_rl.jobs.member_jobs import FinalTest, finish_run
    from game_rl.system.stop_request import StopRequest, stopping_on_signals

    stop = StopRequest()
    test = FinalTest(
        selection=arguments.selection, episodes=arguments.episodes, seed=arguments.seed
    )
    with stopping_on_signals(stop):
        finish_run(
            arguments.run,
            test,
            result=arguments.result,
            stop=stop,
            listeners=[RunConsole(Console())],
        )
    return 0


def _train(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from game_rl.checkpoints.named import open_run

    open_run(arguments.run)
    from game_rl.cli.run_console import RunConsole
    from game_rl.jobs.member_jobs import run_stretch
    from game_rl.system.stop_request import StopRequest, stopping_on_signals

    stop = StopRequest()
    with stopping_on_signals(stop):
        run_stretch(
            arguments.run,
            until=arguments.until,
            seed=arguments.seed,
            result=arguments.result,
            stop=stop,
            listeners=[RunConsole(Console())],
        )
    return 0


def _copy(arguments: argparse.Namespace) -> int:
    from game_rl.checkpoints.named import find_run, kept_path

    if not (arguments.to / "config.yaml").exists():
        kept_path(find_run(arguments.run), arguments.at)
    from game_rl.jobs.member_jobs import copy_run

    copy_run(
        arguments.run,
        at=arguments.at,
        to=arguments.to,
        values=arguments.values,
        known_as=arguments.known_as,
        fork=arguments.fork,
        run_id=arguments.id,
    )
    return 0


def _play(arguments: argparse.Namespace) -> int:
    from game_rl.checkpoints.named import check_playable

    check_playable(arguments.run, arguments.checkpoint)
    from game_rl.jobs.member_jobs import play_checkpoint

    play_checkpoint(
        arguments.run,
        arguments.checkpoint,
        episodes=arguments.episodes,
        seed=arguments.seed,
        result=arguments.result,
    )
    return 0
