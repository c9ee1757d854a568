"""The table of `game-rl runs`, and names of folders that would command the terminal."""

import json
import os
import re
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.events import HintGiven, MilestoneReached
from game_rl.events.event_log import EventFile
from game_rl.explore.explore_dir import ExploreDir, RoundProgress
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from tests.experiments.test_run_list import begun, ended, make_run
from tests.explore.made_archives import write_way_to_the_right

Output = pytest.CaptureFixture[str]
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("duel_ppo", "a_series_of_experiments/with_a_rather_long_name/seed_00"):
        ended(make_run(tmp_path / "runs" / name, 100), "completed")
    return Path("runs")


def listed(capsys: Output, *words: object) -> list[str]:
    assert main(["runs", *map(str, words)]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_long_path_has_a_line_of_its_own_on_a_narrow_terminal(
    runs: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = listed(capsys, runs)
    assert [len(line.split("  ")) > 3 for line in wide[:3]] == [True, True, True]
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    for columns in (60, 80):
        monkeypatch.setenv("COLUMNS", f"{columns}")
        lines = listed(capsys, runs)
        names = [line for line in lines if not line.startswith(" ")]
        assert names == [
            "run",
            "runs/a_series_of_experiments/with_a_rather_long_name/seed_00",
            "runs/duel_ppo",
        ]
        others = [line for line in lines if line.startswith(" ")]
        assert len(others) == 3
        assert max(map(len, lines)) <= columns
        ends = {
            line.rindex(word) + len(word)
            for line, word in zip(others, ("size", "KiB", "KiB"), strict=True)
        }
        assert len(ends) == 1  # flush right
    monkeypatch.setenv("COLUMNS", "140")
    assert listed(capsys, runs) == wide


def test_an_exploration_is_listed_as_such(runs: Path, capsys: Output) -> None:
    folder = ExploreDir(write_way_to_the_right(runs / "explored", load_game("beacon")))
    lines = [
        RoundProgress(round=n, seconds=1.0, timesteps=1_000 * n, cells=60 * n, reward=0.0)
        for n in (1, 2)
    ]
    folder.progress.write_text("".join(f"{each.model_dump_json()}\n" for each in lines), "utf-8")
    words = ["runs/explored", "exploration", "stopped, 120 cells", "2,000"]
    (line,) = (line for line in listed(capsys, runs) if "explored" in line)
    assert re.split(r"\s{2,}", line)[:4] == words
    (found,) = (
        each
        for each in json.loads("\n".join(listed(capsys, runs, "--json")))
        if each["kind"] == "exploration"
    )
    assert (found["root"], found["timesteps"], found["spare"]) == ("runs/explored", 2_000, [])
    folder.saved.write_text("{}", encoding="utf-8")
    (line,) = (line for line in listed(capsys, runs) if line.startswith("runs/explored"))
    assert re.split(r"\s{2,}", line)[1:3] == ["exploration", "unreadable"]


NAMES = ["red \x1b[31m", "title \x1b]0;hi\x07", "back\rwards", "\x9b31m", "\u202egnp.exe"]


@pytest.mark.skipif(os.name != "posix", reason="such names are POSIX")
def test_names_of_folders_never_command_the_terminal(tmp_path: Path, capsys: Output) -> None:
    for name in NAMES:
        begun(make_run(tmp_path / "new", 100))
        run_dir = RunDir(tmp_path / "runs" / name)
        run_dir.root.parent.mkdir(exist_ok=True)
        (tmp_path / "new").rename(run_dir.root)
        for words in (
            ["status", str(run_dir.root)],
            ["checkpoints", str(run_dir.root)],
            ["lineage", str(run_dir.root)],
            ["evaluate", str(run_dir.root / "none")],
            ["runs", str(run_dir.root / "none")],
            ["runs", str(run_dir.root / "checkpoints")],
        ):
            main(words)
            told = capsys.readouterr()
            assert not CONTROLS.search(told.out + told.err), words
    lines = listed(capsys, tmp_path / "runs")
    assert not any(CONTROLS.search(line) for line in lines)
    assert [sum(name in line for line in lines) for name in (r"\x1b[31m", r"\u202egnp")] == [1, 1]


@pytest.mark.skipif(os.name != "posix", reason="such names are POSIX")
def test_a_name_that_is_no_text_shifts_no_column(tmp_path: Path, capsys: Output) -> None:
    for name in (b"caf\xe9", b"plain", b"esc\x1b"):
        ended(make_run(tmp_path / "new", 100), "completed")
        (tmp_path / "new").rename(tmp_path / os.fsdecode(name))
    head, *lines = listed(capsys, tmp_path)
    assert {line.index("ppo") for line in lines[:3]} == {head.index("kind")}
    assert any(r"caf\xe9" in line for line in lines)


def test_what_a_run_says_never_commands_the_terminal(tmp_path: Path, capsys: Output) -> None:
    """The events of a run may be a stranger's."""
    run_dir = make_run(tmp_path / "run", 100)
    begun(run_dir)
    text = "red \x1b[31m \x9b1m"
    with EventFile(run_dir.events) as file:
        file.add(HintGiven(timesteps=1, name="no_reward", key="env", text=text))
        file.add(MilestoneReached(timesteps=1, kind="variable", name="x", text=text, hours=1))
    assert main(["status", str(run_dir.root)]) == 0
    told = capsys.readouterr().out
    assert told.count(r"red \x1b[31m \x9b1m") == 2
    assert not CONTROLS.search(told)
