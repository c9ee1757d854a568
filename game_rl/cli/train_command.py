"""`game-rl train` of a run, an experiment or a study, and `demo`."""

import argparse
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from game_rl.checkpoints.named import find_run
from game_rl.cli.arguments import (
    add_config_arguments,
    named_checkpoint,
    not_negative,
    positive,
)
from game_rl.cli.printing import SafeConsole, forecast_shown, print_words
from game_rl.cli.run_console import RunConsole, print_json
from game_rl.config.bundled_configs import bundled_configs
from game_rl.config.experiments.experiment import load_experiment
from game_rl.config.experiments.study_config import load_study
from game_rl.config.loader import config_kind
from game_rl.config.output_config import checked_address
from game_rl.errors import NotStoredError, UsageError
from game_rl.experiments.experiment_dir import ExperimentDir, refuse_run_of_experiment, run_of
from game_rl.files.run_dir import RunDir
from game_rl.system.processes import python_variables
from game_rl.system.stop_request import StopRequest, stopping_on_signals
from game_rl.system.units import format_duration, with_frames

if TYPE_CHECKING:
    from game_rl.config.schema import RunConfig
    from game_rl.experiments.study.study_forecast import StudyReport
    from game_rl.experiments.study.study_results import PairResult
    from game_rl.experiments.tasks import Death
    from game_rl.training.train import TrainingResult

_DEMO = "duel_ppo"


def add_demo(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_demo)
    parser.add_argument(
        "set",
        nargs="*",
        metavar="KEY=VALUE",
        help=f"keys of the config {_DEMO} to override, such as seed=1; run_dir=... names the "
        "folder (default: runs/demo_ and the time)",
    )
    _add_training_options(parser)
    parser.set_defaults(
        config=None, resume=None, fork=None, at=None, generation=None, until=None, take_over=False
    )


def add_train(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=train_as_asked)
    add_config_arguments(parser, required=False)
    parser.add_argument(
        "--resume",
        metavar="RUN[@T]",
        help="continue the run or experiment in RUN; @T means --at T, or --generation T of an "
        "experiment. One at an address in object storage is fetched first, to the folder of "
        "run_dir=...",
    )
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="upload even if another machine uploads this run, whose uploads are refused from "
        "then on",
    )
    parser.add_argument(
        "--at",
        type=not_negative,
        metavar="T",
        help="with --resume: go back to the kept checkpoint of timestep T; later ones move to "
        "set_aside/ in the run directory",
    )
    parser.add_argument(
        "--fork",
        metavar="RUN[@T]",
        help="start a new run from a kept checkpoint of RUN (default: the newest), with its "
        "config and the changes of --set; needs --set run_dir=... An experiment stands for its "
        "champion",
    )
    parser.add_argument(
        "--generation",
        type=positive,
        metavar="N",
        help="with --resume EXPERIMENT: go back to the end of generation N; later ones are set "
        "aside",
    )
    parser.add_argument(
        "--until",
        type=not_negative,
        metavar="T",
        help="train up to the first update at or beyond timestep T, save and end; 0: end after "
        "algorithm.learn_from.offline",
    )
    _add_training_options(parser)


