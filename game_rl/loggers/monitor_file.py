"""`monitor.csv`: a row for each episode of the training, in the format of SB3's Monitor."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from game_rl.errors import UsageError
from game_rl.files.saved import parse_json

_COLUMNS = "r,l,t,is_success,start_state,timesteps"


@dataclass(frozen=True, kw_only=True)
class MonitoredEpisode:
    """A training episode that has ended.

    Attributes:
        length: in timesteps.
        is_success: None if the game does not define success.
        start_state: name of the start state; empty if the env does not tell.
        timesteps: timesteps of the run, over all envs, when it ended.
        ended_s: time at which it ended, in seconds since 1970.
    """

    reward: float
    length: int
    is_success: bool | None
    start_state: str
    timesteps: int
    ended_s: float


class MonitorFile:
    """The file, open for appending. `stable_baselines3.common.monitor.load_results` reads it.

    Times count from the first line of the run's file, so after a resume they include the pause.

    Args:
        env_id: name of the game, for the header.

    Attributes:
        t_start: time of the first line, in seconds since 1970.
    """

    def __init__(self, path: Path, env_id: str) -> None:
        found = _t_start(path)
        self.t_start = time.time() if found is None else found
        self._file = path.open("ab", buffering=0)
        if found is None:
            header = json.dumps({"t_start": self.t_start, "env_id": env_id})
            self._file.write(f"#{header}\n{_COLUMNS}\n".encode())

    def add(self, episodes: Sequence[MonitoredEpisode]) -> None:
        """Append a row for each episode, in one write.

        Raises:
            OSError: the disk fails.
        """
        data = "".join(map(self._row, episodes)).encode()
        while data:
            data = data[self._file.write(data) :]

    def close(self) -> None:
        self._file.close()

    def _row(self, episode: MonitoredEpisode) -> str:
        success = "" if episode.is_success is None else str(episode.is_success)
        since_s = round(episode.ended_s - self.t_start, 6)
        fields = (round(episode.reward, 6), episode.length, since_s, success)
        return ",".join(map(str, (*fields, episode.start_state, episode.timesteps))) + "\n"


def _t_start(path: Path) -> float | None:
    """Return the time in the header; None if the file does not exist or is empty."""
    if not path.exists() or not path.stat().st_size:
        return None
    with path.open("rb") as file:
        line = file.readline()
    try:
        return float(parse_json(line[1:])["t_start"])
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f"{path} is damaged: its first line is no header of SB3's Monitor; restore it from a "
            "copy, or delete it, and the next episodes begin a new one"
        ) from None
