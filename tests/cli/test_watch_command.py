"""`game-rl watch`: what it prints, refuses, and takes of the machine."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

from game_rl.cli.main import main
from game_rl.config.experiments.experiment import dump_experiment
from game_rl.files.pretrained import pretrained_agents
from tests.experiments.conftest import MakePopulation, make_population
from tests.experiments.plans.test_population_plan import carry_out
from tests.places.test_place_counts import counted
from tests.viewer.live_run import LiveGame, Watching, make_run

__all__ = ["make_population"]  # a fixture

MOST_BYTES = 60 * 10**6
MOST_RESIDENT_BYTES = 75 * 10**6  # with the libraries' pages that other processes share


@contextmanager
def watch(root: Path, *options: str) -> Iterator[tuple["subprocess.Popen[str]", str, int]]:
    """Run the command; yield its process, what it has printed, and its port."""
    command = [sys.executable, "-m", "game_rl", "watch", str(root), "--port", "0", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    )
    try:
        assert process.stdout is not None
        printed = ""
        while (found := re.search(r":(\d+)/\?token=", printed)) is None:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        yield process, printed, int(found[1])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def token_of(printed: str) -> str:
    found = re.search(r"token=(\S+)", printed)
    assert found is not None
    return found[1]


@pytest.mark.skipif(os.name != "posix", reason="elsewhere it stays in the command's process")
def test_it_serves_in_a_small_process_until_it_is_interrupted(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", n_envs=16)
    game = LiveGame(run, n_envs=16)
    with watch(run.root, "-q") as (process, printed, port):
        server = Watching(port, f"game_rl_watch_%d={token_of(printed)}")
        with (
            server.stream("/api/frames?run=&env=0") as frames,
            game.playing(4.0),
        ):
            assert server.news()["state"]["timesteps"] == 2_048
            server.json("/api/curves?run=")
            ending = time.monotonic() + 3
            while time.monotonic() < ending:
                frames.message()
            found = psutil.Process(process.pid)
            assert "game_rl.viewer" in found.cmdline()
            assert token_of(printed) not in found.cmdline()
            assert found.memory_info().rss <= MOST_BYTES
            process.send_signal(signal.SIGINT)  # while a page is open
            assert process.stdout is not None
            after = process.stdout.read()
            assert process.wait(timeout=30) == 0
        assert "Traceback" not in after
        assert "Cancel" not in after
    game.close()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="elsewhere it stays in the command's process")
def test_a_map_of_places_takes_little_more(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    rng = np.random.default_rng(0)
    steps = rng.integers(-1, 2, (24, 4_000, 2)).cumsum(axis=1)  # a walk in each of 24 maps
    places = [(room, int(x), int(y)) for room in range(24) for x, y in steps[room]]
    run.places.write_bytes(counted(places, ("room", "x", "y")).to_bytes())
    with watch(run.root, "-q") as (process, printed, port):
        server = Watching(port, f"game_rl_watch_%d={token_of(printed)}")
        server.news()
        assert len(server.json("/api/places?run=")["layers"]) == 24
        assert_small(process.pid)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="elsewhere it stays in the command's process")
def test_an_experiment_takes_little_more(make_population: MakePopulation) -> None:
    population = make_population("population")
    folder = carry_out(population)
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    with watch(folder.root, "-q") as (process, printed, port):
        server = Watching(port, f"game_rl_watch_%d={token_of(printed)}")
        assert server.news()["overview"]["generation"] == 5
        assert_small(process.pid)


def assert_small(pid: int) -> None:
    found = psutil.Process(pid).memory_full_info()
    assert found.rss <= MOST_RESIDENT_BYTES
    assert found.uss <= MOST_BYTES


@pytest.mark.slow
def test_an_agent_that_comes_with_game_rl_is_named_by_its_address() -> None:
    with watch(pretrained_agents()["duel"]) as (_, printed, _):
        assert "pretrained:duel is shown at\n" in printed


@pytest.mark.slow
def test_each_start_has_a_token_of_its_own(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with watch(run.root) as (_, first, port), watch(run.root) as (_, second, _):
        assert token_of(first) != token_of(second)
        assert len(token_of(first)) >= 43  # 32 bytes
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/?token={token_of(second)}", timeout=20)


@pytest.mark.slow
def test_it_warns_where_others_can_reach_it(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with watch(run.root, "--host", "0.0.0.0") as (_, printed, port):  # noqa: S104 - what is tested
        assert f"ssh -L {port}:127.0.0.1:{port}" in printed
        assert "not encrypted" in printed
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20)


def test_a_port_that_is_taken_is_named_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["watch", str(run.root), "--port", str(port)]) == 2
    error = capsys.readouterr().err
    assert f"port {port} of 127.0.0.1" in error
    assert f"--port {port + 1}" in error


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["runs/none"], "does not exist"),
        (["."], "it has no config.yaml"),
        (["file.yaml"], "is a file, not a run directory"),
        (["run", "--port", "65536"], "the highest port is 65,535"),
        (["run", "--port", "-1"], "'-1' is not a whole number"),
        (["run", "--allow-host", "http://hub/"], "--allow-host http://hub/"),
        (["run", "--host", "no.such.host.invalid"], "--host no.such.host.invalid"),
        ([], "game-rl watch runs/duel_ppo"),
    ],
)
def test_mistakes(
    words: list[str],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_run(tmp_path / "place" / "run")
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "place" / "file.yaml").touch()
    monkeypatch.chdir(empty if words == ["."] else tmp_path / "place")
    assert main(["watch", *words]) == 2
    assert text in capsys.readouterr().err
