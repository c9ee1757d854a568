"""Wrappers of a person's own: checked, named in errors, saved with their env."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from game_rl.config.custom_part import PartError
from game_rl.config.schema import EnvConfig
from game_rl.envs.custom_wrappers import UnsavedEnv, WrappedEnv
from game_rl.envs.game_boy_env import EnvState, GameBoyEnv
from game_rl.envs.make_env import make_env, wrapper_problems
from game_rl.game_check.env_checks import check_reward
from game_rl.games.definition import Game, load_game
from tests.tiny_run import TINY_GAME

HEAD = "import gymnasium\nimport numpy as np\n\n\nclass Own(gymnasium.Wrapper):\n"
COUNTING = """\
    def __init__(self, env, scale=1.0):
        super().__init__(env)
        self.scale, self.played, self.mean = scale, 0, np.zeros(2, np.float32)

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.played += 1
        self.mean[0] += reward
        return observation, self.scale * self.played, terminated, truncated, info

    def state_dict(self):
        return {"played": self.played, "mean": self.mean}

    def load_state_dict(self, state):
        self.played, self.mean = state["played"], state["mean"]
"""
STEP = "    def step(self, action):\n        result = self.env.step(action)\n"

Make = Callable[..., WrappedEnv]


@pytest.fixture(scope="module")
def game() -> Game:
    return load_game(str(TINY_GAME))


@pytest.fixture
def make(tmp_path: Path, game: Game) -> Make:
    """Make an env in wrappers of a module with this code."""

    def made(code: str, *items: str | dict[str, Any], steps: int | None = 25) -> WrappedEnv:
        file = tmp_path / "parts.py"
        if not file.exists():  # a process imports a file once
            file.write_text(HEAD + code, encoding="utf-8")
        config = EnvConfig(
            wrappers=items or ("parts:Own",), max_episode_timesteps=steps, frame_skip=8
        )
        env = make_env(config, game, folder=tmp_path)
        assert isinstance(env, WrappedEnv)
        return env

    return made


def plain(game: Game) -> GameBoyEnv:
    env = make_env(EnvConfig(max_episode_timesteps=25, frame_skip=8), game)
    assert isinstance(env, GameBoyEnv)
    return env


def play(env: gymnasium.Env[Any, Any], n: int, *, seed: int = 1) -> list[tuple[bytes, float, bool]]:
    """Play timesteps, and begin anew where an episode ends."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(n):
        observation, reward, terminated, truncated, _ = env.step(int(rng.integers(4)))
        over = terminated or truncated
        if over:
            observation, _ = env.reset()
        found.append((observation.tobytes(), float(reward), over))
    return found


def play_on(env: WrappedEnv, n: int) -> None:
    """Begin an episode, and play timesteps whatever happens."""
    env.reset(seed=0)
    for _ in range(n):
        env.step(0)


def test_an_env_without_wrappers_is_the_games_own(game: Game) -> None:
    with closing(plain(game)) as env:
        assert env.unwrapped is env


def test_wrappers_stand_around_the_game_in_their_order(make: Make, game: Game) -> None:
    items = ({"parts:Own": {"scale": 2.0}}, {"parts:Own": {"scale": 3.0}})
    with closing(make(COUNTING, *items)) as env, closing(plain(game)) as bare:
        env.reset(seed=3)
        bare.reset(seed=3)
        played, expected = play(env, 30), play(bare, 30)
        assert [(o, over) for o, _, over in played] == [(o, over) for o, _, over in expected]
        assert [reward for _, reward, _ in played] == [3.0 * n for n in range(1, 31)]
        assert env.env.env.get_wrapper_attr("scale") == 2.0  # type: ignore[attr-defined]
        assert np.array_equal(env.render(), bare.render())


def test_an_env_that_loads_a_state_continues_identically_wrappers_included(make: Make) -> None:
    with closing(make(COUNTING)) as env, closing(make(COUNTING)) as other:
        env.reset(seed=3)
        play(env, 40)
        saved = env.save_state()
        assert isinstance(saved, EnvState)
        state = EnvState.model_validate_json(saved.model_dump_json())
        other.load_state(state)
        assert play(other, 40, seed=2) == play(env, 40, seed=2)
        assert other.save_state() == env.save_state()


def test_a_reset_with_a_seed_makes_the_wrappers_anew(make: Make) -> None:
    with closing(make(COUNTING)) as env:
        runs = []
        for _ in range(2):
            env.reset(seed=3)
            runs.append(play(env, 40))
        assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            "    def __init__(self, env):\n        super().__init__(env)\n"
            "        self.observation_space = gymnasium.spaces.Box(0, 1, (3,))\n",
            "parts:Own makes the observations Box(0.0, 1.0, (3,), float32) of Box(0, 255, (1, 36,",
        ),
        (
            "    def __init__(self, env):\n        super().__init__(env)\n"
            "        self.action_space = gymnasium.spaces.Discrete(99)\n",
            "parts:Own makes the actions Discrete(99) of Discrete(",
        ),
        ("    def __init__(self, env, n): ...\n", "the arguments of parts:Own are (n)"),
        (
            "    def __init__(self, env):\n        1 / 0\n",
            "failed with ZeroDivisionError: division",
        ),
    ],
)
def test_a_wrapper_that_cannot_be_used_is_reported_by_key(
    make: Make, game: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, told: str
) -> None:
    with pytest.raises(PartError, match=r"^env\.wrappers\.0: ") as raised:
        make(code)
    assert told in str(raised.value)
    assert raised.value.exit_code == 2
    monkeypatch.chdir(tmp_path)
    (problem,) = wrapper_problems(EnvConfig(wrappers=("parts:Own",)), game)
    assert (problem.key, problem.message) == (("env", "wrappers", "0"), raised.value.message)


