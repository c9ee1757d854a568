"""A reward class that takes what it names, and its endings, beside plain Python."""

import textwrap
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.envs.episode_ends import OWN_ENDINGS
from game_rl.envs.episode_reward import EpisodeReward
from game_rl.envs.game_boy_env import EnvState, GameBoyEnv
from game_rl.errors import GameFileError
from game_rl.game_check.env_checks import try_reward
from game_rl.game_check.game_check import check_game
from game_rl.games.custom_reward import CustomMethod, GameMemory, load_custom_reward
from game_rl.games.definition import load_game
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import fake_env, fake_game
from tests.games.example import VALID_GAME, write_game

SOURCES = {"screen": lambda: "s", "memory": lambda: "m", "action": lambda: "a"}


def takes(method: Any) -> Any:
    return CustomMethod(method, "rewards:Reward.step", SOURCES).call("v")


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (lambda variables: variables, "v"),
        (lambda whatever: whatever, "v"),
        (lambda whatever, bonus=1: (whatever, bonus), ("v", 1)),
        (lambda *everything: everything, ("v",)),
        (lambda variables, **more: (variables, more), ("v", {})),
        (lambda screen: screen, "s"),
        (lambda action, variables: (action, variables), ("a", "v")),
        (
            lambda variables, screen, memory, action: (variables, screen, memory, action),
            tuple("vsma"),
        ),
        (lambda variables, *, memory, bonus=2: (variables, memory, bonus), ("v", "m", 2)),
        (lambda memory, /, variables: (memory, variables), ("m", "v")),
        (lambda bonus=3, *, action: (bonus, action), (3, "a")),
        (lambda: 7, 7),
    ],
)
def test_a_method_gets_what_its_parameters_name(method: Any, expected: object) -> None:
    assert takes(method) == expected


def write(folder: Path, body: str) -> Path:
    (folder / "rewards.py").write_text(textwrap.dedent(body), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("step(self, variables, screens): ...", ("takes `screens`", "did you mean screen?")),
        ("step(self, variables, frame): ...", ("takes `frame`", "variables, screen, memory, act")),
        ("step(self, *, world): ...", ("takes `world`", "give it a default")),
    ],
)
def test_a_parameter_that_is_not_known_is_named_with_its_line(
    tmp_path: Path, step: str, says: tuple[str, ...]
) -> None:
    write(tmp_path, f"class Reward:\n    def reset(self, variables): ...\n    def {step}\n")
    with pytest.raises(GameFileError) as caught:
        load_custom_reward("rewards:Reward", tmp_path, SOURCES)
    told = str(caught.value)
    for text in ("rewards:Reward.step", "rewards.py, line 3", *says):
        assert text in told


def test_no_action_was_played_before_a_reset(tmp_path: Path) -> None:
    body = "class Reward:\n    def reset(self, variables, action): ...\n    def step(self, v): ..."
    with pytest.raises(GameFileError, match=r"reset takes `action`.*may take variables, screen, m"):
        load_custom_reward("rewards:Reward", write(tmp_path, body), SOURCES)


ALL = """
class Reward:
    def reset(self, variables, memory, screen):
        self.seen = {}
        self.first = int(screen.sum())

    def step(self, variables, screen, memory, action):
        place = (memory[0xC003], memory[0xC003:0xC005][1])
        self.seen[place] = self.seen.get(place, 0) + 1
        return {
            "novel": float(self.seen[place] == 1),
            "screen": float(screen[101, memory[0xC003], 0] == 0),
            "right": float(action == "right"),
            "first": float(self.first > 0),
        }

    def endings(self, variables, memory):
        return {"far": memory[0xC003] >= 90, "lost": variables["result"] == 2}

    def truncations(self):
        return {"stuck": max(self.seen.values()) >= 6}
"""


def own_env(folder: Path, body: str = ALL, **changes: Any) -> GameBoyEnv:
    game = fake_game(**{"reward": "rewards:Reward", "rewards": {}, "endings": {}} | changes)
    return fake_env(replace(game, folder=write(folder, body)), frame_skip=2)


def test_the_rewards_and_endings_are_those_of_plain_python(tmp_path: Path) -> None:
    for actions in ([2] * 10, [0] * 10, [2, 2, 1, 1, 2, 2, 1, 1, 2, 1, 2, 1, 2, 1, 2]):
        with closing(own_env(tmp_path)) as env:
            env.reset(seed=0)
            x, seen, over = 80, dict[int, int](), False
            for action in actions:
                assert not over
                _, reward, terminated, truncated, info = env.step(action)
                x += {0: 0, 1: -2, 2: 2}[action]
                seen[x] = seen.get(x, 0) + 1
                assert reward == (seen[x] == 1) + 1 + (action == 2) + 1
                expected = "far" if x >= 90 else "stuck" if max(seen.values()) >= 6 else None
                assert (terminated, truncated) == (expected == "far", expected == "stuck")
                assert info.get("ending") == expected
                over = expected is not None
                if over:
                    assert info[OWN_ENDINGS] == ("far", "lost", "stuck")
                    break
            assert over


