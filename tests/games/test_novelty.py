"""A place earns less the more episodes of the run have visited it, compared with a plain count."""

import json
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.envs.episode_reward import EpisodeReward
from game_rl.games.novelty_term import run_visits
from game_rl.games.place import VisitedPlaces
from game_rl.games.reward_term import RewardTerm
from tests.envs.example import moment

ENTRY = {"variables": ["x", "y"], "on": "first_visit", "weight": 0.5, "per_run": True}
N_ENVS = 3
Place = tuple[int, int]
places = st.tuples(st.integers(0, 2), st.integers(0, 1))
# of each stretch between two boundaries, for each env: its episodes
plays = st.lists(
    st.lists(
        st.lists(st.lists(places, min_size=1, max_size=5), max_size=3),
        min_size=N_ENVS,
        max_size=N_ENVS,
    ),
    max_size=3,
)


def made() -> EpisodeReward:
    return EpisodeReward({"new": RewardTerm.model_validate(ENTRY)}, None)


def played(rewards: EpisodeReward, episode: list[Place]) -> list[float]:
    values = [{"x": x, "y": y} for x, y in episode]
    rewards.reset(moment(values[0]))
    found = []
    for each in values[1:]:
        now = moment(each)
        rewards.step(now)
        found.append(now.reward)
    return found


def counted(visits: VisitedPlaces) -> Counter[tuple[int | float, ...]]:
    return Counter({place: visits.count(place) for place in visits})


@given(plays, st.data())
def test_a_first_visit_earns_the_weight_by_the_root_of_the_visits_that_the_env_knows(
    stretches: list[list[list[list[Place]]]], data: st.DataObject
) -> None:
    envs = [made() for _ in range(N_ENVS)]
    for env in envs:
        env.novelty_terms["new"].learn(run_visits())
    known: Counter[tuple[int | float, ...]] = Counter()
    for stretch in stretches:
        own = [Counter[tuple[int | float, ...]]() for _ in envs]
        for number, episodes in enumerate(stretch):
            for episode in episodes:
                seen: set[Place] = set()
                expected = []
                for at, place in enumerate(episode):
                    reward = 0.0
                    if place not in seen:
                        seen.add(place)
                        own[number][place] += 1
                        if at:
                            reward = 0.5 / math.sqrt(known[place] + own[number][place])
                    expected.append(reward)
                assert played(envs[number], episode) == expected[1:]
            if data.draw(st.booleans()):  # it is saved, and goes on elsewhere
                state = json.loads(json.dumps(envs[number].save_state()))
                envs[number] = made()
                envs[number].load_state(state, moment({"x": 0, "y": 0}))
                whole = run_visits()
                for visited, visits in known.items():
                    for _ in range(visits):
                        whole.visit(visited)
                envs[number].novelty_terms["new"].learn(whole)
        taken = [env.novelty_terms["new"].take() for env in envs]
        assert [counted(each.places) for each in taken] == own
        new = run_visits()
        for each in taken:
            new.add(each.places)
        for env in envs:
            env.novelty_terms["new"].learn(new)
        known.update(counted(new))


@given(st.lists(st.lists(places, min_size=1), max_size=3))
def test_an_env_that_is_told_nothing_rewards_first_visits_of_an_episode(
    episodes: list[list[Place]],
) -> None:
    plain = {name: value for name, value in ENTRY.items() if name != "per_run"}
    usual = EpisodeReward({"new": RewardTerm.model_validate(plain)}, None)
    alone = made()
    for episode in episodes:
        assert played(alone, episode) == played(usual, episode)
    taken = alone.novelty_terms["new"].take()
    assert (taken.is_counting, len(taken.places)) == (False, 0)


def test_the_state_of_other_terms_is_as_before() -> None:
    plain = {name: value for name, value in ENTRY.items() if name != "per_run"}
    usual = EpisodeReward({"new": RewardTerm.model_validate(plain)}, None)
    played(usual, [(0, 0), (1, 1)])
    state = usual.save_state()["reward"]
    assert isinstance(state, dict)
    terms = state["terms"]
    assert isinstance(terms, dict)
    assert set(terms["new"]) == {"of", "best", "places", "in_a_row"}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({**ENTRY, "cap": 3}, "cap: counts places of an episode"),
        ({"variable": "x", "on": "increase", "per_run": True}, "goes with `on: first_visit`"),
    ],
)
def test_what_does_not_go_with_it_is_named(entry: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RewardTerm.model_validate(entry)
