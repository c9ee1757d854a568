"""`game-rl preflight`: what a run takes, before it starts."""

import argparse
import json
from typing import TYPE_CHECKING

from rich.console import Console

from game_rl.cli.arguments import add_command, add_config_arguments

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands


def add_preflight(commands: "Commands") -> None:
    parser = add_command(
        commands,
        "preflight",
        _preflight,
        summary="say what memory, disk and arithmetic a run will take, before it starts",
        example="game-rl preflight --config configs/duel_ppo.yaml --on ram=32GiB,cpus=8",
    )
    add_config_arguments(parser, required=True)
    parser.add_argument(
        "--on",
        metavar="ram=32GiB,vram=16GiB,disk=250GiB,cpus=8",
        help="plan for another machine; what is left out is taken from this one",
    )
    parser.add_argument(
        "--probe", action="store_true", help="play random episodes and measure their length"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


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
