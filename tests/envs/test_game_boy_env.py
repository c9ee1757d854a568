"""A saved env goes on, in another env and another emulator, exactly as the one that was saved."""

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.schema import EnvConfig, GrowingLimit
from game_rl.envs.episode_tracker import VariableTeller
from game_rl.envs.game_boy_env import EnvState, GameBoyEnv
from game_rl.envs.make_env import make_game_env
from game_rl.envs.observation import FrameFormat
from game_rl.episodes.button_log import EpisodeNotes
from game_rl.errors import CheckpointError, EmulatorError, GameFileError, LockUpError, UsageError
from game_rl.game_check.env_checks import check_reward
from game_rl.games.definition import load_game
from game_rl.games.screen_area import CropSpec
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator
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
    [FrameFormat(), FrameFormat(size="full"), FrameFormat(crop=CropSpec(height=20, width=40))],
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
    first: Any = env.reset(seed=0)[0]
    kept = first.copy()
    second: Any = env.step(RIGHT)[0]
    assert not np.shares_memory(first, second)
    assert np.array_equal(first, kept)
    second[:] = 7
    expected = fake_env()
    expected.reset(seed=0)
    expected.step(RIGHT)
    thirds: list[Any] = [each.step(RIGHT)[0] for each in (env, expected)]
    assert np.array_equal(thirds[0], thirds[1])


def test_a_rendered_picture_belongs_to_the_caller(env: GameBoyEnv) -> None:
    env.reset(seed=0)
    picture = env.render()
    assert (picture.shape, picture.dtype) == ((144, 160, 3), np.uint8)
    picture[:] = 7
    assert not np.array_equal(env.render(), picture)


def test_an_observation_is_the_screen_in_the_asked_format(env: GameBoyEnv) -> None:
    observation: Any = env.reset(seed=0)[0]
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
        assert "is_success" not in env.step(IDLE)[4]


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


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"start_sate": "level_1"}, "reset has no option start_sate; did you mean start_state?"),
        ({"idle": 3}, "reset has no option idle; did you mean idle_frames?"),
        ({"idle_frames": -3}, "option idle_frames of reset is -3; give a whole number from 0 to"),
        ({"idle_frames": 10**9}, "is 1000000000; give a whole number from 0 to 100,000"),
        ({"idle_frames": 2.5}, "is 2.5; give a whole number"),
        ({"idle_frames": "3"}, "is '3'; give a whole number"),
        ({"idle_frames": True}, "is True; give a whole number"),
        ({"game_seed": np.True_}, "give a whole number"),
        ({"game_seed": 2**32}, "option game_seed of reset is 4294967296; give a whole number"),
    ],
)
def test_an_option_of_reset_that_is_unknown_or_impossible_is_refused(
    env: GameBoyEnv, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError) as caught:
        env.reset(seed=0, options=options)
    assert told in str(caught.value)


def test_numbers_of_numpy_are_options_of_reset(env: GameBoyEnv) -> None:
    env.reset(seed=0, options={"start_state": "level_1", "idle_frames": np.int64(3)})
    assert env.read_variables()["frames"] == 13


def test_variables_are_in_every_info_on_request_and_never_otherwise() -> None:
    with closing(fake_env(max_episode_timesteps=3, trackers=[VariableTeller.of])) as env:
        infos = [env.reset(seed=0)[1]]
        expected = [env.read_variables()]
        for action in (RIGHT, HURT, LEFT):
            infos.append(env.step(action)[4])
            expected.append(env.read_variables())
    assert [info["variables"] for info in infos] == expected
    assert infos[0].keys() == {"start_state", "variables"}


def test_the_names_of_actions_are_on_the_env(env: GameBoyEnv) -> None:
    assert env.action_names == ("idle", "left", "right", "hurt")


OVER = {"over": {"variable": "result", "in": [1, 2]}, "begun": {"variable": "x", "at_least": 80}}


@pytest.mark.parametrize(
    ("changes", "held"),
    [
        ({"endings": OVER}, "begun"),
        ({"success": {"variable": "health", "at_least": 1}}, "success"),
        ({"success": {"variable": "x", "at_least": 81}}, None),
        ({"endings": {"still": {"variable": "x", "equals": 80, "for": 2}}}, None),
        ({}, None),
    ],
)
def test_an_episode_that_is_over_or_won_before_the_first_action_is_marked(
    changes: dict[str, Any], held: str | None
) -> None:
    with closing(fake_env(fake_game(**changes), max_episode_timesteps=3)) as env:
        for _ in range(2):
            env.reset(seed=0)
            *_, terminated, truncated, info = env.step(RIGHT)
            if not (terminated or truncated):
                state = EnvState.model_validate_json(env.save_state().model_dump_json())
                env.reset(seed=1, options={"start_state": "level_2"})
                env.load_state(state)
                while not (terminated or truncated):
                    *_, terminated, truncated, info = env.step(RIGHT)
            assert info.get("over_at_start") == held


