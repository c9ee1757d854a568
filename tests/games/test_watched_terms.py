"""Reward terms over an episode, compared with a plain look back at all of its timesteps."""

import json
import math
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.envs.episode_reward import EpisodeReward
from game_rl.envs.game_boy_env import EnvState
from game_rl.errors import GameFileError
from game_rl.games.definition import load_game
from game_rl.games.place import VisitedPlaces
from game_rl.games.reward_term import RewardTerm
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game, moment
from tests.envs.test_episode_conditions import Entry, Timestep, entries, episodes, plainly
from tests.games.example import VALID_GAME, write_game
from tests.games.test_rewards import earned, sums

IDLE, LEFT, RIGHT, HURT = range(4)

_AMOUNTS = ["increase", "decrease", "difference", "value", "new_maximum", "new_minimum"]
caps = st.fixed_dictionaries({}, optional={"cap": st.integers(1, 3)})
knees = st.builds(
    lambda at, slope: {"knee": {"at": at, "slope": slope}},
    st.integers(-1, 2),
    st.sampled_from([0.25, 3.0]),
)
shapes = st.one_of(caps, knees, st.builds(lambda k: k | {"cap": 3}, knees))
powers = st.fixed_dictionaries({}, optional={"power": st.sampled_from([0.5, 1.0, 2.0])})
kinds: st.SearchStrategy[Entry] = st.one_of(
    st.builds(lambda on, *more: {"variable": "x", "on": on} | more[0] | more[1],
              st.sampled_from(_AMOUNTS), shapes, powers),
    st.builds(lambda s: {"variables": ["x", "y"], "on": "first_visit"} | s, shapes),
    st.builds(lambda n: {"variables": ["x", "y"], "on": "visits", "at_least": n},
              st.integers(2, 4)),
    st.just({"variable": "x", "on": "change"}),
    st.just({"variable": "x", "on": "equals", "value": 2}),
)  # fmt: skip
terms: st.SearchStrategy[Entry] = st.builds(
    lambda kind, more: kind | more,
    kinds,
    st.fixed_dictionaries(
        {"weight": st.sampled_from([0.25, -2.0, 7.5])},
        optional={"once": st.booleans(), "when": entries, "unless": entries},
    ),
)


def bent(entry: Entry, value: float) -> float:
    capped = min([value, *([entry["cap"]] if "cap" in entry else [])])
    if "knee" not in entry or capped <= entry["knee"]["at"]:
        return capped
    at, slope = entry["knee"]["at"], entry["knee"]["slope"]
    return float(at + slope * (capped - at))


def amount_by_looking_back(entry: Entry, episode: list[Timestep], seen: list[int]) -> float:
    """The amount of the last timestep of `seen`, which is one that the term sees."""
    on, last, earlier = entry["on"], seen[-1], seen[:-1]
    places = [(episode[t][0]["x"], episode[t][0]["y"]) for t in seen]
    if on == "visits":
        return float(places.count(places[-1]) >= entry["at_least"])
    if on == "first_visit":
        n_new = len({*places} - {places[0]})
        return 0 if places[-1] in places[:-1] else bent(entry, n_new) - bent(entry, n_new - 1)
    if on in ("new_maximum", "new_minimum") and not earlier:
        return 0
    x = [bent(entry, values["x"]) for values, _ in episode]
    differences = {
        "increase": max(0, x[last] - x[last - 1]),
        "decrease": max(0, x[last - 1] - x[last]),
        "difference": x[last] - x[last - 1],
        "change": x[last] != x[last - 1],
        "equals": x[last] == 2,
        "value": x[last],
        "new_maximum": max(0, x[last] - max((x[t] for t in earlier), default=0)),
        "new_minimum": max(0, min((x[t] for t in earlier), default=0) - x[last]),
    }
    found = differences[on]
    return math.copysign(abs(found) ** entry.get("power", 1), found) if found else 0


