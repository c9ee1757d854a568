"""What is read of an archive for a pool, against the archive read as a whole."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from game_rl.config.pool_config import PoolConfig
from game_rl.config.schema import EnvConfig
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import make_game_env
from game_rl.errors import UsageError
from game_rl.explore.archive import Archive, known_cells, known_routes, states_of, unpacked
from game_rl.explore.explore_dir import ExploreDir
from game_rl.explore.route import find_route, write_route
from game_rl.games.definition import load_game
from game_rl.pool.pool import NewState
from game_rl.pool.pool_source import check_pool, new_states, played_route
from tests.pool.explored import explore
from tests.tiny_run import TINY_GAME

GAME = load_game(str(TINY_GAME))


@pytest.mark.slow
def test_cells_and_routes_of_the_file_are_those_of_the_archive(tmp_path: Path) -> None:
    path = explore(tmp_path / "x", "beacon", start_state="shore", rounds=4) / "archive.jsonl"
    archive = Archive.read(path, 10**9)
    held = [record for record in archive.cells if record.state]
    known = known_cells(path)
    assert [each.score for each in known] == [record.score for record in held]
    some = sorted(known[::3], key=lambda each: (each.line, each.find))
    states = dict(zip(some, states_of(path, some), strict=True))
    for cell, record in list(zip(known, held, strict=True))[::3]:
        assert states[cell] == unpacked(record.state)
    routes = known_routes(path, 5, to_success=False)
    best = sorted(archive.cells, key=lambda record: record.score, reverse=True)[:5]
    assert [each.score for each in routes] == [record.score for record in best]
    assert routes[0].actions == best[0].way.whole()
    assert len(routes[0].actions) == best[0].score.timesteps
    assert known_routes(path, 5, to_success=True) == []


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("explored") / "tiny"
    return explore(root, str(TINY_GAME), start_state="level_1")


@pytest.fixture(scope="module")
def env() -> Iterator[GameBoyEnv]:
    with closing(make_game_env(EnvConfig(), GAME)) as made:
        yield made


def route_file(explored: Path, file: Path) -> Path:
    """Write the best way as `game-rl record --route` does."""
    archive = Archive.read(explored / "archive.jsonl", 10**9)
    settings = ExploreDir(explored).read().settings
    write_route(find_route(archive, "best"), GAME, settings, file)
    return file


def states(env: GameBoyEnv, source: Path, **section: Any) -> list[NewState]:
    settings = PoolConfig.model_validate({"from": str(source), **section})
    check_pool(settings, GAME)
    return new_states(settings, GAME, lambda route: played_route(env, route))


BACKWARD: dict[str, Any] = {"choose": "backward", "goal": "reward", "backward": {"step": 3}}


def test_states_along_a_file_of_the_best_way_are_those_along_the_way(
    explored: Path, env: GameBoyEnv, tmp_path: Path
) -> None:
    file = route_file(explored, tmp_path / "best.json")
    of_file = states(env, file, **BACKWARD)
    assert of_file == states(env, explored, **BACKWARD)
    assert len(of_file) > 3
    with pytest.raises(UsageError, match=r"states to start from, .* set env.pool.size=\d+, or"):
        states(env, file, size=1, **BACKWARD)
    with pytest.raises(UsageError, match="ends in a success, so there is none"):
        states(env, file, **BACKWARD | {"goal": "success"})


def test_states_of_a_file_are_spread_over_rewards_and_timesteps(
    explored: Path, env: GameBoyEnv, tmp_path: Path
) -> None:
    file = route_file(explored, tmp_path / "best.json")
    every = states(env, file, choose="uniform", size=1_000)
    n = len(json.loads(file.read_text(encoding="utf-8"))["actions"])
    assert sorted(each.timesteps for each in every) == list(range(n))
    levels = {each.reward for each in every}
    assert len(levels) > 1
    few = states(env, file, size=2 * len(levels))
    assert {each.reward for each in few} == levels
    assert all(each in every for each in few)


def test_a_file_that_is_no_episode_of_the_game_is_a_mistake(
    explored: Path, env: GameBoyEnv, tmp_path: Path
) -> None:
    file = route_file(explored, tmp_path / "best.json")
    episode = json.loads(file.read_text(encoding="utf-8"))
    faults: dict[str, dict[str, Any]] = {
        "env.pool.from: .*start_state": {"start_state": "nowhere"},
        "env.pool.from: .*actions": {"actions": ["fly"]},
        "env.pool.from: an episode of .* ends before": {"actions": ["idle"] * 2_000},
    }
    for fault, changed in faults.items():
        file.write_text(json.dumps({**episode, **changed}), encoding="utf-8")
        with pytest.raises(UsageError, match=f"(?s){fault}"):
            states(env, file)


def test_states_along_several_files_are_those_along_each(
    explored: Path, env: GameBoyEnv, tmp_path: Path
) -> None:
    one = route_file(explored, tmp_path / "one.json")
    episode = json.loads(one.read_text(encoding="utf-8"))
    other = tmp_path / "two.json"
    other.write_text(json.dumps({**episode, "actions": episode["actions"][:7]}), encoding="utf-8")
    both = states(env, tmp_path / "*.json", **BACKWARD)
    alone = [states(env, file, **BACKWARD) for file in (one, other)]
    assert [each.state for each in both] == [each.state for of in alone for each in of]
    routes = [each.place.route for each in both if each.place is not None]
    assert routes == [0] * len(alone[0]) + [1] * len(alone[1])
    assert len(states(env, tmp_path / "*.json", choose="uniform", size=5)) == 5
