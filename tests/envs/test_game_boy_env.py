from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from game_rl.emulator import fake_emulator as fake
from game_rl.emulator.fake_emulator import FakeEmulator
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.observation import Crop, FrameFormat
from game_rl.errors import EmulatorError, GameFileError, UsageError
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game, with_folder

IDLE, LEFT, RIGHT, HURT = range(4)


@pytest.fixture
def env() -> Iterator[GameBoyEnv]:
    with closing(fake_env()) as env:
        yield env


def play(env: GameBoyEnv, actions: list[int], *, seed: int | None = 0) -> list[Any]:
    """Everything an agent gets to see, with its arrays copied; begins anew after an end."""
    observation, info = env.reset(seed=seed)
    seen: list[Any] = [(observation.copy(), info)]
    for action in actions:
        observation, *rest = env.step(action)
        seen.append((observation.copy(), rest))
        if rest[1] or rest[2]:
            observation, info = env.reset()
            seen.append((observation.copy(), info))
    return seen


def same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(a[0], b[0]) and a[1] == b[1] for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize(
    "frame_format",
    [FrameFormat(), FrameFormat(size="full"), FrameFormat(crop=Crop(0, 0, 20, 40))],
)
def test_gymnasium_accepts_it(frame_format: FrameFormat) -> None:
    with closing(fake_env(frame_format=frame_format, max_idle_frames=5)) as env:
        check_env(env, skip_render_check=True)  # needs a spec; done with gymnasium.make


def test_the_same_seed_and_actions_give_the_same_episodes() -> None:
    actions = [int(a) for a in np.random.default_rng(0).integers(0, 4, 300)]
    with closing(fake_env(max_idle_frames=9)) as one, closing(fake_env(max_idle_frames=9)) as two:
        first = play(one, actions, seed=7)
        assert same(first, play(two, actions, seed=7))
        assert same(first, play(one, actions, seed=7)), "what was played before must not matter"
        assert not same(first, play(two, actions, seed=8))


def test_observations_belong_to_the_caller(env: GameBoyEnv) -> None:
    first, _ = env.reset(seed=0)
    kept = first.copy()
    second = env.step(RIGHT)[0]
    assert not np.shares_memory(first, second)
    assert np.array_equal(first, kept)
    second[:] = 7
    expected = fake_env()
    expected.reset(seed=0)
    expected.step(RIGHT)
    assert np.array_equal(env.step(RIGHT)[0], expected.step(RIGHT)[0])


def test_a_rendered_picture_belongs_to_the_caller(env: GameBoyEnv) -> None:
    env.reset(seed=0)
    picture = env.render()
    assert (picture.shape, picture.dtype) == ((144, 160, 3), np.uint8)
    picture[:] = 7
    assert not np.array_equal(env.render(), picture)


def test_an_observation_is_the_screen_in_the_asked_format(env: GameBoyEnv) -> None:
    observation, _ = env.reset(seed=0)
    assert np.array_equal(observation, FrameFormat().observe(env.render()))
    observation = env.step(RIGHT)[0]
    assert np.array_equal(observation, FrameFormat().observe(env.render()))


def test_a_timestep_is_frame_skip_frames_of_the_action() -> None:
    with closing(fake_env(frame_skip=6)) as env:
        env.reset(seed=0)
        before = env.read_variables()
        env.step(RIGHT)
        after = env.read_variables()
        assert after["x"] - before["x"] == 6
        assert after["frames"] - before["frames"] == 6


def test_the_games_own_end_terminates_and_does_not_truncate(env: GameBoyEnv) -> None:
    env.reset(seed=0)
    steps = 0
    terminated = truncated = False
    while not (terminated or truncated):
        _, _, terminated, truncated, info = env.step(RIGHT)
        steps += 1
    assert (steps, terminated, truncated) == (18, True, False)  # 70 pixels, 4 a timestep
    assert info["is_success"] is True
    assert info["game"]["result"] == 1


def test_the_time_limit_truncates_and_does_not_terminate() -> None:
    with closing(fake_env(max_episode_timesteps=5)) as env:
        env.reset(seed=0)
        ends = [env.step(IDLE)[2:4] for _ in range(5)]
        assert ends == [(False, False)] * 4 + [(False, True)]