def rewards_by_looking_back(entry: Entry, episode: list[Timestep]) -> list[float]:
    def is_seen(at: int) -> bool:
        known = episode[: at + 1]  # at the beginning, what went before is the beginning itself
        return all(
            plainly(entry[key], known, at) == wanted
            for key, wanted in (("when", True), ("unless", False))
            if key in entry
        )

    rewards: list[float] = []
    seen = [0] if is_seen(0) else []
    for at in range(1, len(episode)):
        reward = 0.0
        if is_seen(at):
            seen.append(at)
            is_first = len(seen) == 1 and entry["on"] == "first_visit"
            amount = 0.0 if is_first else amount_by_looking_back(entry, episode, seen)
            reward = entry["weight"] * amount
        if entry.get("once") and any(rewards):
            reward = 0.0
        rewards.append(reward)
    return rewards


@given(st.lists(terms, min_size=1, max_size=3), episodes, st.data())
def test_each_timestep_earns_what_looking_back_says(
    listed: list[Entry], episode: list[Timestep], data: st.DataObject
) -> None:
    def made() -> EpisodeReward:
        named = {f"t{i}": RewardTerm.model_validate(entry) for i, entry in enumerate(listed)}
        return EpisodeReward(named, None)

    saved_after = data.draw(st.integers(0, len(episode) - 1))
    rewards = made()
    rewards.reset(moment({"x": 3, "y": 3}))  # an episode before, of which nothing is left
    earned(rewards, {"x": 2, "y": 0})
    rewards.reset(moment(episode[0][0]))
    expected = [rewards_by_looking_back(entry, episode) for entry in listed]
    for at, (values, _) in enumerate(episode):
        if at:
            total = 0.0
            for of_term in expected:
                total += of_term[at - 1]
            assert earned(rewards, values) == total
        if at == saved_after:
            state = json.loads(json.dumps(rewards.save_state()))
            rewards = made()
            rewards.reset(moment({"x": 1, "y": 1}))
            rewards.load_state(state, moment(values))
            assert rewards.save_state() == state
    expected_sums = {f"t{i}": sum(of_term) for i, of_term in enumerate(expected)}
    assert sums(rewards) == pytest.approx(expected_sums, abs=1e-12)


@given(terms)
def test_what_is_dumped_reads_back(entry: Entry) -> None:
    term = RewardTerm.model_validate(entry)
    assert RewardTerm.model_validate(term.model_dump(mode="json", by_alias=True)) == term


def test_a_term_is_dumped_as_earlier_versions_did() -> None:
    for entry in FAKE_GAME_YAML["rewards"].values():
        dumped = RewardTerm.model_validate(entry).model_dump(mode="json", by_alias=True)
        assert dumped == {"value": None, "weight": 1.0, "once": False} | entry
        assert list(dumped) == ["variable", "on", "value", "weight", "once"]


def test_levels_above_a_knee_count_a_quarter() -> None:
    term = RewardTerm.model_validate(
        {"variable": "levels", "on": "new_maximum", "knee": {"at": 22, "slope": 0.25}}
    )
    rewards = EpisodeReward({"levels": term}, None)
    rewards.reset(moment({"levels": 20}))
    found = [earned(rewards, {"levels": levels}) for levels in (21, 19, 24, 23, 28)]
    assert found == [1.0, 0.0, 1.5, 0.0, 1.0]


def test_a_rise_is_squared_unless_the_party_grew() -> None:
    term = RewardTerm.model_validate({
        "variable": "hp", "on": "increase", "power": 2, "weight": 10,
        "when": {"variable": "hp", "at_least": 0.01, "for": 2},
        "unless": {"variable": "party", "changes": True},
    })  # fmt: skip
    rewards = EpisodeReward({"healing": term}, None)
    rewards.reset(moment({"hp": 0.5, "party": 1}))
    played = [(0.5, 1), (0.75, 1), (1.0, 2), (0.0, 2), (1.0, 2), (0.5, 2), (1.0, 2)]
    found = [earned(rewards, {"hp": hp, "party": party}) for hp, party in played]
    assert found == [0.0, 0.625, 0.0, 0.0, 0.0, 0.0, 2.5]


