"""Members on Ray: real clusters, on this machine."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import ray

from game_rl.config.experiments.executor_config import RayExecutorConfig
from game_rl.errors import ExperimentError, UsageError
from game_rl.experiments.executors.executor import (
    CompletedJob,
    Demand,
    Executor,
    Job,
    make_executor,
)
from game_rl.experiments.executors.ray import Head
from game_rl.storage.object_store import ObjectStore
from tests.experiments.executors.job_program import MODULE, asking
from tests.faults import private_folder
from tests.faults.population_faults import Controller, hashes_of, records_of, write_population
from tests.faults.ray_nodes import RayNodes
from tests.storage.conftest import s3_address as s3_address  # fixtures
from tests.storage.conftest import s3_endpoint as s3_endpoint
from tests.storage.server import SECRET

_TIMEOUT_S = 180.0
_ROOT = Path(__file__).parents[3]
_TMP, _RAY_FOLDERS = Path("/tmp"), "game_rl-*"  # noqa: S108 - where they are


def demand(folder: Path, *, ram_bytes: int = 10**8, members: int = 4) -> Demand:
    return Demand(
        slots=1,
        members=members,
        cpus=1,
        ram_bytes=ram_bytes,
        gpus=0,
        patience_s=20,
        folder=folder,
        warn=lambda _: None,
    )


def at(address: str) -> RayExecutorConfig:
    return RayExecutorConfig(kind="ray", address=address)


# ------------------------------------------------------------------ without a cluster


def test_an_address_where_nothing_answers_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"nothing answers at 127\.0\.0\.1:1 "),
        make_executor(at("127.0.0.1:1"), demand(tmp_path)),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_cluster_of_another_user_is_not_joined_by_accident(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    (tmp_path / "ray").mkdir()
    noted = tmp_path / "ray" / "ray_current_cluster"
    noted.write_text("127.0.0.1:1", encoding="utf-8")
    os.chown(noted, 12_345, 12_345)
    with (
        pytest.raises(UsageError, match="of another user"),
        make_executor(at("auto"), demand(tmp_path)),
    ):
        pass


# ------------------------------------------------------------------ a cluster of two nodes


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    with RayNodes(2) as opened:
        yield opened


@pytest.fixture
def executor(nodes: RayNodes, tmp_path: Path) -> Iterator[Executor]:
    with make_executor(at(nodes.address), demand(tmp_path)) as opened:
        yield opened


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Job]:
    def make(name: str, *arguments: str) -> Job:
        output = tmp_path / f"{name}.log"
        return Job(name, asking(tmp_path, *arguments), output, 1, "1-x", MODULE)

    return make


def ends_of(executor: Executor, count: int) -> dict[str, CompletedJob]:
    ended: dict[str, CompletedJob] = {}
    deadline = time.monotonic() + _TIMEOUT_S
    while len(ended) < count and time.monotonic() < deadline:
        ended |= {one.job.name: one for one in executor.wait(1.0)}
    return ended


def wait_until_ready(*jobs: Job) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not all(
        one.output.exists() and "ready" in one.output.read_text(encoding="utf-8") for one in jobs
    ):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def programs() -> list[psutil.Process]:
    """Of jobs that run now."""
    found = psutil.Process().children(recursive=True)
    return [one for one in found if MODULE in one.cmdline()]


@pytest.mark.slow
def test_jobs_end_with_their_codes_are_stopped_and_killed_and_none_is_left(
    executor: Executor,
    nodes: RayNodes,
    job: Callable[..., Job],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One after the other, as clusters are slow to start."""
    environment = job("environment", "environment")
    executor.start(environment)
    executor.start(job("unknown", "sleep", "x"))
    ended = ends_of(executor, 2)
    assert (ended["environment"].code, ended["unknown"].code) == (0, 1)
    assert "ValueError" in ended["unknown"].text
    found = json.loads(environment.output.read_text(encoding="utf-8"))
    assert (found["GAME_RL_CPUS"], found["OMP_NUM_THREADS"]) == ("1", "1")
    assert (found["GAME_RL_CLAIM"], found["cluster's"]) == ("1-x", "[]")
    assert found["folder"] == str(Path.cwd())

    jobs = [job("member 0", "save"), job("member 1", "save"), job("member 2", "save")]
    for one in jobs:
        executor.start(one)  # the last one waits: there are two CPUs
    wait_until_ready(*jobs[:2])
    executor.ask_to_stop()
    ended = ends_of(executor, 3)
    assert [ended[one.name].code for one in jobs[:2]] == [143, 143]
    assert ended["member 2"].was_stopped
    assert not jobs[2].output.exists()

    family = job("member 3", "family")
    executor.start(family)
    wait_until_ready(family)
    (task,) = nodes.tasks()
    left = programs()
    task.send_signal(signal.SIGKILL)
    lost = ends_of(executor, 1)["member 3"]
    assert (lost.code, lost.was_stopped) == (-signal.SIGKILL, True)
    assert lost.cause
    _, alive = psutil.wait_procs(left, timeout=_TIMEOUT_S)
    assert alive == []
    assert capfd.readouterr().out == ""  # which belongs to the events of --log json

    again = job("member 3", "environment")
    executor.start(again)
    assert ends_of(executor, 1)["member 3"].code == 0

    deaf = job("member 4", "deaf")
    executor.start(deaf)
    wait_until_ready(deaf)
    left = programs()
    executor.close()
    _, alive = psutil.wait_procs(left, timeout=_TIMEOUT_S)
    assert alive == []


