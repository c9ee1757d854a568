"""`game-rl replay`: what a Lake of replay holds, verified, compacted, imported and exported."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from game_rl.cli.arguments import positive
from game_rl.cli.outputs import PICKLE, add_output, add_output_folder
from game_rl.cli.parser import Commands, add_command, commands_of
from game_rl.cli.printing import PROGRESS, SafeConsole, add_json, numbers, print_facts, print_result
from game_rl.config.loader import load_config
from game_rl.envs.make_env import make_observation_format
from game_rl.errors import LakeError, UsageError
from game_rl.games.definition import load_game
from game_rl.system.units import counted, format_bytes

if TYPE_CHECKING:
    from game_rl.lake.upkeep import LakeReport, LakeStatistics


def add_replay(parser: argparse.ArgumentParser) -> None:
    actions = commands_of(parser)
    for name, run, summary in (
        (
            "info",
            _info,
            "show the transitions, bytes, streams, episodes and damaged files of a Lake",
        ),
        (
            "verify",
            _verify,
            "compare every byte of a Lake with its checksums, and unpack every block",
        ),
        ("compact", _compact, "merge small segments of a Lake that no process is writing to"),
    ):
        inner = add_command(actions, name, summary, f"game-rl replay {name} runs/duel_dqn/lake")
        inner.set_defaults(command=run)
        inner.add_argument("lake", type=Path, metavar="LAKE", help="folder of the Lake")
        add_json(inner)
    _add_import(actions)
    _add_export(actions)


def _add_import(actions: Commands) -> None:
    parser = add_command(
        actions,
        "import",
        "convert a replay buffer that Stable-Baselines3 saved to a Lake",
        "game-rl replay import replay_buffer.pkl --output my_lake",
    )
    parser.set_defaults(command=_import)
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="file that save_replay_buffer wrote, also gzip or zstd of one",
    )
    add_output_folder(parser, "--output", metavar="LAKE", required=True, text="folder to make")
    parser.add_argument(
        "--frame-stack",
        type=positive,
        metavar="N",
        help="frames in an observation (default: found by comparing observations)",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="config of a run with the observations of a DictReplayBuffer, whose arrays do not "
        "say what they contain",
    )
    add_json(parser)


def _add_export(actions: Commands) -> None:
    parser = add_command(
        actions,
        "export",
        "export a Lake's transitions for Stable-Baselines3 or Minari",
        "game-rl replay export my_lake --format sb3 --output replay_buffer.pkl",
    )
    parser.set_defaults(command=_export)
    parser.add_argument("lake", type=Path, metavar="LAKE", help="folder of the Lake")
    parser.add_argument("--format", choices=["sb3", "minari"], default="sb3", help="default: sb3")
    add_output(
        parser,
        "--output",
        PICKLE,
        metavar="PATH",
        required=True,
        text="file, or folder for minari",
        any_name=True,
        only_if=("format", "sb3"),
    )
    parser.add_argument(
        "--actions",
        type=positive,
        metavar="N",
        help="number of Discrete actions (default: the largest action in the Lake, plus 1)",
    )
    add_json(parser)


def _compact(arguments: argparse.Namespace) -> int:
    from game_rl.lake.lake import Lake
    from game_rl.lake.upkeep import compact

    before, after = compact(Lake.open(arguments.lake))
    facts = {"segments_before": before, "segments": after}
    print_result(arguments, facts, f"merged {before} segments into {after}")
    return 0


def _import(arguments: argparse.Namespace) -> int:
    from game_rl.interchange.replay_import import import_replay

    if not arguments.file.is_file():
        what = "is a folder, not a file" if arguments.file.is_dir() else "no such file"
        raise UsageError(f"{arguments.file}: {what}; name a file that save_replay_buffer wrote")
    if arguments.output.exists():
        raise UsageError(f"{arguments.output} exists; name a new folder, or delete it")
    observation_format = None
    if arguments.config is not None:
        config = load_config(arguments.config)
        observation_format = make_observation_format(config.env, load_game(config.game))
    with _bar() as bar:
        found = import_replay(
            arguments.file,
            arguments.output,
            frame_stack=arguments.frame_stack,
            observation_format=observation_format,
            progress=bar,
        )
    no_checksum = (
        f"{arguments.file} has no checksum: a byte that changed since it was saved cannot be "
        f"detected. From now on, `game-rl replay verify {quote(str(arguments.output))}` finds "
        "every changed byte."
    )
    print_result(
        arguments,
        {"lake": str(arguments.output), **asdict(found)},
        f"{counted(found.n_transitions, 'transition')}, {found.observations}\n"
        f"{arguments.file}: {format_bytes(found.file_bytes)}; as SB3 holds them: "
        f"{format_bytes(found.raw_bytes)}\n"
        f"{arguments.output}: {format_bytes(found.lake_bytes)}, "
        f"{found.raw_bytes / max(1, found.lake_bytes):,.0f} times smaller",
        "" if found.had_checksum else no_checksum,
    )
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from game_rl.lake.lake import Lake

    lake = Lake.open(arguments.lake)
    output = arguments.output
    n_actions = arguments.actions
    if arguments.format == "minari":
        try:
            from game_rl.interchange.minari_export import export_minari
        except ImportError as error:
            raise UsageError(
                f"--format minari needs Minari ({error}); pip install 'game_rl[minari]'"
            ) from None
        with _bar() as bar:
            episodes, n = export_minari(lake, output, n_actions=n_actions, progress=bar)
        print_result(
            arguments,
            {"output": str(output), "episodes": episodes, "transitions": n},
            f"{output}: {counted(episodes, 'episode')}, {counted(n, 'timestep')}; load it with\n"
            f"minari.MinariDataset({str(output)!r})",
        )
        return 0
    from game_rl.interchange.replay_export import export_replay

    with _bar() as bar:
        n = export_replay(lake, output, n_actions=n_actions, progress=bar)
    text = f"{output}: {counted(n, 'transition')}; load it with model.load_replay_buffer"
    print_result(arguments, {"output": str(output), "transitions": n}, text)
    return 0


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar on stderr, for several tasks one after the other."""
    with Progress(console=PROGRESS, transient=True, disable=not PROGRESS.is_terminal) as progress:
        task = progress.add_task("", total=None)
        yield lambda what, done, total: progress.update(
            task, description=what, completed=done, total=total or None
        )


