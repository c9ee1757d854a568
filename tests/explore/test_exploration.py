"""An exploration: the archive, its file, the ways, and that processes have no effect on it."""

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_game_env
from game_rl.errors import UsageError
from game_rl.explore.archive import Archive, packed, unpacked
from game_rl.explore.exploration import Exploration
from game_rl.explore.explore_dir import ExploreDir, ExploreSettings, read_progress
from game_rl.explore.exploring_processes import ExploringProcesses
from game_rl.explore.trip import Explorer
from game_rl.files.saved import parse_json
from game_rl.games.definition import Game, load_game
from game_rl.places.screen_map import read_screen_map

GAME = load_game("beacon")
_ROUND_BYTES = 6 * 30 * 6_000  # a state for each timestep of a round


def settings(game: Game = GAME, *, trips: int = 6, most_bytes: int = 10**9) -> ExploreSettings:
    return ExploreSettings(
        start_state="shore",
        seed=0,
        cell=game.definition.cell_entries,
        prefer=game.definition.preferred,
        env=EnvConfig(frame_skip=8, max_episode_timesteps=None),
        trips=trips,
        trip_timesteps=30,
        repeat=0.8,
        most_bytes=most_bytes,
    )


def explored(root: Path, *, rounds: int, processes: int = 1, most_bytes: int = 10**9) -> Archive:
    """Explore some rounds more in a folder."""
    root.mkdir(exist_ok=True)
    exploration = Exploration(ExploreDir(root), GAME, settings(most_bytes=most_bytes))
    with ExploringProcesses(GAME, exploration.settings, processes) as explorers:
        for _ in itertools.islice(exploration.rounds(explorers), rounds):
            pass
    exploration.write_best()
    return exploration.archive


def test_the_archive_is_the_same_for_any_number_of_processes_and_after_a_break(
    tmp_path: Path,
) -> None:
    archive = explored(tmp_path / "one", rounds=3)
    explored(tmp_path / "two", rounds=1, processes=2)
    explored(tmp_path / "two", rounds=1, processes=4)
    explored(tmp_path / "two", rounds=1)
    files = [ExploreDir(tmp_path / name).archive.read_bytes() for name in ("one", "two")]
    assert files[0] == files[1]
    assert len(archive.cells) > 5
    read = Archive.read(tmp_path / "one" / "archive.jsonl", 10**9)
    assert read.cells == archive.cells
    assert (read.steps, read.earned) == (archive.steps, archive.earned)
    assert (read.rounds, read.timesteps) == (archive.rounds, archive.timesteps)
    progress = list(read_progress(ExploreDir(tmp_path / "two")))
    assert [line.round for line in progress] == [1, 2, 3]
    assert progress[-1].timesteps == archive.timesteps


