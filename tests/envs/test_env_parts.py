"""An env whose observations have parts of the game, with the screen and without it."""

from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pydantic import ValidationError

from game_rl.config.custom_part import PartError
from game_rl.config.schema import EnvConfig, RunConfig
from game_rl.envs.custom_wrappers import WrappedEnv
from game_rl.envs.game_boy_env import EnvState, GameBoyEnv
from game_rl.envs.make_env import (
    check_env_config,
    make_env,
    make_game_env,
    make_observation_format,
    observation_format,
)
from game_rl.envs.observation import FrameFormat, ObservationFormat
from game_rl.errors import ConfigError, GameFileError, LockUpError
from game_rl.games.definition import Game, load_game
from game_rl.games.parts.part_format import PartFormat
from game_rl.games.screen_area import CropSpec
from game_rl.lake.origin import disagreement, origin_of
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import fake_env, fake_game

PARTS = {
    "status": {
        "vector": ["health", {"variable": "x", "scale": 0.01}, {"variable": "x", "bits": 8}]
    },
    "level": {"categories": "level", "of": 4, "stack": True},
    "tiles": {
        "tiles": {
            "area": {"width": 20, "height": 18},
            "follow_scroll": True,
            "sprites": True,
            "classes": {"low": list(range(40)), "player": [200, 201]},
        }
    },
    "visited": {"visited": {"radius": 4}},
    "recent": {"actions": 2},
}
IDLE, LEFT, RIGHT, HURT = range(4)


def game_with_parts(parts: dict[str, Any] = PARTS) -> Game:
    return fake_game(parts=parts, place=["x", "health"])


def parts_env(emulator: FakeEmulator | None = None, **settings: Any) -> GameBoyEnv:
    defaults: dict[str, Any] = {"parts": tuple(PARTS), "max_idle_frames": 9}
    return fake_env(game_with_parts(), emulator=emulator, **(defaults | settings))


def plain(observation: Any) -> dict[str, Any]:
    return {name: array.tolist() for name, array in observation.items()}


def played(env: GameBoyEnv, n: int, *, seed: int | None = 0, action_seed: int = 1) -> list[Any]:
    random = np.random.default_rng(action_seed)
    found: list[Any] = []
    if seed is not None:
        observation, info = env.reset(seed=seed)
        found.append((plain(observation), info))
    for _ in range(n):
        observation, *rest = env.step(int(random.integers(4)))
        found.append((plain(observation), rest))
        if rest[1] or rest[2]:
            found.append(plain(env.reset()[0]))
    return found


@pytest.mark.filterwarnings("ignore:.*A Box observation space m(in|ax)imum value is")
@pytest.mark.parametrize("frame_format", [FrameFormat(), None], ids=["screen", "no screen"])
def test_gymnasium_accepts_it(frame_format: FrameFormat | None) -> None:
    with closing(parts_env(frame_format=frame_format)) as env:
        check_env(env, skip_render_check=True)


def test_an_observation_has_the_screen_and_the_chosen_parts() -> None:
    with closing(parts_env(parts=["recent", "level", "status"])) as env:
        env.reset(seed=0)
        observation, *_ = env.step(HURT)
        observation, *_ = env.step(RIGHT)
        assert sorted(observation) == ["level", "recent", "screen", "status"]
        assert list(env.observation_space) == sorted(observation)  # type: ignore[call-overload]
        np.testing.assert_array_equal(observation["screen"], FrameFormat().observe(env.render()))
        values = env.read_variables()
        assert observation["level"].tolist() == [values["level"]]
        assert observation["recent"].tolist() == [HURT + 1, RIGHT + 1]
        bits = [int(bit) for bit in f"{values['x']:08b}"[::-1]]
        expected = np.array([values["health"], 0.01 * values["x"], *bits], np.float32)
        np.testing.assert_array_equal(observation["status"], expected)


def test_a_visited_place_is_forgotten_at_the_next_episode() -> None:
    with closing(parts_env(frame_skip=1, max_idle_frames=0)) as env:
        env.reset(seed=0)
        for _ in range(3):
            observation, *_ = env.step(RIGHT)
        assert observation["visited"][0].tolist()[4] == [0, 1, 1, 1, 1, 0, 0, 0]
        observation, _ = env.reset()
        assert observation["visited"].sum() == 1
        assert observation["recent"].tolist() == [0, 0]


