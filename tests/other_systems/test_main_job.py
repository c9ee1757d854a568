"""What a person does with a run, without what only Linux has (`hidden/sitecustomize.py`).

On another system the same tests try what that system has itself.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from tests.faults import population_faults, training_faults
from tests.faults.population_faults import write_population
from tests.faults.trainings import COMPARED, Tally
from tests.tiny_run import TINY

ROOT = Path(__file__).parents[2]
HIDDEN = Path(__file__).parent / "hidden"
PATH = os.pathsep.join([*([str(HIDDEN)] if sys.platform == "linux" else []), str(ROOT)])
_WITHIN_S = 300.0
_END = 320
_NOT_IN_WINDOWS = re.compile(
    r'[<>:"/\\|?*\x00-\x1f]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)', re.IGNORECASE
)


def environment() -> Mapping[str, str]:
    return os.environ | {"PYTHONPATH": PATH, "COLUMNS": "200", "OMP_NUM_THREADS": "1"}


_started: list["subprocess.Popen[str]"] = []


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    while _started:
        with _started.pop() as process:
            process.kill()


def start(*words: object) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-m", "game_rl", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=environment(),
    )
    _started.append(process)
    return process


def output_of(process: "subprocess.Popen[str]") -> str:
    output, _ = process.communicate(timeout=_WITHIN_S)
    assert process.returncode == 0, output
    return output


def write_config(run_dir: Path, *, lake: bool) -> Path:
    path = run_dir.with_suffix(".yaml")
    text = TINY.format(run_dir=run_dir).replace("192", str(_END))
    path.write_text(text + ("lake: {}\n" if lake else ""), encoding="utf-8")
    return path


def kill_after(
    process: "subprocess.Popen[str]", checkpoint: Path
) -> tuple[list[psutil.Process], set[Path]]:
    """Kill a training once it has written this checkpoint.

    Returns:
        The child processes that it had, and the files of its shared memory (on Linux).
    """
    deadline = time.monotonic() + _WITHIN_S
    while not checkpoint.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.005)
    children = psutil.Process(process.pid).children(recursive=True)
    shared = set()
    if sys.platform == "linux":
        maps = psutil.Process(process.pid).memory_maps()
        shared = {Path(one.path) for one in maps if "/psm_" in one.path}
    process.kill()
    process.communicate()
    return children, shared


def hashes(run_dir: Path) -> dict[str, str]:
    manifest = run_dir / "checkpoints" / f"{_END:012d}" / "manifest.json"
    files = json.loads(manifest.read_text(encoding="utf-8"))["files"]
    return {name: files[name]["sha256"] for name in COMPARED if name in files}


@pytest.mark.slow
def test_a_run_that_was_killed_ends_like_one_that_was_not_and_can_be_used(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    undisturbed = start("train", "--config", write_config(whole, lake=True), "--force")
    training = start("train", "--config", write_config(killed, lake=True), "--force")
    children, shared = kill_after(training, killed / "checkpoints" / f"{64:012d}")
    assert len(children) > 1
    assert not (killed / "checkpoints" / f"{_END:012d}").exists()
    _, alive = psutil.wait_procs(children, timeout=_WITHIN_S)
    assert not alive
    assert len(shared) == (2 if sys.platform == "linux" else 0)  # of training and evaluation
    assert not [path for path in shared if path.exists()]
    output_of(start("train", "--resume", killed, "--force"))
    output_of(undisturbed)
    assert len(hashes(whole)) >= 3
    assert hashes(killed) == hashes(whole)

    table = start("evaluate", killed, "--episodes", 2)
    clip = tmp_path / "clip.gif"
    output_of(start("record", killed, "--output", clip))
    assert clip.read_bytes()[:6] == b"GIF89a"
    assert "mean reward" in output_of(table)
    names = [path.relative_to(tmp_path) for path in tmp_path.rglob("*")]
    assert not [name for name in names if _NOT_IN_WINDOWS.search(name.name)]
    assert len({str(name).casefold() for name in names}) == len(names)


_IMPORT_ALL = """\
import importlib, os, pkgutil, signal
import stable_baselines3, torch, pyboy, rich, obstore  # and what they need of this system
import wandb, uvicorn
import torch.utils.tensorboard, matplotlib.pyplot, asyncio, multiprocessing.forkserver, tempfile
import xml.etree.ElementTree, http.server, concurrent.futures
for module, names in {
    signal: "SIGKILL SIGCHLD SIGPIPE SIGQUIT SIGSTOP SIGCONT pause ITIMER_REAL",
    os: "killpg getuid geteuid getgid getpgid setpgid getsid mkfifo chown sysconf WNOHANG P_PID",
}.items():
    for name in names.split():
        vars(module).pop(name, None)
import game_rl
for found in pkgutil.walk_packages(game_rl.__path__, "game_rl."):
    if found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        if error.name not in ("ray",):
            raise
"""


@pytest.mark.slow
def test_every_module_can_be_imported_on_a_system_that_lacks_it() -> None:
    command = [sys.executable, "-c", _IMPORT_ALL]
    subprocess.run(command, check=True, timeout=_WITHIN_S, env=environment())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="this system can do it, or is not hidden")
def test_what_cannot_work_is_refused_in_one_line_before_anything_is_written(tmp_path: Path) -> None:
    population = write_population(tmp_path, tmp_path / "population")
    with population.open("a", encoding="utf-8") as file:
        file.write("executor: {kind: ray}\n")
    refused = start("train", "--config", population, "--force")
    output, _ = refused.communicate(timeout=_WITHIN_S)
    assert refused.returncode == 2, output
    assert output.splitlines()[-1].startswith("error: executor.kind: ray does not work"), output
    assert not (tmp_path / "population").exists()


@pytest.mark.parametrize(
    ("algorithm", "kills"),
    [
        pytest.param("dqn-lake", "2", marks=pytest.mark.slow),
        *(pytest.param(name, "10", marks=pytest.mark.soak) for name in ("ppo", "dqn-lake", "pqn")),
    ],
)
def test_kills_lose_nothing(
    algorithm: str, kills: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", PATH)
    arguments = ["--only", "kill", "--kills", kills, "--algorithm", algorithm]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.slow
def test_a_population_whose_controller_is_killed_while_members_train_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare it with one whose members were forked, where this system forks."""
    bench = population_faults.PopulationBench(tmp_path, 0, kind="pair")
    monkeypatch.setenv("PYTHONPATH", PATH)
    folder = bench.new("killed")
    controller = population_faults.Controller(folder)
    while not list(folder.glob("members/*/checkpoints/*")):
        assert controller.run_for(0.1), controller.output
    assert population_faults.strike("controller", controller, bench)
    controller.process.wait(_WITHIN_S)
    assert population_faults.judge("controller", controller, "killed") == []
    assert not bench.is_complete(folder)
    tally = Tally()
    population_faults.finish(bench, folder, tally, "killed")
    assert tally.problems == []


@pytest.mark.soak
def test_a_population_whose_processes_are_killed_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", PATH)
    arguments = ["--only", "controller", "member", "--kills", "2"]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert population_faults.main() == 0, capsys.readouterr().out