@pytest.mark.soak
def test_a_job_whose_node_is_lost_is_killed_and_can_be_started_again(
    executor: Executor, nodes: RayNodes, job: Callable[..., Job]
) -> None:
    jobs = [job("member 0", "deaf"), job("member 1", "deaf")]
    for one in jobs:
        executor.start(one)
    wait_until_ready(*jobs)
    left = programs()
    nodes.lose_node()
    (lost,) = ends_of(executor, 1).values()
    assert lost.was_stopped
    executor.start(job(lost.job.name, "environment"))
    assert ends_of(executor, 1)[lost.job.name].code == 0
    executor.close()
    _, alive = psutil.wait_procs(left, timeout=_TIMEOUT_S)
    assert alive == []


@pytest.mark.soak
def test_members_that_no_node_has_room_for_are_refused(nodes: RayNodes, tmp_path: Path) -> None:
    with (
        pytest.raises(ExperimentError, match="no node of the cluster has room for a member"),
        make_executor(at(nodes.address), demand(tmp_path, ram_bytes=10**15)),
    ):
        pass


@pytest.mark.soak
def test_nodes_that_do_not_see_the_experiments_folder_are_refused(nodes: RayNodes) -> None:
    """In a mount namespace of its own, the controller has another /mnt than the nodes."""
    code = f"""
import sys
from pathlib import Path
from game_rl.errors import GameRLError
from game_rl.experiments.executors.executor import make_executor
from tests.experiments.executors.test_ray import at, demand
try:
    with make_executor(at({nodes.address!r}), demand(Path("/mnt"))):
        pass
except GameRLError as error:
    print(error)
"""
    script = 'mount -t tmpfs none /mnt && exec "$0" -c "$1"'
    arguments = ["unshare", "--mount", "sh", "-c", script, sys.executable, code]
    ended = subprocess.run(
        arguments, cwd=_ROOT, capture_output=True, encoding="utf-8", check=False, timeout=300
    )
    if "unshare" in ended.stderr or "mount:" in ended.stderr:
        pytest.skip("no right to mount")
    assert "cannot train members: /mnt is not the same folder here" in ended.stdout, ended.stderr


