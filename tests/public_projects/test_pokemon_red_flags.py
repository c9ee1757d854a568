"""examples/pokemon_red_flags, beside a plain computation after pokemon-red-ai."""

import numpy as np
import pytest

from tests.public_projects.scripted import Memory, Moment, game_of, played, run_of

X, Y, MAP, LEVEL, BADGES, PARTY = 0xD362, 0xD361, 0xD35E, 0xD18C, 0xD356, 0xD163
HP, THEIR_MAX_HP, MAX_HP, EVENTS = 0xD16C, 0xD16E, 0xD18D, 0xD747
WEIGHTS = {
    69: 5, 70: 10, 71: 5, 74: 25, 78: 15, 80: 20, 82: 30, 84: 10, 85: 5, 100: 35, 101: 35,
    102: 35, 93: 50, 90: 200, 92: 50, 154: 75, 326: 1, 496: 1,
}  # fmt: skip
MILESTONES = {5: 50, 10: 150, 14: 300, 16: 500}
STEPS = 1_500


def script(random: np.random.Generator) -> list[Moment]:
    """A player who wanders, and gets and loses flags, levels, badges and health."""
    memory = dict.fromkeys(range(EVENTS, EVENTS + 320), 0)
    memory |= {X: 5, Y: 6, MAP: 40, LEVEL: 0, BADGES: 0, PARTY: 0}
    memory |= {address + low: 0 for address in (HP, THEIR_MAX_HP, MAX_HP) for low in (0, 1)}
    _set(memory, 70)
    found = [Moment(dict(memory))]
    for _ in range(STEPS):
        axis = int(random.choice([X, Y]))
        memory[axis] = max(0, memory[axis] + int(random.integers(-1, 2)))
        if random.random() < 0.05:
            memory[MAP] = int(random.choice([0, 12, 1, 40, 37]))
        if random.random() < 0.06:
            _set(memory, int(random.choice([*WEIGHTS, 300])))
        if random.random() < 0.05:
            memory[LEVEL] = int(random.integers(5, 30))
            memory[BADGES] ^= 1 << int(random.integers(8))
            memory[PARTY] = int(random.integers(7))
            memory[THEIR_MAX_HP] = int(random.choice([0, 5]))
            memory[MAX_HP + 1] = memory[HP + 1] = int(random.integers(1, 256))
        if random.random() < 0.2:
            memory[HP + 1] = int(random.choice([0, 0, memory[MAX_HP + 1]]))
        found.append(Moment(dict(memory)))
    return found