def _add_training_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every training that begins or continues."""
    parser.add_argument(
        "--force",
        action="store_true",
        help="start even if the preflight says that it does not fit this machine",
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="run every stage, scaled down to a minute, in a folder that is deleted: "
        "preflight, two updates, an evaluation, a checkpoint, a resume and a clip (of an "
        "experiment: two members, one generation)",
    )
    parser.add_argument(
        "--log",
        choices=["text", "json"],
        default="text",
        help="format of the output; json prints each event as one JSON object a line",
    )


def _demo(arguments: argparse.Namespace) -> int:
    for word in arguments.set:
        if "=" not in word:
            raise UsageError(
                f"game-rl demo trains {_DEMO} and takes only KEY=VALUE, not {word!r}; game-rl "
                "train takes a config"
            )
    arguments.config = bundled_configs()[_DEMO]
    folder = f"run_dir=runs/demo_{datetime.now():%Y%m%d_%H%M%S}"
    arguments.set = [folder, *arguments.set]
    return train_as_asked(arguments)


def train_as_asked(arguments: argparse.Namespace) -> int:
    """Carry out `game-rl train` with these arguments, and return the exit code."""
    _check_combination(arguments)
    if arguments.smoke:
        from game_rl.cli.smoke import smoke_test

        return smoke_test(arguments)
    if arguments.resume is not None and "://" in arguments.resume:
        code = _fetch(arguments)
        if code != 0:
            return code
    elif arguments.resume is not None:
        _take_checkpoint(arguments)
    kind = _experiment_kind(arguments)
    if kind is not None and (arguments.until is not None or arguments.at is not None):
        raise UsageError(
            "--until and --at are options for a run; in an experiment, --generation N goes back"
        )
    if arguments.generation is not None and (kind is None or arguments.resume is None):
        raise UsageError("--generation goes back in an experiment: name it with --resume")
    if kind is not None:
        return _train_study(arguments) if kind == "study" else _train_members(arguments)
    if arguments.resume is not None:
        refuse_run_of_experiment(Path(arguments.resume))

    is_json = arguments.log == "json"
    console = SafeConsole(quiet=is_json or arguments.quiet)
    with closing(RunConsole(console, is_verbose=arguments.verbose)) as run_console:
        result = _trained(arguments, console, run_console)
    _print_result(result, SafeConsole(quiet=is_json), with_hints=not arguments.quiet)
    if result.not_stored:
        raise NotStoredError(result.not_stored)
    return 0


def _take_checkpoint(arguments: argparse.Namespace) -> None:
    """Make `RUN@T` of `--resume` the run and `--at`, or `--generation` of an experiment."""
    given = arguments.resume
    root, at = named_checkpoint(given)
    arguments.resume = str(root)
    if at is None:
        return
    option = "generation" if ExperimentDir(root).exists() else "at"
    if getattr(arguments, option) is not None:
        raise UsageError(f"--resume {given} and --{option} both name a checkpoint; leave one out")
    setattr(arguments, option, at)


def _fetch(arguments: argparse.Namespace) -> int:
    """Fetch a stored run to `run_dir`, unless it is there, and make `resume` name that folder.

    It is fetched by another process, as a process that has used obstore must not fork.
    """
    try:
        checked_address(arguments.resume)  # others can see arguments: no secret may be in it
    except ValueError as error:
        raise UsageError(f"--resume: {error}") from None

    places = [text.partition("=")[2] for text in arguments.set if text.startswith("run_dir=")]
    if not places:
        raise UsageError(
            "a run that is fetched from storage needs a folder: add --set run_dir=runs/my_run"
        )
    address = arguments.resume
    root = Path(places[-1])
    run_dir = RunDir(root)
    if not run_dir.exists() and not ExperimentDir(root).exists():
        option = "--take-over" if arguments.take_over else "--refuse-active"
        command = [sys.executable, "-m", "game_rl", "remote", "fetch", address, str(root), option]
        fetched = subprocess.run(
            command, stdout=sys.stderr, check=False, env=os.environ | python_variables()
        )
        if fetched.returncode != 0:
            return fetched.returncode
    elif run_dir.identity().id not in address:
        raise UsageError(
            f"{root} already holds another run than {address}; continue that one with --resume "
            f"{quote(str(root))}, or name another folder"
        )
    from game_rl.cli.remote_command import missing_rom

    if run_dir.exists() and (rom := missing_rom(run_dir)) is not None:
        raise UsageError(rom)
    arguments.resume = str(root)
    arguments.set = [text for text in arguments.set if not text.startswith("run_dir=")]
    return 0


def _trained(
    arguments: argparse.Namespace, console: "Console", run_console: "RunConsole"
) -> "TrainingResult":
    from game_rl.training.admission import check_new_fork, check_new_run, check_resumable

    show = forecast_shown(console, is_verbose=arguments.verbose)
    # a mistake is reported before torch is loaded
    config = report = None
    announce = run_console.announce
    if arguments.resume is not None:
        run_console.watch = _watch_command(Path(arguments.resume))
        check_resumable(
            Path(arguments.resume), overrides=arguments.set, at=arguments.at, announce=announce
        )
    else:
        config = _config(arguments, announce)
        run_console.watch = _watch_command(config.run_dir)
        if config.fork is not None:
            check_new_fork(config)
        else:
            report = check_new_run(config, force=arguments.force, show=show)
    from game_rl.training.train import TrainCommand, resume, train

    stop = StopRequest()
    command = TrainCommand(
        until=arguments.until,
        force=arguments.force,
        take_over=arguments.take_over,
        measures_lake=True,
        stop=stop,
        listeners=[print_json if arguments.log == "json" else run_console],
        show=show,
    )
    with stopping_on_signals(stop):
        if config is not None:
            return train(config, command, report=report)
        return resume(Path(arguments.resume), command, overrides=arguments.set, at=arguments.at)


def _check_combination(arguments: argparse.Namespace) -> None:
    is_new = arguments.config is not None or arguments.fork is not None
    if arguments.resume is None and not is_new:
        raise UsageError(
            "train needs a config: a file, or one that comes with game_rl, such as duel_ppo "
            "(game-rl configs lists them); or --resume RUN to continue a run, or --fork RUN to "
            "start from one"
        )
    if arguments.resume is not None and is_new:
        raise UsageError(
            "--resume continues a run with its own config: leave --config and --fork out; "
            "some keys may be changed with --set, such as total_timesteps"
        )
    if arguments.smoke and (arguments.resume is not None or arguments.fork is not None):
        raise UsageError("--smoke tests a config: leave --resume and --fork out")
    if arguments.at is not None and arguments.resume is None:
        raise UsageError(
            "--at goes back to a checkpoint of the run that --resume names; to start a new run "
            "from it, use --fork RUN@T"
        )


def _config(arguments: argparse.Namespace, announce: Callable[[str], None]) -> "RunConfig":
    """Return the config of `--config`, or else the parent's; of a fork with a section `fork`."""
    from game_rl.checkpoints.run_game import moved_game
    from game_rl.training.admission import startable_config

    if arguments.fork is None:
        return startable_config(arguments.config, arguments.set, announce=announce)
    place, at = named_checkpoint(arguments.fork)
    parent = RunDir(run_of(place))
    run = str(parent.root) if at is None else f"{parent.root}@{at}"
    overrides = [f"fork={{run: {json.dumps(run)}}}", *arguments.set]
    if arguments.config is not None:
        return startable_config(arguments.config, overrides, announce=announce)
    find_run(place if parent.root == place else parent.root)
    if not any(override.replace(" ", "").startswith("run_dir=") for override in arguments.set):
        raise UsageError("a fork is a new run: name its folder with --set run_dir=...")
    overrides = [*moved_game(parent, overrides), *overrides]
    return startable_config(parent.config, overrides, announce=announce, is_saved=True)


