"""Every arm of benchmarks.memory_game is a config that loads, and differs by its memory alone."""

import pytest

import game_rl
from benchmarks.memory_game import _ARMS, _SEQUENCES, _changes
from game_rl.config.strict_model import flat


@pytest.mark.parametrize("screen", [False, True])
@pytest.mark.parametrize("road", _SEQUENCES)
def test_the_arms_of_a_road_differ_by_their_memory_alone(road: int, screen: bool) -> None:
    runs = {
        arm: game_rl.load_config("courier_ppo", *_changes(arm, road, screen=screen, size=32))
        for arm in _ARMS
    }
    plain = flat(runs["none"].model_dump())
    for arm in _ARMS[1:]:
        memory = runs[arm].algorithm.memory
        assert memory is not None
        assert (memory.kind, memory.size) == (arm.removesuffix("_uniform"), 32)
        assert memory.sequence == runs[arm].algorithm.n_steps > min(road, 1_000)
        found = flat(runs[arm].model_dump())
        changed = {key for key in {*plain, *found} if plain.get(key) != found.get(key)}
        assert {key.split(".")[1] for key in changed} == {"memory"}
    assert runs["none"].env.frame_stack == 1
    assert "signs" not in runs["none"].env.observation.parts