def test_a_class_that_is_no_wrapper_is_refused(make: Make) -> None:
    with pytest.raises(PartError, match="collections:Counter is not a Gymnasium wrapper: let it"):
        make(COUNTING, "collections:Counter")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (STEP + "        return 1 / 0\n", "0: parts:Own failed in step with ZeroDivisionError: "),
        (STEP + "        return result[:4]\n", "failed in step with ValueError: not enough values"),
        (
            "    def reset(self, **arguments):\n        raise KeyError('x')\n",
            "0: parts:Own failed in reset with KeyError: 'x' in ",
        ),
        (
            STEP + "        return np.zeros((1, 4, 4), np.uint8), *result[1:]\n",
            "an observation from parts:Own cannot be stored: it is uint8 (1, 4, 4)",
        ),
        (
            STEP + "        return np.full_like(result[0], 17), *result[1:]\n",
            "cannot be stored: a frame has a pixel of 17, which 4 bits a pixel, the same in",
        ),
        (
            STEP + "        return *result[:2], False, False, {}\n",  # hides the end
            "failed in step with ResetNeeded: the episode is over",
        ),
    ],
)
def test_an_error_of_a_wrapper_names_it(make: Make, code: str, told: str) -> None:
    with closing(make(code, steps=3)) as env, pytest.raises(PartError) as raised:
        play_on(env, 5)
    assert told in str(raised.value)
    assert str(raised.value).startswith("env.wrappers")


def test_of_two_wrappers_the_one_that_failed_is_named(make: Make, tmp_path: Path) -> None:
    broken = "import gymnasium\nclass Broken(gymnasium.Wrapper):\n" + STEP + "        1 / 0\n"
    (tmp_path / "broken.py").write_text(broken, encoding="utf-8")
    for items, key in (
        (("parts:Own", "broken:Broken"), "env.wrappers.1: broken:Broken"),
        (("broken:Broken", "parts:Own"), "env.wrappers.0: broken:Broken"),
    ):
        with closing(make(COUNTING, *items)) as env, pytest.raises(PartError, match=key):
            play_on(env, 1)


def test_an_episode_that_a_wrapper_ends_has_the_games_summary(make: Make, game: Game) -> None:
    code = STEP + "        return *result[:3], True, result[4]\n"
    with closing(make(code)) as env, closing(plain(game)) as bare:
        env.reset(seed=0)
        bare.reset(seed=0)
        *_, truncated, info = env.step(0)
        bare.step(0)
        assert truncated
        assert info == bare.episode_summary()


def test_pictures_that_the_packing_holds_may_change(make: Make) -> None:
    code = STEP + "        return result[0][:, ::-1].copy(), *result[1:]\n"
    with closing(make(code)) as env:
        env.reset(seed=0)
        observation: Any = env.step(0)[0]
        bare: Any = env.unwrapped
        assert bare.observed is not None
        assert np.array_equal(observation, bare.observed[:, ::-1])


def test_a_changing_wrapper_without_state_dict_cannot_be_saved(
    make: Make,
) -> None:
    changing = COUNTING.partition("    def state_dict")[0]
    with closing(make(changing)) as env:
        env.reset(seed=0)
        assert isinstance(env.save_state(), EnvState)  # nothing has changed yet
        env.step(0)
        assert env.save_state() == UnsavedEnv("env.wrappers.0, parts:Own")
        warning = check_reward(env)
        assert warning is not None
        assert "has no state_dict and load_state_dict: the episodes start again" in warning


def test_a_constant_wrapper_needs_no_state_dict(make: Make) -> None:
    constant = "    scale = 2\n" + STEP + "        return result[0], 2.0, *result[2:]\n"
    with closing(make(constant)) as env:
        env.reset(seed=0)
        env.step(0)
        assert isinstance(env.save_state(), EnvState)
        assert check_reward(env) is None


def test_a_state_that_is_no_plain_data_is_refused_with_its_name(make: Make) -> None:
    code = (
        "    def state_dict(self): return {'a': {1}}\n    def load_state_dict(self, state): ...\n"
    )
    with closing(make(code)) as env:
        env.reset(seed=0)
        with pytest.raises(PartError, match=r"its state\['a'\] is of type set"):
            env.save_state()


def test_gymnasium_make_takes_wrappers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "parts.py").write_text(HEAD + COUNTING, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    config = EnvConfig(wrappers=("parts:Own",), frame_stack=2)
    with closing(gymnasium.make("game_rl/duel-v0", config=config)) as env:
        assert env.observation_space.shape == (2, 72, 80)
        env.reset(seed=0)
        assert [env.step(0)[1] for _ in range(3)] == [1.0, 2.0, 3.0]
