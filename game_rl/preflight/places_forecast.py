"""Memory and disk of the map of visited places, for games that name a `place`."""

from game_rl.config.schema import RunConfig
from game_rl.events import FREQUENT_BOUNDARIES_TIMESTEPS
from game_rl.places.place_counts import PICTURES_OF_A_RUN, SHEET_SIDE
from game_rl.preflight import calibration
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.footprint import Part

_SHEET_BYTES = 4 * SHEET_SIDE**2


def places_in_memory(config: RunConfig, facts: RunFacts) -> tuple[Part, ...]:
    """Return the memory of the sheets, and of what the workers count between two boundaries."""
    if not facts.has_places:
        return ()
    n_envs = config.env.n_envs
    each = config.algorithm.n_steps
    if each is None:
        each = FREQUENT_BOUNDARIES_TIMESTEPS // n_envs + 1
    sheets = calibration.USUAL_SHEETS * _SHEET_BYTES
    counted = n_envs * each * calibration.COUNTED_PLACE_BYTES
    return (Part("visited places", sheets + counted),)


def places_file_bytes(facts: RunFacts, timesteps: int) -> int:
    """Return the size of `places.npz` after so many timesteps."""
    if not facts.has_places:
        return 0
    places = min(timesteps // calibration.TIMESTEPS_OF_A_NEW_PLACE, calibration.USUAL_PLACES)
    return round(places * calibration.SAVED_PLACE_BYTES) + calibration.PLACES_FILE_BYTES


def places_in_checkpoint_bytes(facts: RunFacts, timesteps: int) -> int:
    return round(places_file_bytes(facts, timesteps) * calibration.BASE64_FACTOR)


def places_log_bytes(facts: RunFacts, timesteps: int, *, most_pictures: int) -> int:
    """Return the size of `places.npz` at the run's end, and of the pictures in TensorBoard.

    Args:
        most_pictures: one for each boundary of the run; 0 without TensorBoard.
    """
    if not facts.has_places:
        return 0
    pictures = min(PICTURES_OF_A_RUN, most_pictures) * calibration.PLACES_PICTURE_BYTES
    return places_file_bytes(facts, timesteps) + pictures
