"""The command line: parses arguments, prints results, sets the exit code."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from game_rl.errors import GameRLError, Interrupted, UsageError

if TYPE_CHECKING:
    from game_rl.callbacks.evaluation import Evaluation
    from game_rl.envs.game_check import GameCheck
    from game_rl.runs.training import TrainingResult

EXIT_CODES = """\
exit codes:
  0    done
  1    failed (a worker died, a checkpoint is damaged, a loss became NaN, the disk is nearly full)
  2    a mistake in the config, the game file, the ROM or the command
  3    the run does not fit this machine
  130  interrupted; everything up to the last update is saved
"""

# Torch, SB3 and PyBoy are imported inside the commands that need them: a mistake in a config is
# told in a fraction of a second, and worker processes, which import the main module again, stay
# small.


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (see EXIT_CODES)."""
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        return command(arguments)
    except Interrupted:
        _complain("interrupted; everything up to the last update is saved")
        return Interrupted.exit_code
    except GameRLError as error:
        _complain(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        _complain("interrupted")
        return Interrupted.exit_code
    except BrokenPipeError:  # `game-rl schema | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk, a directory that is not ours: the machine, not a bug
        _complain(f"error: {error.filename or 'input or output'}: {error.strerror or error}")
        return GameRLError.exit_code


def _complain(text: str) -> None:
    print(text, file=sys.stderr)


# ---- commands ------------------------------------------------------------------------------------


def _train(arguments: argparse.Namespace) -> int:
    from game_rl.config.loader import load_config

    console = Console()
    if arguments.resume is not None:
        if arguments.config is not None or arguments.set:
            raise UsageError(
                "--resume continues a run with its own config: leave --config and --set out"
            )
        from game_rl.runs.training import resume

        result = resume(arguments.resume, force=arguments.force, console=console)
    elif arguments.config is not None:
        config = load_config(arguments.config, arguments.set)
        from game_rl.runs.training import train

        result = train(config, force=arguments.force, console=console)
    else:
        raise UsageError("train needs --config FILE, or --resume RUN to continue a run")
    _print_result(result, console)
    return 0


def _preflight(arguments: argparse.Namespace) -> int:
    from game_rl.config.loader import load_config
    from game_rl.games.definition import load_game
    from game_rl.preflight.probe import probe_episodes
    from game_rl.preflight.report import preflight, render_report
    from game_rl.resources import detect_machine, parse_machine

    config = load_config(arguments.config, arguments.set)
    game = load_game(config.game)
    machine = detect_machine(config.run_dir)
    if arguments.on:
        machine = parse_machine(arguments.on, here=machine)
    probe = probe_episodes(config, game) if arguments.probe else None
    report = preflight(config, game, machine, probe=probe)
    if arguments.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        Console().print(render_report(report))
    return 3 if report.verdict == "does_not_fit" else 0


def _evaluate(arguments: argparse.Namespace) -> int:
    from game_rl.runs.evaluation import evaluate_run
    from game_rl.runs.policy import open_trained_run

    run = open_trained_run(arguments.run, arguments.checkpoint)
    evaluation = evaluate_run(run, episodes=arguments.episodes)
    if arguments.json:
        print(json.dumps(asdict(evaluation), indent=2))
    else:
        title = f"{arguments.run}, timestep {run.state.num_timesteps:,}"
        Console().print(_evaluation_table(evaluation, title))
    return 0


def _record(arguments: argparse.Namespace) -> int:
    from game_rl.runs.policy import open_trained_run
    from game_rl.runs.recording import record_run

    run = open_trained_run(arguments.run, arguments.checkpoint)
    output = arguments.output or run.run_dir.videos / f"{run.checkpoint.name}.gif"
    print(record_run(run, episodes=arguments.episodes, output=output))
    return 0


def _check_game(arguments: argparse.Namespace) -> int:
    from game_rl.envs.contact_sheet import write_contact_sheet
    from game_rl.envs.game_check import check_game
    from game_rl.envs.recorded_episode import read_recorded_episode
    from game_rl.games.definition import load_game

    game = load_game(arguments.game)
    recorded = read_recorded_episode(arguments.recorded, game) if arguments.recorded else None
    check = check_game(game, seed=arguments.seed, timesteps=arguments.timesteps, recorded=recorded)
    write_contact_sheet(check.screens, arguments.sheet)
    _print_check(check, Console())
    print(f"contact sheet: {arguments.sheet}")
    return 0


def _new_game(arguments: argparse.Namespace) -> int:
    from game_rl.games.starter import write_starter

    path = write_starter(arguments.rom, arguments.folder or arguments.rom.parent)
    print(f"{path} written; fill in its variables, then run: game-rl check-game {path}")
    return 0


def _schema(arguments: argparse.Namespace) -> int:
    from game_rl.config.loader import json_schema
    from game_rl.config.schema import RunConfig
    from game_rl.games.definition import GameDefinition

    print(json_schema(GameDefinition if arguments.game else RunConfig), end="")
    return 0


# ---- what a person reads -------------------------------------------------------------------------


def _print_result(result: "TrainingResult", console: Console) -> None:
    from game_rl.preflight.report import footprint_line

    title = f"best policy, timestep {result.best_timesteps:,}"
    console.print(_evaluation_table(result.evaluation, title))
    console.print(f"footprint    {footprint_line(result.footprint)}", soft_wrap=True)
    if result.video is not None:
        console.print(f"video        {result.video}", soft_wrap=True)
    root = result.run_dir.root
    console.print(f"run          {root}", soft_wrap=True)
    console.print(f"curves       tensorboard --logdir {root}", soft_wrap=True)


def _print_check(check: "GameCheck", console: Console) -> None:
    console.print(
        f"[bold]{check.title}[/]: {check.timesteps:,} timesteps, {check.episodes} episodes begun, "
        f"{check.ended} ended, {check.successes} successes"
    )
    variables = Table("variable", title="variables", title_justify="left")
    for heading in ("lowest", "highest", "changes"):
        variables.add_column(heading, justify="right")
    for v in check.variables:
        variables.add_row(v.name, f"{v.minimum:,}", f"{v.maximum:,}", f"{v.changes:,}")
    terms = Table("term", title="reward", title_justify="left")
    for heading in ("sum", "timesteps"):
        terms.add_column(heading, justify="right")
    for term in check.reward_terms:
        terms.add_row(term.name, f"{term.total:,.2f}", f"{term.times:,}")
    console.print(variables, terms)
    for warning in check.warnings:
        console.print("[yellow]warning:[/]", escape(warning))


def _evaluation_table(evaluation: "Evaluation", title: str) -> Table:
    table = Table(title=title, title_justify="left")
    success = evaluation.success_rate
    cells = {
        "episodes": f"{evaluation.episodes}",
        "success": "not defined" if success is None else f"{success:.0%}",
        "mean reward": f"{evaluation.mean_reward:.2f} ± {evaluation.std_reward:.2f}",
        "mean length": f"{evaluation.mean_length:.0f} timesteps",
    }
    for name in cells:
        table.add_column(name, justify="right")
    table.add_row(*cells.values())
    return table


# ---- arguments -----------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="game-rl",
        description="Train agents on Game Boy games.",
        epilog=EXIT_CODES,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=16, width=96
        ),
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_train(commands)
    _add_preflight(commands)
    _add_evaluate(commands)
    _add_record(commands)
    _add_check_game(commands)
    _add_new_game(commands)
    _add_schema(commands)
    return parser


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def _command(
    commands: "Commands",
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    summary: str,
    example: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=run)
    return parser