def _print_result(result: "TrainingResult", console: "Console", *, with_hints: bool) -> None:
    from game_rl.cli.play_commands import evaluation_table
    from game_rl.preflight.preflight import footprint_line

    def line(name: str, text: object) -> None:
        print_words(console, Text(f"{name:<12} {text}"), indent=13)

    root = result.run_dir.root
    if result.left_alone:
        print_words(console, result.left_alone)
        return
    if result.evaluation is None:
        reached = with_frames(result.timesteps, result.frame_skip, result.waited_frames)
        print_words(
            console,
            f"trained up to timestep {reached} and saved; continue with {result.run_dir.way_on}",
        )
        return
    title = f"best policy, {result.best_name}"
    console.print(evaluation_table(result.evaluation, title))
    if result.ended_by:
        line("ended early", result.ended_by)
    line("footprint", footprint_line(result.footprint))
    line("run", root)
    if with_hints:
        _print_steps(next_steps(root, result.video), console)


def _experiment_kind(arguments: argparse.Namespace) -> str | None:
    """Return the kind of what `--config` describes or `--resume` names; None for a run."""
    if arguments.fork is not None:
        return None
    if arguments.config is not None:
        return config_kind(arguments.config, arguments.set)
    return "experiment" if ExperimentDir(Path(arguments.resume)).exists() else None


def _train_members(arguments: argparse.Namespace) -> int:
    from game_rl.cli.experiment_console import ExperimentConsole
    from game_rl.experiments.train_experiment import (
        ExperimentCommand,
        begin_experiment,
        resume_experiment,
    )

    is_json = arguments.log == "json"
    watcher = ExperimentConsole(
        SafeConsole(quiet=is_json or arguments.quiet),
        result=SafeConsole(quiet=is_json),
        is_verbose=arguments.verbose,
    )
    stop = StopRequest(math.inf)
    command = ExperimentCommand(
        stop=stop,
        force=arguments.force,
        take_over=arguments.take_over,
        measures_lake=True,
        listeners=[print_json if is_json else watcher],
        show=watcher.show_preflight,
    )
    with closing(watcher), stopping_on_signals(stop, watcher.notice):
        if arguments.config is not None:
            experiment = load_experiment(arguments.config, arguments.set)
            root = experiment.config.run_dir
            watcher.follow(root, watch=_watch_command(root))
            begin_experiment(experiment, command)
        else:
            root = Path(arguments.resume)
            watcher.follow(root, watch=_watch_command(root))
            resume_experiment(
                root, command, generation=arguments.generation, overrides=arguments.set
            )
    if not arguments.quiet:
        curves = _shell_command("tensorboard", "--logdir", str(root))
        steps = [*_ways_to_look(root, "champion.gif"), ("curves", curves)]
        _print_steps(steps, SafeConsole(quiet=is_json))
    return 0


