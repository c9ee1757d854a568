"""Parts of an observation that a reward class makes, beside plain Python over the same memory."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from game_rl.config.schema import EnvConfig
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import make_observation_format
from game_rl.errors import GameFileError
from game_rl.game_check.env_checks import try_reward
from game_rl.games.definition import Game
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import fake_env, fake_game

PARTS: dict[str, Any] = {
    "compass": {"own": {"kind": "vector", "shape": [2]}, "stack": True},
    "flags": {"own": {"kind": "vector", "shape": [11], "of": 2}},
    "steps": {"own": {"kind": "categories", "shape": [1], "of": 1_000}},
    "sectors": {"own": {"kind": "grid", "shape": [3, 4], "of": 4}},
}
CLASS = """
import numpy as np

class Reward:
    def reset(self, variables):
        self.n = 0
        self.start = variables["x"]

    def step(self, variables):
        self.n += 1
        return 0.25

    def parts(self, variables, memory):
        x = memory[0xC003]
        assert x == variables["x"]
        grid = np.zeros((3, 4), np.int64)
        grid[self.n % 3, x % 4] = 3
        return {
            "compass": [x - self.start, x / 7],
            "flags": [x >> bit & 1 for bit in range(8)] + [True, False, self.n > 3],
            "steps": (self.n,),
            "sectors": grid,
            "more": "of no use",
        }
