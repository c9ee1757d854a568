"""A number on the screen, read along a recorded episode."""

import json
from pathlib import Path

import pytest

from game_rl.errors import UsageError
from game_rl.game_check.recorded_episode import RecordedEpisode
from game_rl.games.definition import load_game
from game_rl.ram_search.moments import play_moments
from game_rl.ram_search.number_search import end_of_episode, find_number
from game_rl.ram_search.ranking import KnownPlaces
from game_rl.ram_search.searched_game import searched_game
from game_rl.ram_search.shown_numbers import parse_statement

FRAMES = 260


def recorded(path: Path, **keys: object) -> Path:
    episode = RecordedEpisode.model_validate({"start_state": "level_1", "frame_skip": 6, **keys})
    path.write_text(json.dumps(episode.model_dump(mode="json")), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("of_whom", ["person", "script"])
def test_a_number_is_found_along_a_recorded_episode(tmp_path: Path, of_whom: str) -> None:
    """What the screen shows at its end is said; memory is known at the address of the symbol."""
    file = tmp_path / "episode.json"
    if of_whom == "person":
        recorded(file, presses=[[["right"], 31], [[], 100], [["a"], FRAMES - 131]])
    else:
        recorded(file, actions=["right", "idle", "punch"] * (FRAMES // 18))
    searched = searched_game("duel")
    right = next(v for v in load_game("duel").variables if v.name == "fight_timer").numbers[0]
    with searched.emulator() as emulator:
        emulator.load_state(end_of_episode(file, searched))
        shown = emulator.read(right.address)
    statement = parse_statement(f"row 1 column 9 is {shown}")
    found = find_number(searched, statement, KnownPlaces(), recorded=(file, file))
    assert found.places[0].address == right.address
    assert 0 <= found.numbers[0] - shown <= 1  # the last one has not stood still
    assert abs(found.frames - 2 * FRAMES) < 40
    moments = [each.model_copy(update={"known": {}}) for each in found.moments]
    index = searched.ram.index_of(right.address)
    played = play_moments(moments, searched, Path())
    known = [moment.known["number"] for moment in found.moments]
    assert played.snapshots[:, index].tolist() == known
    assert len(set(known)) > 3


def test_a_rom_alone_has_no_recorded_episodes(tmp_path: Path) -> None:
    rom = tmp_path / "mine.gb"
    rom.write_bytes((load_game("duel").folder / "duel.gb").read_bytes())
    with pytest.raises(UsageError, match="game-rl new-game"):
        end_of_episode(tmp_path / "episode.json", searched_game(str(rom)))
