"""The uploader's process, as a training starts and loses it."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from game_rl.config.output_config import UploadConfig
from game_rl.events import CheckpointSaved, Event, Uploaded, Warned
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.storage import background as background_module
from game_rl.storage.background import BackgroundUpload
from game_rl.storage.inventory import stored_runs
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.upload_settings import UploadSettings
from game_rl.system.child_process import _START
from tests.faults.proxy import FaultProxy
from tests.storage.runs import add_checkpoint, make_run, settings_of

_WITHIN_S = 300.0  # the process has the lowest priority, and the cores may be busy


class Heard:
    """Events, and waiting for one."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.changed = threading.Condition()

    def __call__(self, event: Event) -> None:
        with self.changed:
            self.events.append(event)
            self.changed.notify_all()

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def wait_for(self, kind: type[Event], count: int = 1) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.of(kind)) >= count, _WITHIN_S)


@contextmanager
def background(settings: UploadSettings) -> Iterator[tuple[BackgroundUpload, EventLog, Heard]]:
    heard = Heard()
    events = EventLog(None, [heard])
    upload = BackgroundUpload(settings, events)
    events.add_listener(upload.on_event)
    try:
        yield upload, events, heard
    finally:
        upload.close()


def pid_of(upload: BackgroundUpload) -> int:
    return upload._process._process.pid


def saved(run_dir: RunDir, events: EventLog, timesteps: int) -> None:
    add_checkpoint(run_dir, timesteps)
    name = run_dir.checkpoint(timesteps).name
    events.emit(
        CheckpointSaved(
            timesteps=timesteps, checkpoint=name, n_bytes=1, seconds=0.1, contents=("policy",)
        )
    )


def test_each_checkpoint_is_uploaded_while_the_training_goes_on(
    tmp_path: Path, address: str
) -> None:
    run_dir = make_run(tmp_path / "run")
    with background(settings_of(run_dir, address)) as (upload, events, heard):
        saved(run_dir, events, 100)
        heard.wait_for(Uploaded, 1)
        saved(run_dir, events, 200)
        heard.wait_for(Uploaded, 2)
        upload.finish(30)
    assert stored_runs(ObjectStore(address)) == {run_dir.identity().id: [100, 200]}
    assert not heard.of(Warned)
    assert not psutil.pid_exists(pid_of(upload))


def test_the_process_is_the_last_to_get_a_core(tmp_path: Path, disk_address: str) -> None:
    run_dir = make_run(tmp_path / "run")
    with background(settings_of(run_dir, disk_address)) as (upload, events, heard):
        saved(run_dir, events, 100)
        heard.wait_for(Uploaded)
        process = psutil.Process(pid_of(upload))
        assert process.nice() == 19
        assert not [m.path for m in process.memory_maps() if "torch" in m.path]


def test_the_process_loads_neither_torch_nor_gymnasium() -> None:
    start = _START.partition("sys.exit")[0]  # all but the call of `main`
    code = f"{start}importlib.import_module(sys.argv[2])\nprint(*sys.modules)"
    package = str(Path(background_module.__file__).parents[1])
    command = [sys.executable, "-c", code, package, "game_rl.storage.upload_process"]
    loaded = subprocess.run(
        command, capture_output=True, check=True, encoding="utf-8"
    ).stdout.split()
    assert "game_rl.lake.lake_schema" in loaded
    heavy = {"torch", "gymnasium", "stable_baselines3", "yaml", "game_rl.config.schema"}
    assert not heavy & set(loaded)


def test_signals_for_the_training_do_not_end_it(tmp_path: Path, disk_address: str) -> None:
    run_dir = make_run(tmp_path / "run")
    with background(settings_of(run_dir, disk_address)) as (upload, events, heard):
        saved(run_dir, events, 100)
        heard.wait_for(Uploaded)
        pid = pid_of(upload)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            os.kill(pid, number)
        saved(run_dir, events, 200)
        heard.wait_for(Uploaded, 2)
        assert pid_of(upload) == pid  # and not another one in its place