def test_a_game_that_never_ends_needs_a_time_limit() -> None:
    with pytest.raises(UsageError, match="never end"):
        fake_env(fake_game(endings={}), max_episode_timesteps=None)


def test_closing_closes_the_emulator_and_may_happen_twice() -> None:
    emulator = FakeEmulator()
    env = fake_env(emulator=emulator)
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


def through_json(state: EnvState) -> EnvState:
    return EnvState.model_validate_json(state.model_dump_json())


def play_on(env: GameBoyEnv, actions: list[int]) -> list[Any]:
    """Everything to be seen from here on, the first episodes of later resets included."""
    seen: list[Any] = []
    for action in actions:
        observation, *rest = env.step(action)
        seen.append((observation.tobytes(), rest, env.read_variables(), env.reward_terms))
        if rest[1] or rest[2]:
            observation, info = env.reset()
            seen.append((observation.tobytes(), info))
    return seen


def assert_exact(make: Callable[[], GameBoyEnv], before: list[int], after: list[int]) -> None:
    with closing(make()) as saved, closing(make()) as restored:
        saved.reset(seed=3)
        play_on(saved, before)
        state = saved.save_state()
        restored.reset(seed=99)
        restored.step(0)  # whatever happened to it before must not shine through
        restored.load_state(through_json(state))
        assert play_on(restored, after) == play_on(saved, after)


ACTIONS = st.lists(st.integers(0, 3), max_size=60)


@given(before=ACTIONS, after=ACTIONS)
def test_on_the_fake_emulator(before: list[int], after: list[int]) -> None:
    assert_exact(lambda: fake_env(max_idle_frames=9, max_episode_timesteps=20), before, after)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_on_the_bundled_game(seed: int) -> None:
    game = load_game("duel")
    config = EnvConfig(max_episode_timesteps=150)
    rng = np.random.default_rng(seed)
    n_actions = len(game.definition.actions)
    # each action for a while, so that buttons are held over the moment of saving
    before, after = (np.repeat(rng.integers(0, n_actions, 130), 3).tolist() for _ in range(2))
    assert_exact(lambda: make_game_env(config, game), before[: 100 + 67 * seed], after)


def test_an_env_before_its_first_episode() -> None:
    with closing(fake_env()) as saved, closing(fake_env()) as restored:
        saved.np_random.random()
        restored.load_state(through_json(saved.save_state()))
        assert restored.reset()[1] == saved.reset()[1]


def test_a_state_of_another_emulator_is_refused() -> None:
    with (
        closing(fake_env()) as env,
        closing(make_game_env(EnvConfig(), load_game("duel"))) as other,
    ):
        env.reset(seed=0)
        other.reset(seed=0)
        with pytest.raises(EmulatorError, match="another ROM"):
            env.load_state(other.save_state())


REWARD_CLASS = """\
class Reward:
    def reset(self, variables):
        self.seen = {keeps}

    def step(self, variables):
        self.seen.append(variables["x"])
        return float(sum(self.seen))
"""
OWN_METHODS = """
    def save_state(self):
        return sorted(self.numbers)

    def load_state(self, state):
        self.numbers = set(state)
"""


def env_with_reward(folder: Path, source: str) -> GameBoyEnv:
    (folder / "rewards.py").write_text(source, encoding="utf-8")
    return fake_env(with_folder(fake_game(reward="rewards:Reward", rewards={}), folder))


def test_a_reward_class_of_plain_data_is_saved_by_itself(tmp_path: Path) -> None:
    source = REWARD_CLASS.format(keeps="[]")
    assert_exact(lambda: env_with_reward(tmp_path, source), [2, 2, 1], [2, 2, 1])


def test_a_reward_class_may_save_itself(tmp_path: Path) -> None:
    source = """\
class Reward:
    def reset(self, variables):
        self.numbers = set()

    def step(self, variables):
        self.numbers.add(variables["x"])
        return len(self.numbers)
"""
    assert_exact(lambda: env_with_reward(tmp_path, source + OWN_METHODS), [2, 2], [1, 1, 2])


def test_a_reward_class_may_count_places_by_tuples(tmp_path: Path) -> None:
    source = """\
from collections import Counter


class Reward:
    def reset(self, variables):
        self.visits, self.last = Counter(), ()

    def step(self, variables):
        self.last = (variables["level"], variables["x"])
        self.visits[self.last] += 1
        return self.visits[self.last] + len(self.visits) / 100
"""
    assert_exact(lambda: env_with_reward(tmp_path, source), [2, 2, 1], [1, 2, 1, 1, 0])


@pytest.mark.parametrize("keeps", ["{1, 2}", "[{1}]", "[1e999]", "[object()]"])
def test_a_reward_class_that_cannot_be_saved_is_told_how_to(tmp_path: Path, keeps: str) -> None:
    env = env_with_reward(tmp_path, REWARD_CLASS.format(keeps=keeps))
    with closing(env):
        env.reset(seed=0)
        with pytest.raises(GameFileError, match=r"rewards:Reward .*give the class `save_state"):
            env.save_state()


