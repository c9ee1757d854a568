"""examples/pokemon_red_grass, beside a plain computation after PokemonRL."""

from typing import Any

import numpy as np
import pytest

from tests.public_projects.scripted import Memory, Moment, game_of, played, run_of

X, Y, MAP, PARTY, BATTLE = 0xD362, 0xD361, 0xD35E, 0xD163, 0xD057
GRASS = [12, 13, 33, 37]
W = {
    "curriculum_exploration": 5.0, "exploration_momentum": 0.5, "anti_loop": -1.0,
    "loop_detection": -2.0, "same_streak": -0.05, "movement_required": -0.1, "spam": -0.1,
    "spam_streak": -0.2, "movement": 1.0, "distance": 0.2, "wall_hit": -0.05, "no_move": -0.05,
    "pattern": -0.1, "loop_break": 1.0, "variety": 0.3, "exploration": 2.0, "no_op": -0.02,
    "stuck": -0.05, "map_transition": 3.0, "first_time_on_map": 5.0, "move_to_grass": 20.0,
    "start_battle": 10.0, "new_state": 0.1,
}  # fmt: skip
STEPS = 1_600


def script(random: np.random.Generator, *, end: Memory) -> list[Moment]:
    """A player who wanders, runs against walls, changes maps, and gets somewhere at last."""
    memory = {X: 10, Y: 10, MAP: 5, PARTY: 0, BATTLE: 0}
    found = [Moment(dict(memory))]
    for step in range(STEPS):
        is_busy = step // 200 % 3 != 2
        if random.random() < (0.7 if is_busy else 0.02):
            axis = int(random.choice([X, Y]))
            memory[axis] = max(0, memory[axis] + int(random.choice([-1, 1, 1, 4 * is_busy])))
        if random.random() < 0.02:
            memory |= {MAP: int(random.choice([0, 5, 5, 5, 38, 40, 1])), X: 5, Y: 6}
        # a change of the party at each timestep counts timesteps in which nobody moves
        memory[PARTY] = step % 7 if random.random() < 0.8 else memory[PARTY]
        found.append(Moment(dict(memory)))
    found[-1].memory.update(end)
    return found


def choices(random: np.random.Generator) -> list[int]:
    found: list[int] = []
    while len(found) < STEPS:
        habit = random.integers(7, size=int(random.integers(1, 5))).tolist()
        found += habit * int(random.integers(1, 8))
    return found[:STEPS]


class Theirs:
    """The counters of their env, and what each term has earned."""

    def __init__(self, memory: Memory) -> None:
        here = memory[X], memory[Y]
        self.previous_position = self.last_position = here
        self.visited_positions = {here}
        self.position_history = [here]
        self.previous_map, self.seen_maps = memory[MAP], {memory[MAP]}
        self.previous_party = memory[PARTY]
        self.entered_grass = self.battle_started = False
        self.position_visits: dict[tuple[int, int], int] = {}
        self.visited_states: set[tuple[int, ...]] = set()
        self.recent: list[int] = []
        self.patterns: list[int] = []
        self.a = self.b = self.momentum = self.same = self.stuck = 0
        self.distance = 0.0
        self.counts = dict.fromkeys(W, 0)

    def step(self, memory: Memory, action: int) -> float:
        self.a = self.a + 1 if action == 5 else 0
        self.b = self.b + 1 if action == 6 else 0
        self.recent = [*self.recent, action][-20:]
        here, in_battle = (memory[X], memory[Y]), memory[BATTLE] != 0
        in_grass = memory[MAP] in GRASS
        moved = here != self.previous_position
        map_changed = memory[MAP] != self.previous_map
        grass_changed, battle_changed = (
            in_grass != self.entered_grass,
            in_battle != self.battle_started,
        )
        party_changed = memory[PARTY] != self.previous_party
        changes = [moved, party_changed, map_changed, battle_changed, grass_changed]
        if memory[MAP] <= 0 or not any(changes):
            return 0.0
        terms = self.of_position(here) + self.of_movement(here, moved, action)
        terms += self.of_actions(action)
        if map_changed:
            terms.append("map_transition")
            if memory[MAP] not in self.seen_maps:
                terms.append("first_time_on_map")
            self.seen_maps.add(memory[MAP])
            self.previous_map = memory[MAP]
        if grass_changed and in_grass:
            terms.append("move_to_grass")
            self.entered_grass = True
        if battle_changed and in_battle:
            terms.append("start_battle")
            self.battle_started = True
        self.previous_party = memory[PARTY]
        state = (memory[MAP], *here, memory[PARTY], int(in_battle))
        if state not in self.visited_states:
            self.visited_states.add(state)
            terms.append("new_state")
        return self.total(terms)

    def total(self, terms: list[Any]) -> float:
        earned = 0.0
        for term in terms:
            name, times = term if isinstance(term, tuple) else (term, 1)
            self.counts[name] += 1
            earned += W[name] * times
        return earned

    def of_position(self, here: tuple[int, int]) -> list[Any]:
        terms: list[Any] = []
        self.position_visits[here] = self.position_visits.get(here, 0) + 1
        if self.position_visits[here] > 3:
            terms.append("anti_loop")
        if self.position_visits[here] > 5:
            terms.append("loop_detection")
        if here not in self.visited_positions:
            terms.append("curriculum_exploration")
            self.visited_positions.add(here)
            self.momentum += 1
        else:
            self.momentum = max(0, self.momentum - 1)
        if self.momentum > 0:
            terms.append("exploration_momentum")
        if here == self.last_position:
            self.same += 1
        else:
            self.same, self.last_position = 0, here
        if self.same > 5:
            terms.append("same_streak")
        if self.same > 20:
            terms.append("movement_required")
        for streak in (self.a, self.b):
            if streak > 3:
                terms.append("spam")
            if streak > 5:
                terms.append("spam_streak")
        return terms

    def of_movement(self, here: tuple[int, int], moved: bool, action: int) -> list[Any]:
        if moved:
            before = self.previous_position
            distance = ((here[0] - before[0]) ** 2 + (here[1] - before[1]) ** 2) ** 0.5
            self.distance += distance
            self.previous_position, self.stuck = here, 0
            self.position_history = [*self.position_history, here][-20:]
            return ["movement", ("distance", distance)]
        if action in (1, 2, 3, 4):
            self.stuck += 1
            return ["wall_hit"]
        self.stuck = 0
        return ["no_move"]

    def of_actions(self, action: int) -> list[Any]:
        terms: list[Any] = []
        self.patterns = [*self.patterns, action][-20:]
        last = self.patterns[-10:]
        if len(last) == 10 and (last[4:6] == last[6:8] == last[8:10] or last[2:6] == last[6:10]):
            terms.append("pattern")
            if len(set(last[7:])) >= 2:
                terms.append("loop_break")
        if len(self.position_history) >= 10:
            *others, (x, y) = self.position_history[-8:]
            near = [1 for ox, oy in others if ((ox - x) ** 2 + (oy - y) ** 2) ** 0.5 < 3]
            if len(near) >= 3:
                terms.append("pattern")
        if len(self.recent) >= 8 and len(set(self.recent[-8:])) >= 4:
            terms.append("variety")
        if self.distance > 50:
            terms.append("exploration")
            self.distance = 0
        if action == 0:
            terms.append("no_op")
        if self.stuck > 10:
            terms.append("stuck")
            self.stuck = 0
        return terms


