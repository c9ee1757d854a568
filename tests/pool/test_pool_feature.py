"""The forecast of a pool, beside the size of one that is written."""

from dataclasses import replace

import pytest

from game_rl.config.pool_config import PoolConfig
from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_game_env
from game_rl.games.definition import load_game
from game_rl.pool.pool import NewState, Pool
from game_rl.pool.pool_feature import PoolFeature
from game_rl.preflight.disk import predicted_checkpoint_bytes
from game_rl.preflight.footprint import estimate
from tests.preflight.conftest import FACTS, make_config

SIZE = 150
SECTION = {"from": "explored", "size": SIZE}


@pytest.mark.parametrize("name", ["beacon", "courier", "duel", "seasons"])
def test_a_full_pool_has_about_the_size_that_is_forecast(name: str) -> None:
    env = make_game_env(EnvConfig(), load_game(name))
    env.reset(seed=0)
    states = []
    for timestep in range(30):
        env.step(timestep % 3)
        states.append(env.emulator.save_state(picture=False))
    env.close()
    pool = Pool(PoolConfig.model_validate(SECTION))
    pool.add(NewState(states[n % 30], "start", n / 7, 10 * n) for n in range(SIZE))
    written = len(pool.saved().model_dump_json())
    config = make_config(env={"pool": SECTION})
    found = PoolFeature().checkpoint_bytes(FACTS.planned(config), 0)
    assert found == pytest.approx(written, rel=0.3)


def test_a_pool_is_a_part_of_memory_and_of_checkpoints() -> None:
    facts = replace(FACTS, cpus=4)
    configs = [
        make_config(env={"n_workers": 3, "pool": pool}) for pool in (None, {**SECTION, "size": 500})
    ]
    names = [[part.name for part in estimate(c, facts).ram.phases[0].parts] for c in configs]
    assert "pool of states" not in names[0]
    parts = {part.name: part.bytes for part in estimate(configs[1], facts).ram.phases[0].parts}
    assert parts["pool of states"] == (1 + 3) * 500 * 4_000
    without, with_pool = (predicted_checkpoint_bytes(config, facts) for config in configs)
    assert 2_500_000 < with_pool - without < 3_200_000
