"""`check-game --trace` writes what an env plays, timestep by timestep."""

import csv
import io
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_game_env
from game_rl.errors import UsageError
from game_rl.game_check.game_check import check_game
from game_rl.game_check.game_trace import GameTrace, game_trace
from game_rl.game_check.recorded_episode import RecordedEpisode
from game_rl.games.definition import Game, load_game
from tests.game_check.test_game_check import changed_duel

ACTIONS = ("right", "jump", "punch", "kick", "block", "right", "jump_right") * 60


def traced(game: Game, recorded: RecordedEpisode | None, timesteps: int) -> list[dict[str, str]]:
    file = io.StringIO()
    check_game(game, seed=0, timesteps=timesteps, recorded=recorded, trace=GameTrace(file, game))
    return list(csv.DictReader(io.StringIO(file.getvalue())))


@pytest.fixture
def game(tmp_path: Path) -> Game:
    """Duel with conditions that depend on earlier timesteps."""
    return changed_duel(
        tmp_path,
        {
            "endings:\n": "endings:\n"
            "  hit: {variable: player_health, decreases: true, for: 2}\n"
            "  stuck: {no_reward_for: 300}\n",
            "rewards:\n": "rewards:\n"
            "  near: {variable: player_x, on: new_maximum, weight: 0.01, "
            "unless: {variable: opponent_x, at_least: 90}}\n",
        },
    )


def test_each_row_is_what_an_env_plays(game: Game) -> None:
    rows = traced(game, RecordedEpisode(start_state="level_1", seed=3, actions=ACTIONS), 4)
    index = {name: number for number, name in enumerate(game.action_names)}
    over, seed = True, 3
    with closing(make_game_env(EnvConfig(max_episode_timesteps=10**6), game)) as env:
        left = iter(rows)
        health: Any = 0
        falls = without_reward = 0
        for action in ACTIONS:
            if over:
                env.reset(seed=seed, options={"start_state": "level_1", "idle_frames": 0})
                seed += 1_000_003
                first = next(left)
                assert (first["timestep"], first["action"], first["reward"]) == ("0", "", "")
                health, falls, without_reward = env.read_variables()["player_health"], 0, 0
            before = env.reward_terms
            _, reward, terminated, truncated, info = env.step(index[action])
            row, values = next(left), env.read_variables()
            assert row["action"] == action
            assert {name: row[name] for name in values} == {n: str(v) for n, v in values.items()}
            assert float(row["reward"]) == pytest.approx(reward)
            for name, total in env.reward_terms.items():
                assert float(row[f"rewards.{name}"]) == pytest.approx(total - before[name])
            falls = falls + 1 if values["player_health"] < health else 0
            health = values["player_health"]
            without_reward = 0 if reward > 0 else without_reward + 1
            assert row["endings.hit"] == str(int(falls >= 2))
            assert row["endings.stuck"] == str(int(without_reward >= 300))
            assert row["rewards.near.unless"] == str(int(values["opponent_x"] >= 90))
            assert row["end"] == info.get("ending", "")
            over = terminated or truncated
        assert next(left, None) is None


def test_without_a_recorded_episode_random_play_is_traced() -> None:
    duel = load_game("duel")
    rows = traced(duel, None, 300)
    check = check_game(duel, seed=0, timesteps=300)
    played = [row for row in rows if row["timestep"] != "0"]
    assert len(played) == 300
    assert len(rows) - len(played) == check.episodes
    sums: dict[str, float] = defaultdict(float)
    for row in played:
        for term in check.reward_terms:
            sums[term.name] += float(row[f"rewards.{term.name}"])
    assert sums == pytest.approx({term.name: term.total for term in check.reward_terms})


def test_an_array_is_one_cell(tmp_path: Path) -> None:
    game = changed_duel(
        tmp_path, {"variables:\n": "variables:\n  some: {addresses: [0xC000, 0xC001]}\n"}
    )
    for row in traced(game, None, 5):
        assert len([int(number) for number in row["some"].split(" ")]) == 2


def test_a_part_is_what_the_env_observes(tmp_path: Path) -> None:
    more = """\
place: [level, player_x, player_height]
parts:
  tiles: {tiles: {area: {width: 6, height: 4}, classes: {some: [256, 257, 258], more: [300]}}}
  visited: {visited: {radius: 5}}
  recent: {actions: 3}
  state: {categories: player_state, of: 300}
"""
    game = changed_duel(tmp_path, {"parts:\n": more})
    rows = iter(traced(game, RecordedEpisode(start_state="level_2", seed=7, actions=ACTIONS), 1))
    config = EnvConfig.model_validate({"observation": {"parts": list(game.definition.parts)}})
    with closing(make_game_env(config, game)) as env:
        observation, _ = env.reset(seed=7, options={"start_state": "level_2", "idle_frames": 0})
        for action in (*ACTIONS[:60], None):
            assert isinstance(observation, dict)
            row = next(rows)
            for name in game.definition.parts:
                cell = [
                    [float(number) for number in line.split(" ")]
                    for line in row[f"parts.{name}"].split("/")
                ]
                seen = observation[name]
                assert len(cell) == (seen.shape[1] if seen.ndim == 3 else 1)
                read = np.array(cell, seen.dtype).reshape(seen.shape)
                np.testing.assert_array_equal(read, seen)
            if action is not None:
                observation = env.step(game.action_names.index(action))[0]
    assert row["parts.recent"] == " ".join(
        str(game.action_names.index(name) + 1) for name in ACTIONS[57:60]
    )


def test_a_trace_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="cannot be written"),
        game_trace(tmp_path, load_game("duel")),
    ):
        pass
