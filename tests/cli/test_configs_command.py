"""`game-rl configs` and `game-rl demo`, which need no checkout."""

import json
from pathlib import Path
from typing import Any

import pytest

from game_rl.cli import train_command
from game_rl.cli.main import main
from game_rl.config.bundled_configs import bundled_configs
from game_rl.config.loader import config_kind, load_config

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_list_has_a_line_for_each(capsys: Output) -> None:
    assert main(["configs"]) == 0
    first_words = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert set(bundled_configs()) <= set(first_words)


def test_json_has_name_kind_summary_and_file(capsys: Output) -> None:
    assert main(["configs", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(bundled_configs())
    for row in rows:
        assert row["kind"] == (config_kind(Path(row["file"])) or "run")
        assert row["summary"]


def test_a_printed_config_is_the_file_and_loads_anywhere(capsys: Output, tmp_path: Path) -> None:
    assert main(["configs", "duel_ppo"]) == 0
    printed = capsys.readouterr()
    assert printed.out == bundled_configs()["duel_ppo"].read_text(encoding="utf-8")
    assert not printed.err
    file = tmp_path / "run.yaml"
    file.write_text(printed.out, encoding="utf-8")
    assert load_config(file) == load_config(bundled_configs()["duel_ppo"])


def test_a_printed_config_that_needs_others_says_so_beside_the_text(capsys: Output) -> None:
    assert main(["configs", "duel_erl"]) == 0
    printed = capsys.readouterr()
    assert printed.out == bundled_configs()["duel_erl"].read_text(encoding="utf-8")
    assert "duel_pqn.yaml, duel_dqn.yaml" in printed.err
    assert "--copy" in printed.err


def test_a_copy_has_everything_that_it_needs_and_overwrites_nothing(
    capsys: Output, tmp_path: Path
) -> None:
    names = {
        "duel_erl.yaml",
        "duel_pqn.yaml",
        "duel_dqn.yaml",
        "population.schema.json",
        "run.schema.json",
    }
    for _ in range(2):  # files with the same content stay
        assert main(["configs", "duel_erl", "--copy"]) == 0
        assert {file.name for file in tmp_path.iterdir()} == names
    (tmp_path / "duel_pqn.yaml").write_text("game: duel\n", encoding="utf-8")
    assert main(["configs", "duel_erl", "--copy"]) == 2
    assert "duel_pqn.yaml exists already with other content" in capsys.readouterr().err
    assert (tmp_path / "duel_pqn.yaml").read_text(encoding="utf-8") == "game: duel\n"


def test_preflight_and_train_take_a_name(capsys: Output) -> None:
    assert main(["preflight", "duel_ppo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "fits"
    assert main(["train", "--config", "duel_ppo", "seed=x"]) == 2
    assert "duel_ppo.yaml: 1 problem" in capsys.readouterr().err


def test_the_demo_is_the_default_run_in_a_new_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def train_as_asked(given: Any) -> int:
        asked.append(given)
        return 0

    monkeypatch.setattr(train_command, "train_as_asked", train_as_asked)
    assert main(["demo", "seed=3"]) == 0
    assert main(["demo", "run_dir=runs/mine", "--force"]) == 0
    first, second = (load_config(each.config, each.set) for each in asked)
    assert (first.seed, first.game) == (3, "duel")
    assert first.run_dir.match("runs/demo_*")
    assert second.run_dir == Path("runs/mine")
    assert [each.force for each in asked] == [False, True]
