"""`game-rl places`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from game_rl.checkpoints.named import find_run
from game_rl.cli.arguments import add_command
from game_rl.cli.outputs import PNG, add_output
from game_rl.cli.printing import add_json, print_result
from game_rl.places.place_layers import layers

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands


def add_places(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "places",
        _places,
        summary=summary,
        example="game-rl places runs/beacon_ppo --output beacon.png",
    )
    parser.add_argument("run", metavar="RUN", help="run directory, of a finished or running run")
    add_output(
        parser,
        "--output",
        PNG,
        default=Path("places.png"),
        text="PNG to write (default: places.png)",
    )
    add_json(parser)


def _places(arguments: argparse.Namespace) -> int:
    from game_rl.places.places_picture import read_place_counts, write_places_map

    run_dir = find_run(Path(arguments.run))
    counts = read_place_counts(run_dir)
    write_places_map(run_dir, counts, arguments.output)
    maps = layers(counts)
    facts = {
        "picture": str(arguments.output),
        "place": list(counts.names),
        "since": counts.since,
        "timesteps": counts.timesteps,
        "elsewhere": counts.elsewhere,
        "places": counts.n_places,
        "maps": [
            {"name": each.name, "timesteps": int(each.counts.sum()), "x": each.x0, "y": each.y0}
            for each in maps
        ],
    }
    text = (
        f"{arguments.output}: {counts.n_places:,} places of {', '.join(counts.names)}, visited in "
        f"{counts.timesteps:,} timesteps"
    )
    print_result(arguments, facts, text)
    return 0
