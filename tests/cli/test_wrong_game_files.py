"""`check-game` of a wrong game file names the place, what was found, and the way out."""

from pathlib import Path

import pytest

from game_rl.cli.main import main
from tests.games.wrong_files import WRONG_FILES, WrongFile


@pytest.mark.parametrize("wrong", WRONG_FILES, ids=lambda wrong: wrong.name)
def test_check_game_ends_with_2_and_names_the_place_and_the_way_out(
    wrong: WrongFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = wrong.write(tmp_path)
    assert main(["check-game", str(path)]) == 2
    seen = capsys.readouterr()
    assert not seen.out
    assert seen.err.startswith(f"error: {path}: ")
    assert "line " in seen.err
    for part in wrong.says:
        assert part in seen.err, seen.err
    assert list(tmp_path.glob("*.png")) == []


def test_there_are_more_than_fifty_and_no_two_are_the_same() -> None:
    assert len({wrong.text for wrong in WRONG_FILES}) == len(WRONG_FILES) > 50