def test_the_newest_actions_are_the_agents_own_not_the_repeated_ones() -> None:
    with closing(parts_env(sticky_actions=0.9)) as env:
        env.reset(seed=0)
        actions = [int(a) for a in np.random.default_rng(0).integers(0, 4, 20)]
        for before, action in pairwise(actions):
            env.step(before)
            observation, *rest = env.step(action)
            assert observation["recent"].tolist() == [before + 1, action + 1]
            if rest[1] or rest[2]:
                break


def test_a_caller_may_change_what_it_got() -> None:
    with closing(parts_env()) as one, closing(parts_env()) as two:
        observation, _ = one.reset(seed=0)
        two.reset(seed=0)
        for array in observation.values():
            array[:] = 0
        observation.clear()
        assert played(one, 30, seed=None) == played(two, 30, seed=None)


@pytest.mark.parametrize("frame_format", [FrameFormat(), None], ids=["screen", "no screen"])
def test_a_loaded_env_goes_on_as_the_saved_one(frame_format: FrameFormat | None) -> None:
    with (
        closing(parts_env(frame_format=frame_format)) as env,
        closing(parts_env(frame_format=frame_format)) as other,
    ):
        played(env, 23)
        state = EnvState.model_validate_json(env.save_state().model_dump_json())
        other.load_state(state)
        assert other.save_state() == env.save_state()
        assert played(other, 60, seed=None) == played(env, 60, seed=None)


def test_a_state_from_before_there_were_parts_can_be_loaded() -> None:
    with closing(fake_env(game_with_parts())) as old, closing(parts_env()) as env:
        old.reset(seed=0)
        document = old.save_state().model_dump(mode="json")
        assert "parts" not in document["trackers"]
        env.load_state(EnvState.model_validate(document))
        observation, *_ = env.step(RIGHT)
        assert observation["recent"].tolist() == [0, RIGHT + 1]


