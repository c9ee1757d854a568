"""What happens on a node of a cluster, in this process: no cluster is needed for it."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from game_rl.experiments.executors.attempt import private_folder, run_attempt
from game_rl.experiments.executors.executor import Job
from game_rl.experiments.executors.node_checks import GameNeeds, NodeNeeds, marked, marked_storage
from game_rl.experiments.executors.staging import RemoteJob, StorageStaging
from game_rl.storage.object_store import ObjectStore
from tests.experiments.executors.job_program import MODULE, asking
from tests.storage.conftest import disk_address as disk_address  # a fixture

_TIMEOUT_S = 60.0

OWN_NICENESS = os.getpriority(os.PRIO_PROCESS, 0)


@pytest.fixture
def needs(tmp_path: Path) -> Iterator[NodeNeeds]:
    with marked(tmp_path) as found:
        yield found


def order(needs: NodeNeeds, *arguments: str, patience_s: float = 30.0) -> RemoteJob:
    output = needs.mark.with_name("log")
    job = Job("x", asking(output.parent, *arguments), output, 3, "7-abc", MODULE)
    return RemoteJob(
        job, needs, niceness=OWN_NICENESS, has_gpu=False, patience_s=patience_s, folder=needs.folder
    )


@contextmanager
def sigterm_once_ready(output: Path, below: str = "") -> Iterator[None]:
    """Inside, this process gets a SIGTERM when the job has said that it is ready.

    Args:
        below: where in `output` the file is, which may have any name there.
    """

    def text() -> str:
        files = output.glob(below) if below else [output]
        return "".join(file.read_text(encoding="utf-8") for file in files if file.exists())

    def send() -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while "ready" not in text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_a_job_gets_its_threads_and_its_claim_and_nothing_of_the_cluster(
    needs: NodeNeeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "somewhere:1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("OMP_NUM_THREADS", "17")
    outcome = run_attempt(order(needs, "environment"))
    assert (outcome.code, outcome.text) == (0, "")
    assert json.loads((needs.mark.with_name("log")).read_text(encoding="utf-8")) == {
        "GAME_RL_CPUS": "3",
        "GAME_RL_CLAIM": "7-abc",
        "GAME_RL_EXPERIMENT": None,
        "OMP_NUM_THREADS": "3",
        "CUDA_VISIBLE_DEVICES": "",
        "cluster's": "[]",
        "niceness": str(OWN_NICENESS),
        "folder": str(Path.cwd()),
    }


def test_a_job_keeps_the_gpus_that_the_cluster_gives_it(
    needs: NodeNeeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    run_attempt(replace(order(needs, "environment"), has_gpu=True))
    assert (
        json.loads(needs.mark.with_name("log").read_text(encoding="utf-8"))["CUDA_VISIBLE_DEVICES"]
        == "1"
    )


def test_asked_to_stop_it_lets_the_job_save(needs: NodeNeeds) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with sigterm_once_ready(needs.mark.with_name("log")):
        outcome = run_attempt(order(needs, "save"))
    assert outcome.code == 143
    assert outcome.text.endswith("saved")
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_job_that_does_not_stop_is_killed_after_its_time(needs: NodeNeeds) -> None:
    with sigterm_once_ready(needs.mark.with_name("log")):
        outcome = run_attempt(order(needs, "deaf", patience_s=0.3))
    assert outcome.code == -signal.SIGKILL


def test_no_child_of_a_job_outlives_it(needs: NodeNeeds) -> None:
    log = needs.mark.with_name("log")
    with sigterm_once_ready(log):
        run_attempt(order(needs, "family"))
    child = int(log.read_text(encoding="utf-8").split()[0])
    with suppress(psutil.NoSuchProcess):
        psutil.Process(child).wait(_TIMEOUT_S)
    assert not psutil.pid_exists(child)


def test_nothing_is_started_on_a_node_that_lacks_something(needs: NodeNeeds) -> None:
    other = replace(needs, content="of another folder")
    outcome = run_attempt(order(other, "environment"))
    assert outcome.code == 2
    assert "is not the same folder" in outcome.text
    assert not needs.mark.with_name("log").exists()


# ------------------------------------------------------------------ without shared files


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The node's own disk; what jobs of tests run is found from there, too."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def staged(
    disk_address: str, tmp_path: Path
) -> Iterator[Callable[..., tuple[RemoteJob, StorageStaging]]]:
    root = tmp_path / "experiment"
    (root / "a").mkdir(parents=True)
    (root / "a" / "x").write_text("content", encoding="utf-8")
    store = ObjectStore.below(disk_address, "x")
    storage = StorageStaging(root, store, lambda _: None)
    with marked_storage(store, GameNeeds(), 1) as needs:

        def make(*arguments: str, patience_s: float = 30.0) -> tuple[RemoteJob, StorageStaging]:
            job = Job("x", asking(root, *arguments), root / "log", 1, None, MODULE)
            job = replace(job, reads=(root / "a",), writes=(root / "b",))
            order = RemoteJob(
                job, needs, niceness=OWN_NICENESS, has_gpu=False, patience_s=patience_s
            )
            return replace(order, staged=storage.begin(job)), storage

        yield make


def test_without_shared_files_a_job_runs_on_the_nodes_own_disk_and_leaves_nothing_there(
    staged: Callable[..., tuple[RemoteJob, StorageStaging]], tmp_path: Path, scratch: Path
) -> None:
    order, storage = staged("environment")
    (tmp_path / "experiment").rename(tmp_path / "away")
    outcome = run_attempt(order)
    (tmp_path / "away").rename(tmp_path / "experiment")
    assert outcome.code == 0, outcome.text
    storage.end(order.job)
    found = json.loads((tmp_path / "experiment" / "log").read_text(encoding="utf-8"))
    assert Path(found["folder"]).is_relative_to(scratch)
    assert list(scratch.iterdir()) == []


def test_without_shared_files_what_a_stopped_job_saves_comes_home(
    staged: Callable[..., tuple[RemoteJob, StorageStaging]], tmp_path: Path, scratch: Path
) -> None:
    order, storage = staged("save")
    with sigterm_once_ready(scratch, "*/files/log"):
        outcome = run_attempt(order)
    assert outcome.code == 143
    storage.end(order.job)
    assert (tmp_path / "experiment" / "log").read_text(encoding="utf-8").endswith("saved\n")


_WAITING = """
import sys, time
from pathlib import Path
from game_rl.experiments.executors.attempt import private_folder
with private_folder(Path(sys.argv[1])) as folder:
    (folder / "sockets").mkdir()
    print(folder, flush=True)
    time.sleep(600)
"""


def test_a_folder_is_its_owners_alone_and_ends_with_the_block(tmp_path: Path) -> None:
    with private_folder(tmp_path) as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "file").touch()
    assert list(tmp_path.iterdir()) == []


def test_folders_of_living_processes_stay_and_those_of_killed_ones_go(tmp_path: Path) -> None:
    (tmp_path / "game_rl-of_somebody").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", _WAITING, str(tmp_path)], stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert process.stdout is not None
    theirs = Path(process.stdout.readline().strip())
    with private_folder(tmp_path):
        assert (theirs / "sockets").is_dir()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with private_folder(tmp_path):
        assert not theirs.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["game_rl-of_somebody"]
