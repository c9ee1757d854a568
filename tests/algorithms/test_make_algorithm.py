from pathlib import Path
from typing import get_args

import pytest
import torch

from game_rl.algorithms.automatic import find_device, placement_of
from game_rl.algorithms.make_algorithm import ALGORITHMS
from game_rl.config.algorithms import AlgorithmConfig
from game_rl.config.schema import RunConfig
from game_rl.errors import ConfigError
from game_rl.games.definition import load_game
from game_rl.interchange.sb3_zip import PLAIN_MODELS
from game_rl.preflight.facts import run_facts
from game_rl.system.machine import detect_machine
from game_rl.system.placement import Placement


def make_config(device: str, precision: str) -> RunConfig:
    head = {"game": "duel", "total_timesteps": 20_000, "run_dir": "runs/x"}
    return RunConfig.model_validate(
        head | {"device": device, "algorithm": {"precision": precision}}
    )


def test_auto_takes_the_gpu_where_there_is_one() -> None:
    assert find_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    assert find_device("cpu") == "cpu"


def test_a_gpu_that_is_not_there_is_named() -> None:
    missing = f"cuda:{torch.cuda.device_count()}"
    with pytest.raises(ConfigError, match=f"device is {missing}, but PyTorch sees"):
        find_device(missing)
    with pytest.raises(ConfigError, match=f"device is {missing}, but PyTorch sees"):
        placement_of(make_config(missing, "auto"))


@pytest.mark.parametrize("device", ["auto", "cpu"])
@pytest.mark.parametrize("precision", ["auto", "float32", "bf16"])
def test_the_preflight_plans_with_the_placement_that_is_built(
    device: str, precision: str, tmp_path: Path
) -> None:
    config = make_config(device, precision)
    built = placement_of(config)
    facts = run_facts(config, load_game("duel"), detect_machine(tmp_path))
    assert (facts.uses_gpu, facts.uses_bf16) == (built.is_on_gpu, built.precision == "bf16")
    if precision != "auto":
        assert built == Placement(find_device(device), precision)  # type: ignore[arg-type]


def test_every_section_of_an_algorithm_has_its_row_in_the_tables() -> None:
    sections = [get_args(tagged)[0] for tagged in get_args(get_args(AlgorithmConfig)[0])]
    names = [get_args(section.model_fields["name"].annotation)[0] for section in sections]
    assert names == list(ALGORITHMS)
    of_sb3 = [name for name, section in zip(names, sections, strict=True) if section.is_in_sb3]
    assert of_sb3 == list(PLAIN_MODELS)
