import json
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.storage.journal import Journal
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.uploader import Uploader
from tests.storage.conftest import disk_address as disk_address  # a fixture
from tests.storage.experiments import ID, push_files
from tests.storage.runs import make_run, settings_of


@pytest.fixture
def stored(tmp_path: Path, disk_address: str) -> str:
    """The id of a run with two checkpoints; there is an experiment with two generations, too."""
    run_dir = make_run(tmp_path / "run", 100, 200)
    settings = settings_of(run_dir, disk_address)
    with Journal(run_dir.upload_journal) as journal:
        uploader = Uploader(settings, journal, lambda _: None)
        for timesteps in uploader.scan():
            uploader.send_checkpoint(ObjectStore(disk_address), timesteps)
    for number in (1, 7):
        push_files(tmp_path / "folder", disk_address, number, {"a": b"%d" % number})
    return run_dir.identity().id


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["remote", "list", *arguments]) == 0
    return capsys.readouterr().out


def test_one_table_has_runs_and_experiments(
    stored: str, disk_address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *rows = listed(capsys, disk_address).splitlines()
    assert head.split() == [
        "kind",
        "id",
        "game",
        "kept",
        "newest",
        "size",
        "saved",
        "written",
        "by",
    ]
    found = [row.split()[:6] for row in rows]
    assert found == [
        ["population", ID, "duel", "2", "generations", "7"],
        ["run", stored, "duel", "2", "checkpoints", "200"],
    ]


def test_json_has_both_each_with_its_kind(
    stored: str, disk_address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment, run = json.loads(listed(capsys, disk_address, "--json"))
    assert (experiment["kind"], experiment["experiment"]) == ("population", ID)
    assert (experiment["generations"], experiment["game"]) == ([1, 7], "duel")
    assert (run["kind"], run["run"], run["checkpoints"]) == ("run", stored, [100, 200])


def test_an_address_of_one_lists_that_one(
    stored: str, disk_address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (experiment,) = json.loads(listed(capsys, f"{disk_address}/experiments/{ID}", "--json"))
    assert experiment["experiment"] == ID
    (run,) = json.loads(listed(capsys, f"{disk_address}/runs/{stored}", "--json"))
    assert run["run"] == stored


def test_where_there_is_nothing_it_says_so(
    disk_address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no run and no experiment" in listed(capsys, disk_address)
    assert json.loads(listed(capsys, disk_address, "--json")) == []


@pytest.mark.usefixtures("stored")
def test_verify_reads_runs_and_every_generation(
    disk_address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["remote", "verify", disk_address]) == 0
    told = capsys.readouterr().out
    assert f"population {ID}: 2 generations" in told
    assert "2 checkpoints" in told
    assert main(["remote", "verify", f"{disk_address}/experiments/{ID}@7"]) == 0
    assert f"population {ID}: 1 generation, " in capsys.readouterr().out
    assert main(["remote", "verify", f"{disk_address}@200"]) == 0
    told = capsys.readouterr().out
    assert "population" not in told
    assert "1 checkpoint, " in told
    for blob in (tmp_path / "mounted disk" / "experiments").rglob("blobs/*/*"):
        blob.write_bytes(b"other")
    assert main(["remote", "verify", disk_address]) == 1
    assert "cannot be fetched whole" in capsys.readouterr().err


def test_push_looks_whether_storage_still_has_what_was_uploaded(
    tmp_path: Path, disk_address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = make_run(tmp_path / "mine", 100, 200)
    push = ["remote", "push", str(run_dir.root), "--to", disk_address]

    def pushed() -> str:
        assert main(push) == 0
        return capsys.readouterr().out

    assert "checkpoint 200 uploaded" in pushed()
    assert f"nothing to send: everything is already at {disk_address}/runs/" in pushed()
    store = ObjectStore(disk_address)
    for stored in list(store.list("")):
        store.delete(stored.name)
    told = pushed()
    assert "no longer has all of checkpoints 100, 200; what is missing is sent again" in told
    assert "checkpoint 200 uploaded" in told
    assert "nothing to send" not in told
