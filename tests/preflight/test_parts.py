"""The forecast of a run whose observations have parts."""

from dataclasses import replace
from typing import Any

import pytest

from game_rl.config.schema import RunConfig
from game_rl.errors import ConfigError
from game_rl.games.parts.part_format import PartFormat, Stretch
from game_rl.preflight.facts import _check_grids
from game_rl.preflight.memory import network_of, ram_footprint, storage
from game_rl.preflight.preflight import explain
from tests.preflight.conftest import FACTS, check, make_config

EVENTS = PartFormat("vector", (2_488,), 0, (Stretch(2_488, 1),))
TILES = PartFormat.of_indices("grid", (1, 18, 20), 256, is_stacked=True)
PARTS = {"tiles": TILES, "events": EVENTS}
WITH_PARTS = replace(FACTS, part_formats=PARTS)
SCREEN_BYTES = 72 * 80  # of a colour game


def config_of(*parts: str, **values: Any) -> RunConfig:
    return make_config(env__frame_stack=3, env__observation={"parts": parts}, **values)


def test_a_rollout_stores_each_part_in_its_bytes() -> None:
    plain, with_parts = (
        storage(config, WITH_PARTS).bytes for config in (config_of(), config_of("events", "tiles"))
    )
    n_frames = 8 * (256 + 2)  # with the frames before the first
    assert with_parts - plain == n_frames * (311 + 18 * 20)


def test_the_report_names_the_bytes_of_each_part(situation: Any) -> None:
    usual = situation()
    found = situation(facts__part_formats=PARTS, env__observation={"parts": ["tiles", "events"]})
    assert "observation_has_parts" not in [finding.code for finding in check(usual)]
    (finding,) = [each for each in check(found) if each.code == "observation_has_parts"]
    assert finding.key == "env.observation"
    assert f"stored in {SCREEN_BYTES + 360 + 311:,} bytes" in finding.message
    assert "screen 5,760, tiles 360, events 311" in finding.message
    by_name = {result.name: result for result in explain(found)}
    text = by_name["observation_has_parts"].comparison.text
    assert "screen 5,760, tiles 360, events 311" in text
    n_bytes = 4 * SCREEN_BYTES + 4 * 360 + 4 * 2_488
    assert f"{n_bytes:,} bytes as the network gets it" in text


@pytest.mark.parametrize("name", ["ppo", "dqn", "pqn"])
def test_parts_take_more_memory_in_every_phase(name: str) -> None:
    section = {"name": name, "batch_size": 64}
    configs = [
        config_of(*parts, algorithm=section, total_timesteps=100_000)
        for parts in ((), ("tiles", "events"))
    ]
    plain, found = (ram_footprint(config, WITH_PARTS) for config in configs)
    for before, now in zip(plain.phases, found.phases, strict=True):
        if before.name != "recording":
            assert now.bytes > before.bytes
    fewer, more = (network_of(config, WITH_PARTS).parameters for config in configs)
    assert more > fewer


def test_a_stack_of_grids_that_sb3_takes_for_a_picture_is_refused() -> None:
    small = {"tiles": PartFormat.of_indices("grid", (1, 4, 20), 256, is_stacked=True)}
    facts = replace(FACTS, part_formats=small)
    seen = {"parts": ["tiles"]}
    four, five = (make_config(env__frame_stack=n, env__observation=seen) for n in (4, 5))
    _check_grids(facts.observation_format(four))
    with pytest.raises(ConfigError, match="part tiles is 5 grids of 20x4 with 256 values"):
        _check_grids(facts.observation_format(five))
