import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from stable_baselines3 import PPO
from torch import nn, zeros

from game_rl.config.algorithms import PPOConfig
from game_rl.config.key_hints import KEY_HINTS
from game_rl.config.schema import EnvConfig, RunConfig, check_image_size
from game_rl.config.schema_guide import schema_guide
from game_rl.config.values import nearest_divisors
from game_rl.errors import ConfigError
from game_rl.files.saved import field_texts


def run_config(**changes: Any) -> RunConfig:
    return RunConfig(**{"game": "duel", "total_timesteps": 400_000, "run_dir": "runs/x"} | changes)


def sections(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from sections(field.annotation)


def test_every_field_has_a_text_for_the_editor() -> None:
    bare = [
        f"{section.__name__}.{name}"
        for section in sections(RunConfig)
        for name in section.model_fields
        if not dict(field_texts(section)).get(name)
    ]
    assert bare == []


def test_ppo_defaults_are_those_of_sb3() -> None:
    theirs = inspect.signature(PPO.__init__).parameters
    not_sb3s = {"name", "network", "memory", "precision", "micro_batch_size", "reward"}
    not_sb3s |= {"curiosity", "learn_from"}
    ours = PPOConfig().model_dump(exclude=not_sb3s)
    assert {name: theirs[name].default for name in ours} == ours


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        run_config().seed = 1


def test_a_config_made_in_python_is_checked_like_a_file() -> None:
    with pytest.raises(ConfigError, match=r"algorithm\.batch_size: 300 does not divide"):
        run_config(algorithm=PPOConfig(n_steps=256, batch_size=300))


def test_an_environment_alone_needs_no_episode_limit() -> None:
    assert EnvConfig(max_episode_timesteps=None).max_episode_timesteps is None


def test_a_batch_of_one_is_good_where_advantages_are_not_normalised() -> None:
    single = PPOConfig(n_steps=1, batch_size=1, normalize_advantage=False)
    assert run_config(env=EnvConfig(n_envs=1), algorithm=single).rollout_timesteps == 1


def test_the_home_folder_is_written_out() -> None:
    assert run_config(run_dir="~/runs/x").run_dir == Path.home() / "runs/x"


def test_a_home_folder_of_nobody_is_left_as_it_is() -> None:
    assert run_config(run_dir="~nobody-here/x").run_dir == Path("~nobody-here/x")


@given(st.integers(1, 500), st.integers(2, 500))
def test_nearest_divisors_are_those_that_counting_finds(wanted: int, whole: int) -> None:
    divisors = [n for n in range(2, whole + 1) if whole % n == 0]
    below = [n for n in divisors if n < wanted][-1:]
    above = [n for n in divisors if n > wanted][:1]
    assert nearest_divisors(wanted, whole) == below + above


@pytest.mark.parametrize(
    ("algorithm", "chosen", "ways"),
    [
        ("ppo", {}, (True, False)),
        ("ppo", {"deterministic": "auto"}, (True, False)),
        ("ppo", {"deterministic": True}, (True,)),
        ("ppo", {"deterministic": False}, (False,)),
        ("dqn", {}, (True,)),
        ("dqn", {"deterministic": "auto"}, (True,)),
        ("pqn", {}, (True,)),
        ("pqn", {"deterministic": True}, (True,)),
    ],
)
def test_evaluations_are_played_in_the_ways_that_the_algorithm_has(
    algorithm: str, chosen: dict[str, Any], ways: tuple[bool, ...]
) -> None:
    config = run_config(algorithm={"name": algorithm}, evaluation=chosen)
    assert config.evaluation_ways == ways


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


GUIDE = schema_guide(RunConfig)


@pytest.mark.parametrize("name", KEY_HINTS)
def test_no_hint_hides_a_key_that_exists(name: str) -> None:
    assert name == name.lower()
    assert GUIDE.places_of(name) == []


@pytest.mark.parametrize("hint", dict.fromkeys(KEY_HINTS.values()))
def test_every_key_that_a_hint_names_exists(hint: str) -> None:
    named = re.findall(r"(?:env|algorithm|evaluation|checkpoints)(?:\.[a-z_]+)+", hint)
    missing = [key for key in named if key.rsplit(".", 1)[-1] not in GUIDE.keys(section_of(key))]
    assert missing == []


def section_of(key: str) -> tuple[str, ...]:
    return tuple(key.split("."))[:-1]
