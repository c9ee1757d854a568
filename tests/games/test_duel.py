"""Duel, played: its rules and its balance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.games.duel_player import (
    ACTIONS,
    BLOCK,
    FOLDER,
    GAME,
    JUMP,
    KICK,
    PUNCH,
    WALK,
    Duel,
    Fight,
    Player,
    cycle,
    fight,
    fights,
    random_player,
    sensible_player,
    start_state,
)

LEVELS = (1, 2, 3)
INTRO, RUNS, ROUND_OVER, FIGHT_OVER = range(4)
RUNNING, WON, LOST = range(3)


@pytest.fixture
def duel() -> Iterator[Duel]:
    console = Duel()
    yield console
    console.close()


def play(duel: Duel, player: Player, level: int, count: int) -> list[Fight]:
    return list(fights(duel, player, level, count))


def win_rate(played: list[Fight]) -> float:
    return sum(one.won for one in played) / len(played)


def trace(duel: Duel, level: int, seed: int, timesteps: int) -> list[tuple[int, ...]]:
    """Every variable at every timestep, under buttons that do not depend on the fight."""
    duel.load(start_state(level), seed)
    rng = np.random.default_rng(0)
    rows = []
    for timestep in range(timesteps):
        duel.step(random_player(duel, timestep, rng))
        rows.append(tuple(duel[name] for name in GAME["variables"]))
    return rows


# --- the way to a fight, and out of it ---


@pytest.mark.parametrize("level", LEVELS)
def test_start_state_is_the_beginning_of_a_fight_of_its_level(duel: Duel, level: int) -> None:
    duel.load(start_state(level), 1)
    assert (duel["level"], duel["round_number"], duel["fight_result"]) == (level, 1, RUNNING)
    assert (duel["player_rounds"], duel["opponent_rounds"]) == (0, 0)
    assert duel["player_health"] == duel["opponent_health"] == 64
    assert duel["fight_timer"] == 90
    duel.run(8)
    assert duel["match_phase"] == RUNS


def test_result_stays_for_two_seconds_and_then_start_leads_to_another_fight(duel: Duel) -> None:
    assert fight(duel, sensible_player, 1, 7).won
    duel.hold([])
    for _ in range(120):
        duel.run(1)
        assert duel["fight_result"] == WON
        assert duel["player_rounds"] == 2
    duel.run(120)
    for _ in range(2):  # the question, then the level
        duel.run_script([{"hold": ["start"], "frames": 4}, {"wait": 12}])
    assert (duel["fight_result"], duel["match_phase"], duel["round_number"]) == (RUNNING, INTRO, 1)
    assert (duel["player_rounds"], duel["opponent_rounds"]) == (0, 0)


def test_rounds_and_result_change_in_the_same_frame(duel: Duel) -> None:
    duel.load(start_state(1), 3)
    duel.hold(ACTIONS["right"])
    for _ in range(3000):
        before = duel["opponent_rounds"]
        duel.run(1)
        if duel["opponent_rounds"] == 2:
            assert before == 1
            assert duel["fight_result"] == LOST
            return
        assert duel["fight_result"] == RUNNING
    pytest.fail("the fight did not end")


def finish_round(duel: Duel, **values: int) -> None:
    """Runs to where blows count, writes the values, and lets the game draw its conclusion."""
    duel.hold([])
    while duel["match_phase"] != RUNS:
        duel.run(1)
    duel.run(1)
    for name, value in values.items():
        duel[name] = value
    duel.run(8)


def test_double_knock_outs_and_draws_on_time_count_for_nobody_and_end_the_fight(duel: Duel) -> None:
    duel.load(start_state(1), 1)
    for values in (
        {"player_health": 0, "opponent_health": 0},
        {"player_health": 30, "opponent_health": 30, "fight_timer": 1},
        {"player_health": 0, "opponent_health": 0},
    ):
        assert duel["fight_result"] == RUNNING
        finish_round(duel, **values)
        assert (duel["player_rounds"], duel["opponent_rounds"]) == (0, 0)
    assert duel["fight_result"] == LOST  # the champion keeps the title


@pytest.mark.parametrize(("player", "opponent", "result"), [(31, 30, WON), (30, 31, LOST)])
def test_time_up_is_decided_by_health(duel: Duel, player: int, opponent: int, result: int) -> None:
    duel.load(start_state(1), 1)
    for _ in range(2):
        finish_round(duel, player_health=player, opponent_health=opponent, fight_timer=1)
    assert duel["fight_result"] == result
    assert (duel["player_rounds"], duel["opponent_rounds"]) == ((2, 0) if result == WON else (0, 2))


def test_one_win_and_two_draws_win_the_fight(duel: Duel) -> None:
    duel.load(start_state(1), 1)
    finish_round(duel, opponent_health=0)
    for _ in range(2):
        assert duel["fight_result"] == RUNNING
        finish_round(duel, player_health=0, opponent_health=0)
    assert duel["fight_result"] == WON


@pytest.mark.parametrize("level", LEVELS)
def test_health_falls_only_when_a_round_runs_and_rounds_never_fall(duel: Duel, level: int) -> None:
    duel.load(start_state(level), 11)
    rng = np.random.default_rng(1)
    watched = ("player_health", "opponent_health", "player_rounds", "opponent_rounds")
    before = {name: duel[name] for name in watched}
    while duel["fight_result"] == RUNNING:
        duel.hold(ACTIONS[random_player(duel, 0, rng)])
        for _ in range(4):
            phase = duel["match_phase"]
            duel.run(1)
            now = {name: duel[name] for name in watched}
            if phase != RUNS:
                assert all(now[name] >= before[name] for name in watched)
            assert now["player_rounds"] >= before["player_rounds"]
            assert now["opponent_rounds"] >= before["opponent_rounds"]
            before = now


# --- chance ---


def test_same_state_buttons_and_seed_give_the_same_fight_on_any_console(duel: Duel) -> None:
    other = Duel()
    first, again = trace(duel, 2, 1234, 150), trace(other, 2, 1234, 150)
    other.close()
    assert first == again == trace(duel, 2, 1234, 150)


@pytest.mark.parametrize("level", LEVELS)
def test_another_seed_gives_another_fight(duel: Duel, level: int) -> None:
    names = list(GAME["variables"])
    seen = {
        tuple(tuple(v for n, v in zip(names, row, strict=True) if n != "rng_seed") for row in rows)
        for rows in (trace(duel, level, seed, 60) for seed in (1, 2, 3, 4, 5, 0x8000, 0xFFFF))
    }
    assert len(seen) == 7


def test_seed_zero_does_not_stop_the_generator(duel: Duel) -> None:
    seeds = [row[-1] for row in trace(duel, 1, 0, 100)]
    assert list(GAME["variables"])[-1] == "rng_seed"
    assert seeds[-1] != 0
    assert len(set(seeds)) > 10


# --- what the buttons do, and what is seen ---


@pytest.mark.parametrize(
    ("action", "name", "values"),
    [
        ("left", "player_x", range(30, 52)),
        ("right", "player_x", range(53, 80)),
        ("block", "player_state", [BLOCK]),
        ("punch", "player_state", [PUNCH]),
        ("kick", "player_state", [KICK]),
        ("jump", "player_state", [JUMP]),
        ("jump_left", "player_x", range(30, 52)),
        ("jump_right", "player_x", range(53, 80)),
    ],
)
def test_every_action_does_what_it_says(
    duel: Duel, action: str, name: str, values: list[int]
) -> None:
    duel.load(start_state(1), 1)
    for _ in range(3):
        duel.step("idle")
    assert duel["player_x"] == 52
    duel.step(action)
    duel.step(action)
    assert duel[name] in values
    assert duel["player_state"] == {"left": WALK, "right": WALK}.get(action, duel["player_state"])
    assert (duel["player_height"] > 0) == action.startswith("jump")


def test_no_action_is_without_a_test() -> None:
    assert set(ACTIONS) == {
        "idle", "left", "right", "block", "punch", "kick", "jump", "jump_left", "jump_right",
    }  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
def test_pictures_of_a_fight_have_the_four_shades_and_differ(duel: Duel, level: int) -> None:
    duel.load(start_state(level), 5)
    rng = np.random.default_rng(0)
    pictures = []
    for timestep in range(40):
        duel.step(random_player(duel, timestep, rng), render=True)
        pictures.append(duel.picture())
        assert set(np.unique(pictures[-1])) == {0, 85, 153, 255}
    assert len({picture.tobytes() for picture in pictures}) > 30


def test_title_and_level_pictures_differ(duel: Duel) -> None:
    pictures = []
    for script in (
        [{"wait": 90}],
        [{"hold": ["start"], "frames": 4}, {"wait": 12}],
        [{"hold": ["right"], "frames": 4}, {"wait": 8}],
    ):
        duel.run_script(script)  # type: ignore[arg-type]
        duel.run(1, render=True)
        pictures.append(duel.picture())
    assert all(set(np.unique(picture)) == {0, 85, 153, 255} for picture in pictures)
    assert len({picture.tobytes() for picture in pictures}) == 3


def test_video_memory_is_left_alone_while_the_picture_is_drawn(duel: Duel) -> None:
    """The first routine after the copies of v-blank always finds the console still in v-blank."""
    lines: list[int] = []
    symbol = next(
        line.split()[0]
        for line in (FOLDER / "duel.sym").read_text(encoding="utf-8").splitlines()
        if line.endswith(" _input_read")
    )
    address = int(symbol.split(":")[1], 16)
    duel.run_script(GAME["start_states"]["level_3"]["script"])
    duel.pyboy.hook_register(0, address, lambda _: lines.append(duel.pyboy.memory[0xFF44]), None)
    rng = np.random.default_rng(0)
    for timestep in range(300):
        duel.step(random_player(duel, timestep, rng))
    assert len(lines) == 1200  # and no frame took longer than a frame
    assert min(lines) >= 144


# --- balance ---


@pytest.mark.slow
@pytest.mark.parametrize("n_fights", [10, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("level", LEVELS)
def test_random_buttons_win_less_than_a_fifth(duel: Duel, level: int, n_fights: int) -> None:
    played = play(duel, random_player, level, n_fights)
    assert win_rate(played) < 0.2
    assert all(100 <= one.timesteps <= 500 for one in played)


@pytest.mark.parametrize("n_fights", [12, pytest.param(60, marks=pytest.mark.slow)])
def test_a_sensible_player_wins_and_each_level_is_harder(duel: Duel, n_fights: int) -> None:
    played = {level: play(duel, sensible_player, level, n_fights) for level in LEVELS}
    rates = {level: win_rate(fights_of_level) for level, fights_of_level in played.items()}
    assert rates[1] > 0.9
    assert rates[1] > rates[2] > rates[3]
    assert all(100 <= one.timesteps <= 500 for level in LEVELS for one in played[level])


@pytest.mark.slow
@pytest.mark.parametrize("n_fights", [4, pytest.param(15, marks=pytest.mark.slow)])
@pytest.mark.parametrize("action", ACTIONS)
def test_one_button_for_ever_does_not_win(duel: Duel, action: str, n_fights: int) -> None:
    assert win_rate(play(duel, cycle(action), 1, n_fights)) < 0.6


# The four that did best of the 36 pairs: 7, 4, 6 and 4 wins in 16 fights each.
@pytest.mark.slow
@pytest.mark.parametrize(
    "actions",
    [("kick", "jump_right"), ("block", "kick"), ("right", "kick"), ("punch", "jump_right")],
)
def test_two_buttons_in_turn_win_far_less_than_sense(duel: Duel, actions: tuple[str, str]) -> None:
    assert win_rate(play(duel, cycle(*actions), 1, 20)) < 0.7
