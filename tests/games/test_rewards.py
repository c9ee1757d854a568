import itertools
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.envs.episode_reward import EpisodeReward
from game_rl.errors import GameFileError
from game_rl.games.custom_reward import load_custom_reward, reward_source
from game_rl.games.reward_term import RewardTerm
from game_rl.games.variables import Values
from tests.envs.example import moment

kinds = st.sampled_from(["increase", "decrease", "change", "equals", "value"])
terms = st.builds(
    lambda on, weight, once: RewardTerm(
        variable="v", on=on, value=3 if on == "equals" else None, weight=weight, once=once
    ),
    kinds,
    st.sampled_from([0.25, -2.0, 1.0, 7.5]),  # exact in binary: sums do not depend on the order
    st.booleans(),
)


def naive_rewards(term: RewardTerm, values: list[int]) -> list[float]:
    """The reward of each timestep, written as the documentation says it."""
    rewards, has_paid = [], False
    for before, now in itertools.pairwise(values):
        reward = 0.0
        if term.on == "increase" and now > before:
            reward = term.weight * (now - before)
        if term.on == "decrease" and now < before:
            reward = term.weight * (before - now)
        if term.on == "change" and now != before:
            reward = term.weight
        if term.on == "equals" and now == 3:
            reward = term.weight
        if term.on == "value":
            reward = term.weight * now
        if term.once and has_paid:
            reward = 0.0
        has_paid = has_paid or reward != 0
        rewards.append(reward)
    return rewards


def earned(reward: EpisodeReward, values: Values) -> float:
    """What a timestep earns after which the variables are these."""
    at = moment(values)
    reward.step(at)
    return at.reward


def sums(reward: EpisodeReward) -> dict[str, float]:
    found: dict[str, float] = reward.summary(moment({}))["reward_terms"]
    return found


@given(
    st.dictionaries(st.sampled_from("abcd"), terms, min_size=1),
    st.lists(st.integers(-5, 8), min_size=2, max_size=30),
)
def test_rewards_are_those_of_the_dumb_loop(
    named: dict[str, RewardTerm], values: list[int]
) -> None:
    episode = EpisodeReward(named, None)
    for _ in range(2):  # the second episode begins with nothing of the first
        episode.reset(moment({"v": values[0]}))
        rewards = [earned(episode, {"v": value}) for value in values[1:]]
        expected = {name: naive_rewards(term, values) for name, term in named.items()}
        assert rewards == [math.fsum(at) for at in zip(*expected.values(), strict=True)]
        assert sums(episode) == {name: math.fsum(r) for name, r in expected.items()}


def test_the_sums_are_a_copy() -> None:
    episode = EpisodeReward({"a": RewardTerm(variable="v", on="value")}, None)
    episode.reset(moment({"v": 0}))
    sums(episode)["a"] = 99.0
    assert sums(episode) == {"a": 0.0}


def test_two_games_may_both_have_a_module_of_one_name(tmp_path: Path) -> None:
    found = []
    for index in (1, 2):
        folder = tmp_path / str(index)
        folder.mkdir()
        (folder / "rewards.py").write_text(
            "class Reward:\n    def reset(self, variables): ...\n"
            f"    def step(self, variables): return {index}\n",
            encoding="utf-8",
        )
        found.append(load_custom_reward("rewards:Reward", folder).step({}))
    assert found == [1.0, 2.0]


def test_a_reward_is_looked_up_beside_the_game_then_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (game := tmp_path / "game").mkdir()
    monkeypatch.chdir(tmp_path)
    code = "import own_values\nclass Reward:\n    def reset(self, variables): pass\n"
    for folder, value in ((tmp_path, 1), (game, 2)):
        lines = f"    def step(self, variables): return own_values.ONE * {value}\n"
        (folder / "rewards.py").write_text(code + lines, encoding="utf-8")
        (tmp_path / "own_values.py").write_text("ONE = 1.0\n", encoding="utf-8")
        assert reward_source("rewards:Reward", game) == str(folder / "rewards.py")
        assert load_custom_reward("rewards:Reward", game).step({}) == value
    del sys.modules["own_values"]
    sought = f"neither {game / 'other.py'} nor {tmp_path / 'other.py'} nor an installed one"
    calls: tuple[Callable[[str, Path], object], ...] = (reward_source, load_custom_reward)
    for look_up in calls:
        with pytest.raises(GameFileError, match=re.escape(sought)):
            look_up("other:Reward", game)


def test_an_importable_module_will_do(tmp_path: Path) -> None:
    with pytest.raises(GameFileError, match="has no method reset"):
        load_custom_reward("collections:Counter", tmp_path)


@pytest.mark.parametrize("returned", ["None", "'a lot'", "{'a': None}"])
def test_what_is_no_reward_is_refused(tmp_path: Path, returned: str) -> None:
    (tmp_path / "rewards.py").write_text(
        "class Reward:\n    def reset(self, variables): ...\n"
        f"    def step(self, variables): return {returned}\n",
        encoding="utf-8",
    )
    with pytest.raises(GameFileError, match=r"rewards:Reward\.step failed"):
        load_custom_reward("rewards:Reward", tmp_path).step({})


def test_a_missing_import_of_the_users_module_is_named(tmp_path: Path) -> None:
    (tmp_path / "rewards.py").write_text("import no_such_package\n", encoding="utf-8")
    with pytest.raises(GameFileError, match="needs the module no_such_package; install it"):
        load_custom_reward("rewards:Reward", tmp_path)


_FAILING = """\
from helpers import fail

class Reward:
    def __init__(self):
        fail("__init__")

    def reset(self, variables):
        fail("reset")

    def step(self, variables):
        return fail("step")

    def save_state(self):
        return fail("save_state")
"""


def _use_everything(folder: Path) -> None:
    reward = load_custom_reward("rewards:Reward", folder)
    reward.reset({})
    reward.save_state()
    reward.step({})


@pytest.mark.parametrize("method", ["import", "__init__", "reset", "step", "save_state"])
def test_a_failure_of_the_users_code_is_told_with_its_file_and_line(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "helpers", raising=False)
    (tmp_path / "rewards.py").write_text(_FAILING + "fail('import')\n", encoding="utf-8")
    (tmp_path / "helpers.py").write_text(
        f"import json\n\ndef fail(where):\n    if where == {method!r}:\n"
        "        json.loads('')  # fails in a file that is not the user's\n",
        encoding="utf-8",
    )
    with pytest.raises(GameFileError) as caught:
        _use_everything(tmp_path)
    assert f"JSONDecodeError: Expecting value: line 1 column 1 (char 0) in {tmp_path}" in str(
        caught.value
    )
    assert "helpers.py, line 5: `json.loads('')" in str(caught.value)


def test_an_absurd_reward_is_warned_of_with_the_name_of_its_term() -> None:
    terms = {
        "small": RewardTerm(variable="v", on="value", weight=1e-3),
        "lost": RewardTerm(variable="v", on="decrease", weight=-1e30),
    }
    episode = EpisodeReward(terms, None)
    for value in (0, 200, 200):
        episode.reset(moment({"v": value}))
        earned(episode, {"v": 200})
        assert episode.largest.warning is None
    earned(episode, {"v": 198})
    episode.reset(moment({"v": 0}))
    assert episode.largest.warning is not None
    assert episode.largest.warning.startswith("reward term lost has earned -2e+30 in one timestep")
