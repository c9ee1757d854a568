"""A play of duel behind a server of this process, and a page that speaks to it, for tests."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from websockets.sync.client import ClientConnection, connect

from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.envs.make_env import make_game_env
from game_rl.envs.packing import FramePacking
from game_rl.game_check.recorded_episode import LONGEST_EPISODE_TIMESTEPS
from game_rl.games.definition import load_game
from game_rl.play.play_files import PlayFiles
from game_rl.play.play_session import PlaySession
from game_rl.play.play_table import PlayTable
from game_rl.viewer.play_server import PlayServer
from game_rl.viewer.watch_server import listen
from tests.viewer.live_run import TOKEN, Watching

PACKING = FramePacking(shape=(1, 144, 160), bits=2)


@contextmanager
def duel_table(folder: Path, *, frame_skip: int = 4) -> Iterator[PlayTable]:
    game = load_game("duel")
    config = EnvConfig(
        max_episode_timesteps=LONGEST_EPISODE_TIMESTEPS,
        frame_skip=frame_skip,
        observation=ObservationConfig(size="full"),
    )
    with closing(make_game_env(config, game, draws=True)) as env:
        session = PlaySession(env, frame_skip=frame_skip)
        session.begin("level_1", seed=5)
        files = PlayFiles(folder / "duel.json", game=game, game_file=None)
        yield PlayTable(session, files, title="Duel", seed=5)


@contextmanager
def served(table: PlayTable) -> Iterator[Watching]:
    """Serve a table in a thread."""
    listening = listen("127.0.0.1", 0)
    port = int(listening.getsockname()[1])
    server = PlayServer(table, host="127.0.0.1", port=port, token=TOKEN)
    thread = threading.Thread(target=server.run, args=(listening,))
    thread.start()
    try:
        while not server.has_started:
            time.sleep(0.01)
        yield Watching(port, f"game_rl_play_%d={TOKEN}")
    finally:
        server.end()
        thread.join()
        listening.close()


def open_socket(
    server: Watching, path: str = "/api/play", **headers: str | None
) -> ClientConnection:
    """Open a WebSocket with the headers of the own page, or with others; None: without."""
    own = {"Origin": f"http://127.0.0.1:{server.port}", "Cookie": server.cookie % server.port}
    given = {name: value for name, value in (own | headers).items() if value is not None}
    address = f"ws://127.0.0.1:{server.port}{path}"
    return connect(address, additional_headers=given, open_timeout=20, proxy=None)


@dataclass
class FakePage:
    """What the page in the browser does, without a browser."""

    socket: ClientConnection
    texts: list[dict[str, Any]] = field(default_factory=list)
    packed: Any = field(default_factory=lambda: np.zeros(PACKING.nbytes, np.uint8))
    frame: int = -1
    taken: int = 0
    n_pictures: int = 0

    def send(self, **message: object) -> None:
        if "do" in message:
            message = {"name": "", **message}
        self.socket.send(json.dumps(message))

    def read(self) -> None:
        """Take the next message."""
        content = self.socket.recv(timeout=20)
        if isinstance(content, str):
            self.texts.append(json.loads(content))
            return
        self.frame = int.from_bytes(content[:4], "little")
        self.taken = int.from_bytes(content[4:8], "little")
        self.packed = self.packed ^ np.frombuffer(content[8:], np.uint8)
        self.n_pictures += 1
        self.send(seen=self.n_pictures)

    def until(self, key: str, **wanted: object) -> Any:
        """Take messages until there is a new text of this kind that has these values."""
        while True:
            self.read()
            if self.texts:
                found = self.texts[-1].get(key)
                values = found if isinstance(found, dict) else {}
                if found is not None and wanted.items() <= values.items():
                    return found

    def until_input(self, number: int) -> None:
        while self.taken < number:
            self.read()

    @property
    def screen(self) -> np.ndarray[Any, Any]:
        return PACKING.unpack(self.packed)[0]

    def newest(self, key: str) -> Any:
        return next(text[key] for text in reversed(self.texts) if key in text)
