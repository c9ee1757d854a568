"""`game-rl checkpoints`, `lineage`, `export`, `import`."""

import argparse
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from game_rl.checkpoints.named import find_run, kept_path, open_run
from game_rl.checkpoints.run_game import check_playable
from game_rl.cli.arguments import (
    add_config_arguments,
    add_run_arguments,
    named_checkpoint,
    named_policy,
)
from game_rl.cli.outputs import ONNX, ZIP, add_output
from game_rl.cli.printing import (
    SafeConsole,
    add_json,
    numbers,
    print_facts,
    print_notes,
    print_result,
    working,
)
from game_rl.config.experiments.experiment import load_experiment
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.events.lineage import (
    Source,
    all_sources,
    counted_once,
    lineage_json,
    played_in_all,
    run_as_source,
)
from game_rl.experiments.experiment_dir import ExperimentDir, find_experiment, run_of
from game_rl.experiments.records import read_records
from game_rl.games.definition import load_game
from game_rl.interchange.sb3_limits import (
    check_new_file,
    check_zip_to_read,
    check_zip_to_write,
    exchangeable,
)
from game_rl.playback.checkpoint_survey import survey
from game_rl.system.output import visible
from game_rl.system.packages import check_extra
from game_rl.system.units import format_bytes

if TYPE_CHECKING:
    from game_rl.playback.trained_run import TrainedRun

_ID_SHOWN = 8


def add_checkpoints(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_checkpoints)
    parser.add_argument(
        "run",
        type=Path,
        metavar="RUN[@T]",
        help="run directory, or the directory of an experiment, which stands for its champion; "
        "@T: only the checkpoint of timestep T",
    )
    add_json(parser, "list")


def add_export(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_export)
    add_run_arguments(parser)
    parser.add_argument(
        "--format",
        choices=["sb3", "onnx"],
        default="sb3",
        help="sb3: a zip of Stable-Baselines3; onnx: a graph for onnxruntime (default: sb3)",
    )
    add_output(parser, "--output", ZIP, ONNX, required=True, text="file to write, .zip or .onnx")
    add_json(parser)


def add_import(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_import)
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="zip file that PPO.save or DQN.save wrote"
    )
    add_config_arguments(parser, required=True)
    add_json(parser)


def add_lineage(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_lineage)
    parser.add_argument(
        "run",
        metavar="RUN[@T]",
        help="run directory, or an experiment's; T is a timestep (default: the newest checkpoint)",
    )
    add_json(parser)


def _lineage(arguments: argparse.Namespace) -> int:
    root, timesteps = named_checkpoint(arguments.run)
    if ExperimentDir(root).exists():
        from game_rl.cli.descent_tree import descent_tree
        from game_rl.experiments.descent import descent, descent_json

        folder = find_experiment(root)
        records = read_records(folder)
        branches = descent(records)
        if arguments.json:
            print_facts([descent_json(branch) for branch in branches])
            return 0
        experiment = load_experiment(folder.config, is_saved=True)
        tree = descent_tree(
            str(root),
            branches,
            kind=experiment.config.kind,
            frame_skip=experiment.run.env.frame_skip,
            waited_frames=records[-1].waited_frames_of_all if records else 0,
        )
        SafeConsole().print(tree)
        return 0
    run_dir = find_run(root)
    if timesteps is None:
        saved = run_dir.checkpoints_newest_first()
        timesteps = int(saved[0].name) if saved else 0
    else:
        kept_path(run_dir, timesteps)
    config = load_config(run_dir.config, is_saved=True)
    run = run_as_source(run_dir, timesteps, frame_skip=config.env.frame_skip)
    if arguments.json:
        print_facts(lineage_json(run))
        return 0
    table = Table("", "run", *numbers("timesteps", "frames"), "", box=None, pad_edge=False)
    table.add_row(
        Text(f"{run.path} at timestep {run.timesteps:,}"), run.run[:_ID_SHOWN], *_played(run)
    )
    counted = {id(source) for source in counted_once([run])}
    for depth, source in all_sources(run.sources):
        note = "" if id(source) in counted else "counted in another row"
        words = f"{'  ' * (depth + 1)}{source.kind} of {source.path} at {source.timesteps:,}"
        table.add_row(Text(words), source.run[:_ID_SHOWN], *_played(source), note)
    total = [f"{number:,}" for number in played_in_all(run)]
    table.add_row("total played", "", *total, style="bold")
    SafeConsole().print(table, soft_wrap=True)
    return 0


def _played(source: Source) -> tuple[str, str]:
    return f"{source.played_timesteps:,}", f"{source.frames:,}"