def test_an_end_at_the_time_limit_is_an_end() -> None:
    with closing(fake_env(max_episode_timesteps=18)) as env:
        env.reset(seed=0)
        ends = [env.step(RIGHT)[2:4] for _ in range(18)]
        assert ends[-1] == (True, False)


def test_reward_terms_are_summed_as_the_variables_say() -> None:
    """Recomputed from the variables alone, with none of the env's own rewards."""
    rng = np.random.default_rng(3)
    with closing(fake_env(max_episode_timesteps=200)) as env:
        for _ in range(6):
            env.reset(seed=int(rng.integers(100)))
            sums = {"progress": 0.0, "hurt": 0.0, "won": 0.0}
            total, over = 0.0, False
            before = env.read_variables()
            while not over:
                action = int(rng.choice([RIGHT, RIGHT, HURT, LEFT]))
                _, reward, terminated, truncated, info = env.step(action)
                now = env.read_variables()
                sums["progress"] += 0.5 * max(0, now["x"] - before["x"])
                sums["hurt"] += -1.0 * max(0, before["health"] - now["health"])
                sums["won"] = 10.0 if now["result"] == 1 else sums["won"]
                total, before, over = total + reward, now, terminated or truncated
            assert info["reward_terms"] == pytest.approx(sums)
            assert total == pytest.approx(sum(sums.values()))
            assert info["game"] == before


def test_infos_are_empty_while_an_episode_runs_and_never_shared(env: GameBoyEnv) -> None:
    _, reset_info = env.reset(seed=0)
    assert reset_info == {"start_state": reset_info["start_state"]}
    first = env.step(IDLE)[4]
    assert first == {}
    first["mine"] = 1
    assert env.step(IDLE)[4] == {}


def test_success_is_reported_only_by_games_that_define_it() -> None:
    with closing(fake_env(fake_game(success=None), max_episode_timesteps=1)) as env:
        env.reset(seed=0)
        assert set(env.step(IDLE)[4]) == {"reward_terms", "game", "start_state"}


def test_every_start_state_is_chosen_and_the_seed_decides() -> None:
    with closing(fake_env()) as env:
        chosen = [env.reset(seed=seed)[1]["start_state"] for seed in range(40)]
        assert set(chosen) == {"level_1", "level_2", "level_3"}
        assert chosen == [env.reset(seed=seed)[1]["start_state"] for seed in range(40)]
    with closing(fake_env(start_states=["level_3"])) as env:
        assert {env.reset(seed=seed)[1]["start_state"] for seed in range(10)} == {"level_3"}


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_start_state_is_where_its_script_leads(env: GameBoyEnv, level: int) -> None:
    _, info = env.reset(seed=0, options={"start_state": f"level_{level}"})
    assert info == {"start_state": f"level_{level}"}
    assert env.read_variables()["level"] == level


def test_idle_frames_are_between_none_and_the_limit() -> None:
    with closing(fake_env(max_idle_frames=6, start_states=["level_1"])) as env:
        counts = {env.reset(seed=seed) and env.read_variables()["frames"] for seed in range(80)}
    assert counts == set(range(10, 17))


def test_the_games_random_seed_differs_from_episode_to_episode(env: GameBoyEnv) -> None:
    env.reset(seed=0)
    seeds = [env.reset() and env.read_variables()["seed"] for _ in range(30)]
    assert len(set(seeds)) > 20
    env.reset(seed=0)
    assert seeds == [env.reset() and env.read_variables()["seed"] for _ in range(30)]


def test_a_chosen_start_state_leaves_the_later_episodes_as_they_were(env: GameBoyEnv) -> None:
    env.reset(seed=5)
    expected = [env.reset()[1], env.read_variables()]
    env.reset(seed=5, options={"start_state": "level_2", "idle_frames": 3})
    assert [env.reset()[1], env.read_variables()] == expected


def test_buttons_of_the_last_episode_are_released() -> None:
    with closing(fake_env(max_episode_timesteps=1, max_idle_frames=8)) as env:
        env.reset(seed=0)
        env.step(RIGHT)
        for _ in range(10):
            env.reset()
            assert env.read_variables()["x"] == 80


@pytest.mark.parametrize("action", [-1, 4, 1_000])
def test_an_action_that_does_not_exist_is_refused(env: GameBoyEnv, action: int) -> None:
    env.reset(seed=0)
    with pytest.raises(UsageError, match="idle, left, right, hurt"):
        env.step(action)


