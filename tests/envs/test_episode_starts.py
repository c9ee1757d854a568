"""States that all envs of a process share are made once, because saving one is slow."""

import dataclasses
from contextlib import closing

import numpy as np

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_env
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import FAKE_ROM, fake_game


class Counting(FakeEmulator):
    saved = 0

    def save_state(self, *, picture: bool = True) -> bytes:
        self.saved += 1
        return super().save_state(picture=picture)


def test_the_first_env_of_a_process_saves_power_on_and_start_states_for_all() -> None:
    game = dataclasses.replace(fake_game(), rom=dataclasses.replace(FAKE_ROM, sha256="0c" * 32))
    options = [{"start_state": f"level_{n}"} for n in (2, 1, 3)]
    observations, counts = [], []
    for _ in range(3):
        emulator = Counting()
        with closing(make_env(EnvConfig(), game, emulator=emulator)) as env:
            observations.append([env.reset(seed=0, options=of)[0] for of in options])
        counts.append(emulator.saved)
    assert counts == [1 + 3, 0, 0]
    np.testing.assert_array_equal(observations[1], observations[0])
    np.testing.assert_array_equal(observations[2], observations[0])