def _add_config_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", required=required, help="run config")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a key of the config, such as env.n_envs=16; may be given often",
    )


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="run directory of a training")
    parser.add_argument(
        "--checkpoint",
        default="best",
        metavar="best|latest|N",
        help="which checkpoint plays; N is its timestep (default: best)",
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def _add_train(commands: "Commands") -> None:
    parser = _command(
        commands,
        "train",
        _train,
        summary="train an agent, evaluate it and record a clip of it",
        example="game-rl train --config configs/duel_ppo.yaml --set seed=1",
    )
    _add_config_arguments(parser, required=False)
    parser.add_argument("--resume", type=Path, metavar="RUN", help="continue the run in RUN")
    parser.add_argument("--force", action="store_true", help="start even if it does not fit")


def _add_preflight(commands: "Commands") -> None:
    parser = _command(
        commands,
        "preflight",
        _preflight,
        summary="say what memory, disk and arithmetic a run will take, before it starts",
        example="game-rl preflight --config configs/duel_ppo.yaml --on ram=32GiB,cpus=8",
    )
    _add_config_arguments(parser, required=True)
    parser.add_argument(
        "--on",
        metavar="ram=32GiB,vram=16GiB,disk=250GiB,cpus=8",
        help="plan for another machine; what is left out is taken from this one",
    )
    parser.add_argument(
        "--probe", action="store_true", help="play random episodes and measure their length"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_evaluate(commands: "Commands") -> None:
    parser = _command(
        commands,
        "evaluate",
        _evaluate,
        summary="play a trained agent's episodes and sum them up",
        example="game-rl evaluate runs/duel_ppo --checkpoint latest --episodes 50",
    )
    _add_run_arguments(parser)
    parser.add_argument("--episodes", type=_positive, default=100, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_record(commands: "Commands") -> None:
    parser = _command(
        commands,
        "record",
        _record,
        summary="write a GIF or MP4 of a trained agent's episodes",
        example="game-rl record runs/duel_ppo --output fight.mp4 --episodes 3",
    )
    _add_run_arguments(parser)
    parser.add_argument("--episodes", type=_positive, default=2, metavar="N")
    parser.add_argument("--output", type=Path, metavar="FILE", help="ends in .gif or .mp4")


def _add_check_game(commands: "Commands") -> None:
    parser = _command(
        commands,
        "check-game",
        _check_game,
        summary="play a game.yaml's game and show what its variables and rewards do",
        example="game-rl check-game my_game/game.yaml --recorded episode.json",
    )
    parser.add_argument("game", metavar="FILE", help="a game.yaml, or the name of a bundled game")
    parser.add_argument(
        "--recorded",
        type=Path,
        metavar="FILE",
        help='an episode to play too: {"start_state": ..., "seed": 0, "actions": [names]}',
    )
    parser.add_argument("--timesteps", type=_positive, default=2_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument(
        "--sheet",
        type=Path,
        default=Path("contact_sheet.png"),
        metavar="FILE",
        help="PNG of the start states and some play (default: contact_sheet.png)",
    )


def _add_new_game(commands: "Commands") -> None:
    parser = _command(
        commands,
        "new-game",
        _new_game,
        summary="write a starter game.yaml for a ROM",
        example="game-rl new-game roms/my_game.gb --folder my_game",
    )
    parser.add_argument("rom", type=Path, metavar="ROM")
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="where to put it (default: beside the ROM)"
    )


def _add_schema(commands: "Commands") -> None:
    parser = _command(
        commands,
        "schema",
        _schema,
        summary="print the JSON Schema of a run config, for editors",
        example="game-rl schema > configs/run.schema.json",
    )
    parser.add_argument("--game", action="store_true", help="of a game.yaml instead")
