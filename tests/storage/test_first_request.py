"""Trainings whose storage does not exist, refuses access or is out of reach."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.errors import UsageError
from game_rl.experiments.train_experiment import ExperimentCommand, begin_experiment
from game_rl.storage.background import ask_once
from game_rl.system.stop_request import StopRequest
from game_rl.training.train import TrainCommand, train
from tests.experiments.conftest import MakePopulation
from tests.experiments.conftest import make_population as make_population  # a fixture
from tests.faults.proxy import FaultProxy
from tests.storage.runs import make_run, settings_of
from tests.storage.test_background import background, saved
from tests.storage.test_round_trip import write_config

NO_BUCKET = "s3://no-such-bucket/folder"


@pytest.fixture
def unreachable(s3_address: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An address where nothing answers."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    return s3_address


def test_storage_that_can_be_used_gives_no_warning(address: str) -> None:
    assert ask_once(address) == []


@pytest.mark.usefixtures("s3_address")
def test_a_bucket_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match=r"upload\.to: s3://no-such-bucket/folder is not there"):
        ask_once(NO_BUCKET)


def test_a_disk_that_is_not_mounted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"mount the disk.* --set upload=null"):
        ask_once(f"file://{tmp_path}/unmounted")


def test_access_that_is_refused_is_refused(
    s3_address: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultProxy(s3_endpoint, lambda *_: "403") as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        with pytest.raises(UsageError, match=r"refuses access \(HTTP 403\); check the credentials"):
            ask_once(s3_address)


def test_a_machine_without_a_network_may_train(
    unreachable: str,
) -> None:
    (warning,) = ask_once(unreachable)
    assert "cannot be reached" in warning
    assert "The training starts anyway" in warning


def test_one_request_is_all_that_is_asked(
    s3_address: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    with FaultProxy(s3_endpoint, lambda method, _: asked.append(method)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        ask_once(s3_address)
    assert asked == ["GET"]


# ---------------------------------------------------------------------- refused before anything


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    upload = f"{{to: 'file://{tmp_path}/unmounted'}}"
    return load_config(Path(write_config(tmp_path / "run", upload=upload)))


def test_a_new_run_is_refused_before_it_writes_anything(config: RunConfig) -> None:
    with pytest.raises(UsageError, match="is not there"):
        train(config, TrainCommand(stop=StopRequest(), force=True))
    assert not config.run_dir.exists()


@pytest.mark.slow
def test_a_population_is_refused_before_it_writes_anything(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    address = f"'file://{tmp_path}/unmounted'"
    for key, setting in (
        ("upload.to", f"upload={{to: {address}}}"),
        ("upload.to", f"member.upload={{to: {address}}}"),
        ("executor.storage", f"executor={{kind: ray, storage: {address}}}"),
    ):
        population = make_population("population", setting)
        with pytest.raises(UsageError, match=f"{key}: .* is not there"):
            begin_experiment(population, ExperimentCommand(stop=StopRequest(math.inf), force=True))
        assert not population.config.run_dir.exists()


# ---------------------------------------------------------------------- an upload that never worked


def test_an_upload_that_never_worked_says_so(tmp_path: Path, unreachable: str) -> None:
    run_dir = make_run(tmp_path / "run")
    with background(settings_of(run_dir, unreachable)) as (upload, events, _):
        saved(run_dir, events, 100)
        upload.finish(0.1)
        assert f"nothing of this run is at {unreachable}" in upload.nothing_stored()
        assert f"`game-rl remote push {run_dir.root}`" in upload.nothing_stored()


def test_an_upload_that_worked_once_counts_for_its_address_alone(
    tmp_path: Path, disk_address: str
) -> None:
    run_dir = make_run(tmp_path / "run")
    settings = settings_of(run_dir, disk_address)
    with background(settings) as (upload, events, _):
        saved(run_dir, events, 100)
        upload.finish(300)
        assert upload.nothing_stored() == ""
    (tmp_path / "other").mkdir()
    with background(settings_of(run_dir, f"file://{tmp_path}/other")) as (upload, _, _):
        upload.finish(0)
        assert upload.nothing_stored() != ""


@pytest.mark.slow
def test_a_run_whose_upload_never_worked_is_complete_and_exits_with_4(
    tmp_path: Path, unreachable: str
) -> None:
    run_dir = tmp_path / "run"
    config = write_config(run_dir, upload=f"{{to: '{unreachable}', wait_s: 1}}")
    ended = subprocess.run(
        [sys.executable, "-m", "game_rl", "train", "--config", config],
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )
    assert ended.returncode == 4
    assert "The training starts anyway" in ended.stdout
    assert "best policy" in ended.stdout
    assert f"nothing of this run is at {unreachable}" in ended.stderr
    last = (run_dir / "events.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert '"reason":"completed","exit_code":4' in last
