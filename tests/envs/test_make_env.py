import dataclasses
import pickle
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.envs.make_env import make_env, make_observation_format, observation_format
from game_rl.errors import ConfigError, UsageError
from game_rl.games.definition import Game, ObservationArea, bundled_games, load_game
from game_rl.games.screen_area import CropSpec
from game_rl.vec_env.frame_stacks import stacked_space
from tests.emulator.roms import make_rom


def with_crop(game: Game, **crop: int) -> Game:
    area = ObservationArea(crop=CropSpec(**crop))
    definition = game.definition.model_copy(update={"observation": area})
    return dataclasses.replace(game, definition=definition)


@pytest.fixture(scope="module")
def duel() -> Game:
    return load_game("duel")


def test_gymnasium_makes_and_accepts_every_bundled_game() -> None:
    assert bundled_games()
    for name in bundled_games():
        env = gymnasium.make(f"game_rl/{name}-v0", render_mode="rgb_array")
        assert env.observation_space.shape == (4, 72, 80)
        check_env(env.unwrapped)
        env.close()


@pytest.mark.slow
def test_importing_game_rl_is_enough_for_gymnasium_make() -> None:
    code = (
        "import gymnasium, game_rl; env = gymnasium.make('game_rl/duel-v0');"
        "print(env.reset(seed=0)[0].shape)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:Using SDL2", "-c", code],
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == ("(4, 72, 80)", "")


def test_gymnasium_make_takes_a_config() -> None:
    config = EnvConfig(frame_skip=8, frame_stack=2, observation=ObservationConfig(size="full"))
    with closing(gymnasium.make("game_rl/duel-v0", config=config)) as env:
        assert env.observation_space.shape == (2, 144, 160)
    with closing(gymnasium.make("game_rl/duel-v0", config=config, frame_stack=3)) as env:
        assert env.observation_space.shape == (3, 144, 160)


def test_gymnasium_make_takes_what_infos_have_and_offers_the_names_of_actions(duel: Game) -> None:
    with closing(gymnasium.make("game_rl/duel-v0", info="variables")) as env:
        assert env.get_wrapper_attr("action_names") == duel.action_names
        told = env.reset(seed=0)[1]["variables"]
        assert told == env.get_wrapper_attr("read_variables")()
    with pytest.raises(UsageError, match="info 'all' does not exist"):
        gymnasium.make("game_rl/duel-v0", info="all")


def test_gymnasium_make_stacks_the_frames_of_the_env_that_a_run_builds(duel: Game) -> None:
    made = gymnasium.make("game_rl/duel-v0", frame_skip=8, frame_stack=3)
    with closing(made), closing(make_env(EnvConfig(frame_skip=8), duel)) as plain:
        for seed in (3, 4):  # the second episode must not see the first one's frames
            frames: list[Any] = [np.zeros_like(plain.reset(seed=seed)[0])] * 2
            frames.append(plain.reset(seed=seed)[0])
            found = [made.reset(seed=seed)[0]]
            for action in (2, 2, 4, 5, 2):
                frames.append(plain.step(action)[0])
                found.append(made.step(action)[0])
            expected = [np.concatenate(frames[end - 3 : end]) for end in range(3, 9)]
            np.testing.assert_array_equal(found, expected)
            assert found[0].dtype == np.uint8
            assert made.observation_space.contains(found[0])