@pytest.mark.slow
def test_a_node_does_not_look_for_modules_in_the_current_folder(
    nodes: RayNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with make_executor(at(nodes.address), demand(tmp_path)):
        path = ray.remote(lambda: sys.path).options(num_cpus=0)
        assert str(tmp_path) not in ray.get(path.remote())


# ------------------------------------------------------------------ populations


def population(folder: Path, name: str, executor: str) -> Path:
    """Two members, two generations; the folder that it will have."""
    root = folder / name
    file = write_population(folder, root)
    text = file.read_text(encoding="utf-8").replace("members: 3", "members: 2")
    text = text.replace("generations: 3", "generations: 2").replace("share: 0.34", "share: 0.5")
    text = text.replace("candidates: 2", "candidates: 1")
    file.write_text(f"{text}executor: {executor}\n", encoding="utf-8")
    return root


@pytest.mark.slow
def test_ray_and_local_processes_give_the_same_population_and_nothing_stays(tmp_path: Path) -> None:
    before = set(_TMP.glob(_RAY_FOLDERS))
    found = []
    for name, executor in (
        ("local", "{kind: local, parallel: 2}"),
        ("ray", "{kind: ray, parallel: 2}"),
    ):
        root = population(tmp_path, name, executor)
        controller = Controller(root)
        while controller.run_for(1.0):
            pass
        assert controller.process.returncode == 0, controller.output
        assert controller.orphans() == []
        found.append((records_of(root), hashes_of(root)))
    assert found[0] == found[1]
    assert not list((tmp_path / "ray").glob(".*"))
    assert set(_TMP.glob(_RAY_FOLDERS)) <= before


@pytest.mark.soak
@pytest.mark.skipif(not private_folder.is_possible(), reason="no right to mount")
def test_without_shared_files_the_population_is_the_same_and_no_node_saw_its_folder(
    tmp_path: Path, s3_address: str
) -> None:
    """Nodes, which ran before the controller, see an empty folder where it has its own."""
    local = population(tmp_path, "local", "{kind: local, parallel: 2}")
    assert Controller(local).process.wait(_TIMEOUT_S * 5) == 0
    private_folder.make_private(tmp_path / "distant")
    with RayNodes(2) as nodes:
        executor = f"{{kind: ray, address: '{nodes.address}', storage: '{s3_address}'}}"
        root = population(tmp_path, "distant", executor)
        controller = Controller(root, nodes)
        while controller.run_for(1.0):
            pass
        assert controller.process.returncode == 0, controller.output
        assert controller.orphans() == []
        logs = [p for p in nodes.folder.rglob("*") if p.is_file()]
        assert [p for p in logs if SECRET.encode() in p.read_bytes()] == []
    content = private_folder.content_of(root)
    assert records_of(content) == records_of(local)
    assert hashes_of(content) == hashes_of(local)
    assert list(root.iterdir()) == []
    assert list(ObjectStore(s3_address).list("")) == []
    files = [p for p in content.rglob("*") if p.is_file()]
    assert [p for p in files if SECRET.encode() in p.read_bytes()] == []
    assert SECRET not in controller.output


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_controller_that_is_stopped_leaves_no_process_and_goes_on_to_the_same(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Its own cluster ends with it, by a Ctrl-C in its terminal as by a kill."""
    before = set(_TMP.glob(_RAY_FOLDERS))
    whole = population(tmp_path, "whole", "{kind: local, parallel: 2}")
    assert Controller(whole).process.wait(_TIMEOUT_S * 5) == 0
    root = population(tmp_path, "stopped", "{kind: ray, parallel: 2}")
    controller = Controller(root)
    deadline = time.monotonic() + _TIMEOUT_S
    while not list(root.glob("members/*/checkpoints/*/manifest.json")):
        assert controller.run_for(0.2), controller.output
        assert time.monotonic() < deadline
    if number == signal.SIGINT:
        os.killpg(controller.process.pid, number)
    else:
        controller.process.send_signal(number)
    expected = -number if number == signal.SIGKILL else 128 + number
    assert controller.process.wait(_TIMEOUT_S) == expected, controller.output
    assert controller.orphans() == []
    assert "Traceback" not in controller.output
    controller = Controller(root)
    assert controller.process.wait(_TIMEOUT_S * 5) == 0, controller.output
    assert (records_of(root), hashes_of(root)) == (records_of(whole), hashes_of(whole))
    assert set(_TMP.glob(_RAY_FOLDERS)) <= before


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        yield opened


def check_for(head: Head, clock: Clock, seconds: int) -> None:
    for _ in range(seconds):
        clock.now_s += 1
        head.check()


def test_a_head_that_falls_silent_is_lost_for_good(listener: socket.socket) -> None:
    clock = Clock()
    head = Head(f"127.0.0.1:{listener.getsockname()[1]}", clock=clock)
    check_for(head, clock, 60)
    listener.close()
    check_for(head, clock, 25)
    assert not head.is_lost
    with pytest.raises(ExperimentError, match=r"has not answered for 30 s.*--resume"):
        check_for(head, clock, 15)
    assert head.is_lost
    with pytest.raises(ExperimentError):  # while others are waited for
        head.check()


def test_a_short_silence_is_forgiven(listener: socket.socket) -> None:
    clock, address = Clock(), listener.getsockname()
    head = Head(f"127.0.0.1:{address[1]}", clock=clock)
    for _ in range(3):
        listener.close()
        check_for(head, clock, 20)
        listener = socket.create_server(address)
        check_for(head, clock, 10)
    listener.close()
