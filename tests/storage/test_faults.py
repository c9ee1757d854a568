"""Storage that fails, before a real S3 server: nothing wrong is committed, and it comes through."""

import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from game_rl.events import Event, Uploaded, Warned
from game_rl.storage import upload_process
from game_rl.storage.fetch import fetch_run
from game_rl.storage.inventory import RemoteAddress, stored_runs, verify_stored
from game_rl.storage.journal import Journal
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.upload_process import Bell, Uploading
from game_rl.storage.upload_settings import UploadSettings
from game_rl.storage.uploader import Uploader
from tests.examples import variants
from tests.faults.proxy import FAULTS, Fault, FaultProxy
from tests.storage.runs import content_of, make_run, settings_of


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_process, "_FIRST_PATIENCE_S", 2.0)
    monkeypatch.setattr(upload_process, "_FIRST_PAUSE_S", 0.05)


def upload(settings: UploadSettings, told: list[Event]) -> None:
    bell = Bell()
    bell.ring(is_ending=True)
    with Journal(settings.run_dir / "upload.jsonl") as journal:
        uploader = Uploader(settings, journal, told.append)
        Uploading(uploader, settings, told.append).run(bell)


class Faulty:
    """The first request of each kind and path fails; the rest pass."""

    def __init__(self, fault: Fault, only: str = "") -> None:
        self.fault = fault
        self.only = only
        self.seen: Counter[tuple[str, str]] = Counter()
        self.lock = threading.Lock()

    def __call__(self, method: str, path: str) -> Fault | None:
        key = (method, path.partition("?")[0])
        with self.lock:
            self.seen[key] += 1
            is_first = self.seen[key] == 1
        return self.fault if is_first and self.only in method else None


@pytest.mark.parametrize(
    "fault", variants("503", "lost answer", slow=sorted(set(FAULTS) - {"503", "lost answer"}))
)
def test_every_write_may_fail_once_and_the_run_is_stored_whole(
    tmp_path: Path,
    s3_address: str,
    s3_endpoint: str,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
) -> None:
    run_dir = make_run(tmp_path / "run", 100, weights_bytes=6 << 20)
    told: list[Event] = []
    with FaultProxy(s3_endpoint, Faulty(fault, only="PUT"), stall_s=3) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        upload(settings_of(run_dir, s3_address), told)
    assert proxy.struck[fault] >= 5
    assert [event.timesteps for event in told if isinstance(event, Uploaded)] == [100]
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    store = ObjectStore(s3_address)
    assert verify_stored(store, RemoteAddress.parse(s3_address)).damage == {}
    fetched = fetch_run(store, RemoteAddress.parse(s3_address), tmp_path / "fetched").run_dir
    assert content_of(fetched.root) == content_of(run_dir.root)


@pytest.mark.parametrize("fault", ["500", "403", "cut body"])
def test_reads_may_fail_too(
    tmp_path: Path,
    s3_address: str,
    s3_endpoint: str,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
) -> None:
    run_dir = make_run(tmp_path / "run", 100)
    told: list[Event] = []
    with FaultProxy(s3_endpoint, Faulty(fault)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        upload(settings_of(run_dir, s3_address), told)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    assert stored_runs(ObjectStore(s3_address)) == {run_dir.identity().id: [100]}


def test_an_outage_is_told_once_with_the_way_out(
    tmp_path: Path, s3_address: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200)
    told: list[Event] = []
    end_s = time.monotonic() + 3

    def outage(_method: str, _path: str) -> Fault | None:
        return "403" if time.monotonic() < end_s else None

    with FaultProxy(s3_endpoint, outage) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        upload(settings_of(run_dir, s3_address), told)
    warnings = [event.text for event in told if isinstance(event, Warned)]
    assert proxy.struck["403"] > 2
    assert len(warnings) == 2
    assert "credentials" in warnings[0]
    assert "clock" in warnings[0]
    assert "work again" in warnings[1]


def test_nothing_that_the_server_says_is_repeated(
    tmp_path: Path, s3_address: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = make_run(tmp_path / "run", 100)
    told: list[Event] = []
    with FaultProxy(s3_endpoint, Faulty("403")) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        upload(settings_of(run_dir, s3_address), told)
    texts = [event.text for event in told if isinstance(event, Warned)]
    assert texts
    assert not [text for text in texts if "planted" in text.lower()]
