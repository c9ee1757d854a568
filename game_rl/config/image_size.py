"""The picture sizes that SB3's CnnPolicy accepts."""

from game_rl.errors import ConfigError

_SMALLEST_SIDE = 36  # smaller leaves nothing for NatureCNN's third convolution (8/4, 4/2, 3/1)


def check_image_size(height: int, width: int, *, channels: int) -> None:
    """Refuse pictures that the network cannot take.

    Only the game knows its crop, so the caller must have both the config and the game.

    Args:
        height: height of one picture, in pixels as the agent sees them.
        width: width, likewise.
        channels: channels of the stacked picture, frame_stack x (1 grey or 3 rgb).

    Raises:
        ConfigError: the network cannot take the pictures; the message says what to change.
    """
    if fault := image_fault(height, width, channels=channels):
        raise ConfigError(fault)


def image_fault(height: int, width: int, *, channels: int) -> str | None:
    """Return why the network cannot take such a picture and what to change; None if it can."""
    if min(height, width) < _SMALLEST_SIDE:
        return (
            f"the agent's picture is {width}x{height}, and the network needs at least "
            f"{_SMALLEST_SIDE}x{_SMALLEST_SIDE}; use env.observation.size: full, "
            "or a larger observation.crop in game.yaml"
        )
    if channels >= min(height, width):  # SB3 takes the smallest dimension for the channels
        return (
            f"{channels} channels (frame_stack x colours) in a picture of {width}x{height}: SB3 "
            "would mistake a side of it for the channels; lower env.frame_stack"
        )
    return None
