"""Conditions over an episode, compared with a plain look back at all of its timesteps."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.envs.episode_ends import EpisodeConditions
from game_rl.envs.game_boy_env import EnvState
from game_rl.errors import GameFileError
from game_rl.games.conditions import Condition, Ending
from game_rl.games.definition import GameDefinition, load_game
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game, moment
from tests.games.example import VALID_GAME, write_game

IDLE, LEFT, RIGHT = 0, 1, 2
Timestep = tuple[dict[str, int], float]  # values and reward; the first is the reset
Entry = dict[str, Any]

small = st.integers(0, 3)
bounds = small | st.sampled_from(["x", "y"])
comparisons: st.SearchStrategy[Entry] = st.builds(
    lambda variable, entry: {"variable": variable, **entry},
    st.sampled_from(["x", "y"]),
    st.one_of(
        st.fixed_dictionaries({"equals": bounds}),
        st.fixed_dictionaries({"at_most": bounds}),
        st.fixed_dictionaries({"at_least": bounds}),
        st.fixed_dictionaries({"in": st.lists(small, min_size=1, max_size=3)}),
        st.sampled_from([{"increases": True}, {"decreases": True}, {"changes": True}]),
    ),
)
in_a_row = st.builds(lambda entry, n: {**entry, "for": n}, comparisons, st.integers(1, 3))


def joined(inner: st.SearchStrategy[Entry], words: tuple[str, ...]) -> st.SearchStrategy[Entry]:
    several = st.lists(inner, min_size=1, max_size=3)
    kinds = {"not": inner, "all": several, "any": several}
    made = [st.fixed_dictionaries({word: kinds[word]}) for word in words]
    return st.one_of(*made, *(st.builds(lambda e, n: e | {"for": n}, m, small.map(lambda n: n + 1))
                              for m in made))  # fmt: skip


entries = st.recursive(
    comparisons | in_a_row, lambda inner: joined(inner, ("all", "any", "not")), max_leaves=6
)
waits = st.builds(
    lambda kind, n: {kind: n},
    st.sampled_from(["no_reward_for", "same_place_for"]),
    st.integers(1, 4),
)
endings = entries | waits | joined(entries | waits, ("all",))
episodes: st.SearchStrategy[list[Timestep]] = st.lists(
    st.tuples(
        st.fixed_dictionaries({"x": small, "y": small}), st.sampled_from([-1.0, 0.0, 0.0, 2.0])
    ),
    min_size=2,
    max_size=12,
)


def plainly(entry: Entry, episode: list[Timestep], at: int) -> bool:
    """Whether the condition holds after timestep `at`, from all that went before."""
    if "for" in entry:
        inner = {key: value for key, value in entry.items() if key != "for"}
        first = at - entry["for"] + 1
        return first >= 1 and all(plainly(inner, episode, t) for t in range(first, at + 1))
    if "all" in entry:
        return not [e for e in entry["all"] if not plainly(e, episode, at)]
    if "any" in entry:
        return bool([e for e in entry["any"] if plainly(e, episode, at)])
    if "not" in entry:
        return not plainly(entry["not"], episode, at)
    if "no_reward_for" in entry:
        first = at - entry["no_reward_for"] + 1
        return first >= 1 and max(reward for _, reward in episode[first : at + 1]) <= 0
    if "same_place_for" in entry:
        first = at - entry["same_place_for"]
        return first >= 0 and len({(v["x"], v["y"]) for v, _ in episode[first : at + 1]}) == 1
    now, before = episode[at][0], episode[at - 1][0]
    value, earlier = now[entry["variable"]], before[entry["variable"]]
    ((word, bound),) = [(k, v) for k, v in entry.items() if k != "variable"]
    right = now[bound] if isinstance(bound, str) else bound
    return {
        "equals": lambda: value == right,
        "at_most": lambda: value <= right,
        "at_least": lambda: value >= right,
        "in": lambda: value in bound,
        "increases": lambda: value > earlier,
        "decreases": lambda: value < earlier,
        "changes": lambda: value != earlier,
    }[word]()


def conditions_of(named: dict[str, Entry], success: Entry | None) -> EpisodeConditions:
    made = {name: Ending.model_validate(entry) for name, entry in named.items()}
    won = None if success is None else Condition.model_validate(success)
    return EpisodeConditions(made, won, ("x", "y"))


def ended(
    conditions: EpisodeConditions, values: dict[str, int], reward: float
) -> tuple[str | None, bool]:
    """The ending after a timestep, and whether it truncates the episode."""
    at = moment(values, reward=reward)
    conditions.step(at)
    assert at.terminated == ("ending" in at.info and not at.truncated)
    return at.info.get("ending"), at.truncated


@given(st.lists(endings, max_size=3), entries | st.none(), episodes, st.data())
def test_each_timestep_is_judged_as_by_looking_back(
    listed: list[Entry], success: Entry | None, episode: list[Timestep], data: st.DataObject
) -> None:
    named = {f"e{index}": entry for index, entry in enumerate(listed)}
    saved_after = data.draw(st.integers(0, len(episode) - 1))
    conditions = conditions_of(named, success)
    conditions.reset(moment(episode[0][0]))
    for at, (values, reward) in enumerate(episode):
        if at:
            ending, truncates = ended(conditions, values, reward)
            holding = [name for name, entry in named.items() if plainly(entry, episode, at)]
            text = {name: str(entry) for name, entry in named.items()}
            true_ends = [
                n for n in holding if "no_reward" not in text[n] and "same_place" not in text[n]
            ]
            expected = next(iter([*true_ends, *holding]), None)
            assert ending == expected
            assert truncates == (expected is not None and not true_ends)
            if success is not None:
                assert conditions.is_success(values) == plainly(success, episode, at)
        if at == saved_after:
            state = json.loads(json.dumps(conditions.save_state()))
            conditions = conditions_of(named, success)
            conditions.load_state(state, moment(values))


@given(entries)
def test_what_is_dumped_reads_back(entry: Entry) -> None:
    condition = Condition.model_validate(entry)
    dumped = condition.model_dump(mode="json", by_alias=True)
    assert Condition.model_validate_json(json.dumps(dumped)) == condition


def test_a_comparison_is_dumped_as_earlier_versions_did() -> None:
    definition = GameDefinition.model_validate_json(json.dumps(FAKE_GAME_YAML))
    dumped = definition.model_dump(mode="json", by_alias=True)
    before = {"equals": None, "in": None, "at_most": None, "at_least": None}
    assert dumped["endings"] == {"over": {"variable": "result", **before, "in": [1, 2]}}
    assert dumped["success"] == {"variable": "result", **before, "equals": 1}


def test_a_truncating_ending_gives_way_to_one_that_terminates() -> None:
    named = {"late": {"variable": "x", "at_least": 1, "truncates": True},
             "dead": {"variable": "y", "equals": 0}}  # fmt: skip
    conditions = conditions_of(named, None)
    assert ended(conditions, {"x": 1, "y": 0}, 0.0) == ("dead", False)
    assert ended(conditions, {"x": 1, "y": 1}, 0.0) == ("late", True)
    assert ended(conditions, {"x": 0, "y": 1}, 0.0) == (None, False)


def test_a_state_without_conditions_goes_on_as_if_nothing_had_changed() -> None:
    conditions = conditions_of({"moved": {"variable": "x", "changes": True}}, None)
    conditions.load_state({}, moment({}))
    assert ended(conditions, {"x": 3, "y": 0}, 0.0)[0] is None
    assert ended(conditions, {"x": 2, "y": 0}, 0.0)[0] == "moved"


STUCK = {
    "endings": {
        "over": {"variable": "result", "in": [1, 2]},
        "stuck": {"same_place_for": 3},
        "back": {"all": [{"variable": "x", "decreases": True, "for": 2}], "truncates": True},
    },
    "place": ["x", "level"],
    "success": {"variable": "x", "at_least": 90, "for": 2},
}


@pytest.mark.parametrize(
    ("actions", "ending", "is_success"),
    [
        ([RIGHT, IDLE, IDLE, IDLE], "stuck", False),
        ([IDLE, IDLE, RIGHT, LEFT, LEFT], "back", False),
        ([RIGHT] * 4 + [IDLE] * 3, "stuck", True),
        ([RIGHT] * 18, "over", True),
    ],
)
def test_an_env_names_the_ending_and_goes_on_from_its_state(
    actions: list[int], ending: str, is_success: bool
) -> None:
    game = fake_game(**STUCK)
    with closing(fake_env(game)) as env, closing(fake_env(game)) as other:
        env.reset(seed=0, options={"start_state": "level_1"})
        other.reset(seed=5)
        for index, action in enumerate(actions):
            other.load_state(EnvState.model_validate_json(env.save_state().model_dump_json()))
            step = env.step(action)
            assert other.step(action)[1:] == step[1:]
            is_last = index == len(actions) - 1
            assert step[2:4] == (
                (ending == "over", ending != "over") if is_last else (False, False)
            )
        assert step[4]["ending"] == ending
        assert step[4]["is_success"] is is_success


def test_a_limit_has_no_ending_and_an_old_state_no_conditions() -> None:
    with closing(fake_env(fake_game(**STUCK), max_episode_timesteps=1)) as env:
        env.reset(seed=0)
        old = env.save_state().model_dump(mode="json")
        del old["trackers"]["conditions"]
        env.load_state(EnvState.model_validate_json(json.dumps(old)))
        *_, terminated, truncated, info = env.step(RIGHT)
        assert (terminated, truncated, "ending" in info) == (False, True, False)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{all: [{variable: live, equals: 0}]}", ("over.all.0.variable", "did you mean lives?")),
        ("{variable: lives, at_most: point}", ("over.at_most", "did you mean points?")),
        ("{variable: lives, equals: levels}", ("over.equals", "levels is an array")),
        ("{equals: 0}", ("endings.over: name a `variable` to compare, or give one of `all`",)),
        ("{variable: lives, equals: 0, at_least: 3}", ("endings.over", "exactly one of `equals`")),
        ("{variable: lives, increases: false}", ("over.increases", "true")),
        ("{all: [], truncates: true}", ("over.all", "at least 1")),
        ("{all: [{variable: lives, changes: true}], any: [{variable: lives, changes: true}]}",
         ("over.any", "join them with `all`")),
        ("{not: {variable: lives}}", ("endings.over.not", "exactly one of `equals`")),
        ("{any: [{variable: lives, equals: 0}], equals: 1}", ("over.equals", "compares a `var")),
        ("{variable: lives, equals: 0, for: 0}", ("over.for", "from 1 to 1_000_000_000")),
        ("{same_place_for: 9}", ("over.same_place_for", "`place: [map, x, y]`")),
        ("{no_reward_for: 9, for: 2}", ("over.for", "remove it")),
        ("{any: [{variable: lives, equals: 0}, {no_reward_for: 9}]}",
         ("over.any.1.no_reward_for", "make it an ending of its own")),
        ("{variable: lives, equals: 0}\nplace: [lives, level]", ("place.1", "did you mean")),
        ("{variable: lives, equals: 0}\nplace: [levels]", ("place.0", "levels is an array")),
    ],
)  # fmt: skip
def test_a_wrong_condition_is_refused_with_its_place(
    tmp_path: Path, entry: str, says: tuple[str, ...]
) -> None:
    text = VALID_GAME.replace("{variable: lives, equals: 255}", "ENTRY").replace("ENTRY", entry)
    text = text.replace("  game_over:", "  over:")
    text = text.replace("\nrewards:", "  levels: {addresses: [0xC040, 0xC041]}\n\nrewards:")
    with pytest.raises(GameFileError) as caught:
        load_game(str(write_game(tmp_path, text)))
    for part in says:
        assert part in str(caught.value)
    assert "1 problem" in str(caught.value)


def test_a_success_cannot_wait(tmp_path: Path) -> None:
    text = VALID_GAME.replace("{variable: points, at_least: 100}", "{no_reward_for: 100}")
    with pytest.raises(GameFileError, match=r"success\.no_reward_for: is for endings only"):
        load_game(str(write_game(tmp_path, text)))