def test_a_state_of_other_terms_goes_on_from_what_is_seen_next() -> None:
    terms = {
        "old": RewardTerm(variable="x", on="increase"),
        "risen": RewardTerm(variable="y", on="increase"),
        "best": RewardTerm(variable="y", on="new_maximum"),
        "seen": RewardTerm(variables=("x", "y"), on="first_visit"),
    }
    before = EpisodeReward({"old": terms["old"]}, None)
    before.reset(moment({"x": 0}))
    earned(before, {"x": 1})
    saved = json.loads(json.dumps(before.save_state()))
    del saved["reward"]["terms"]  # as earlier versions saved it
    rewards = EpisodeReward(terms, None)
    rewards.reset(moment({"x": 9, "y": 9}))
    rewards.load_state(saved, moment({}))
    assert earned(rewards, {"x": 3, "y": 2}) == 2.0
    assert sums(rewards) == {"old": 3.0}
    earned(rewards, {"x": 3, "y": 4})
    assert sums(rewards) == {"old": 3.0, "risen": 2.0, "best": 2.0, "seen": 1.0}


def test_a_term_that_is_changed_during_an_episode_remembers_nothing_of_the_old_one() -> None:
    def made(**term: Any) -> EpisodeReward:
        return EpisodeReward({"seen": RewardTerm(**term)}, None)

    before = made(variables=("x",), on="first_visit")
    before.reset(moment({"x": 7}))
    assert earned(before, {"x": 8}) == 1.0
    for changed in (
        made(variables=("x", "y"), on="first_visit"),
        made(variables=("x",), on="visits", at_least=2),
        made(variable="x", on="new_maximum"),
    ):
        changed.load_state(before.save_state(), moment({}))
        assert earned(changed, {"x": 8, "y": 0}) == 0.0
        assert json.dumps(changed.save_state())
    weighted = made(variables=("x",), on="first_visit", weight=2.0)
    weighted.load_state(before.save_state(), moment({}))
    assert [earned(weighted, {"x": x}) for x in (8, 9)] == [0.0, 2.0]


numbers = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(numbers, st.integers(0, 3)), max_size=20), st.integers(1, 3))
def test_visits_are_counted_and_saved_exactly(visited: list[tuple[float, int]], most: int) -> None:
    places, counts = VisitedPlaces(most), dict[tuple[float, int], int]()
    for place in visited:
        again = VisitedPlaces(most)
        again.load_bytes(places.to_bytes())
        assert again.to_bytes() == places.to_bytes()
        assert min(again.visit(place), most + 1) == min(counts.get(place, 0) + 1, most + 1)
        counts[place] = counts.get(place, 0) + 1
        places.visit(place)
        assert len(again) == len(places) == len(counts)


@pytest.mark.parametrize(("most", "limit"), [(1, 24_000), (600, 64_000)])
def test_thirty_thousand_places_are_saved_in_a_few_kilobytes(most: int, limit: int) -> None:
    places, rng = VisitedPlaces(most), random.Random(0)
    x = y = stage = 0
    while len(places) < 30_000:  # a walk through large maps
        x, y = (
            min(max(x + rng.choice((-1, 0, 1)), 0), 255),
            min(max(y + rng.choice((-1, 0, 1)), 0), 255),
        )
        stage = rng.randrange(40) if rng.random() < 0.001 else stage
        places.visit((stage, x, y))
    assert len(places.to_bytes()) < limit


EXPLORING: dict[str, Any] = {
    "rewards": {
        "far": {"variable": "x", "on": "new_maximum",
                "unless": {"variable": "health", "decreases": True}},
        "seen": {"variables": ["level", "x"], "on": "first_visit", "weight": 0.5, "cap": 3},
        "stays": {"variables": ["level", "x"], "on": "visits", "at_least": 3, "weight": -0.25},
        "careful": {"variable": "x", "on": "difference", "weight": 0.125,
                    "when": {"variable": "x", "increases": True, "for": 2}},
    },
}  # fmt: skip


