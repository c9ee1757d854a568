"""A run directory with events and a live file, and a server that shows it, for tests."""

import http.client
import json
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.envs.make_env import make_observation_format
from game_rl.events import Begun, CheckpointSaved, Evaluated, Event, RolloutEnded, Warned
from game_rl.events.event_log import EventFile
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.live.live_writer import (
    LiveFile,
    ShownStep,
    SlotWriter,
    make_live_layout,
    open_live_file,
)
from game_rl.viewer.watch_server import listen, make_server
from game_rl.viewer.watched_place import WatchedPlace

TOKEN = "a-token-of-the-tests"  # noqa: S105 - of no secret
RUN_ID = "0123456789abcdef0123456789abcdef"


def first_events() -> list[Event]:
    return [
        Begun(run=RUN_ID, algorithm="ppo", total_timesteps=8_192, frame_skip=8, device="cpu",
              precision="float32"),
        RolloutEnded(timesteps=1_024, timesteps_per_s=500.0, mean_reward=-2.5, success_rate=0.25),
        Evaluated(timesteps=1_024, policy_timesteps=1_024, episodes=20, mean_reward=1.5,
                  std_reward=0.5, success_rate=0.4, mean_length=60, seconds=2, is_best=True),
        CheckpointSaved(timesteps=1_024, checkpoint="000000001024", n_bytes=2**20, seconds=0.5,
                        contents=("policy",)),
        RolloutEnded(timesteps=2_048, timesteps_per_s=512.0, mean_reward=0.75, success_rate=0.5),
        Warned(timesteps=2_048, text="a <b>warning</b> & more"),
    ]  # fmt: skip


def make_run(root: Path, events: list[Event] | None = None, *, n_envs: int = 4) -> RunDir:
    root.mkdir(parents=True)
    run = RunDir(root)
    run.config.write_text(f"game: duel\nenv: {{n_envs: {n_envs}}}\n", encoding="utf-8")
    run.identity(run_id=RUN_ID)
    with EventFile(run.events) as file:
        for event in first_events() if events is None else events:
            file.add(event)
    return run


class LiveGame:
    """Writes random screens of several envs into a run's live file."""

    def __init__(self, run: RunDir, *, n_envs: int = 4, fps: float = 4.0, seed: int = 0) -> None:
        game = load_game("duel")
        config = EnvConfig(observation=ObservationConfig(parts=("status",)))
        self.layout = make_live_layout(
            game,
            make_observation_format(config, game),
            run_id=RUN_ID,
            n_envs=n_envs,
            fps=fps,
            has_probabilities=True,
        )
        self.file = LiveFile(run.live_frames, self.layout)
        self._descriptor = open_live_file(run.live_frames)
        self._writers = [SlotWriter(self._descriptor, self.layout, k) for k in range(n_envs)]
        self.rng = np.random.default_rng(seed)
        self.screens = np.zeros((n_envs, 144, 160), np.uint8)
        self.timestep = 0

    def step(self, *, changed: float = 1.0) -> None:
        """Write a timestep of each env.

        Args:
            changed: share of the pixels that are drawn anew.
        """
        self.timestep += 1
        layout = self.layout
        for env, writer in enumerate(self._writers):
            where = self.rng.random((144, 160)) < changed
            drawn = self.rng.integers(0, 4, (144, 160), dtype=np.uint8) * 85
            self.screens[env][where] = drawn[where]
            step = ShownStep(
                screen=np.repeat(self.screens[env][:, :, None], 3, axis=2),
                start_state=layout.start_states[0],
                episode_timestep=self.timestep,
                reward_terms={name: float(env + n) for n, name in enumerate(layout.reward_terms)},
                variables={v.name: float(env) for v in layout.variables},
            )
            observation = {
                part.name: np.ones(
                    next(f.shape for f in layout.slot if f.name == f"part.{part.name}")
                )
                for part in layout.parts
            }
            writer.write(step, observation, action=env % 3, timestep=self.timestep)
        rows = np.full((layout.n_envs, 1 + len(layout.actions)), 0.125, np.float32)
        self.file.write_values(self.timestep, rows)

    @contextmanager
    def playing(self, fps: float, *, changed: float = 0.02) -> Iterator[None]:
        """Write so many timesteps a second in a thread."""
        ending = threading.Event()

        def play() -> None:
            while not ending.wait(1 / fps):
                self.step(changed=changed)

        thread = threading.Thread(target=play)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    def close(self) -> None:
        self.file.close()


@dataclass
class Watching:
    """A server of this process."""

    port: int
    cookie: str = field(default=f"game_rl_watch_%d={TOKEN}")

    def headers(self, **more: str) -> dict[str, str]:
        own = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie % self.port}
        return own | {name.replace("_", "-"): value for name, value in more.items()}

    def get(
        self, path: str, *, headers: dict[str, str] | None = None, method: str = "GET"
    ) -> tuple[int, dict[str, str], bytes]:
        """Send exactly these headers, or those of a browser that knows the token."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            client.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in (self.headers() if headers is None else headers).items():
                client.putheader(name, value)
            client.endheaders()
            answer = client.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()
        finally:
            client.close()

    def json(self, path: str) -> Any:
        status, _, body = self.get(path)
        assert status == 200, body
        return json.loads(body)

    def news(self, run: str = "", after: str = "") -> dict[str, Any]:
        """Return what the page asks for again and again."""
        found: dict[str, Any] = self.json(f"/api/state?run={run}&after={after}")
        return found

    def later_news(self, key: str, after: str, run: str = "") -> dict[str, Any]:
        """Ask until there is something new of a kind; files are read once a second."""
        for _ in range(200):
            found = self.news(run, after)
            if key in found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"no {key} comes")

    def raw(self, content: bytes, *, timeout_s: float = 20) -> bytes:
        """Send bytes, and return all that comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout_s) as connection:
            connection.sendall(content)
            parts = []
            while part := connection.recv(65_536):
                parts.append(part)
            return b"".join(parts)

    def stream(self, path: str, **headers: str) -> "ReadStream":
        return ReadStream(self, path, self.headers(**headers))


@contextmanager
def watching(root: Path, allowed: tuple[str, ...] = ()) -> Iterator[Watching]:
    """Serve a place in a thread.

    Args:
        allowed: more names of the host.
    """
    listening = listen("127.0.0.1", 0)
    port = int(listening.getsockname()[1])
    server = make_server(
        WatchedPlace(root), host="127.0.0.1", port=port, token=TOKEN, allowed=allowed
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield Watching(port)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


class ReadStream:
    """An answer without an end, read with the protocol's plainest means."""

    def __init__(self, server: Watching, path: str, headers: dict[str, str]) -> None:
        self.client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        self.client.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            self.client.putheader(name, value)
        self.client.endheaders()
        self.answer = self.client.getresponse()
        self.status = self.answer.status
        self.n_bytes = 0

    def message(self) -> tuple[dict[str, Any], bytes]:
        """Return the text and the blocks of the next message on screens."""
        head = self.read(4)
        body = zlib.decompress(self.read(int.from_bytes(head, "little")))
        size = int.from_bytes(body[:4], "little")
        return json.loads(body[4 : 4 + size]), body[4 + size :]

    def read(self, n_bytes: int) -> bytes:
        content = self.answer.read(n_bytes)
        assert len(content) == n_bytes
        self.n_bytes += n_bytes
        return content

    def close(self) -> None:
        self.answer.close()
        self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
