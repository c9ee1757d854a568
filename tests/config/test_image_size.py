import pytest
from torch import nn, zeros

from game_rl.config.schema import check_image_size
from game_rl.errors import ConfigError


def nature_cnn_takes(height: int, width: int) -> bool:
    """The convolutions of SB3's NatureCNN, asked themselves."""
    layers = nn.Sequential(nn.Conv2d(1, 1, 8, 4), nn.Conv2d(1, 1, 4, 2), nn.Conv2d(1, 1, 3, 1))
    try:
        return layers(zeros(1, 1, height, width)).numel() > 0
    except RuntimeError:
        return False


@pytest.mark.parametrize("height", [16, 35, 36, 72, 144])
@pytest.mark.parametrize("width", [20, 35, 36, 80, 160])
def test_a_picture_is_refused_exactly_where_the_network_would_fail(height: int, width: int) -> None:
    if nature_cnn_takes(height, width):
        check_image_size(height, width, channels=4)
    else:
        with pytest.raises(ConfigError, match=rf"{width}x{height}.*at least 36x36.*crop in game"):
            check_image_size(height, width, channels=4)


def test_a_picture_with_more_channels_than_rows_is_refused() -> None:
    check_image_size(36, 80, channels=35)
    with pytest.raises(ConfigError, match=r"36 channels.*lower env\.frame_stack"):
        check_image_size(36, 80, channels=36)