def test_an_env_goes_on_with_the_reward_class_that_it_has_saved_and_loaded(tmp_path: Path) -> None:
    """So a class whose load_state forgets something fails then, not after a resume."""
    source = """\
class Reward:
    def reset(self, variables):
        self.numbers, self.bonus = set(), 1

    def step(self, variables):
        self.numbers.add(variables["x"])
        return len(self.numbers) + self.bonus
"""
    with closing(env_with_reward(tmp_path, source + OWN_METHODS)) as env:
        check_reward(env)  # nothing has begun
        env.reset(seed=0)
        env.step(2)
        check_reward(env)
        with pytest.raises(
            GameFileError, match=r"no attribute 'bonus' in .*rewards\.py, line 7: `ret"
        ):
            env.step(2)


def test_a_state_of_earlier_versions_has_the_same_in_other_places() -> None:
    with closing(fake_env()) as env, closing(fake_env()) as other:
        env.reset(seed=0)
        env.step(RIGHT)
        state = env.save_state()
        fields = json.loads(state.model_dump_json())
        assert fields["trackers"].keys() >= {"reward", "conditions", "limit_from", "repetition"}
        of_trackers = fields.pop("trackers")
        earlier = fields | of_trackers
        other.load_state(EnvState.model_validate_json(json.dumps(earlier)))
        assert other.save_state() == state
        for action in [RIGHT, HURT] * 10:
            step: Any = env.step(action)
            again: Any = other.step(action)
            assert np.array_equal(again[0], step[0])
            assert again[1:] == step[1:]


def test_json_of_a_state_is_checked_when_it_is_read() -> None:
    with closing(fake_env()) as env:
        env.reset(seed=0)
        fields = json.loads(env.save_state().model_dump_json())
    for change in ({"timesteps": "many"}, {"emulator": "%%"}, {"unknown": 1}):
        with pytest.raises(ValueError, match=next(iter(change))):
            EnvState.model_validate(fields | change)


@pytest.mark.parametrize(
    ("key", "damaged"),
    [
        ("reward", {"sums": {}}),
        ("conditions", {"in_place": "long"}),
        ("over_at_start", 3),
        ("limit_from", "far"),
        ("parts", {"actions": "many"}),
        ("milestones", {"best": 1}),
        ("repetition", {"stuck": []}),
        ("notes", {"played": "%%"}),
    ],
)
def test_a_damaged_state_of_a_tracker_is_named_with_the_way_out(key: str, damaged: Any) -> None:
    game = fake_game(parts={"latest": {"actions": 2}})
    limit = GrowingLimit(start=5, add=1, per="x", most=9)
    made: dict[str, Any] = {
        "parts": ("latest",),
        "trackers": [EpisodeNotes.of],
        "max_episode_timesteps": limit,
    }
    with closing(fake_env(game, **made)) as env:
        env.reset(seed=0)
        state = env.save_state()
        broken = state.model_copy(update={"trackers": state.trackers | {key: damaged}})
        with pytest.raises(CheckpointError, match=rf"`{key}`, or has a wrong one.*; restore it"):
            env.load_state(broken)


def test_a_state_without_rewards_says_so(env: GameBoyEnv) -> None:
    env.reset(seed=0)
    state = env.save_state()
    trackers = {key: value for key, value in state.trackers.items() if key != "reward"}
    with pytest.raises(CheckpointError, match=r"lacks `reward`.*another checkpoint"):
        env.load_state(state.model_copy(update={"trackers": trackers}))


NO_BUTTON = 0


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
        earned = 0.0
        for _ in range(40):
            _, reward, terminated, truncated, info = env.step(NO_BUTTON)
            earned += reward
            if "lock_up" in info:
                assert sum(info["reward_terms"].values()) == pytest.approx(earned)
                ends.append((terminated, truncated, info["lock_up"], info["is_success"]))
            if terminated or truncated:
                env.reset()
                earned = 0.0
    assert ends == [(False, True, "opcode 0xDB at 0x1234", False)]


def test_a_lock_up_is_no_failure_of_a_game_without_success() -> None:
    with closing(fake_env(fake_game(success=None), emulator=LocksUp())) as env:
        env.reset(seed=0)
        while "lock_up" not in (info := env.step(NO_BUTTON)[4]):
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
    settings: dict[str, Any] = {"start_states": start_states, "max_idle_frames": 9, "frame_skip": 1}
    with closing(fake_env(emulator=emulator, **settings)) as env:
        begun: list[Any] = [env.reset(seed=seed) for seed in range(20)]
        assert emulator.lock_ups > 0
        again: list[Any] = [env.reset(seed=seed) for seed in range(20)]
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


@pytest.mark.parametrize("how", [copy.deepcopy, pickle.dumps, cloudpickle.dumps])
def test_a_copy_is_refused_with_a_way_out(env: GameBoyEnv, how: Callable[[object], object]) -> None:
    for each in (env, gymnasium.wrappers.TimeLimit(env, 10)):
        with pytest.raises(TypeError, match=r"make another one with make_env\(config\)"):
            how(each)