def _print_steps(steps: Sequence[tuple[str, str]], console: Console) -> None:
    """Print commands, each in one line so that it can be copied, however narrow the terminal is."""
    console.print("what to look at next:")
    for name, text in steps:
        console.print(f"  {name:<10} {text}", soft_wrap=True, markup=False, highlight=False)


def next_steps(run: Path, video: Path | None) -> list[tuple[str, str]]:
    """Return the places and commands to look at next, each with its name.

    Args:
        run: directory of a run that has ended.
        video: its clip, if one was recorded.
    """
    run_dir = RunDir(run)
    curves = shlex.quote(str(run_dir.progress))
    if run_dir.tensorboard.is_dir() or not run_dir.progress.exists():
        curves = _shell_command("tensorboard", "--logdir", str(run))
    evaluate = _shell_command("game-rl", "evaluate", str(run), "--episodes", "100", "--seed", "1")
    steps = [*_ways_to_look(run, "clip.gif"), ("evaluate", evaluate), ("curves", curves)]
    return steps if video is None else [("clip", shlex.quote(str(video))), *steps]


def _ways_to_look(root: Path, clip: str) -> list[tuple[str, str]]:
    """Return the commands to look at a run or an experiment with, each with its name."""
    name = str(root)
    return [
        ("watch", _watch_command(root)),
        ("report", _shell_command("game-rl", "report", name, "--output", "report.html")),
        ("status", _shell_command("game-rl", "status", name)),
        ("record", _shell_command("game-rl", "record", name, "--output", clip)),
    ]


def _watch_command(root: Path) -> str:
    return _shell_command("game-rl", "watch", str(root), "--open")


def _shell_command(program: str, *arguments: str) -> str:
    """Return a command line, with the program's path where the shell does not find its name.

    `make demo` installs into a virtual environment that the person has not activated. The path is
    relative to the current folder if it is below.
    """
    beside = Path(sys.executable).parent / program
    if shutil.which(program) is None and beside.exists():
        here = Path.cwd()
        program = str(beside.relative_to(here) if beside.is_relative_to(here) else beside)
    return shlex.join([program, *arguments])


def _train_study(arguments: argparse.Namespace) -> int:
    """Make the missing results of a study."""
    from game_rl.cli.experiment_console import MembersLine, death_words
    from game_rl.experiments.study.study_report import result_words, study_progress
    from game_rl.experiments.study.study_run import StudyCommand, run_study

    is_json = arguments.log == "json"
    console = SafeConsole(quiet=is_json or arguments.quiet)
    stop = StopRequest(math.inf)
    study = load_study(arguments.config, arguments.set)
    line = MembersLine(console, lambda: study_progress(study))

    show_preflight = forecast_shown(console, is_verbose=False)

    def show_forecast(report: "StudyReport") -> None:
        show_preflight(report)
        line.start()

    def show_result(result: "PairResult", done: int, count: int) -> None:
        if is_json:
            print(result.model_dump_json(exclude_none=True), flush=True)
        took = format_duration(result.seconds)
        text = f"[{done}/{count}] {result.arm}, seed {result.seed}: {result_words(result)}, {took}"
        console.print(text, soft_wrap=True, markup=False, highlight=False)

    def show_death(death: "Death") -> None:
        ended = death.ended
        words = death_words(
            name=ended.job.name,
            code=ended.code,
            deaths=death.count,
            pause_s=death.pause_s,
            cause=ended.cause,
        )
        console.print(f"warning: {words}", soft_wrap=True, markup=False)

    command = StudyCommand(
        stop=stop,
        force=arguments.force,
        measures_lakes=True,
        show=show_forecast,
        on_result=show_result,
        on_death=show_death,
    )
    with (
        closing(line),
        stopping_on_signals(stop, lambda text: console.print(text, style="yellow", markup=False)),
    ):
        run_study(study, command)
    report = f"game-rl compare {quote(str(arguments.config))}"
    console.print(f"report       {report}", soft_wrap=True, markup=False)
    return 0