"""


def own_game(folder: Path, code: str = CLASS, parts: dict[str, Any] = PARTS) -> Game:
    (folder / "my_rewards.py").write_text(dedent(code), encoding="utf-8")
    game = fake_game(parts=parts, reward="my_rewards:Reward", rewards={})
    return replace(game, folder=folder)


@contextmanager
def own_env(
    folder: Path, code: str = CLASS, parts: dict[str, Any] = PARTS, **settings: Any
) -> Iterator[GameBoyEnv]:
    chosen = {"parts": tuple(parts)} | settings
    with closing(fake_env(own_game(folder, code, parts), **chosen)) as env:
        yield env


def new_folder(folder: Path) -> Path:
    """A folder of its own, as a module is loaded once."""
    new = folder / str(len(list(folder.iterdir())))
    new.mkdir()
    return new


def by_hand(x: int, start: int, n: int) -> dict[str, list[Any]]:
    return {
        "compass": [float(x - start), float(np.float32(x / 7))],
        "flags": [float(bit) for bit in f"{x:08b}"[::-1]] + [1.0, 0.0, float(n > 3)],
        "steps": [n],
        "sectors": [
            [[3 * (row == n % 3 and col == x % 4) for col in range(4)] for row in range(3)]
        ],
    }


def parts_of(observation: Any) -> dict[str, Any]:
    return {name: observation[name].tolist() for name in PARTS}


def test_the_parts_are_those_of_plain_python_at_every_timestep(tmp_path: Path) -> None:
    emulator, random = FakeEmulator(), np.random.default_rng(5)
    with own_env(tmp_path, emulator=emulator) as env:
        observation, _ = env.reset(seed=3)
        start = emulator.read(fake.X)
        assert parts_of(observation) == by_hand(start, start, 0)
        for n in range(1, 40):
            observation, *_ = env.step(int(random.integers(3)))
            assert env.observation_space.contains(observation)
            assert parts_of(observation) == by_hand(emulator.read(fake.X), start, n)


def test_a_restored_env_makes_the_same_parts(tmp_path: Path) -> None:
    with own_env(tmp_path) as one, own_env(tmp_path) as other:
        one.reset(seed=3)
        for action in (1, 2, 2):
            one.step(action)
        other.load_state(one.save_state())
        for action in (2, 0, 1):
            ours, theirs = (env.step(action)[0] for env in (one, other))
            assert parts_of(ours) == parts_of(theirs)


def test_the_form_is_known_without_running_the_class_and_takes_few_bytes(tmp_path: Path) -> None:
    game = own_game(tmp_path, "raise RuntimeError('must not run')")
    formats = game.definition.part_formats()
    assert {name: form.nbytes for name, form in formats.items()} == {
        "compass": 2 * 4,
        "flags": 2,  # 11 bits
        "steps": 2,
        "sectors": 3,  # 12 cells of 2 bits
    }
    config = EnvConfig.model_validate({"frame_stack": 3, "observation": {"parts": list(PARTS)}})
    space: Any = make_observation_format(config, game).space
    assert {name: (box.shape, box.dtype.name) for name, box in space.items()} == {
        "compass": ((6,), "float32"),
        "flags": ((11,), "float32"),
        "screen": ((3, 72, 80), "uint8"),
        "sectors": ((1, 3, 4), "uint8"),
        "steps": ((1,), "int32"),
    }


def test_without_a_part_of_its_own_the_method_is_not_called(tmp_path: Path) -> None:
    code = CLASS.replace("x = memory[0xC003]", "raise RuntimeError('must not run')")
    with closing(fake_env(own_game(tmp_path, code))) as env:
        env.reset(seed=0)
        observation, *_ = env.step(0)
        assert not isinstance(observation, dict)


def test_the_screen_is_drawn_for_parts_that_take_it(tmp_path: Path) -> None:
    code = CLASS.replace("memory):", "memory, screen):")
    with own_env(new_folder(tmp_path), code, frame_format=None) as env:
        assert env.draws
    with own_env(new_folder(tmp_path), frame_format=None) as env:
        assert not env.draws


RETURNED = {
    "a part missing": ('"steps": (self.n,),', "", "parts.steps: .*compass, flags, sectors, more"),
    "another shape": ("[x - self.start, x / 7]", "[x]", r"parts.compass: .*\[1\].*\[2\]"),
    "no numbers": ("(self.n,)", "'seven'", "parts.steps: .*returned str"),
    "not finite": ("x / 7", "float('nan')", "parts.compass: .*nan; its numbers must be finite"),
    "too large for a float32": ("x / 7", "1e60", r"parts.compass: .*1e\+60.*finite"),
    "a number that is not below of": ("= 3", "= 4", r"parts.sectors: .*4; .*below 4 \(`of`\)"),
    "a negative number": ("(self.n,)", "[-1]", "parts.steps: .*-1; .*at least 0"),
    "a fraction": ("(self.n,)", "[0.5]", "parts.steps: .*0.5; .*whole"),
    "no mapping": (
        "return {",
        "return 3\n        {",
        "parts failed with .*a mapping of names",
    ),
    "an error": ("x = memory", "x = None.y or memory", "parts failed with .*my_rewards.py, line"),
}


@pytest.mark.parametrize(("old", "new", "says"), RETURNED.values(), ids=RETURNED)
def test_what_is_no_such_part_is_an_error_that_names_it(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    assert CLASS.count(old) == 1
    env = own_env(tmp_path, CLASS.replace(old, new))
    with env as one, pytest.raises(GameFileError, match=says):
        try_reward(one)


def test_a_class_without_the_method_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    code = CLASS.replace("def parts(", "def part(")
    says = r"no method parts, which makes compass.*add `parts"
    with pytest.raises(GameFileError, match=says), own_env(tmp_path, code):
        pass


def test_parts_that_change_the_object_are_found_in_the_first_timesteps(tmp_path: Path) -> None:
    code = CLASS.replace("x = memory[0xC003]", "x = memory[0xC003]; self.n += 1")
    env = own_env(new_folder(tmp_path), code)
    with env as one, pytest.raises(GameFileError, match="changes its attributes in its method par"):
        try_reward(one)
    with own_env(new_folder(tmp_path)) as other:
        try_reward(other)


def test_the_action_is_not_for_parts_as_there_is_none_at_a_reset(tmp_path: Path) -> None:
    env = own_env(tmp_path, CLASS.replace("memory):", "action):"))
    with pytest.raises(GameFileError, match="parts takes `action`"), env:
        pass


def test_tile_ids_are_those_of_the_emulator_with_all_sprites_over_them() -> None:
    area = {"x": 1, "y": 0, "width": 19, "height": 18}
    parts = {"ids": {"tiles": {"area": area, "follow_scroll": True, "sprites": True, "ids": True}}}
    game, emulator = fake_game(parts=parts), FakeEmulator()
    form = game.definition.part_formats()["ids"]
    assert (form.n_values, form.nbytes, form.dtype.name) == (384, 19 * 18 * 2, "int32")
    with closing(fake_env(game, emulator=emulator, parts=("ids",))) as env:
        env.reset(seed=1)
        for _ in range(10):
            observation: Any = env.step(2)[0]
            memory = {a: emulator.read(a) for a in (fake.X, fake.LEVEL, fake.SEED, fake.HEALTH)}
            x, level, seed, health = memory.values()
            expected = [
                [((c + x // 8) % 32 + r * level + seed) % 384 for c in range(1, 20)]
                for r in range(18)
            ]
            for left, top, tile in ((x, 100, 200), (x, 108, 201), (16 * health, 0, 202)):
                if 0 <= top // 8 < 18 and 0 <= left // 8 - 1 < 19:
                    expected[top // 8][left // 8 - 1] = tile
            assert observation["ids"].tolist() == [expected]
            np.testing.assert_array_equal(form.unpack(form.pack(observation["ids"])), [expected])


def test_a_colour_game_has_the_tiles_of_both_banks() -> None:
    parts = {"ids": {"tiles": {"area": {"width": 2, "height": 1}, "ids": True}}}
    game = fake_game(parts=parts, hardware="cgb")
    assert game.definition.part_formats()["ids"].n_values == 768


def test_game_files_without_the_new_keys_are_saved_as_before() -> None:
    classes = {"area": {"width": 2, "height": 1}, "classes": {"wall": [3]}}
    saved = fake_game(parts={"a": {"tiles": classes}}).definition.model_dump(mode="json")
    assert "own" not in saved["parts"]["a"]
    assert "ids" not in saved["parts"]["a"]["tiles"]
