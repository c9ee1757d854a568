import pytest
import torch

from game_rl.algorithms.make_algorithm import find_device
from game_rl.errors import ConfigError


def test_auto_takes_the_gpu_where_there_is_one() -> None:
    assert find_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    assert find_device("cpu") == "cpu"


def test_a_gpu_that_is_not_there_is_named() -> None:
    missing = f"cuda:{torch.cuda.device_count()}"
    with pytest.raises(ConfigError, match=f"device is {missing}, but PyTorch sees"):
        find_device(missing)
