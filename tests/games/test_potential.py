"""The reward of getting nearer: what an episode earns depends on its known ends alone."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.envs.episode_reward import EpisodeReward
from game_rl.games.cell import Cell, CoarseVariable
from game_rl.games.potential import Potential, PotentialTerm, SavedPotential
from game_rl.games.reward_term import RewardTerm
from tests.envs.example import moment

FOLDER = Path("explored")
ENTRIES = (CoarseVariable(variable="room"), CoarseVariable(variable="x", per=16))
WEIGHT = 0.25  # with powers of two, sums are exact
potentials = st.dictionaries(
    st.tuples(st.integers(0, 2), st.integers(0, 3)), st.integers(0, 50), max_size=12
)
walks = st.lists(
    st.fixed_dictionaries({"room": st.integers(0, 2), "x": st.integers(0, 63)}), min_size=1
)
Values = dict[str, int]


def made(to_go: dict[Cell, int], *, frame_skip: int = 8, of: int = 8) -> EpisodeReward:
    term = RewardTerm(potential=FOLDER, weight=WEIGHT)
    potential = Potential(FOLDER, ENTRIES, of, to_go)
    return EpisodeReward(
        {"progress": term},
        None,
        potentials={"progress": PotentialTerm(term, potential, frame_skip)},
    )


def earned(rewards: EpisodeReward, walk: list[Values]) -> list[float]:
    """Return what each timestep earns in an episode that begins at the first place."""
    rewards.reset(moment(walk[0]))
    found = []
    for values in walk[1:]:
        episode = moment(values)
        rewards.step(episode)
        found.append(episode.reward)
    return found


def known(to_go: dict[Cell, int], walk: list[Values]) -> list[int]:
    """Return the timesteps to go of the places that are known, in order."""
    cells = [(values["room"], values["x"] // 16) for values in walk]
    return [to_go[cell] for cell in cells if cell in to_go]


@given(potentials, walks)
def test_an_episode_earns_the_difference_of_its_first_and_last_known_place(
    to_go: dict[Cell, int], walk: list[Values]
) -> None:
    found = known(to_go, walk)
    total = WEIGHT * (found[0] - found[-1]) if found else 0.0
    assert sum(earned(made(to_go), walk)) == total


@given(potentials, walks)
def test_no_loop_pays(to_go: dict[Cell, int], walk: list[Values]) -> None:
    rewards = made(to_go)
    round_trip = [*walk, walk[0]]
    first_cell = (walk[0]["room"], walk[0]["x"] // 16)
    found = earned(rewards, round_trip * 3)
    if first_cell in to_go:
        assert sum(found) == 0.0
        assert sum(found[: len(walk)]) == 0.0
    else:  # the loop from the first known place
        assert sum(found[len(walk) + 1 : 2 * len(walk) + 2]) == 0.0


@given(potentials, walks)
def test_each_timestep_earns_the_difference_to_the_last_known_place(
    to_go: dict[Cell, int], walk: list[Values]
) -> None:
    expected = []
    for at in range(1, len(walk)):
        before = known(to_go, walk[:at])
        now = known(to_go, walk[at : at + 1])
        expected.append(WEIGHT * (before[-1] - now[0]) if before and now else 0.0)
    assert earned(made(to_go), walk) == expected


@given(potentials, walks, st.data())
def test_an_episode_goes_on_from_its_saved_state(
    to_go: dict[Cell, int], walk: list[Values], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(walk) - 1))
    whole = earned(made(to_go), walk)
    first = made(to_go)
    earned(first, walk[: at + 1])
    state = json.loads(json.dumps(first.save_state()))
    second = made(to_go)
    second.reset(moment({"room": 1, "x": 20}))
    second.load_state(state, moment(walk[at]))
    assert second.save_state() == state
    rest = []
    for values in walk[at + 1 :]:
        episode = moment(values)
        second.step(episode)
        rest.append(episode.reward)
    assert rest == whole[at:]


@given(potentials, walks)
def test_progress_counts_in_timesteps_of_the_run(
    to_go: dict[Cell, int], walk: list[Values]
) -> None:
    """A timestep of 4 frames is half of one of 8."""
    usual = earned(made(to_go), walk)
    assert earned(made(to_go, of=4), walk) == [each / 2 for each in usual]
    assert earned(made(to_go, frame_skip=4), walk) == [2 * each for each in usual]


@given(potentials)
def test_a_potential_reads_back(to_go: dict[Cell, int]) -> None:
    potential = Potential(FOLDER, ENTRIES, 4, to_go)
    text = potential.saved().model_dump_json()
    assert SavedPotential.model_validate_json(text).potential() == potential
    backwards = Potential(FOLDER, ENTRIES, 4, dict(reversed(to_go.items())))
    assert backwards.saved().model_dump_json() == text


def test_damage_of_a_saved_potential_is_told() -> None:
    saved = Potential(FOLDER, ENTRIES, 4, {(0, 0): 3}).saved()
    damaged = saved.model_copy(update={"to_go": saved.to_go[:-3]})
    with pytest.raises(ValueError, match="its cells cannot be read"):
        damaged.potential()


def test_a_term_is_dumped_and_read_back() -> None:
    term = RewardTerm.model_validate({"potential": "explored", "weight": 0.02})
    dumped = term.model_dump(mode="json", by_alias=True)
    assert dumped["potential"] == "explored"
    assert RewardTerm.model_validate(dumped) == term


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"variable": "score"}, "needs `on`, which says what is rewarded"),
        ({"potential": "explored"}, "a potential needs a `weight`"),
        ({"potential": "explored", "weight": -1}, "would reward moving away"),
        ({"potential": "explored", "weight": 1, "on": "increase"}, "on: does not go with"),
        ({"potential": "explored", "weight": 1, "power": 2}, "power: does not go with"),
        ({"potential": "explored", "weight": 1, "once": True}, "once: does not go with"),
    ],
)
def test_what_does_not_go_with_a_potential_is_named(entry: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RewardTerm.model_validate(entry)