class Drawn(FakeEmulator):
    """Counts the pictures that are drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures = 0

    def tick(self, frames: int, *, render: bool) -> None:
        self.pictures += render
        super().tick(frames, render=render)


def test_without_the_screen_nothing_is_drawn_and_the_episodes_are_the_same() -> None:
    emulator = Drawn()
    with (
        closing(parts_env(emulator, frame_format=None)) as blind,
        closing(parts_env()) as seeing,
    ):
        for name in blind.game.definition.start_states:
            blind.reset(seed=0, options={"start_state": name})  # makes the state
        emulator.pictures = 0
        ours, theirs = played(blind, 80), played(seeing, 80)
        assert emulator.pictures == 0
        for episode in theirs:
            del (episode[0] if isinstance(episode, tuple) else episode)["screen"]
        assert ours == theirs


def test_a_picture_is_drawn_when_it_is_asked_for() -> None:
    emulator = Drawn()
    with (
        closing(parts_env(emulator, frame_format=None)) as env,
        closing(parts_env(frame_format=None)) as other,
    ):
        assert played(env, 7) == played(other, 7)
        drawn = env.render()
        emulator.hold([])
        reference = FakeEmulator()
        reference.load_state(env.save_state().emulator)
        reference.tick(1, render=True)
        np.testing.assert_array_equal(drawn, reference.screen())
        assert played(env, 7, seed=None) == played(other, 7, seed=None)
        before = emulator.pictures
        env.step(RIGHT)
        assert emulator.pictures == before + 1
        reference.load_state(env.save_state().emulator)
        np.testing.assert_array_equal(env.render(), reference.screen())


def test_an_env_for_clips_draws_though_nobody_sees_the_screen() -> None:
    emulator = Drawn()
    config = config_of(screen=False, parts=["level"])
    with closing(make_env(config, game_with_parts(), emulator, draws=True)) as env:
        env.reset(seed=0)
        before = emulator.pictures
        env.step(RIGHT)
        env.render()
        assert emulator.pictures == before + 1


class LocksUp(FakeEmulator):
    """Locks up at x = 100, and has nonsense in memory then."""

    def tick(self, frames: int, *, render: bool) -> None:
        super().tick(frames, render=render)
        if self.read(fake.X) > 100:
            self.write(fake.LEVEL, 77)
            raise LockUpError("opcode 0xDB at 0x1234")


def test_after_a_lock_up_the_parts_are_the_last_ones_that_were_seen() -> None:
    with closing(parts_env(LocksUp())) as env:
        before, _ = env.reset(seed=0)
        truncated = False
        while not truncated:
            last = before
            before, _, _, truncated, info = env.step(RIGHT)
        assert "lock_up" in info
        for name in PARTS:
            np.testing.assert_array_equal(before[name], last[name])


def test_a_value_that_cannot_be_stored_stops_the_episode_with_a_way_out() -> None:
    game = game_with_parts({"level": {"categories": "level", "of": 3}})
    says = r"parts\.level\.of: level is 3, .*larger `of`"
    with (
        closing(fake_env(game, parts=["level"], start_states=["level_3"])) as env,
        pytest.raises(GameFileError, match=says),
    ):
        env.reset(seed=0)


def config_of(**observation: Any) -> EnvConfig:
    return EnvConfig.model_validate({"observation": observation, "frame_stack": 3})


def test_the_config_chooses_parts_and_the_format_has_them_by_name() -> None:
    game = game_with_parts()
    config = config_of(parts=["status", "level"])
    found = make_observation_format(config, game)
    formats = game.definition.part_formats()
    names = ("level", "status")
    chosen = tuple((name, formats[name]) for name in names)
    assert found == ObservationFormat(FrameFormat().packing, 3, chosen)
    assert found == observation_format(config, crop=CropSpec(), four_shades=True, parts=formats)
    with closing(make_game_env(config, game, FakeEmulator())) as env:
        assert env.observation_space == found.frame_space
        assert env.packing.parts == found.parts
    blind = config_of(parts=["level"], screen=False)
    assert make_observation_format(blind, game).screen is None
    with closing(make_env(blind, game, FakeEmulator())) as env:
        assert list(env.reset(seed=0)[0]) == ["level"]


@pytest.mark.parametrize(
    "ask",
    [
        make_observation_format,
        check_env_config,
        lambda config, game: make_env(config, game, FakeEmulator()),
    ],
)
def test_an_unknown_part_is_refused_with_a_guess(ask: Callable[[EnvConfig, Game], object]) -> None:
    with pytest.raises(ConfigError, match=r"env\.observation\.parts: .*no part stat.*mean status"):
        ask(config_of(parts=["stat"]), game_with_parts())
    with pytest.raises(ConfigError, match=r"no part status; there are none"):
        ask(config_of(parts=["status"]), fake_game())


@pytest.mark.parametrize(
    ("observation", "says"),
    [
        ({"screen": False}, "the agent would see nothing"),
        ({"parts": ["a", "b", "a"]}, "a is named twice"),
        ({"parts": ["screen"]}, "the screen is not a part of game.yaml"),
    ],
)
def test_a_config_that_makes_no_sense_is_refused(observation: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        config_of(**observation)


def test_without_the_screen_its_size_does_not_matter() -> None:
    base = {"game": "duel", "total_timesteps": 100_000, "run_dir": "runs/x"}
    seen = {"size": "half", "colour": "rgb", "screen": False, "parts": ["status"]}
    RunConfig.model_validate(base | {"env": {"frame_stack": 64, "observation": seen}})
    with pytest.raises(ValidationError, match="mistake a side"):
        RunConfig.model_validate(
            base | {"env": {"frame_stack": 64, "observation": seen | {"screen": True}}}
        )
    game = game_with_parts()
    crop = {"observation": {"crop": {"height": 101, "width": 33}}}
    cropped = fake_game(parts=PARTS, place=["x", "health"], **crop)
    assert make_observation_format(config_of(screen=False, parts=["level"]), cropped).is_dict
    with pytest.raises(ConfigError, match="make both even"):
        make_observation_format(config_of(parts=["level"]), cropped)
    check_env_config(config_of(screen=False, parts=["level"]), game)


def test_a_lake_without_parts_has_the_origin_that_it_always_had() -> None:
    base = {"game": "duel", "total_timesteps": 100_000, "run_dir": "runs/x"}
    game = load_game("duel")
    origin = origin_of(RunConfig.model_validate(base), game)
    assert origin["env.observation"] == {"size": "half", "colour": "grey"}
    assert not any("parts" in name for name in origin)
    seen = {"env": {"observation": {"parts": ["status"]}}}
    with_parts = origin_of(RunConfig.model_validate(base | seen), game)
    assert "env.observation" in (disagreement(with_parts, origin) or "")
    assert disagreement(with_parts, with_parts) is None


HEAD = "import gymnasium\nimport numpy as np\n\n\nclass Own(gymnasium.Wrapper):\n"
STEP = "    def step(self, action):\n        seen, *rest = self.env.step(action)\n"


def wrapped(folder: Path, code: str, name: str) -> WrappedEnv:
    (folder / f"{name}.py").write_text(HEAD + code, encoding="utf-8")
    config = EnvConfig.model_validate(
        {"observation": {"parts": ["status", "level"]}, "wrappers": [f"{name}:Own"]}
    )
    env = make_env(config, game_with_parts(), FakeEmulator(), folder=folder)
    assert isinstance(env, WrappedEnv)
    return env


def test_a_wrapper_may_change_the_numbers_of_a_part(tmp_path: Path) -> None:
    code = STEP + "        seen['status'] = np.append(seen['status'][:2] * 2, seen['status'][2:])\n"
    with (
        closing(wrapped(tmp_path, code + "        return seen, *rest\n", "twice")) as env,
        closing(wrapped(tmp_path, "    pass\n", "nothing")) as bare,
    ):
        env.reset(seed=0)
        bare.reset(seed=0)
        ours, theirs = env.step(RIGHT)[0], bare.step(RIGHT)[0]
        assert ours["level"].tolist() == theirs["level"].tolist()
        np.testing.assert_array_equal(ours["screen"], theirs["screen"])
        health, x, *bits = theirs["status"].tolist()
        assert ours["status"].tolist() == [2 * health, 2 * x, *bits]


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        (
            "wide",
            "seen['status'] = seen['status'].astype(float)",
            r"part status: .*float64 \(10,\)",
        ),
        ("long", "seen['level'] = np.zeros(2, np.uint8)", r"part level: it is uint8 \(2,\)"),
        ("less", "del seen['level']", "it has the parts screen, status"),
        ("list", "seen = seen['screen']", "not a dict of parts"),
        ("high", "seen['level'] = np.full(1, 9, np.uint8)", "part level .*is 9, not .* 0 to 3"),
    ],
)
def test_a_wrapper_that_changes_a_form_is_refused(
    tmp_path: Path, name: str, change: str, says: str
) -> None:
    code = STEP + f"        {change}\n        return seen, *rest\n"
    with closing(wrapped(tmp_path, code, f"form_{name}")) as env:
        env.reset(seed=0)
        with pytest.raises(PartError, match=rf"form_{name}:Own cannot be stored: .*{says}"):
            env.step(RIGHT)


def test_gymnasium_makes_a_bundled_game_with_stacked_parts() -> None:
    import game_rl  # noqa: F401 - registers the games

    config = EnvConfig.model_validate(
        {"observation": {"screen": False, "parts": ["status"]}, "frame_skip": 8}
    )
    with closing(gymnasium.make("game_rl/duel-v0", config=config)) as env:
        observation, _ = env.reset(seed=0)
        assert env.observation_space.contains(observation)
        assert env.render().shape == (144, 160, 3)
    both = EnvConfig.model_validate({"observation": {"parts": ["status"]}, "frame_stack": 3})
    with (
        closing(gymnasium.make("game_rl/duel-v0", config=both)) as env,
        closing(make_env(both, load_game("duel"))) as single,
    ):
        frames = [np.zeros((1, 72, 80), np.uint8)] * 3
        for episode in range(2):
            observation, _ = env.reset(seed=episode)
            frame, _ = single.reset(seed=episode)
            frames = [*([np.zeros((1, 72, 80), np.uint8)] * 3), frame["screen"]]
            for action in (1, 4, 5, 2):
                assert env.observation_space.contains(observation)
                np.testing.assert_array_equal(observation["screen"], np.concatenate(frames[-3:]))
                np.testing.assert_array_equal(observation["status"], frame["status"])
                observation, *_ = env.step(action)
                frame, *_ = single.step(action)
                frames.append(frame["screen"])


def test_parts_have_the_forms_of_their_formats() -> None:
    with closing(parts_env()) as env:
        env.reset(seed=0)
        observation, *_ = env.step(RIGHT)
        formats: dict[str, PartFormat] = dict(env.packing.parts)
        for name, form in formats.items():
            assert (observation[name].dtype, observation[name].shape) == (form.dtype, form.shape)
        rows = env.packing.pack(observation)
        unpacked = env.packing.unpack(rows)
        assert isinstance(unpacked, dict)
        assert plain(unpacked) == plain(observation)