def _checkpoints(arguments: argparse.Namespace) -> int:
    root, timesteps = named_checkpoint(arguments.run)
    run_dir, config = open_run(run_of(root))
    frame_skip = config.env.frame_skip
    with working("reading and verifying the checkpoints"):
        found = survey(run_dir)
    if timesteps is not None:
        kept_path(run_dir, timesteps)
        found = [finding for finding in found if finding.timesteps == timesteps]
    if arguments.json:
        rows = [{**f.to_json(), "frames": f.frames(frame_skip)} for f in found]
        print_facts(rows)
    elif not found:
        print(visible(f"{arguments.run} has no checkpoint yet"))
    else:
        headings = numbers("timestep", "frames", "size", "written")
        table = Table(*headings, "", box=None, pad_edge=False)
        for finding in found:
            notes = [finding.damage or "whole"]
            if finding.is_best and finding.best_mean_reward is not None:
                way = "" if finding.best_deterministic else ", stochastic"
                notes.append(f"best so far, mean reward {finding.best_mean_reward:.2f}{way}")
            if finding.teacher_is_better:
                notes.append(
                    "its teacher was at least as good in the validation, so the best policy is "
                    "the teacher's"
                )
            notes += finding.differences
            if finding.other_code:
                notes.append(finding.other_code)
            written = "unknown"
            if finding.written_s is not None:
                written = datetime.fromtimestamp(finding.written_s).strftime("%Y-%m-%d %H:%M:%S")
            table.add_row(
                f"{finding.timesteps:,}",
                f"{finding.frames(frame_skip):,}",
                format_bytes(finding.nbytes),
                written,
                Text("; ".join(notes)),
            )
        SafeConsole().print(table)
    return 1 if any(finding.damage for finding in found) else 0


def _export(arguments: argparse.Namespace) -> int:
    root, checkpoint = named_policy(arguments)
    if arguments.format == "onnx":
        check_new_file(arguments.output, ONNX.suffix, "files of ONNX")
        check_extra("onnxscript", "game-rl export --format onnx")
    else:
        check_zip_to_write(arguments.output)
    check_playable(root, checkpoint, arguments.game)
    if arguments.format == "sb3":
        exchangeable(open_run(root)[1])
    from game_rl.playback.trained_run import open_trained_run

    run = open_trained_run(root, checkpoint, arguments.game)
    print_notes(run.game_notes(arguments.game))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    write = _write_onnx if arguments.format == "onnx" else _write_zip
    facts, how = write(run, arguments.output)
    facts = {"file": str(arguments.output), "deterministic": run.deterministic, **facts}
    print_result(
        arguments,
        {**facts, **run.policy_facts()},
        f"{arguments.output}  (the policy: {run.name})",
        how,
    )
    return 0


def _write_zip(run: "TrainedRun", output: Path) -> tuple[dict[str, object], str]:
    """Write the zip; return facts of it, and how it is used."""
    from game_rl.interchange.sb3_zip import export_policy

    package = export_policy(run, output)
    way = "deterministic" if run.deterministic else "stochastic"
    call = f"action, _ = model.predict(observation, deterministic={run.deterministic})"
    needs = ""
    if run.config.algorithm.memory is not None:
        call = (
            "action, state = model.predict(observation, state, episode_start, "
            f"deterministic={run.deterministic})\n"
            "state is None at first, then the one returned; episode_start is a bool array, True "
            "where an episode begins"
        )
    if package is not None:
        needs = f"\nits network is a class of {package}, which must be installed to load the file"
    return {"needs_package": package}, f"it is {way}: {call}{needs}"


def _write_onnx(run: "TrainedRun", output: Path) -> tuple[dict[str, object], str]:
    """Write the ONNX file; return facts of it, and how it is used."""
    from game_rl.interchange.onnx_export import MEMORY, MEMORY_AFTER, export_onnx

    written = export_onnx(run, output)
    inputs = ", ".join(
        f"{name} {part.dtype} [{', '.join(map(str, part.shape))}]"
        for name, part in written.inputs.items()
    )
    how = "takes the action with the largest one"
    if not run.deterministic:
        how = "samples its actions from them"
    after = f" and {MEMORY_AFTER}" if MEMORY in written.inputs else ""
    return written.to_json(), (
        f"from {inputs}\nto {written.output} float32 [batch, {len(written.actions)}]{after}; the "
        f"policy {how}"
    )


def _import(arguments: argparse.Namespace) -> int:
    config = load_config(arguments.config, arguments.set)
    return import_zip(arguments, arguments.file, config)


def import_zip(arguments: argparse.Namespace, file: Path, config: RunConfig) -> int:
    """Begin the run of `config` with the policy in a zip, and print what can be done with it."""
    load_game(config.game)
    exchangeable(config)
    check_zip_to_read(file, config.run_dir)
    from game_rl.checkpoints.checkpoint_store import newest_valid_checkpoint
    from game_rl.interchange.sb3_zip import import_policy

    run_dir = import_policy(file, config)
    timesteps = newest_valid_checkpoint(run_dir)[0].state.num_timesteps
    total = config.total_timesteps
    run = quote(str(run_dir.root))
    print_result(
        arguments,
        {"run": str(run_dir.root), "timesteps": timesteps, "total_timesteps": total},
        f"{run_dir.root} starts at timestep {timesteps:,} of {total:,}",
        f"train it: game-rl train --resume {run}\n"
        f"or watch it play: game-rl record {run} --checkpoint latest",
    )
    return 0