def around(memory: Memory, visited: set[tuple[int, int, int]]) -> list[list[int]]:
    rows, columns = (range(memory[axis] - 36, memory[axis] + 36) for axis in (Y, X))
    return [[int((memory[MAP], x, y) in visited) for x in columns] for y in rows]


@pytest.mark.slow
@pytest.mark.parametrize(("end", "ending"), [({MAP: 12}, "grass"), ({BATTLE: 2, MAP: 5}, "battle")])
def test_rewards_endings_and_every_part_are_theirs(end: Memory, ending: str) -> None:
    moments = script(np.random.default_rng(len(ending)), end=end)
    actions = choices(np.random.default_rng(20))
    ours = played("pokemon_red_grass", moments, actions)
    theirs, visited = Theirs(moments[0].memory), set[tuple[int, int, int]]()
    assert len(ours.rewards) == STEPS
    for step, (moment, seen) in enumerate(zip(moments, ours.observations, strict=True)):
        memory = moment.memory
        visited.add((memory[MAP], memory[X], memory[Y]))
        assert set(seen) == {"screen", "visited"}
        halves = ours.screens[step][:, :, 0].reshape(72, 2, 80, 2).mean(axis=(1, 3))
        assert np.array_equal(seen["screen"][0], np.ceil(halves))
        if step % 50 == 0:
            assert seen["visited"][0].tolist() == around(memory, visited), step
        if step:
            reward = theirs.step(memory, actions[step - 1])
            assert ours.rewards[step - 1] == pytest.approx(reward, abs=1e-9), step
            is_over = memory[MAP] in GRASS or memory[BATTLE] != 0
            assert ours.ends[step - 1] == (is_over, False)
    assert ours.infos[-1]["ending"] == ending
    # so that all terms were compared
    never = {term for term, n in theirs.counts.items() if not n}
    assert never == ({"start_battle"} if ending == "grass" else {"move_to_grass"})


def test_a_direction_is_pressed_twice_for_one_frame() -> None:
    names = ("none", "up", "down", "left", "right", "a", "b")
    assert game_of("pokemon_red_grass").action_names == names
    assert run_of("pokemon_red_grass").env.max_episode_timesteps == 5_000
    moments = [Moment({X: 1, Y: 1, MAP: 5, PARTY: 0, BATTLE: 0})] * 8
    presses = played("pokemon_red_grass", moments, range(7)).presses
    for name, found in zip(names, presses, strict=True):
        frames = [(tuple(press.buttons), press.frames) for press in found]
        if name == "none":
            assert frames == [((), 7)]
        elif name in ("a", "b"):
            assert frames == [((name,), 1), ((), 6)]
        else:
            assert frames == [((name,), 1), ((), 1), ((name,), 1), ((), 4)]