def test_an_outage_at_the_end_leaves_after_the_wait_and_says_how_to_go_on(
    tmp_path: Path, s3_address: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = make_run(tmp_path / "run")
    with FaultProxy(s3_endpoint, lambda *_: "stall") as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        with background(settings_of(run_dir, s3_address)) as (upload, events, heard):
            saved(run_dir, events, 100)
            upload.finish(2.0)
            assert not psutil.pid_exists(pid_of(upload))
    assert "remote push" in heard.of(Warned)[-1].text


def test_of_a_process_that_had_no_time_to_say_anything_it_is_said(
    tmp_path: Path, disk_address: str
) -> None:
    run_dir = make_run(tmp_path / "run")
    with background(settings_of(run_dir, disk_address)) as (upload, events, heard):
        os.kill(pid_of(upload), signal.SIGSTOP)
        saved(run_dir, events, 100)
        upload.finish(0.1)
    (warning,) = heard.of(Warned)
    assert "could not report" in warning.text
    assert f"remote push {settings_of(run_dir, disk_address).run_dir}" in warning.text


def test_a_warning_is_heard_and_the_upload_goes_on_without_the_training_noticing(
    tmp_path: Path, disk_address: str
) -> None:
    folder = tmp_path / "mounted disk"
    folder.rename(tmp_path / "unmounted")
    run_dir = make_run(tmp_path / "run")
    with background(settings_of(run_dir, disk_address)) as (_upload, events, heard):
        saved(run_dir, events, 100)
        heard.wait_for(Warned)
        (tmp_path / "unmounted").rename(folder)
        saved(run_dir, events, 200)
        heard.wait_for(Uploaded)
        heard.wait_for(Warned, 2)
    texts = [event.text for event in heard.events if isinstance(event, Warned)]
    assert len(texts) == 2
    assert "mount the disk" in texts[0]
    assert "remote push" in texts[0]
    assert "work again" in texts[1]


def test_what_is_being_sent_is_held_until_it_is_there(
    tmp_path: Path, s3_address: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()

    def plan(method: str, _path: str) -> None:
        if method == "PUT":
            gate.wait(_WITHIN_S)

    run_dir = make_run(tmp_path / "run")
    with FaultProxy(s3_endpoint, plan) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        with background(settings_of(run_dir, s3_address)) as (upload, events, heard):
            saved(run_dir, events, 100)
            deadline = time.monotonic() + _WITHIN_S
            while upload.held() != {100} and time.monotonic() < deadline:
                time.sleep(0.02)
            assert upload.held() == {100}
            assert upload.waiting_bytes > 0
            gate.set()
            heard.wait_for(Uploaded)
            upload.finish(30)
            assert upload.held() == set()
            assert upload.waiting_bytes == 0


def test_beyond_the_backlog_nothing_is_held_and_one_warning_says_so(
    tmp_path: Path, s3_address: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = make_run(tmp_path / "run")
    settings = settings_of(run_dir, s3_address).model_copy(
        update={"upload": UploadConfig(to=s3_address, backlog_gb=1e-6)}
    )
    with FaultProxy(s3_endpoint, lambda *_: "stall") as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        with background(settings) as (upload, events, heard):
            saved(run_dir, events, 100)
            deadline = time.monotonic() + _WITHIN_S
            while not heard.of(Warned) and time.monotonic() < deadline:
                assert upload.held() == set()
                time.sleep(0.02)
            assert upload.held() == set()
            (warning,) = heard.of(Warned)
    assert "upload.backlog_gb" in warning.text


def test_a_process_that_is_killed_is_replaced_at_the_next_checkpoint(
    tmp_path: Path, disk_address: str
) -> None:
    run_dir = make_run(tmp_path / "run")
    with background(settings_of(run_dir, disk_address)) as (upload, events, heard):
        saved(run_dir, events, 100)
        heard.wait_for(Uploaded)
        os.kill(pid_of(upload), signal.SIGKILL)
        # its first thread may be gone before its others, and is not waited for until then
        os.waitid(os.P_PID, pid_of(upload), os.WEXITED | os.WNOWAIT)
        saved(run_dir, events, 200)
        heard.wait_for(Uploaded, 2)
        upload.finish(30)
    assert len(heard.of(Warned)) == 1
    assert stored_runs(ObjectStore(disk_address)) == {run_dir.identity().id: [100, 200]}


_ORPHAN = """
import sys, time
from game_rl.events.event_log import EventLog
from game_rl.storage import background as background_module
from game_rl.storage.background import BackgroundUpload
from game_rl.storage.upload_settings import UploadSettings
upload = BackgroundUpload(UploadSettings.model_validate_json(sys.argv[1]), EventLog())
print(upload._process._process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("is_reachable", [True, False])
def test_the_process_of_a_training_that_was_killed_finishes_or_leaves_in_time(
    tmp_path: Path,
    s3_address: str,
    s3_endpoint: str,
    monkeypatch: pytest.MonkeyPatch,
    is_reachable: bool,
) -> None:
    run_dir = make_run(tmp_path / "run", 100)
    settings = settings_of(run_dir, s3_address).model_copy(
        update={"upload": UploadConfig(to=s3_address, wait_s=20 if is_reachable else 2)}
    )
    if not is_reachable:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    training = subprocess.Popen(
        [sys.executable, "-c", _ORPHAN, settings.model_dump_json()],
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert training.stdout is not None
    process = psutil.Process(int(training.stdout.readline()))
    training.kill()
    training.communicate()
    process.wait(_WITHIN_S)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    found = stored_runs(ObjectStore(s3_address))
    assert found == ({run_dir.identity().id: [100]} if is_reachable else {})


@pytest.mark.slow
def test_a_training_and_its_forkserver_never_load_obstore() -> None:
    code = (
        "import sys, game_rl.training.train, game_rl.cli.main, game_rl.vec_env.worker\n"
        "from game_rl.vec_env.worker_pool import _PRELOAD\n"
        "for name in _PRELOAD: __import__(name)\n"
        "print('obstore' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", code], stdout=-1, check=True)
    assert ended.stdout.split() == [b"False"]
