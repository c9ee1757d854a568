"""Storage that fails, before a real S3 server: nothing wrong is committed, and it comes through."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from game_rl.cli.main import main
from game_rl.events import Event, Uploaded, Warned
from game_rl.storage import faults as patience_module
from game_rl.storage import object_store, upload_process
from game_rl.storage.faults import PASSING_FAULTS, FaultKind, Patience, StoreFault
from game_rl.storage.fetch import fetch_run
from game_rl.storage.inventory import RemoteAddress, stored_runs, verify_stored
from game_rl.storage.journal import Journal
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.upload_process import Bell, Uploading, push
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


class Time:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds

    def patience(self, longest_s: float, told: list[StoreFault] | None = None) -> Patience:
        tell = (lambda _: None) if told is None else told.append
        return Patience(
            longest_s, waits_for=PASSING_FAULTS, tell=tell, pause=self.pause, clock=self
        )


def failing(kind: FaultKind, times: int) -> Callable[[], str]:
    """A request that fails so many times."""
    left = iter(range(times))

    def ask() -> str:
        if next(left, None) is not None:
            raise StoreFault(kind, "s3://b")
        return "answer"

    return ask


def test_pauses_grow_to_a_quarter_of_a_minute_and_one_line_tells_of_the_outage() -> None:
    time, told = Time(), list[StoreFault]()
    assert time.patience(900, told).ask(failing("busy", 8)) == "answer"
    assert time.pauses == [0.5, 1, 2, 4, 8, 15, 15, 15]
    assert len(told) == 1


def test_an_outage_that_is_too_long_is_an_error() -> None:
    time = Time()
    with pytest.raises(StoreFault, match="cannot be reached"):
        time.patience(600).ask(failing("unreachable", 1_000))
    assert 580 < time.now_s <= 600


def test_an_answer_to_any_thread_ends_the_outage_of_all() -> None:
    time, answers = Time(), 0
    patience = time.patience(30)

    def ask() -> str:
        nonlocal answers
        answers += 1
        patience.ask(lambda: "another thread's")
        if answers < 20:
            raise StoreFault("slow", "s3://b")
        return "answer"

    assert patience.ask(ask) == "answer"
    assert time.now_s > 30


def test_outages_in_short_succession_are_told_once_a_minute() -> None:
    time, told = Time(), list[StoreFault]()
    patience = time.patience(900, told)
    for _ in range(300):
        patience.ask(failing("busy", 1))
    assert time.now_s == 150
    assert len(told) == 3


@pytest.mark.parametrize("kind", ["missing", "denied", "full", "refused", "unable"])
def test_what_only_the_user_can_end_is_not_waited_for(kind: FaultKind) -> None:
    time = Time()
    with pytest.raises(StoreFault):
        time.patience(900).ask(failing(kind, 1))
    assert time.pauses == []


# ---------------------------------------------------------------------- one large object


@contextmanager
def cutting_server(content: bytes, answered_bytes: int) -> Iterator[tuple[str, list[int]]]:
    """A store with one object, whose answers all break off after some bytes.

    Yields its address, and the offsets that it is asked for.
    """
    offsets: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = re.match(r"bytes=(\d+)-", self.headers.get("Range") or "")
            begin = int(found[1]) if found else 0
            offsets.append(begin)
            self.send_response(206 if found else 200)
            self.send_header("Content-Length", str(len(content) - begin))
            self.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
            self.send_header("ETag", '"x"')
            if found:
                span = f"bytes {begin}-{len(content) - 1}/{len(content)}"
                self.send_header("Content-Range", span)
            self.end_headers()
            self.wfile.write(content[begin : begin + answered_bytes])
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", offsets
    finally:
        server.shutdown()
        server.server_close()


def test_a_large_object_is_read_on_from_the_byte_where_it_broke_off(
    s3_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = np.random.default_rng(0).bytes(9 << 20)
    time = Time()
    with cutting_server(content, (2 << 20) + 17) as (endpoint, offsets):
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        monkeypatch.setattr(object_store, "_RETRIES", 0)
        store = ObjectStore(s3_address, patience=time.patience(60))
        assert b"".join(store.pieces("x")) == content
    assert offsets[0] == 0
    assert offsets == sorted(set(offsets))
    assert len(offsets) <= 9  # at least one piece of 1 MiB arrives each time


# ---------------------------------------------------------------------- commands


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "_FIRST_BACKOFF_S", 0.001)
    monkeypatch.setattr(patience_module, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(patience_module, "_LONGEST_PAUSE_S", 0.01)
    monkeypatch.setattr(patience_module, "_TOLD_EVERY_S", 3600.0)  # however slow the machine is
    monkeypatch.setattr(upload_process, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(upload_process, "_LONGEST_PAUSE_AT_THE_END_S", 0.01)


class Outage:
    """Every third request fails, and at some point twelve in a row."""

    def __init__(self, begins_at: int = 5) -> None:
        self._count = count()
        self._begins_at = begins_at

    def __call__(self, _method: str, _path: str) -> Fault | None:
        number = next(self._count)
        is_out = self._begins_at <= number < self._begins_at + 12
        return "503" if is_out or number % 3 == 2 else None


@pytest.mark.usefixtures("quick")
def test_push_fetch_and_verify_get_through_storage_that_fails(
    tmp_path: Path,
    s3_address: str,
    s3_endpoint: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run_dir = make_run(tmp_path / "run", 100, weights_bytes=3 << 20)
    for command in (
        ["push", str(run_dir.root), "--to", s3_address],
        ["verify", s3_address],
        ["fetch", s3_address, str(tmp_path / "fetched")],
    ):
        with FaultProxy(s3_endpoint, Outage()) as proxy:
            monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
            assert main(["remote", *command]) == 0
        printed = capfd.readouterr()
        lines = [line for line in (printed.out + printed.err).splitlines() if "HTTP 503" in line]
        assert len(lines) == 1, printed
        assert "fails or is overloaded (HTTP 503)" in lines[0]
        assert "It is retried for several minutes; Ctrl-C ends the command" in lines[0]
    assert content_of(tmp_path / "fetched") == content_of(run_dir.root)


@pytest.mark.usefixtures("s3_address")
@pytest.mark.parametrize("command", ["push", "fetch", "verify"])
def test_a_bucket_that_does_not_exist_is_named_at_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    run_dir = make_run(tmp_path / "run", 100)
    arguments = {
        "push": [str(run_dir.root), "--to", "s3://no-such-bucket"],
        "fetch": ["s3://no-such-bucket", str(tmp_path / "fetched")],
        "verify": ["s3://no-such-bucket"],
    }
    assert main(["remote", command, *arguments[command]]) == 2
    assert "s3://no-such-bucket is not there" in capfd.readouterr().err


def test_after_a_long_outage_the_error_says_how_to_go_on(
    s3_address: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("game_rl.cli.remote_command._LONGEST_OUTAGE_S", 0.0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert main(["remote", "fetch", s3_address, "nowhere"]) == 1
    error = capfd.readouterr().err
    assert "cannot be reached" in error
    assert "the same command continues where it stopped" in error


@pytest.mark.slow
def test_ctrl_c_ends_a_fetch_at_once_though_storage_gives_no_answer(
    tmp_path: Path, s3_address: str, s3_endpoint: str
) -> None:
    asked = threading.Event()

    def plan(_method: str, _path: str) -> Fault | None:
        asked.set()
        return "stall"

    with FaultProxy(s3_endpoint, plan, stall_s=600) as proxy:
        fetching = subprocess.Popen(
            [sys.executable, "-m", "game_rl", "remote", "fetch", s3_address, str(tmp_path / "x")],
            env=os.environ | {"AWS_ENDPOINT_URL": proxy.address},
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        assert asked.wait(60)
        fetching.send_signal(signal.SIGINT)
        _, error = fetching.communicate()  # while its request is still held
    assert fetching.returncode == 130
    # on a busy machine, the connection itself may have taken too long before, which is told
    assert "Traceback" not in error
    assert error.endswith("interrupted; the same command continues where it stopped\n")


def test_what_a_fetch_has_is_not_fetched_again(
    tmp_path: Path, s3_address: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = make_run(tmp_path / "run", 100, weights_bytes=3 << 20)
    push(settings_of(run_dir, s3_address), lambda _: None, most_failures=1)
    asked: list[str] = []

    def plan(method: str, path: str) -> Fault | None:
        if method == "GET" and "/blobs/" in path:
            asked.append(path)
        return "403" if len(asked) > 3 else None

    fetch = ["remote", "fetch", s3_address, str(tmp_path / "fetched")]
    with FaultProxy(s3_endpoint, plan) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        assert main(fetch) == 1
    before, asked = set(asked[:3]), []
    with FaultProxy(s3_endpoint, lambda *request: plan(*request) and None) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        assert main(fetch) == 0
    assert asked
    assert not before & set(asked)