def test_numpy_actions_are_taken(env: GameBoyEnv) -> None:
    env.reset(seed=0)
    before = env.read_variables()["x"]
    env.step(np.int64(RIGHT))
    env.step(np.array(RIGHT))
    assert env.read_variables()["x"] == before + 8


def test_stepping_without_an_episode_is_refused(env: GameBoyEnv) -> None:
    with pytest.raises(ResetNeeded):
        env.step(IDLE)
    with closing(fake_env(max_episode_timesteps=1)) as short:
        short.reset(seed=0)
        short.step(IDLE)
        with pytest.raises(ResetNeeded):
            short.step(IDLE)


def test_an_unknown_start_state_is_refused_with_a_guess(env: GameBoyEnv) -> None:
    with pytest.raises(UsageError, match="did you mean level_"):
        env.reset(options={"start_state": "level_9"})
    with pytest.raises(UsageError, match="did you mean level_"):
        fake_env(start_states=["levl_1"])
    with pytest.raises(UsageError, match="at least one"):
        fake_env(start_states=[])


def test_a_game_that_never_ends_needs_a_time_limit() -> None:
    with pytest.raises(UsageError, match="never end"):
        fake_env(fake_game(endings={}), max_episode_timesteps=None)


def test_closing_closes_the_emulator_and_may_happen_twice() -> None:
    emulator = FakeEmulator()
    env = GameBoyEnv(
        emulator,
        fake_game(),
        frame_skip=4,
        frame_format=FrameFormat(),
        max_episode_timesteps=5,
    )
    env.close()
    env.close()
    with pytest.raises(EmulatorError):
        emulator.tick(1, render=True)


def test_the_picture_rate_is_that_of_the_timesteps() -> None:
    assert fake_env(frame_skip=4).metadata["render_fps"] == 15
    assert fake_env(frame_skip=1).metadata["render_fps"] == 60
    assert gymnasium.Env.metadata.get("render_fps") is None


CUSTOM = """
class Steady:
    def reset(self, variables):
        self.last = variables["x"]

    def step(self, variables):
        gained, self.last = variables["x"] - self.last, variables["x"]
        return {"pace": gained * 2.0, "alive": 1.0}


class NotFinite:
    def reset(self, variables):
        pass

    def step(self, variables):
        return float("nan")


class Broken:
    def reset(self, variables):
        pass

    def step(self, variables):
        return variables["no such variable"]
"""


def custom_env(folder: Path, name: str) -> GameBoyEnv:
    (folder / "rewards.py").write_text(CUSTOM, encoding="utf-8")
    game = fake_game(reward=f"rewards:{name}", rewards={})
    return fake_env(with_folder(game, folder), max_episode_timesteps=2)


def test_a_reward_class_adds_its_own_terms(tmp_path: Path) -> None:
    env = custom_env(tmp_path, "Steady")
    env.reset(seed=0)
    assert env.step(RIGHT)[1] == 9.0
    assert env.step(LEFT)[4]["reward_terms"] == {"pace": 0.0, "alive": 2.0}


@pytest.mark.parametrize(
    ("name", "says"), [("NotFinite", "reward term custom is nan"), ("Broken", "failed with KeyErr")]
)
def test_a_reward_class_that_fails_is_named(tmp_path: Path, name: str, says: str) -> None:
    env = custom_env(tmp_path, name)
    env.reset(seed=0)
    with pytest.raises(GameFileError, match=says):
        env.step(IDLE)


def test_a_start_state_from_a_file_is_loaded(tmp_path: Path) -> None:
    emulator = FakeEmulator()
    emulator.write(fake.X, 123)
    emulator.tick(1, render=True)
    (tmp_path / "far.state").write_bytes(emulator.save_state())
    states = FAKE_GAME_YAML["start_states"] | {"far": {"file": "far.state"}}
    env = fake_env(with_folder(fake_game(start_states=states), tmp_path))
    env.reset(seed=0, options={"start_state": "far"})
    assert env.read_variables()["x"] == 123


def test_a_damaged_state_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "far.state").write_bytes(b"nothing")
    game = with_folder(fake_game(start_states={"far": {"file": "far.state"}}), tmp_path)
    with pytest.raises(GameFileError, match=r"start state far .*far\.state"):
        fake_env(game).reset(seed=0)
