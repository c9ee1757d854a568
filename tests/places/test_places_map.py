"""The map of a run directory, and `game-rl places`."""

import json
from pathlib import Path

import pytest
from PIL import Image

from game_rl.cli.main import main
from game_rl.errors import UsageError
from game_rl.files.run_dir import RunDir
from game_rl.places.places_picture import read_place_counts
from game_rl.training.train import train
from tests.places.test_place_counts import DAMAGED, counted
from tests.tiny_run import MakeConfig, command
from tests.training.forks import quiet


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    """A run that has counted four timesteps in two maps."""
    run_dir = RunDir(tmp_path / "run")
    run_dir.root.mkdir()
    run_dir.config.write_text(
        f"game: duel\ntotal_timesteps: 100_000\nrun_dir: {run_dir.root}\n", encoding="utf-8"
    )
    counts = counted([(1, 0, 0), (1, 0, 0), (1, 1, 0), (2, 7, -3)], ("map", "x", "y"))
    run_dir.places.write_bytes(counts.to_bytes())
    return run_dir


def test_the_command_draws_the_map_and_says_what_is_on_it(
    run_dir: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "map.png"
    assert main(["places", str(run_dir.root), "--output", str(output)]) == 0
    assert "3 places of map, x, y, visited in 4 timesteps" in capsys.readouterr().out
    with Image.open(output) as picture:
        assert picture.width > 200
    assert main(["places", str(run_dir.root), "--output", str(output), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "picture": str(output),
        "place": ["map", "x", "y"],
        "since": 0,
        "timesteps": 4,
        "elsewhere": 0,
        "places": 3,
        "maps": [
            {"name": "map 1", "timesteps": 3, "x": 0, "y": 0},
            {"name": "map 2", "timesteps": 1, "x": 7, "y": -3},
        ],
        "screens": 0,
    }


def test_a_run_of_a_game_without_a_place_has_no_map(
    make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    config = make_config("run")
    train(config, command(quiet(), until=32))
    assert main(["places", str(config.run_dir)]) == 2
    assert "`place: [map, x, y]`" in capsys.readouterr().err


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_named_with_the_way_out(run_dir: RunDir, content: bytes) -> None:
    run_dir.places.write_bytes(content)
    with pytest.raises(UsageError, match=r"places\.npz is damaged: .*; delete it"):
        read_place_counts(run_dir)


def test_a_folder_that_is_no_run_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["places", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
