"""`game-rl explore`: what it writes, and what it refuses."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from PIL import Image

from game_rl.cli.main import main
from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_game_env
from game_rl.explore.archive import Archive, unpacked
from game_rl.explore.explore_dir import ExploreDir
from game_rl.explore.potentials import with_potentials
from game_rl.games.definition import load_game


def test_it_explores_continues_and_its_best_way_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "explored"
    word = ["explore", "beacon", "--output", str(folder), "--processes", "1", "--json"]
    assert main([*word, "--timesteps", "10"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rounds"] == 1
    assert (
        main(["explore", "--resume", "--output", str(folder), "--timesteps", "10", "--json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    archive = Archive.read(folder / "archive.jsonl", 2**31)
    assert (found["rounds"], found["timesteps"]) == (2, archive.timesteps)
    assert (found["cells"], found["earned"]) == (len(archive.cells), archive.earned)
    assert found["best"]["reward"] == archive.best().score.reward
    with Image.open(folder / "sheet.png") as sheet:
        assert sheet.width > 600
    trace = tmp_path / "trace.csv"
    recorded = ["--recorded", str(folder / "best.json"), "--timesteps", "1"]
    assert (
        main(
            [
                "check-game",
                "beacon",
                *recorded,
                "--trace",
                str(trace),
                "--sheet",
                str(tmp_path / "s.png"),
            ]
        )
        == 0
    )
    names, *rows = (line.split(",") for line in trace.read_text(encoding="utf-8").splitlines())
    earned = sum(float(row[names.index("reward")] or 0) for row in rows)
    assert earned == pytest.approx(archive.best().score.reward)


@pytest.mark.slow
def test_a_rom_without_a_game_file_is_explored_by_its_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rom = tmp_path / "mine.gb"
    game = load_game("duel")
    shutil.copy(game.folder / "duel.gb", rom)
    folder = tmp_path / "found"
    assert main(["explore", str(rom), "--output", str(folder), "--timesteps", "10", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cells"] > 2
    assert "best" not in found
    player_x = next(each for each in game.variables if each.name == "player_x")
    own = load_game(str(folder / "game.yaml"))
    with closing(make_game_env(EnvConfig(max_idle_frames=0), own)) as env:
        seen = []
        for button in ("left", "right"):
            env.reset(seed=0)
            for _ in range(8):
                env.step(env.action_names.index(button))
            seen.append(player_x.read(env.emulator))
    assert seen[0] < seen[1]  # the exploration begins in play


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "a game is missing"),
        (["--resume"], "is not the folder of an exploration"),
        (["beacon", "--resume"], "game beacon cannot be used with --resume"),
        (["beacon", "--start-state", "shores"], "did you mean shore"),
        (["beaco"], "did you mean beacon"),
        (["beacon", "--states", "many"], "'many' is not a size"),
        (["beacon", "--cell", "roam"], "did you mean room"),
        (["beacon", "--cell", "room", "player_x/0"], "'0' is not a whole number from 1"),
        (["beacon", "--cell", "player_x/1.5"], "'1.5' is not a whole number from 1"),
        (["beacon", "--cell", "player_x/"], "'' is not a whole number from 1"),
        (["--resume", "--cell", "room"], "--cell room cannot be used with --resume"),
        (["mine.gb", "--cell", "room"], "mine.gb is a ROM without a game file"),
    ],
)
def test_mistakes_are_named_and_leave_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert main(["explore", *words, "--output", str(tmp_path / "x")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_cells_can_be_named_for_one_exploration_and_a_potential_reads_them_there(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "x"
    entries = ["room", "keys_taken", "player_x/32"]
    word = ["explore", "beacon", "--cell", *entries, "--output", str(folder), "--processes", "1"]
    assert main([*word, "--timesteps", "10"]) == 0
    game = load_game("beacon")
    explored = ExploreDir(folder)
    cell = explored.read().settings.cell
    assert [(e.variable, e.per) for e in cell] == [("room", 1), ("keys_taken", 1), ("player_x", 32)]
    archive = Archive.read(explored.archive, 2**31)
    env = make_game_env(EnvConfig(), game)
    try:
        for record in archive.cells:
            if record.state:
                env.load_state(unpacked(record.state))
                values = env.read_variables()
                x = values["player_x"]
                assert isinstance(x, int)
                assert record.cell == (values["room"], values["keys_taken"], x // 32)
    finally:
        env.close()
    assert len(archive.cells) > 3
    rewards = {"near": {"potential": str(folder), "weight": 0.1}}
    found = with_potentials(game, EnvConfig.model_validate({"rewards": rewards}))
    assert found.potentials["near"].cell == cell


@pytest.mark.slow
@pytest.mark.parametrize(("name", "term"), [("seasons", "flag"), ("duel", "fight_won")])
def test_the_cells_of_a_bundled_game_are_few_and_lead_to_a_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, term: str
) -> None:
    word = ["explore", name, "--output", str(tmp_path / "x"), "--timesteps", "8000", "--json"]
    assert main(word) == 0
    found = json.loads(capsys.readouterr().out)
    assert term in found["earned"]
    assert found["best"]["success"]
    assert 100 < found["cells"] < 1_000


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT for one process")
def test_a_stop_says_that_the_round_is_saved(tmp_path: Path) -> None:
    word = [sys.executable, "-m", "game_rl", "explore", "beacon", "--processes", "1"]
    word += ["--output", str(tmp_path / "x"), "--minutes", "30"]
    with subprocess.Popen(word, stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert "timesteps" in said
        progress = ExploreDir(tmp_path / "x").progress
        while not progress.exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    said = " ".join(said.split())
    assert "SIGINT: the exploration ends after this round, which is saved, or in 30 s" in said
    assert "checkpoint" not in said
    assert "stopped; all rounds are saved" in said


def test_a_folder_with_something_else_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text("game: duel\n", encoding="utf-8")
    assert main(["explore", "beacon", "--output", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_any_cell_can_be_kept_as_a_start_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A state that was dropped is made again by the way to it."""
    mine = tmp_path / "mine"
    shutil.copytree(load_game("beacon").folder, mine)
    folder = tmp_path / "explored"
    word = ["explore", str(mine / "game.yaml"), "--output", str(folder), "--processes", "1"]
    assert main([*word, "--timesteps", "10", "--states", "40KB"]) == 0
    archive = Archive.read(folder / "archive.jsonl", 40_000)
    held = next(record for record in archive.cells[1:] if record.state)
    dropped = next(record for record in archive.cells if not record.state and not record.cell[3])
    for name, record in (("held", held), ("dropped", dropped)):
        keep = ["explore", "--output", str(folder), "--keep", str(record.number), "--name", name]
        capsys.readouterr()
        assert main(keep) == 0
        assert f"{name}: {{file: {name}.state}}" in capsys.readouterr().out
        text = (mine / "game.yaml").read_text(encoding="utf-8")
        entry = f"start_states:\n  {name}: {{file: {name}.state}}\n"
        (mine / "game.yaml").write_text(text.replace("start_states:\n", entry), encoding="utf-8")
        game = load_game(str(mine / "game.yaml"))
        env = make_game_env(EnvConfig(max_idle_frames=0), game)
        try:
            env.reset(seed=0, options={"start_state": name})
            values = env.read_variables()
        finally:
            env.close()
        entries = game.definition.cell_entries
        assert tuple(int(values[e.variable] // e.per) for e in entries) == record.cell
    assert main(keep) == 2  # the name is taken
    assert "choose another" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--keep", "3"], "go together"),
        (["--keep", "3", "--name", "a/b"], "write letters"),
        (["--keep", "3", "--name", "shore"], "the game has a start state of that name"),
        (["--keep", "99999", "--name", "x"], "there is no cell 99,999"),
        (["--keep", "3", "--name", "x", "--minutes", "3"], "minutes has no effect"),
        (["--keep", "3", "--name", "x", "--cell", "room"], "cell has no effect"),
    ],
)
def test_what_cannot_be_kept_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    game = load_game("beacon")
    settings = {
        "start_state": "shore",
        "seed": 0,
        "cell": [],
        "prefer": [],
        "env": {},
        "trips": 1,
        "trip_timesteps": 1,
        "repeat": 0.5,
        "most_bytes": 1,
    }
    saved = {"game": "beacon", "rom_sha256": game.rom.sha256, "settings": settings}
    (tmp_path / "explore.json").write_text(json.dumps(saved), encoding="utf-8")
    found = {"cell": [0], "before": None, "actions": "", "parent": None, "reward": 0.0}
    found |= {"kept": [], "timesteps": 0, "state": "", "success": False}
    (tmp_path / "archive.jsonl").write_text(json.dumps({"finds": [found]}) + "\n", encoding="utf-8")
    assert main(["explore", "--output", str(tmp_path), *words]) == 2
    assert says in capsys.readouterr().err
