"""Live screens from the run's file to several clients."""

import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.live import live_stream
from tests.live.test_live_stream import KeyedPixels, draw, shades
from tests.viewer.live_run import LiveGame, ReadStream, Watching, make_run, watching

FPS = 4.0


def next_screens(stream: ReadStream) -> dict[str, Any]:
    while True:
        text, _ = stream.message()
        if text["screens"]:
            return text


def is_shown(held: KeyedPixels, drawn: np.ndarray) -> bool:
    return len(held) == 4 and all(
        (shades(held["", env]) * 85 == drawn[env]).all() for env in range(4)
    )


def test_pixels_of_the_file_reach_the_client(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    game = LiveGame(run)
    with watching(run.root) as server, server.stream("/api/frames?run=&env=1") as stream:
        held = KeyedPixels()
        for _ in range(3):
            game.step(changed=0.3)
            drawn = game.screens.copy()
            ending = time.monotonic() + 20
            while not is_shown(held, drawn):
                assert time.monotonic() < ending
                head = stream.read(4)
                draw(head + stream.read(int.from_bytes(head, "little")), held)
    game.close()


def test_the_training_writes_while_somebody_watches_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_stream, "WANT_EVERY_S", 0.1)
    run = make_run(tmp_path / "run")
    game = LiveGame(run)
    assert not game.file.is_watched()
    with watching(run.root) as server:
        with server.stream("/api/frames?run=") as stream:
            stream.message()
            time.sleep(0.5)
            assert game.file.is_watched()
        time.sleep(0.5)
        wanted = game.file._read_wanted()
        time.sleep(0.5)
        assert game.file._read_wanted() == wanted
    game.close()


def test_a_run_that_begins_later_is_shown(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with watching(run.root) as server, server.stream("/api/frames?run=") as stream:
        assert stream.message()[0] == {"screens": []}
        game = LiveGame(run)
        with game.playing(FPS):
            assert_shown_with_layout(stream, n_screens=4)
            game.close()
            again = LiveGame(run, n_envs=2)
            again.step()
            assert_shown_with_layout(stream, n_screens=2)
    again.close()


def assert_shown_with_layout(stream: ReadStream, *, n_screens: int) -> None:
    """Read until so many screens are shown; their layout comes with them or before."""
    has_layout = False
    while True:
        text, _ = stream.message()
        has_layout |= bool(text.get("layouts"))
        if len(text["screens"]) == n_screens:
            assert has_layout
            return


@pytest.mark.parametrize(("changed", "most"), [(1.0, 420_000), (0.05, 200_000)])
def test_sixteen_screens_take_less_than_400_kb_a_second(
    tmp_path: Path, changed: float, most: int
) -> None:
    """But where every pixel changes at random, which is no game: packed pixels are 369 kB."""
    run = make_run(tmp_path / "run", n_envs=16)
    game = LiveGame(run, n_envs=16, fps=FPS)
    playing = game.playing(FPS, changed=changed)
    with watching(run.root) as server, playing, server.stream("/api/frames?run=") as stream:
        timesteps: set[int] = set()
        while len(timesteps) < 9:
            timesteps |= {s["timestep"] for s in next_screens(stream)["screens"]}
        assert stream.n_bytes / len(timesteps) * FPS <= most
    game.close()


def test_a_stalled_client_slows_none_of_the_seven_others(tmp_path: Path) -> None:
    """Of four pictures a second they see three or more."""
    run = make_run(tmp_path / "run", n_envs=16)
    game = LiveGame(run, n_envs=16, fps=FPS)
    with watching(run.root) as server, ExitStack() as stack:
        stalled = stack.enter_context(socket.socket())
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        stalled.connect(("127.0.0.1", server.port))
        lines = [f"{name}: {value}" for name, value in server.headers().items()]
        asked = "\r\n".join(["GET /api/frames?run= HTTP/1.1", *lines, "", ""])
        stalled.sendall(asked.encode())  # and it reads nothing
        others = [stack.enter_context(server.stream("/api/frames?run=")) for _ in range(7)]
        shares: list[float] = []
        threads = [
            threading.Thread(target=lambda each=each: shares.append(_share_seen(each, 16)))
            for each in others
        ]
        with game.playing(FPS, changed=0.7):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        stalled.settimeout(0.2)
        left = _read_all(stalled)
    game.close()
    assert left < min(each.n_bytes for each in others) / 2
    assert len(shares) == 7
    assert min(shares) >= 0.75, shares


def _share_seen(stream: ReadStream, timesteps: int) -> float:
    """Return the share of so many timesteps of the first env that a client sees."""
    seen: set[int] = set()
    while not seen or max(seen) - min(seen) < timesteps:
        found = stream.message()[0]["screens"]
        seen |= {screen["timestep"] for screen in found if screen["env"] == 0}
    return (len(seen) - 1) / (max(seen) - min(seen))


def _read_all(connection: socket.socket) -> int:
    n_bytes = 0
    with suppress(TimeoutError, ConnectionError):
        while n_bytes < 10**7 and (part := connection.recv(65_536)):
            n_bytes += len(part)
    return n_bytes


def test_an_experiment_shows_one_screen_of_each_run(tmp_path: Path) -> None:
    games = [LiveGame(make_run(tmp_path / "runs" / name)) for name in ("one", "two")]
    with watching(tmp_path / "runs") as server, server.stream("/api/frames?run=") as stream:
        found: set[tuple[str, int]] = set()
        while len(found) < 2:
            for game in games:
                game.step()
            found |= {(s["run"], s["env"]) for s in next_screens(stream)["screens"]}
        with server.stream("/api/frames?run=two&env=0") as one:
            games[1].step()
            screens = next_screens(one)["screens"]
            assert {(s["run"], s["env"]) for s in screens} == {("two", env) for env in range(4)}
    assert found == {("one", 0), ("two", 0)}
    for game in games:
        game.close()


def test_a_folder_without_live_files_stays_quiet(server_of_old_run: Watching) -> None:
    with server_of_old_run.stream("/api/frames?run=") as stream:
        assert stream.message()[0] == {"screens": []}


@pytest.fixture
def server_of_old_run(tmp_path: Path):  # noqa: ANN201 - a generator
    with watching(make_run(tmp_path / "run").root) as server:
        yield server