@pytest.mark.parametrize("wrong", [{"frame_skip": 0}, {"frame_stack": 65}, {"frame_stack": "a"}])
def test_a_wrong_value_for_gymnasium_make_is_named(wrong: dict[str, Any]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(UsageError, match=f"{name} is {value!r}: .*; use a whole number"):
        gymnasium.make("game_rl/duel-v0", **wrong)


def test_an_unknown_render_mode_is_refused() -> None:
    with pytest.raises(UsageError, match="rgb_array"):
        gymnasium.make("game_rl/duel-v0", render_mode="hologram")


@pytest.mark.slow
def test_a_worker_imports_neither_torch_nor_stable_baselines3() -> None:
    code = (
        "import sys, game_rl.envs.make_env, game_rl.game_check.game_check, game_rl.games.starter;"
        "print([m for m in ('torch', 'stable_baselines3', 'ray', 'av') if m in sys.modules])"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    assert (
        subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout == "[]\n"
    )


def test_the_env_is_as_the_config_says(duel: Game) -> None:
    config = EnvConfig(
        max_episode_timesteps=3, start_states=("level_2",), max_idle_frames=0, frame_skip=2
    )
    with closing(make_env(config, duel)) as env:
        assert env.reset(seed=0)[1] == {"start_state": "level_2"}
        assert [env.step(0)[3] for _ in range(3)] == [False, False, True]
        assert env.action_space == spaces.Discrete(len(duel.action_names))


def test_a_pickled_game_plays_the_same(duel: Game) -> None:
    """As in a worker, which gets the game through a pipe."""
    copy = pickle.loads(pickle.dumps(duel))  # noqa: S301 - our own bytes
    assert copy == duel
    with closing(make_env(EnvConfig(), duel)) as one, closing(make_env(EnvConfig(), copy)) as two:
        begun: list[Any] = [env.reset(seed=3)[0] for env in (one, two)]
        assert np.array_equal(begun[0], begun[1])
        for action in [5, 2, 2, 7, 4, 4, 1, 8, 3, 0] * 5:
            a: Any = one.step(action)
            b: Any = two.step(action)
            assert np.array_equal(a[0], b[0])
            assert a[1:] == b[1:]


def test_the_game_repeats_whatever_was_played_before(duel: Game) -> None:
    actions = [int(a) for a in np.random.default_rng(1).integers(0, 9, 120)]
    with closing(make_env(EnvConfig(), duel)) as env:
        episodes = []
        for _ in range(2):
            frames: list[Any] = [env.reset(seed=11)[0]]
            frames += [env.step(action)[0] for action in actions]
            episodes.append(np.stack(frames))
            env.step(4)  # something else in between
        assert np.array_equal(episodes[0], episodes[1])


def test_unknown_start_states_are_refused(duel: Game) -> None:
    with pytest.raises(UsageError, match="did you mean level_"):
        make_env(EnvConfig(start_states=("level_7",)), duel)


def test_the_observation_format_needs_no_emulator(duel: Game) -> None:
    assert make_observation_format(EnvConfig(), duel).frame_shape == (1, 72, 80)
    cropped = with_crop(duel, top=16, height=100, width=150)
    assert make_observation_format(EnvConfig(), cropped).frame_shape == (1, 50, 75)


@pytest.mark.parametrize("colour", ["grey", "rgb"])
@pytest.mark.parametrize("size", ["full", "half"])
@pytest.mark.parametrize("frame_stack", [1, 3])
@pytest.mark.parametrize("name", ["duel", "seasons"])
def test_the_observation_format_is_that_of_the_played_frames(
    name: str, frame_stack: int, size: str, colour: str
) -> None:
    values = {"frame_stack": frame_stack, "observation": {"size": size, "colour": colour}}
    config, game = EnvConfig.model_validate(values), load_game(name)
    found = make_observation_format(config, game)
    crop = game.definition.observation.crop
    assert observation_format(config, crop=crop, four_shades=not game.is_colour) == found
    with closing(make_env(config, game)) as env:
        frame: Any = env.reset(seed=0)[0]
        assert found.frame_shape == frame.shape
        assert found.row_bytes == found.screen.pack(frame).nbytes
        stacked = stacked_space(env.observation_space, frame_stack)
    assert found.space == stacked
    assert found.shape == stacked.shape
    assert found.nbytes == np.zeros(found.shape, np.uint8).nbytes
    found.check_space(stacked)
    with pytest.raises(ValueError, match="stacks are"):
        dataclasses.replace(found, stack=frame_stack + 1).check_space(stacked)


def test_half_size_of_an_odd_crop_is_refused_with_the_way_out(duel: Game) -> None:
    cropped = with_crop(duel, height=101, width=150)
    with pytest.raises(ConfigError, match="150 x 101; make both even"):
        make_observation_format(EnvConfig(), cropped)
    full = EnvConfig(observation=ObservationConfig(size="full"))
    assert make_observation_format(full, cropped).frame_shape == (1, 101, 150)


def test_rgb_of_four_shades_is_the_same_picture_three_times(duel: Game) -> None:
    pictures: dict[str, Any] = {}
    for colour in ("grey", "rgb"):
        observation = ObservationConfig(size="full", colour=colour)
        with closing(make_env(EnvConfig(observation=observation), duel)) as env:
            pictures[colour], _ = env.reset(seed=3)
    np.testing.assert_array_equal(pictures["rgb"], np.repeat(pictures["grey"], 3, axis=0))


@pytest.mark.parametrize("size", ["full", "half"])
def test_a_colour_game_is_seen_in_grey_or_colour(tmp_path: Path, size: str) -> None:
    (tmp_path / "game.gb").write_bytes(make_rom(colour_flag=0xC0))
    (tmp_path / "game.yaml").write_text(
        "title: Colour\nrom: {path: game.gb}\nhardware: cgb\n"
        "start_states: {begin: {script: [{wait: 90}]}}\n"
        "actions: {idle: [], a: [a]}\n"
        "variables: {counter: {address: 0xC000}, banked: {address: 0xD000, bank: 3}}\n"
        "rewards: {counted: {variable: counter, on: change}}\n",
        encoding="utf-8",
    )
    game = load_game(str(tmp_path / "game.yaml"))
    for colour, channels in (("grey", 1), ("rgb", 3)):
        observation = ObservationConfig(size=size, colour=colour)  # type: ignore[arg-type]
        with closing(make_env(EnvConfig(observation=observation), game)) as env:
            check_env(env, skip_render_check=True)
            assert env.observation_space.shape[0] == channels
    assert sorted(file.name for file in tmp_path.iterdir()) == ["game.gb", "game.yaml"]
