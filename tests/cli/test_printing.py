"""What commands print: with --json one value alone, with -q the result alone, with -v more."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from game_rl.cli.main import main
from game_rl.cli.parser import make_parser
from game_rl.config.loader import load_config
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from tests.experiments.study.conftest import write_study
from tests.experiments.test_run_list import make_run as listed_run
from tests.storage.conftest import disk_address as disk_address  # a fixture
from tests.storage.experiments import ID, push_files
from tests.storage.runs import make_run
from tests.tiny_run import TINY, train_once

Output = pytest.CaptureFixture[str]
DQN = "{name: dqn, learning_starts: 32, batch_size: 16, replay: {capacity: 500}}"
WITHOUT_JSON = {
    "watch",
    "play",
    "train",
    "demo",
    "schema",
    "completion",
}  # --log json; a schema is JSON
DUEL = Path(__file__).parents[2] / "game_rl" / "games" / "duel"


def facts(capsys: Output, *words: object, code: int = 0) -> Any:
    """Call a command with --json, and return the one value that is all of its output."""
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not inner:
        yield parser
    for action in inner:
        for each in action.choices.values():
            yield from leaves(each)


def test_every_command_has_the_options_that_scripts_and_people_expect() -> None:
    for parser in leaves(make_parser()[0]):
        known = {name for action in parser._actions for name in action.option_strings}
        assert {"-q", "--quiet", "-v", "--verbose"} <= known, parser.prog
        assert ("--json" in known) == (parser.prog.split()[-1] not in WITHOUT_JSON), parser.prog


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return _trained(tmp_path_factory.mktemp("printing"))


def _trained(folder: Path, *overrides: str) -> RunDir:
    (folder / "run.yaml").write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    return train_once(load_config(folder / "run.yaml", ["total_timesteps=96", *overrides]))


def test_a_policy_that_is_recorded_exported_and_imported(
    run: RunDir, tmp_path: Path, capsys: Output
) -> None:
    learned = {"policy_timesteps": 96, "policy_frames": 96 * 8}
    clip, exported = tmp_path / "clip.gif", tmp_path / "policy.zip"
    at = f"{run.root}@96"
    assert facts(capsys, "record", at, "--episodes", 1, "--output", clip) == {
        "file": str(clip),
        **learned,
    }
    found = facts(capsys, "export", at, "--output", exported)
    assert found == {
        "file": str(exported),
        "deterministic": True,
        "needs_package": None,
        **learned,
    }
    assert clip.is_file()
    assert exported.is_file()
    words = ["import", exported, "--config", run.config, f"run_dir={tmp_path / 'new'}"]
    assert facts(capsys, *words) == {
        "run": str(tmp_path / "new"),
        "timesteps": 96,
        "total_timesteps": 96,
    }


def test_a_replay_that_is_exported_imported_and_compacted(tmp_path: Path, capsys: Output) -> None:
    run = _trained(tmp_path, f"algorithm={DQN}", "lake={}")
    n = facts(capsys, "replay", "info", run.lake)["n_transitions"]
    assert n == 96
    pickle, lake = tmp_path / "replay.pkl", tmp_path / "lake"
    words = ["replay", "export", run.lake, "--output", pickle]
    assert facts(capsys, *words) == {"output": str(pickle), "transitions": n}
    found = facts(capsys, "replay", "import", pickle, "--output", lake)
    assert (found["lake"], found["n_transitions"]) == (str(lake), n)
    assert found["file_bytes"] == pickle.stat().st_size
    before = facts(capsys, "replay", "info", lake)["n_segments"]
    found = facts(capsys, "replay", "compact", lake)
    after = facts(capsys, "replay", "info", lake)["n_segments"]
    assert found == {"segments_before": before, "segments": after}


def test_a_game_that_is_begun_and_checked(tmp_path: Path, capsys: Output) -> None:
    found = facts(capsys, "new-game", DUEL / "duel.gb", "--folder", tmp_path, "--no-play")
    assert found["file"] == str(tmp_path / "game.yaml")
    assert found["warnings"] == list(load_game(found["file"]).warnings)
    sheet = tmp_path / "sheet.png"
    found = facts(capsys, "check-game", "duel", "--timesteps", 300, "--sheet", sheet)
    known = yaml.safe_load((DUEL / "game.yaml").read_text(encoding="utf-8"))
    assert {each["name"] for each in found["variables"]} == set(known["variables"])
    assert found["timesteps"] == 300
    assert Path(found["sheet"]) == sheet
    assert not {"starts", "moments"} & set(found)
    (part,) = found["parts"]
    assert part == {
        "name": "status",
        "kind": "vector",
        "shape": [27],
        "dtype": "float32",
        "stored_bytes": 31,
    }
    assert Path(found["parts_sheet"]) == tmp_path / "parts.png"


def test_what_is_pushed_verified_and_fetched(
    tmp_path: Path, disk_address: str, capsys: Output
) -> None:
    run = make_run(tmp_path / "run", 100, 200)
    push_files(tmp_path / "folder", disk_address, 7, {"a": b"7"})
    place = f"{disk_address}/runs/{run.identity().id}"
    found = facts(capsys, "remote", "push", run.root, "--to", disk_address)
    assert (found["to"], sorted(found["checkpoints"])) == (place, [100, 200])
    experiment, runs = facts(capsys, "remote", "verify", disk_address)["found"]
    assert (experiment["id"], experiment["generations"]) == (ID, [7])
    assert (runs["checkpoints"], runs["damage"]) == (2, {})
    found = facts(capsys, "remote", "fetch", f"{place}@100", tmp_path / "fetched")
    assert (found["timesteps"], found["id"]) == (100, run.identity().id)
    found = facts(capsys, "remote", "fetch", f"{disk_address}/experiments/{ID}", tmp_path / "other")
    assert (found["kind"], found["generation"]) == ("population", 7)
    for blob in (tmp_path / "mounted disk").rglob("blobs/*/*"):
        blob.write_bytes(b"other")
    found = facts(capsys, "remote", "verify", disk_address, code=1)
    assert not found["is_whole"]
    assert len(found["found"][0]["damage"]) > 0
    assert len(found["found"][1]["damage"]) == 2


def test_a_study_that_is_registered(tmp_path: Path, capsys: Output) -> None:
    file = write_study(tmp_path)
    found = facts(capsys, "study", "register", file)
    saved = json.loads(Path(found["registration"]).read_text(encoding="utf-8"))
    assert found["files_of_code"] == len(saved["code"])
    arm, seed = next(iter(saved["plan"]["arms"])), saved["plan"]["seeds"][0]
    words = ["study", "give-up", file, "--arm", arm, "--seed", seed, "--reason", "it hangs"]
    given_up = facts(capsys, *words)
    assert (given_up["arm"], given_up["seed"], given_up["failure"]) == (
        arm,
        seed,
        "given up: it hangs",
    )
    rows = facts(capsys, "study", "status", file)
    assert next(row for row in rows if (row["arm"], row["seed"]) == (arm, seed))["is_done"]


def test_what_runs_prune_deletes(tmp_path: Path, capsys: Output) -> None:
    run = listed_run(tmp_path / "run", 100, 200, 300, best=100)
    assert main(["runs", str(tmp_path), "--prune", "--json"]) == 2
    gone = str(run.checkpoint(200))
    assert facts(capsys, "runs", tmp_path, "--prune", "--yes") == [gone]
    assert facts(capsys, "runs", tmp_path, "--prune", "--yes") == []


@pytest.mark.slow
def test_tune_lists_every_setting(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(TINY.format(run_dir=tmp_path / "run"), encoding="utf-8")
    found = facts(capsys, "tune", file, "--seconds", 1)
    assert found["present"] in found["trials"]
    assert found["best"] in found["trials"]
    assert (found["changes"] == {}) == (found["best"] == found["present"])


@pytest.mark.slow
def test_quiet_prints_the_result_alone_and_verbose_each_update(
    tmp_path: Path, capsys: Output
) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(TINY.format(run_dir=tmp_path / "run"), encoding="utf-8")
    words = ["train", str(file), "total_timesteps=96"]
    assert main([*words, "-q"]) == 0
    quiet = capsys.readouterr()
    assert "mean reward" in quiet.out
    assert f"run          {tmp_path / 'run'}" in quiet.out
    assert not any(word in quiet.out for word in ("checkpoint of", "fits", "look at next"))
    assert quiet.err == ""
    assert main([*words, f"run_dir={tmp_path / 'again'}", "-v"]) == 0
    updates = [line for line in capsys.readouterr().out.splitlines() if "update: " in line]
    assert [int(line.split()[0]) for line in updates] == [32, 64, 96]


def test_what_does_not_fit_is_shown_even_to_the_quiet(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(TINY.format(run_dir=tmp_path / "run"), encoding="utf-8")
    large = ["algorithm.n_steps=500_000", "algorithm.batch_size=500_000", "env.n_envs=256"]
    large += ["total_timesteps=1_000_000_000", "algorithm.micro_batch_size=null"]
    large += ["evaluation.every_timesteps=1_000_000_000"]
    large += ["checkpoints.every_timesteps=1_000_000_000"]
    assert main(["train", str(file), *large, "-q"]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "does not fit" in printed.err
    assert "→" in printed.err


def test_verbose_shows_where_an_error_was_raised(tmp_path: Path, capsys: Output) -> None:
    words = ["status", str(tmp_path / "none")]
    assert main(words) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert main([*words, "-v"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("Traceback")
    assert "named.py" in told
    assert told.splitlines()[-1].startswith("error: ")
