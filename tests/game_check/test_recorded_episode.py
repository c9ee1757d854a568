"""Recorded episodes: actions of timesteps, or the buttons that a person held frame by frame."""

import json
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.emulator.emulator import BUTTONS, FRAMES_PER_SECOND, Button, Press
from game_rl.envs.make_env import make_game_env
from game_rl.errors import GameFileError
from game_rl.game_check.game_check import check_game
from game_rl.game_check.recorded_episode import (
    HeldButtons,
    RecordedEpisode,
    episode_config,
    read_recorded_episode,
    recorded_timesteps,
    replay_fault,
    rounded_episode,
)
from game_rl.games.actions import nearest_action
from game_rl.games.definition import Game, load_game


@pytest.fixture(scope="module")
def duel() -> Game:
    return load_game("duel")


def read(text: str, game: Game, folder: Path) -> RecordedEpisode:
    path = folder / "episode.json"
    path.write_text(text, encoding="utf-8")
    return read_recorded_episode(path, game)


def frame_by_frame(episode: RecordedEpisode) -> list[frozenset[str]]:
    return [frozenset(buttons) for buttons, frames in episode.presses for _ in range(frames)]


def some_presses(rng: random.Random, n: int) -> tuple[HeldButtons, ...]:
    return tuple(
        (tuple(rng.sample(BUTTONS, rng.randrange(3))), rng.randrange(1, 14)) for _ in range(n)
    )


def test_buttons_are_read_and_cut_into_timesteps(duel: Game, tmp_path: Path) -> None:
    rng = random.Random(3)
    presses = some_presses(rng, 60)
    text = json.dumps({"start_state": "level_1", "frame_skip": 5, "presses": presses})
    episode = read(text, duel, tmp_path)
    assert episode == RecordedEpisode(start_state="level_1", frame_skip=5, presses=presses)
    pieces = [timestep.presses for timestep in recorded_timesteps(episode, duel)]
    flat = [press.buttons for piece in pieces for press in piece for _ in range(press.frames)]
    assert flat == frame_by_frame(episode)
    assert {sum(press.frames for press in piece) for piece in pieces[:-1]} == {5}


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ({}, "nothing is played"),
        ({"actions": ["idle"], "presses": [[["a"], 3]]}, "remove one of the two"),
        ({"presses": [[["a"], 0]]}, "presses.0.1"),
        ({"presses": [[["A"], 3]]}, "presses.0.0.0"),
        ({"presses": [["a", 3]]}, "presses.0.0"),
        ({"presses": [[["a"]]]}, "presses.0"),
    ],
)
def test_what_cannot_be_played_is_refused(
    duel: Game, tmp_path: Path, rest: dict[str, object], told: str
) -> None:
    with pytest.raises(GameFileError, match=told):
        read(json.dumps({"start_state": "level_1", **rest}), duel, tmp_path)


def end_of(episode: RecordedEpisode, game: Game) -> tuple[dict[str, object], np.ndarray, float]:
    """Play an episode; return the variables, the screen and the reward at its end."""
    with closing(make_game_env(episode_config(game, episode), game, draws=True)) as env:
        env.reset(seed=episode.seed, options=dict(episode.options))
        total = 0.0
        for timestep in recorded_timesteps(episode, game):
            _, reward, terminated, truncated, _ = timestep.play(env)
            total += reward
            if terminated or truncated:
                break
        return dict(env.read_variables()), env.render(), total


def test_buttons_held_as_actions_hold_them_lead_to_the_same(duel: Game) -> None:
    """The actions of duel hold their buttons for the whole timestep."""
    rng = random.Random(5)
    names = [name for _ in range(40) for name in [rng.choice(duel.action_names)] * 3]
    as_actions = RecordedEpisode(start_state="level_2", seed=4, frame_skip=6, actions=tuple(names))
    held = [(tuple(duel.definition.actions[name]), 6) for name in names]
    as_presses = as_actions.model_copy(update={"actions": (), "presses": tuple(held)})
    one = end_of(as_actions, duel)
    other = end_of(as_presses, duel)
    assert one[0] == other[0]
    np.testing.assert_array_equal(one[1], other[1])
    assert one[2] == other[2] != 0
    assert rounded_episode(as_presses, duel) == as_actions
    assert rounded_episode(as_actions, duel) is as_actions


@pytest.mark.slow
def test_check_game_plays_what_a_person_held(duel: Game) -> None:
    presses: tuple[HeldButtons, ...] = ((("right",), 31), (("a",), 9), ((), 2)) * 20
    recorded = RecordedEpisode(start_state="level_1", frame_skip=8, presses=presses)
    check = check_game(duel, seed=0, timesteps=3, recorded=recorded)
    assert check.timesteps == 3 + 105


def test_no_press_is_lost_when_buttons_become_actions(duel: Game) -> None:
    """However short it is, and wherever in a timestep it lies."""
    for length in (1, 2, 3, 5):
        for before in range(16):
            presses: tuple[HeldButtons, ...] = ((("a",), length), ((), 40))
            if before:
                presses = (((), before), *presses)
            episode = RecordedEpisode(start_state="level_1", frame_skip=8, presses=presses)
            actions = rounded_episode(episode, duel).actions
            assert set(actions) == {"idle", "punch"}
            first = actions.index("punch") * 8
            assert first < before + length
            assert before < first + 8
    quick = RecordedEpisode(
        start_state="level_1", presses=((("a",), 4), ((), 4), (("a",), 4), ((), 4))
    )
    assert rounded_episode(quick, duel, frame_skip=4).actions == ("punch", "idle", "punch", "idle")


