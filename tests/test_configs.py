"""Every config that we ship is valid, and an editor knows its schema."""

from pathlib import Path

import pytest

from game_rl.config.loader import json_schema, load_config
from game_rl.config.schema import RunConfig

CONFIGS = Path(__file__).parents[1] / "configs"
SHIPPED = sorted(CONFIGS.glob("*.yaml"))
SCHEMA = CONFIGS / "run.schema.json"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_config_loads(path: Path) -> None:
    config = load_config(path)
    assert config.run_dir == Path("runs") / path.stem


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_first_line_points_an_editor_at_the_schema(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert first == f"# yaml-language-server: $schema={SCHEMA.name}"


def test_the_schema_is_that_of_the_model() -> None:
    assert SCHEMA.read_text() == json_schema(RunConfig), (
        "regenerate it: game-rl schema > configs/run.schema.json"
    )


def test_the_default_run_and_the_large_one_are_shipped() -> None:
    assert {"duel_ppo", "fighter_32gb"} <= {path.stem for path in SHIPPED}


def test_the_large_run_is_the_one_of_the_memory_analysis() -> None:
    config = load_config(CONFIGS / "fighter_32gb.yaml")
    assert (config.env.n_envs, config.env.frame_stack) == (2, 4)
    assert (config.env.observation.size, config.env.observation.colour) == ("full", "rgb")
    ppo = config.algorithm
    assert (ppo.n_steps, ppo.batch_size, ppo.n_epochs) == (8_192, 2_048, 10)
    assert config.rollout_timesteps == 16_384
    assert config.total_timesteps == 10_000_000