def test_terminal_endings_come_before_those_that_truncate(tmp_path: Path) -> None:
    body = """
    class Reward:
        def reset(self, variables): ...
        def step(self, variables): return 0
        def endings(self, variables): return {"ours": variables["x"] >= 84}
        def truncations(self, variables): return {"ours_cut": variables["x"] >= 82}
    """
    file_cuts = {"file_cut": {"variable": "x", "at_least": 82, "truncates": True}}
    file_ends = {"file_end": {"variable": "x", "at_least": 84}}
    found = []
    for endings, first in (({}, 80), (file_cuts, 80), (file_cuts, 82), (file_ends | file_cuts, 82)):
        with closing(own_env(tmp_path, body, endings=endings)) as env:
            env.reset(seed=0)
            env.emulator.write(fake.X, first)
            found.append(env.step(2)[4]["ending"])
    assert found == ["ours_cut", "file_cut", "ours", "file_end"]


def test_an_env_goes_on_from_its_saved_state(tmp_path: Path) -> None:
    def play(resumed_at: int | None) -> list[Any]:
        env, seen = own_env(tmp_path), []
        env.reset(seed=0)
        for index, action in enumerate([2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2]):
            if index == resumed_at:
                state = env.save_state().model_dump_json()
                env = own_env(tmp_path)
                env.load_state(EnvState.model_validate_json(state))
            _, reward, *ended, info = env.step(action)
            seen.append((reward, *ended, info))
            if any(ended):
                return seen
        return seen

    assert play(None) == play(4)
    assert play(None)[-1][-1]["ending"] == "stuck"


def test_the_picture_is_a_copy_and_the_whole_screen(tmp_path: Path) -> None:
    emulator = FakeEmulator()
    body = """
    class Reward:
        def reset(self, variables): self.sizes = []
        def step(self, variables, screen):
            screen[:] = 7
            return {"shape": float(screen.shape == (144, 160, 3)), "sum": 0.0}
    """
    game = replace(fake_game(reward="rewards:Reward", rewards={}), folder=write(tmp_path, body))
    with closing(fake_env(game, emulator=emulator)) as env:
        assert env.tracker(EpisodeReward).needs_screen
        env.reset(seed=0)
        assert env.step(0)[1] == 1
        assert not (emulator.screen() == 7).all()
    with closing(fake_env()) as env:
        assert not env.tracker(EpisodeReward).needs_screen


def test_the_memory_is_read_by_address_and_cannot_be_written() -> None:
    emulator = FakeEmulator()
    memory: Any = GameMemory(emulator)
    assert memory[fake.X] == memory[1, fake.X] == 80
    assert memory[fake.X : fake.X + 3] == bytes(emulator.read(fake.X + i) for i in range(3))
    assert memory[1, fake.X : fake.X + 3] == memory[fake.X : fake.X + 3]
    with pytest.raises(TypeError):
        memory[fake.X] = 1
    with pytest.raises(IndexError, match="both ends"):
        memory[fake.X :]


def test_the_action_is_the_one_that_was_really_played(tmp_path: Path) -> None:
    body = """
    class Reward:
        def reset(self, variables): ...
        def step(self, variables, action): return {action: 1}
    """
    game = replace(fake_game(reward="rewards:Reward", rewards={}), folder=write(tmp_path, body))
    with closing(fake_env(game, sticky_actions=0.5)) as env:
        env.reset(seed=1)
        rng, last = np.random.default_rng(), None
        rng.bit_generator.state = env.np_random.bit_generator.state
        counts = dict.fromkeys(game.action_names, 0)
        for action in [0, 1, 2, 0, 1, 2, 0, 1]:
            if last is None or rng.random() >= 0.5:
                last = action
            counts[game.action_names[last]] += 1
            env.step(action)
        assert env.reward_terms == {name: n for name, n in counts.items() if n}


@pytest.mark.parametrize("returned", ["True", "None", "['lost']"])
def test_endings_that_are_no_mapping_are_refused(tmp_path: Path, returned: str) -> None:
    body = f"""
    class Reward:
        def reset(self, variables): ...
        def step(self, variables): return 0
        def endings(self, variables): return {returned}
    """
    with closing(own_env(tmp_path, body)) as env:
        env.reset(seed=0)
        with pytest.raises(GameFileError, match=r"endings failed.*a mapping of names to True or F"):
            env.step(0)


LATE = """
class Reward:
    def reset(self, variables): self.seen = {}
    def step(self, variables):
        self.seen[variables["x"]] = object()
        return 0
"""


def test_what_cannot_be_saved_is_found_after_a_timestep(tmp_path: Path) -> None:
    with closing(own_env(tmp_path, LATE)) as env, pytest.raises(GameFileError, match="be saved"):
        try_reward(env)
    saved = LATE.replace("object()", "1").replace(
        '[variables["x"]]', '[(variables["x"], (1, 2.5))]'
    )
    folder = tmp_path / "saved"
    folder.mkdir()
    with closing(own_env(folder, saved)) as env:
        try_reward(env)


def test_check_game_finds_it_too(tmp_path: Path) -> None:
    write(tmp_path, LATE.replace('"x"', '"counter"'))
    game = load_game(str(write_game(tmp_path, f"{VALID_GAME}reward: rewards:Reward\n")))
    with pytest.raises(GameFileError, match="be saved"):
        check_game(game, seed=0, timesteps=4)