def naive_distance(action: Any, held: list[frozenset[Button]]) -> int:
    return sum(len(set(action) ^ buttons) for buttons in held)


def test_the_nearest_action_differs_in_the_fewest_frames(duel: Game) -> None:
    rng = random.Random(8)
    actions = duel.definition.actions
    for _ in range(300):
        presses = [
            Press(frozenset(rng.sample(BUTTONS, rng.randrange(3))), rng.randrange(1, 5))
            for _ in range(rng.randrange(1, 4))
        ]
        held = [press.buttons for press in presses for _ in range(press.frames)]
        found = nearest_action(actions, presses)
        least = min(naive_distance(action, held) for action in actions.values())
        assert naive_distance(actions[found], held) == least


def test_a_play_that_differs_from_its_record_is_told_as_far_as_the_record_says_it(
    duel: Game,
) -> None:
    held = RecordedEpisode(start_state="level_1", frame_skip=4, presses=((("a",), 40),))

    def fault(
        record: RecordedEpisode,
        frame_skip: int = 4,
        timesteps: int = 10,
        success: bool | None = None,
    ) -> str:
        return replay_fault(
            record, duel, frame_skip=frame_skip, timesteps=timesteps, reward=1.5, success=success
        )

    assert fault(held) == ""
    assert fault(held, timesteps=3) == ""  # who plays presses on after the end
    named = RecordedEpisode(start_state="level_1", actions=("punch",) * 10)
    assert fault(named, timesteps=3) == "it ends after 3 of its 10 timesteps"
    earned = held.model_copy(update={"reward": 2.0})
    assert fault(earned) == "it earns 1.5, and earned 2"
    assert fault(earned, frame_skip=8) == ""  # rewards are asked at other moments
    assert fault(held.model_copy(update={"success": True})) == "it ends in no success"
    lost = held.model_copy(update={"success": False})
    assert fault(lost) == fault(lost, success=False) == ""
    assert fault(lost, success=True) == "it ends in a success"


def long_play(frames: int) -> dict[str, Any]:
    """Other buttons in each frame, which is the longest that a play can be written."""
    presses = [[["a", "right"] if frame % 2 else ["left"], 1] for frame in range(frames)]
    return {"start_state": "level_1", "frame_skip": 4, "presses": presses}


@pytest.mark.slow
def test_two_hours_of_play_are_read_whatever_was_pressed(duel: Game, tmp_path: Path) -> None:
    frames = round(2 * 3_600 * FRAMES_PER_SECOND)
    text = json.dumps(long_play(frames), separators=(",", ":"))
    episode = read(text, duel, tmp_path)
    assert len(recorded_timesteps(episode, duel)) == -(-frames // 4)
    assert episode.presses[1] == (("a", "right"), 1)


def test_json_has_other_limits_than_what_a_person_writes(duel: Game, tmp_path: Path) -> None:
    """Each list is longer than a YAML file may be."""
    names = ["idle", "punch"] * 15_000
    episode = read(json.dumps({"start_state": "level_1", "actions": names}), duel, tmp_path)
    assert episode.actions == tuple(names)
    document = long_play(20_000)
    assert len(read(json.dumps(document), duel, tmp_path).presses) == 20_000
    document["start_state"] = "levl_1"
    with pytest.raises(GameFileError, match="did you mean level_1"):
        read(json.dumps(document), duel, tmp_path)
    document["seed"] = "many"
    with pytest.raises(GameFileError, match="seed: "):
        read(json.dumps(document), duel, tmp_path)
    with pytest.raises(GameFileError, match="not a recorded episode of duel"):
        read(json.dumps(document)[:-1], duel, tmp_path)
    with pytest.raises(GameFileError, match="written twice"):
        read(f'{{"seed": 1, {json.dumps(long_play(20_000))[1:-1]}, "seed": 2}}', duel, tmp_path)


def test_an_episode_that_is_too_long_says_how_much_fits(duel: Game, tmp_path: Path) -> None:
    text = json.dumps({"start_state": "level_1", "actions": ["idle"]}) + " " * 2**23
    with pytest.raises(GameFileError, match="two hours of play"):
        read(text, duel, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        '{"start_state": "level_1", "actions": ["idle"], "seed": 1, "seed": 2}',
        '{"start_state": "level_1", "actions": ["idle"], "reward": NaN}',
        '{"start_state": "level_1", "actions": ["idle"], "seed": "x"}',
        "[" * 5_000,
        '{"start_state": "level_1", "actions": "idle"}',
    ],
)
def test_what_is_wrong_in_a_short_file_is_said_with_its_place(
    duel: Game, tmp_path: Path, text: str
) -> None:
    with pytest.raises(GameFileError, match="line 1"):
        read(text, duel, tmp_path)


def test_yaml_is_read_as_well(duel: Game, tmp_path: Path) -> None:
    text = "start_state: level_1\nseed: 1_000\nactions: [idle, punch]\n"
    assert read(text, duel, tmp_path) == RecordedEpisode(
        start_state="level_1", seed=1_000, actions=("idle", "punch")
    )
