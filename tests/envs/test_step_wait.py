"""`step` of game.yaml: the frames that a timestep plays on, counted by hand."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from game_rl.config.schema import EnvConfig
from game_rl.emulator.emulator import RecordingEmulator
from game_rl.envs.action_player import WAITED_FRAMES
from game_rl.envs.episode_progress import MILESTONES
from game_rl.envs.game_boy_env import EnvState
from game_rl.envs.make_env import make_env
from game_rl.errors import GameFileError
from game_rl.game_check.game_check import check_game
from game_rl.games.definition import GameDefinition, load_game
from tests.emulator.fake_emulator import FakeEmulator
from tests.emulator.roms import COUNTS_PRESSES, make_rom
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game
from tests.games.example import VALID_GAME, write_game

LOCKED = 0xC010
FRAME_SKIP = 3
FREE = {"variable": "locked", "equals": 0}


class LockedEmulator(FakeEmulator):
    """A fake game that ignores buttons: `locked` frames of `locks[n]` follow the nth action.

    With `needs_presses`, a lock ends only after the given number of new presses of A.
    """

    def __init__(self, locks: list[int], *, needs_presses: bool = False) -> None:
        super().__init__()
        self.locks, self.needs_presses = locks, needs_presses
        self.held: list[frozenset[str]] = []
        self.drawn_at = 0

    def _advance(self) -> None:
        before = self.held[-1] if self.held else frozenset()
        super()._advance()
        self.held.append(self._wanted)
        is_press = "a" in self._wanted and "a" not in before
        if is_press or not self.needs_presses:
            self.write(LOCKED, max(0, self.read(LOCKED) - 1))

    def _draw(self) -> None:
        super()._draw()
        self.drawn_at = len(self.held)

    def lock(self, number: int) -> None:
        self.write(LOCKED, self.locks[number])


def game_with(step: dict[str, Any], **changes: Any) -> Any:
    variables = FAKE_GAME_YAML["variables"] | {"locked": {"address": LOCKED}}
    return fake_game(variables=variables, step=step, endings={}, **changes)


def waits(
    step: dict[str, Any], locks: list[int], *, needs_presses: bool = False
) -> tuple[int, list[tuple[int, list[frozenset[str]]]]]:
    """The lock that is left; each timestep's waited frames, and the buttons of all its frames."""
    emulator, found = LockedEmulator(locks, needs_presses=needs_presses), []
    with closing(fake_env(game_with(step), emulator=emulator, frame_skip=FRAME_SKIP)) as env:
        env.reset(seed=0)
        for number in range(len(locks)):
            emulator.held = []
            emulator.lock(number)
            *_, info = env.step(2)
            assert emulator.drawn_at == len(emulator.held)  # the agent sees the last frame
            found.append((info.get(WAITED_FRAMES, 0), emulator.held))
        left = emulator.read(LOCKED)
    return left, found


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(1, 30))
def test_it_waits_frame_by_frame_until_the_condition_holds(locks: list[int], most: int) -> None:
    _, found = waits({"until": FREE, "at_most_frames": most}, locks)
    for lock, (waited, held) in zip(locks, found, strict=True):
        assert waited == min(max(0, lock - FRAME_SKIP), most)
        right: list[frozenset[str]] = [frozenset({"right"})] * FRAME_SKIP
        assert held == right + [frozenset()] * waited


def pressed_by_hand(presses: int, most: int) -> list[frozenset[str]]:
    """The frames of a wait for so many new presses, as the reference describes them."""
    frames: list[frozenset[str]] = []
    while presses and len(frames) < most:
        is_up = [not held for held in frames[-8:]] == [True] * 8
        if is_up and most - len(frames) >= 9:
            frames += [frozenset({"a"})] * 8
            presses -= 1
        frames.append(frozenset())
    return frames


