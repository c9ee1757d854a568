"""The map of the places that the envs of a run have visited, from its run directory."""

from pathlib import Path
from shlex import quote

from game_rl.config.loader import load_config
from game_rl.errors import UsageError
from game_rl.files.run_dir import RunDir
from game_rl.places.place_counts import PlaceCounts, parse_place_counts
from game_rl.places.places_picture import write_places_picture


def read_place_counts(run_dir: RunDir) -> PlaceCounts:
    """Return how often the player was at each place.

    Raises:
        UsageError: the run has counted no places, or the file is damaged.
    """
    file = run_dir.places
    try:
        return parse_place_counts(file.read_bytes())
    except FileNotFoundError:
        raise UsageError(
            f"{run_dir.root} has no map of visited places: only a run whose game.yaml names a "
            "`place` has one, such as `place: [map, x, y]`, from the first update after it does"
        ) from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(
            f"{file} is damaged: {error}; delete it, and the next update of the run writes it anew "
            f"(game-rl train --resume {quote(str(run_dir.root))})"
        ) from None


def write_places_map(run_dir: RunDir, counts: PlaceCounts, path: Path) -> None:
    """Draw the map of a run as a PNG.

    Raises:
        UsageError: the file cannot be written.
    """
    game = load_config(run_dir.config, is_saved=True).game
    write_places_picture(counts, path, title=f"{game}, {run_dir.root}")
