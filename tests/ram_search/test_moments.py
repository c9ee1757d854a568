"""Files of moments: what they may say, how they are played, and the test that they are later."""

import shutil
from pathlib import Path

import pytest
import yaml

from game_rl.errors import GameFileError
from game_rl.games.definition import load_game
from game_rl.ram_search.kept_moments import repeat_moments
from game_rl.ram_search.moment_search import find_in_moments
from game_rl.ram_search.moments import MOMENTS_FILE, KnownMoment, MomentsFile, read_moments
from game_rl.ram_search.ranking import KnownPlaces
from game_rl.ram_search.searched_game import searched_game
from game_rl.ram_search.written_entry import keep_moments

HURT = """
moments:
  - at: {start_state: level_1}
    known: {health: 64, time: is full}
  - at: {then: [{hold: [right], frames: 60}], wait: 60}
  - at: {then: [{hold: [right], frames: 60}], wait: 90}
    known: {health: decreased, time: is less}
  - at: {moment: 1, wait: 10}
    known: {health: restored}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "known.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_health_is_found_by_what_is_known_at_some_moments(tmp_path: Path) -> None:
    searched = searched_game("duel")
    file = read_moments(written(tmp_path, HURT), searched)
    found = find_in_moments(searched, file, tmp_path, "health", KnownPlaces(), proves=False)
    addresses = [place.address for place in found.places]
    health = next(v for v in load_game("duel").variables if v.name == "player_health")
    assert addresses[0] == health.numbers[0].address
    assert list(found.left) == [1, 3, 4]
    assert sorted(found.left.values(), reverse=True) == list(found.left.values())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("moments: []", "moments"),
        ("moments: [{known: {a: more}}]", "increased, decreased"),
        ("moments: [{known: {a: decreased}}]", "no moment is before it"),
        ("moments: [{at: {start_state: level_9}}]", "did you mean level_"),
        ("moments: [{at: {moment: 1}}]", "an earlier moment"),
        ("moments: [{at: {state: a.state, script: [{wait: 1}]}}]", "one beginning"),
        ("moments: [{at: {timestep: 1}}]", "goes with `recorded`"),
        ("moments: [{known: {a: equals player_helth}}]", "did you mean player_health"),
    ],
)
def test_a_wrong_file_is_refused_with_a_reason(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(GameFileError, match=says):
        read_moments(written(tmp_path, text), searched_game("duel"))


def test_a_state_that_is_not_there_is_named_with_its_moment(tmp_path: Path) -> None:
    searched = searched_game("duel")
    text = "moments: [{at: {state: a.state}, known: {a: 1}}]"
    file = read_moments(written(tmp_path, text), searched)
    with pytest.raises(GameFileError, match="moment 1 cannot be played"):
        find_in_moments(searched, file, tmp_path, "a", KnownPlaces())


def game_in(folder: Path) -> Path:
    """A copy of duel, with the symbols' addresses."""
    game = load_game("duel")
    for name in ("game.yaml", "duel.gb", "duel.sym"):
        shutil.copy(game.folder / name, folder / name)
    return folder / "game.yaml"


def test_kept_moments_say_where_a_variable_disagrees(tmp_path: Path) -> None:
    file = game_in(tmp_path)
    assert repeat_moments(load_game(str(file))) is None
    text = HURT.replace("health:", "player_health:").replace("time:", "fight_timer:")
    (tmp_path / MOMENTS_FILE).write_text(text, encoding="utf-8")
    repeated = repeat_moments(load_game(str(file)))
    assert repeated is not None
    assert (repeated.moments, repeated.facts, repeated.disagreements) == (4, 4, ())
    wrong = text.replace("player_health: restored", "opponent_health: 7, nothing: 1")
    (tmp_path / MOMENTS_FILE).write_text(wrong, encoding="utf-8")
    repeated = repeat_moments(load_game(str(file)))
    assert repeated is not None
    (told,) = repeated.disagreements
    assert "variables.opponent_health (0xC0B5) is 64 at moment 4" in told
    assert "`7`" in told
    assert repeated.unknown == ("nothing",)


def test_moments_are_added_to_those_that_are_kept_with_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / MOMENTS_FILE
    first = MomentsFile.model_validate(yaml.safe_load(HURT)).moments
    assert keep_moments(path, first) == 4
    assert keep_moments(path, first) == 0
    path.write_text(f"# mine\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    second = [KnownMoment(known={"a": 1}), KnownMoment(known={"a": "same as 1"})]
    assert keep_moments(path, second) == 2
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# mine\n")
    moments = MomentsFile.model_validate(yaml.safe_load(text)).moments
    assert moments[:4] == first
    assert moments[5].known == {"a": "same as 5"}