@given(st.integers(0, 5), st.integers(17, 90))
def test_each_press_is_a_new_one_and_is_released(presses: int, most: int) -> None:
    step = {"until": FREE, "press": ["a"], "at_most_frames": most}
    left, [(waited, held)] = waits(step, [presses], needs_presses=True)
    expected = pressed_by_hand(presses, most)
    assert held[FRAME_SKIP:] == expected
    assert waited == len(expected) <= most
    assert held[-1] == (frozenset() if expected else frozenset({"right"}))
    done = min(presses, sum(h == {"a"} for h in held) // 8)
    assert left == presses - done


def test_a_change_counts_from_the_beginning_of_the_timestep() -> None:
    step = {"until": {"variable": "locked", "decreases": True}, "at_most_frames": 50}
    _, found = waits(step, [5, 0], needs_presses=True)
    assert [waited for waited, _ in found] == [50, 50]
    _, found = waits(step, [5, 9])
    assert [waited for waited, _ in found] == [0, 0]


def test_without_a_step_a_game_is_dumped_as_before() -> None:
    assert "step" not in fake_game().definition.model_dump(mode="json", by_alias=True)
    step = {"until": FREE, "press": ["a"], "at_most_frames": 600}
    dumped = game_with(step).definition.model_dump(mode="json", by_alias=True)
    assert GameDefinition.model_validate(dumped).step == game_with(step).definition.step


def test_an_env_goes_on_from_its_saved_state() -> None:
    step = {"until": {"variable": "x", "at_least": 84}, "press": ["right"], "at_most_frames": 40}

    def play(resumed_at: int | None) -> list[Any]:
        game, seen = game_with(step), []
        env = fake_env(game, frame_skip=FRAME_SKIP)
        env.reset(seed=0)
        for index, action in enumerate([0, 1, 1, 2, 0, 1, 0]):
            if index == resumed_at:
                state = env.save_state().model_dump_json()
                env = fake_env(game, frame_skip=FRAME_SKIP)
                env.load_state(EnvState.model_validate_json(state))
            observation, reward, *_, info = env.step(action)
            seen.append((observation.tobytes(), reward, info))
        return seen

    assert play(None) == play(3)
    assert any(info for *_, info in play(None))


def test_an_episode_that_ends_reports_its_last_wait() -> None:
    step = {"until": {"variable": "result", "equals": 1}, "press": ["right"], "at_most_frames": 500}
    game = fake_game(step=step)
    with closing(fake_env(game, frame_skip=FRAME_SKIP)) as env:
        env.reset(seed=0)
        *_, terminated, _, info = env.step(0)
    assert terminated
    assert info["is_success"]
    assert info[WAITED_FRAMES] == 70 // 8 * 16 + 8 + 8 + 1  # 70 pixels at 8 a press


def counting_game(folder: Path, step: dict[str, Any] | None) -> Path:
    """A ROM that counts how often A goes down."""
    (folder / "game.gb").write_bytes(make_rom(program=COUNTS_PRESSES))
    text = {
        "title": "Presses",
        "rom": {"path": "game.gb"},
        "start_states": {"beginning": {"script": [{"wait": 90}]}},
        "actions": {"idle": [], "a": ["a"]},
        "variables": {"presses": {"address": 0xC000}},
        "rewards": {"pressed": {"variable": "presses", "on": "increase", "weight": 1}},
    } | ({} if step is None else {"step": step})
    path = folder / "game.yaml"
    path.write_text(yaml.safe_dump(text, sort_keys=False), encoding="utf-8")
    return path


def test_a_real_game_gets_as_many_presses_as_it_waits_for(tmp_path: Path) -> None:
    until = {"variable": "presses", "in": [5, 10, 15]}
    step = {"until": until, "press": ["a"], "at_most_frames": 600}
    config = EnvConfig(frame_skip=4, max_episode_timesteps=100)
    counts = []
    with closing(make_env(config, load_game(str(counting_game(tmp_path, step))))) as env:
        env.reset(seed=0)
        for action in (1, 0, 0):
            *_, info = env.step(action)  # the first one counts as a press, as it is held
            info.pop(MILESTONES, None)
            counts.append((env.get_wrapper_attr("read_variables")()["presses"], info))
    # four presses more, each of 16 frames, and one frame that releases the last one
    assert counts == [(5, {WAITED_FRAMES: 4 * 16 + 1}), (5, {}), (5, {})]


def test_a_clip_has_a_picture_of_every_fourth_frame_of_a_wait() -> None:
    step = {"until": FREE, "at_most_frames": 100}
    emulator = LockedEmulator([24, 27, 30])
    watched = RecordingEmulator(emulator, picture_frames=4)
    game = game_with(step)
    with closing(fake_env(game, emulator=watched, frame_skip=4)) as env:  # type: ignore[arg-type]
        env.reset(seed=0)
        watched.take_pictures()
        pictures, frames = 0, 0
        for number in range(3):
            emulator.lock(number)
            *_, info = env.step(0)
            frames += 4 + info[WAITED_FRAMES]
            pictures += len(watched.take_pictures())
            assert abs(pictures - frames / 4) <= 1


WRONG = [
    ({"until": {"variable": "locke", "equals": 0}}, "step.until.variable", "no variable locke"),
    ({"until": {"variable": "lives", "equals": "nothing"}}, "step.until.equals", "no variable"),
    ({"until": {"no_reward_for": 3}}, "step.until.no_reward_for", "is for endings only"),
    ({"until": {"all": [{"same_place_for": 3}]}}, "step.until.all.0.same_place_for", "endings"),
    ({"until": {"variable": "lives", "equals": 0, "for": 2}}, "step.until.for", "within one"),
    ({"at_most_frames": 0}, "step.at_most_frames", "found 0"),
    ({"press": []}, "step.press", "found"),
    ({"press": ["x"]}, "step.press.0", "one of a, b"),
    ({"press": ["left", "right"]}, "step.press", "cannot be held at once"),
    ({"press": ["a"], "at_most_frames": 16}, "step.at_most_frames", "write at least 17"),
    ({"pres": ["a"]}, "step.pres", "unknown key"),
]


@pytest.mark.parametrize(("change", "where", "says"), WRONG, ids=str)
def test_a_wrong_step_is_a_located_error(
    tmp_path: Path, change: dict[str, Any], where: str, says: str
) -> None:
    step = {"until": {"variable": "lives", "equals": 0}, "at_most_frames": 60} | change
    text = f"{VALID_GAME}step: {json.dumps(step)}\n"
    with pytest.raises(GameFileError) as caught:
        load_game(str(write_game(tmp_path, text)))
    assert where in str(caught.value)
    assert says in str(caught.value)
    assert "line" in str(caught.value)


@pytest.mark.slow
def test_check_game_says_when_the_condition_never_held(tmp_path: Path) -> None:
    step = {"until": {"variable": "presses", "equals": 255}, "at_most_frames": 5}
    game = load_game(str(counting_game(tmp_path, step)))
    told = [w for w in check_game(game, seed=0, timesteps=20).warnings if w.startswith("step")]
    assert told == [
        "step: in 20 of 20 timesteps, `until` did not hold within 5 frames; check it, or raise "
        "`at_most_frames`"
    ]
    step["until"] = {"variable": "presses", "at_least": 0}
    game = load_game(str(counting_game(tmp_path, step)))
    told = [w for w in check_game(game, seed=0, timesteps=20).warnings if w.startswith("step")]
    assert len(told) == 1
    assert "held after the action of each of 20 timesteps" in told[0]


def test_a_step_without_a_limit_is_refused() -> None:
    with pytest.raises(ValidationError, match="at_most_frames"):
        game_with({"until": FREE})
