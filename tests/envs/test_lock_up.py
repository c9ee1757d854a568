"""Games that meet an impossible opcode, at which a Game Boy stands still for ever."""

from contextlib import closing

import numpy as np
import pytest

from game_rl.emulator import fake_emulator as fake
from game_rl.emulator.fake_emulator import FakeEmulator
from game_rl.errors import LockUpError
from tests.envs.example import fake_env, fake_game

IDLE = 0


class LocksUp(FakeEmulator):
    """Meets an impossible opcode in its tenth tick."""

    ticks = 0

    def tick(self, frames: int, *, render: bool) -> None:
        self.ticks += 1
        if self.ticks == 10:
            raise LockUpError("opcode 0xDB at 0x1234")
        super().tick(frames, render=render)


def test_a_game_that_locks_up_truncates_the_episode_and_the_next_one_begins() -> None:
    with closing(fake_env(emulator=LocksUp())) as env:
        env.reset(seed=0)
        ends = []
        for _ in range(40):
            *_, terminated, truncated, info = env.step(IDLE)
            if "lock_up" in info:
                ends.append((terminated, truncated, info["lock_up"], info["is_success"]))
                env.reset()
            elif terminated or truncated:
                env.reset()
    assert ends == [(False, True, "opcode 0xDB at 0x1234", False)]


def test_a_lock_up_is_no_failure_of_a_game_without_success() -> None:
    with closing(fake_env(fake_game(success=None), emulator=LocksUp())) as env:
        env.reset(seed=0)
        while "lock_up" not in (info := env.step(IDLE)[4]):
            pass
    assert "is_success" not in info


class LocksUpOnLevel(FakeEmulator):
    """Meets an impossible opcode where it idles for longer than that on a level."""

    def __init__(self, level: int, *, longest_idle_frames: int = 0) -> None:
        super().__init__()
        self._locked_level, self._longest = level, longest_idle_frames
        self.lock_ups = 0

    def tick(self, frames: int, *, render: bool) -> None:
        is_script = not self.read(fake.SEED)
        if frames > self._longest and self.read(fake.LEVEL) == self._locked_level and not is_script:
            self.lock_ups += 1
            raise LockUpError("opcode 0xDB at 0x1234")
        super().tick(frames, render=render)


@pytest.mark.parametrize(
    ("start_states", "longest"), [(None, 0), (["level_2"], 5)], ids=["start state", "idle frames"]
)
def test_a_lock_up_before_the_first_timestep_is_followed_by_another_beginning(
    start_states: list[str] | None, longest: int
) -> None:
    emulator = LocksUpOnLevel(2, longest_idle_frames=longest)
    settings = {"start_states": start_states, "max_idle_frames": 9, "frame_skip": 1}
    with closing(fake_env(emulator=emulator, **settings)) as env:
        begun = [env.reset(seed=seed) for seed in range(20)]
        assert emulator.lock_ups > 0
        again = [env.reset(seed=seed) for seed in range(20)]
    for (observation, info), (other, other_info) in zip(begun, again, strict=True):
        assert np.array_equal(observation, other)
        assert info == other_info


def test_a_game_that_always_locks_up_in_reset_is_an_error_with_a_way_out() -> None:
    with closing(fake_env(emulator=LocksUpOnLevel(2), max_idle_frames=9)) as env:
        with pytest.raises(LockUpError, match=r"fake locks up .*env\.start_states.*0xDB at 0x1234"):
            env.reset(seed=0, options={"start_state": "level_2", "idle_frames": 3})
        assert env.reset(seed=0, options={"start_state": "level_1"})[1] == {
            "start_state": "level_1"
        }