def _set(memory: Memory, flag: int) -> None:
    memory[EVENTS + flag // 8] ^= 1 << flag % 8


def flags(memory: Memory) -> list[int]:
    return [memory[EVENTS + (flag >> 3)] >> (flag & 7) & 1 for flag in WEIGHTS]


class Theirs:
    """Counts as their reward calculator and env do; their env asks for one reward at the reset."""

    def __init__(self, memory: Memory) -> None:
        self.triggered: set[int] = set()
        self.claimed: set[int] = set()
        self.locations: set[tuple[int, int, int]] = set()
        self.maps: set[int] = set()
        self.earlier: Memory | None = None
        self.progress = False
        self.reward(memory)
        self.seen: set[tuple[int, int, int]] = set()
        self.steps = self.unconscious = self.last_progress = 0

    def reward(self, memory: Memory) -> float:
        reward = 0.0
        for flag, is_set in zip(WEIGHTS, flags(memory), strict=True):
            if is_set and flag not in self.triggered:
                self.triggered.add(flag)
                reward += WEIGHTS[flag]
        for threshold, bonus in MILESTONES.items():
            if len(self.triggered) >= threshold and threshold not in self.claimed:
                self.claimed.add(threshold)
                reward += bonus
        location = memory[X], memory[Y], memory[MAP]
        if location not in self.locations:
            self.locations.add(location)
            reward += 3
        if memory[MAP] not in self.maps and memory[MAP] != 0:
            self.maps.add(memory[MAP])
            reward += 50
        self.progress = False
        if self.earlier is not None:
            levels = memory[LEVEL] - self.earlier[LEVEL]
            badges = bin(memory[BADGES]).count("1") - bin(self.earlier[BADGES]).count("1")
            self.progress = levels > 0 or badges > 0
            reward += 15 * max(0, levels) + 100 * max(0, badges)
        if self.has_fainted(memory):
            reward -= 20
        self.earlier = memory
        return reward - 0.0005

    @staticmethod
    def has_fainted(memory: Memory) -> bool:
        hp = memory[HP] | memory[HP + 1] << 8
        return hp == 0 and (memory[THEIR_MAX_HP] | memory[THEIR_MAX_HP + 1] << 8) > 0

    def step(self, memory: Memory) -> tuple[float, bool]:
        """Return the reward, and whether the episode is terminated."""
        self.steps += 1
        self.seen.add((memory[X], memory[Y], memory[MAP]))
        reward = self.reward(memory)
        if self.progress:
            self.last_progress = self.steps
        self.unconscious = self.unconscious + 1 if self.has_fainted(memory) else 0
        waited = self.steps - self.last_progress
        is_stuck = self.steps > 1000 and waited > 2000 and len(self.seen) < 10
        return reward, self.unconscious > 1000 or is_stuck


def expected(memory: Memory) -> list[float]:
    """Theirs without three counts, and with the game's fraction of HP, as the README says."""
    most = 256 * memory[MAX_HP] + memory[MAX_HP + 1]
    now = 256 * memory[HP] + memory[HP + 1]
    place = [memory[X] / 255, memory[Y] / 255, memory[MAP] / 255]
    badges = bin(memory[BADGES]).count("1")
    stats = [memory[LEVEL] / 100, now / most if most else 0.0, memory[BADGES] / 255]
    return [*place, *stats, memory[PARTY] / 6, badges / 8, *flags(memory)]


@pytest.mark.slow
def test_rewards_and_the_observation_are_theirs() -> None:
    moments = script(np.random.default_rng(8))
    actions = np.random.default_rng(9).integers(7, size=STEPS).tolist()
    ours, theirs = played("pokemon_red_flags", moments, actions), Theirs(moments[0].memory)
    for step, (moment, seen) in enumerate(zip(moments, ours.observations, strict=True)):
        assert set(seen) == {"screen", "game_state"}
        np.testing.assert_allclose(seen["game_state"], expected(moment.memory), rtol=0, atol=1e-6)
        halves = ours.screens[step][:, :, 0].reshape(72, 2, 80, 2).mean(axis=(1, 3))
        assert np.array_equal(seen["screen"][0], np.ceil(halves))
        if step:
            reward, is_over = theirs.step(moment.memory)
            assert ours.rewards[step - 1] == pytest.approx(reward, abs=1e-9), step
            assert ours.ends[step - 1] == (is_over, False)
    # so that all terms were compared
    assert len(theirs.triggered) == 18
    assert len(theirs.claimed) == 4
    assert len(theirs.maps) == 4


def _last(moments: list[Moment]) -> tuple[int, str]:
    """Play with one action until the end; return its timestep and its name."""
    ours = played("pokemon_red_flags", moments, [0] * (len(moments) - 1))
    theirs = Theirs(moments[0].memory)
    for step, (reward, end) in enumerate(zip(ours.rewards, ours.ends, strict=True), 1):
        expected_reward, is_over = theirs.step(moments[step].memory)
        assert reward == pytest.approx(expected_reward, abs=1e-9)
        assert end == (is_over, False)
    return len(ours.rewards), ours.infos[-1]["ending"]


@pytest.mark.slow
def test_1001_timesteps_without_hp_end_an_episode() -> None:
    start = script(np.random.default_rng(8))[0].memory
    fainted = start | {HP + 1: 0, THEIR_MAX_HP: 5}
    awake = start | {HP + 1: 20, THEIR_MAX_HP: 5}
    moments = [Moment(start), *[Moment(fainted)] * 900, Moment(awake), *[Moment(fainted)] * 1_100]
    length, ending = _last(moments)
    assert (length, ending) == (901 + 1_001, "unconscious")


@pytest.mark.slow
def test_who_sees_nine_places_for_2001_timesteps_is_stuck() -> None:
    start = script(np.random.default_rng(8))[0].memory | {HP + 1: 20}
    memories = [start | {X: step % 9} for step in range(2_500)]
    memories[300:] = [memory | {LEVEL: 7} for memory in memories[300:]]
    length, ending = _last([Moment(memory) for memory in memories])
    assert (length, ending) == (300 + 2_001, "stuck")


@pytest.mark.slow
def test_who_has_seen_ten_places_is_not_stuck() -> None:
    start = script(np.random.default_rng(8))[0].memory | {HP + 1: 20}
    moments = [Moment(start | {X: step % 10}) for step in range(2_500)]
    ours = played("pokemon_red_flags", moments, [0] * 2_499)
    assert len(ours.rewards) == 2_499
    assert not any(terminated or truncated for terminated, truncated in ours.ends)


def test_a_button_is_pressed_for_10_of_15_frames() -> None:
    names = ("a", "b", "start", "right", "left", "up", "down")
    assert game_of("pokemon_red_flags").action_names == names
    assert run_of("pokemon_red_flags").env.max_episode_timesteps == 15_000
    moments = script(np.random.default_rng(8))[:8]
    presses = played("pokemon_red_flags", moments, range(7)).presses
    for name, found in zip(names, presses, strict=True):
        assert [(tuple(press.buttons), press.frames) for press in found] == [((name,), 10), ((), 5)]


def test_its_reward_goes_on_after_a_save_and_load() -> None:
    game = game_of("pokemon_red_flags")
    reward = game.custom_reward()
    assert reward is not None
    values = dict.fromkeys(game.definition.variables, 0)
    reward.reset(values)
    names = [name for name in values if name.startswith(("got_", "beat_"))]
    assert reward.step(values | dict.fromkeys(names[:5], 1)) == {"milestones": 50.0, "time": -5e-4}
    again = reward.renewed()
    found = again.step(values | dict.fromkeys(names[5:10], 1))
    assert found == {"milestones": 150.0, "time": -5e-4}