def _info(arguments: argparse.Namespace) -> int:
    from game_rl.lake.lake import Lake
    from game_rl.lake.upkeep import lake_statistics, verify_lake

    lake = Lake.open(arguments.lake)
    found = None
    with _bar() as bar:
        report = verify_lake(
            lake.path, lambda done, total: bar("reading", done, total), decodes=False
        )
    try:
        found = lake_statistics(lake)
    except LakeError:
        if not report.damaged:
            raise
    if arguments.json:
        state = {"is_whole": not report.damaged, "damaged": report.damaged}
        print_facts({**state, **(asdict(found) if found else {})})
    elif found:
        _print_statistics(found, SafeConsole())
    return _damage_shown(report, is_json=arguments.json)


def _print_statistics(found: "LakeStatistics", console: Console) -> None:
    console.print(
        f"[bold]{counted(found.n_transitions, 'transition')}[/], {escape(found.observation)}, "
        f"{format_bytes(found.n_bytes)} on disk, {counted(found.n_segments, 'segment')}, "
        f"{found.n_shelved} kept only for checkpoints, {found.n_open} being written"
    )
    if found.ratio and found.bytes_per_transition:
        console.print(
            f"{found.bytes_per_transition:,.0f} bytes a transition; SB3's ReplayBuffer takes "
            f"{found.raw_bytes_per_transition:,}, {found.ratio:,.0f} times as much"
        )
    if found.pins:
        console.print(f"kept for: {', '.join(found.pins)}", markup=False)
    headings = numbers("envs", "transitions", "updates", "episodes", "mean return", "mean length")
    table = Table("stream", *headings, title="streams", title_justify="left")
    for stream in found.streams:
        table.add_row(
            escape(stream.stream),
            str(stream.n_envs),
            f"{stream.n_transitions:,}",
            f"{stream.versions[0]:,} to {stream.versions[1]:,}",
            f"{stream.n_episodes:,}",
            "-" if stream.mean_return is None else f"{stream.mean_return:,.2f}",
            "-" if stream.mean_length is None else f"{stream.mean_length:,.0f}",
        )
    console.print(table)


def _verify(arguments: argparse.Namespace) -> int:
    from game_rl.lake.upkeep import verify_lake

    with _bar() as bar:
        report = verify_lake(arguments.lake, lambda done, total: bar("verifying", done, total))
    if arguments.json:
        print_facts({"is_whole": not report.damaged, **asdict(report)})
        return _damage_shown(report, is_json=True)
    for name, torn in report.open_files.items():
        print(f"{name}: being written, or left by a crash; {torn:,} bytes of it are torn")
    print(
        f"whole segments: {report.n_segments}, with "
        f"{counted(report.n_transitions, 'transition')} and {format_bytes(report.n_bytes)}; "
        f"damaged files: {len(report.damaged)}"
    )
    return _damage_shown(report, is_json=False)


def _damage_shown(report: "LakeReport", *, is_json: bool) -> int:
    """Print what is damaged and what to do, if people read it; return the exit code."""
    if report.damaged and not is_json:
        for text in report.damaged.values():
            print(f"damaged: {text}")
        print(report.advice)
    return 1 if report.damaged else 0