def test_each_way_leads_to_its_cell_with_its_score(tmp_path: Path) -> None:
    archive = explored(tmp_path / "x", rounds=3)
    env = make_game_env(EnvConfig(frame_skip=8, max_episode_timesteps=None), GAME)
    explorer = Explorer(GAME, settings())
    try:
        for record in archive.cells:
            env.reset(seed=0, options={"start_state": "shore"})
            for action in record.way.whole():
                env.step(action)
            values = env.read_variables()
            found = tuple(int(values[e.variable] // e.per) for e in GAME.definition.cell_entries)
            assert found == record.cell
            assert sum(env.reward_terms.values()) == record.score.reward
            assert env.episode.timesteps == record.score.timesteps == len(record.way.whole())
            assert record.score.kept == (values["lives"],)
            env.emulator.hold(())
            explorer.env.load_state(unpacked(record.state))
            assert explorer.env.read_variables() == values
    finally:
        env.close()
        explorer.close()


def test_the_best_way_is_an_episode_for_check_game(tmp_path: Path) -> None:
    archive = explored(tmp_path / "x", rounds=3)
    found = json.loads((tmp_path / "x" / "best.json").read_text(encoding="utf-8"))
    assert found["frame_skip"] == 8
    names = [GAME.action_names[action] for action in archive.best().way.whole()]
    assert (found["start_state"], found["seed"], found["actions"]) == ("shore", 0, names)


def test_the_graph_has_the_fewest_timesteps_between_neighbours() -> None:
    """Compare with a plain count over the trips of the first round."""
    archive = Archive(10**9)
    explorer = Explorer(GAME, settings())
    try:
        archive.begin(explorer.beginning())
        (start,) = archive.cells
        trips = [explorer.trip(start.state, (0, 0, n), archive.scores()) for n in range(4)]
        archive.add_round([start] * 4, trips)
        counted: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        env = explorer.env
        for trip in trips:
            env.load_state(unpacked(start.state))
            cell = start.cell
            entered = 0
            for after, action in enumerate(trip.actions, 1):
                env.step(action)
                values = env.read_variables()
                now = tuple(int(values[e.variable] // e.per) for e in settings().cell)
                if now != cell:
                    edge = (cell, now)
                    counted[edge] = min(after - entered, counted.get(edge, after))
                    entered = after
                cell = now
    finally:
        explorer.close()
    numbers = {record.cell: record.number for record in archive.cells}
    assert archive.steps == {(numbers[a], numbers[b]): n for (a, b), n in counted.items()}


def test_the_graph_has_no_step_that_a_lost_life_has_made() -> None:
    """A creature's touch sends the keeper back to the entrance; he walks 12 pixels a timestep."""
    explorer = Explorer(GAME, settings().model_copy(update={"trip_timesteps": 250}))
    try:
        start = explorer.beginning().state
        trips = [explorer.trip(start, (0, 0, n), {}) for n in range(8)]
        hurt = [find for trip in trips for find in trip.finds if find.has_lost]
        assert len(hurt) > 3
        trips += [explorer.trip(find.state, (1,), {}, has_lost=True) for find in hurt]
    finally:
        explorer.close()
    for trip in trips:
        for (before, after), timesteps in trip.steps.items():
            if before[0] == after[0]:  # in the same room
                columns, rows = (abs(after[n] - before[n]) for n in (4, 5))
                assert 16 * (max(columns, rows) - 1) <= 12 * timesteps + 8


def test_a_torn_last_line_is_a_round_that_is_played_again(tmp_path: Path) -> None:
    explored(tmp_path / "x", rounds=2)
    file = ExploreDir(tmp_path / "x").archive
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]) + lines[-1][:100])
    explored(tmp_path / "x", rounds=1)
    assert file.read_bytes() == whole


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    explored(tmp_path / "x", rounds=1)
    file = ExploreDir(tmp_path / "x").archive
    first, *_ = file.read_text(encoding="utf-8").splitlines()
    line = parse_json(first)
    line["finds"][0]["before"] = 7
    file.write_text(json.dumps(line) + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"line 1, is not a line of an archive"):
        Archive.read(file, 10**9)


def test_packing_keeps_a_state() -> None:
    explorer = Explorer(GAME, settings())
    try:
        state = explorer.env.save_state()
    finally:
        explorer.close()
    assert unpacked(packed(state)) == state


def test_states_stay_below_their_limit_in_memory_and_in_the_file(tmp_path: Path) -> None:
    most_bytes = 60_000  # some fifteen states
    archive = explored(tmp_path / "x", rounds=4, most_bytes=most_bytes)
    states = [record.state for record in archive.cells if record.state]
    assert 1 <= len(states) < len(archive.cells)
    assert sum(map(len, states)) == archive.state_bytes
    assert sum(map(len, states)) <= most_bytes
    read = Archive.read(tmp_path / "x" / "archive.jsonl", most_bytes)
    assert read.cells == archive.cells
    assert read.state_bytes == archive.state_bytes
    assert read.written_bytes == archive.written_bytes
    explored(tmp_path / "y", rounds=2, most_bytes=most_bytes)
    explored(tmp_path / "y", rounds=2, most_bytes=most_bytes, processes=4)
    files = [ExploreDir(tmp_path / name).archive.read_bytes() for name in ("x", "y")]
    assert files[0] == files[1]
    assert archive.written_bytes <= 2 * most_bytes + _ROUND_BYTES


IGNORED = """
import multiprocessing.forkserver, pathlib, signal
from game_rl.explore.exploring_processes import ExploringProcesses
from tests.explore.test_exploration import GAME, settings

if __name__ == "__main__":
    with ExploringProcesses(GAME, settings(), 1) as explorers:
        explorers.beginning()  # the server has imported all by then
        server = multiprocessing.forkserver._forkserver._forkserver_pid
        lines = pathlib.Path(f"/proc/{server}/status").read_text().splitlines()
        (mask,) = [int(line.split()[1], 16) for line in lines if line.startswith("SigIgn")]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            assert mask >> (number - 1) & 1, number
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")
def test_the_explorers_server_ignores_what_a_batch_system_sends_to_all(tmp_path: Path) -> None:
    """In a process of its own, whose server nothing else has started."""
    script = tmp_path / "ignored.py"
    script.write_text(IGNORED, encoding="utf-8")
    variables = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, str(script)], check=True, env=variables, timeout=300)


def test_the_maps_have_the_screen_that_each_state_shows(tmp_path: Path) -> None:
    root = tmp_path / "drawn"
    root.mkdir()
    exploration = Exploration(ExploreDir(root), GAME, settings())
    with ExploringProcesses(GAME, exploration.settings, 1) as explorers:
        for _ in itertools.islice(exploration.rounds(explorers), 2):
            exploration.draw(explorers)
    explored(tmp_path / "not", rounds=2)
    archives = [ExploreDir(tmp_path / name).archive.read_bytes() for name in ("drawn", "not")]
    assert archives[0] == archives[1]

    env = make_game_env(EnvConfig(frame_skip=8, max_episode_timesteps=None), GAME)
    by_room: dict[int, list[NDArray[np.uint8]]] = {}
    places = set()
    for record in exploration.archive.cells:
        place = (record.cell[0], *record.cell[4:6])
        if record.state and place not in places:
            places.add(place)
            env.load_state(unpacked(record.state))
            env.emulator.tick(1, render=True)
            by_room.setdefault(record.cell[0], []).append(env.emulator.screen()[16:144].copy())
    env.close()
    joined = read_screen_map(exploration.folder.place_screens)
    assert joined.maps() == sorted((room,) for room in by_room)
    for room, screens in by_room.items():
        picture = joined.picture((room,))
        assert (picture.x, picture.y) == (0, 16)
        found = np.stack(screens)
        # every pixel is that of some screen, and of the only one that was seen
        is_one = (found == picture.pixels).all(axis=-1).any(axis=0)
        assert is_one.all()


def test_a_game_without_a_place_screen_has_no_maps(tmp_path: Path) -> None:
    definition = GAME.definition.model_copy(update={"place_screen": None})
    game = replace(GAME, definition=definition)
    root = tmp_path / "x"
    root.mkdir()
    exploration = Exploration(ExploreDir(root), game, settings())
    assert not exploration.has_map
    with ExploringProcesses(game, exploration.settings, 1) as explorers:
        next(iter(exploration.rounds(explorers)))
        exploration.draw(explorers)
    assert not exploration.folder.place_screens.exists()