def test_an_env_goes_on_from_its_state_with_the_same_rewards() -> None:
    actions = [RIGHT, RIGHT, LEFT, LEFT, IDLE, IDLE, HURT, RIGHT, RIGHT, RIGHT, HURT, RIGHT, RIGHT]
    game = fake_game(**EXPLORING)
    with closing(fake_env(game)) as env, closing(fake_env(game)) as other:
        env.reset(seed=0, options={"start_state": "level_1"})
        other.reset(seed=5)
        for action in actions:
            other.load_state(EnvState.model_validate_json(env.save_state().model_dump_json()))
            step = env.step(action)
            assert other.step(action)[1:] == step[1:]
            assert other.reward_terms == env.reward_terms
        assert all(env.reward_terms.values())


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{on: new_maximum}", ("rewards.term: `on: new_maximum` needs `variable`",)),
        ("{on: first_visit}", ("rewards.term: `on: first_visit` needs `variables`",)),
        ("{variables: [lives], on: increase}", ("term.variables", "goes with one `variable`")),
        ("{variable: lives, on: first_visit}", ("term.variable", "`variables: [map, x, y]`")),
        ("{variables: [], on: first_visit}", ("term.variables", "at least 1")),
        ("{variables: [lives, live], on: first_visit}", ("variables.1", "did you mean lives?")),
        ("{variables: [levels], on: first_visit}", ("term.variables.0", "levels is an array")),
        ("{variables: [lives, lives], on: first_visit}", ("term.variables.1", "named twice")),
        ("{variables: [lives], on: visits}", ("term.at_least", "goes with `on: visits`")),
        ("{variables: [lives], on: visits, at_least: 1}", ("term.at_least", "from 2 to")),
        ("{variable: lives, on: value, at_least: 3}", ("term.at_least", "only with it")),
        ("{variable: lives, on: change, power: 2}", ("term.power", "remove `power`")),
        ("{variables: [lives], on: first_visit, power: 2}", ("term.power", "has no amount")),
        ("{variable: lives, on: value, power: 0}", ("term.power", "above 0")),
        ("{variable: lives, on: equals, value: 3, cap: 2}", ("term.cap", "remove `cap`")),
        ("{variable: lives, on: increase, knee: {at: 3}}", ("term.knee.slope", "missing")),
        ("{variable: lives, on: increase, knee: {at: 3, slope: 0}}", ("term.knee.slope",)),
        ("{variable: lives, on: increase, cap: 3, knee: {at: 3, slope: 0.5}}",
         ("term.knee.at", "nothing above the cap of 3 counts")),
        ("{variable: lives, on: change, when: {variable: live, equals: 0}}",
         ("term.when.variable", "did you mean lives?")),
        ("{variable: lives, on: change, unless: {variable: lives}}",
         ("term.unless", "exactly one of `equals`")),
        ("{variable: lives, on: change, when: {all: [{no_reward_for: 9}]}}",
         ("term.when.all.0.no_reward_for", "is for endings only")),
        ("{variable: lives, on: new_maxima}", ("term.on", "did you mean new_maximum?")),
    ],
)  # fmt: skip
def test_a_wrong_term_is_refused_with_its_place(
    tmp_path: Path, entry: str, says: tuple[str, ...]
) -> None:
    text = VALID_GAME.replace("\nrewards:", f"\nrewards:\n  term: {entry}")
    text = text.replace("\nrewards:", "  levels: {addresses: [0xC040, 0xC041]}\n\nrewards:")
    with pytest.raises(GameFileError) as caught:
        load_game(str(write_game(tmp_path, text)))
    for part in says:
        assert part in str(caught.value)
    assert "1 problem" in str(caught.value)
