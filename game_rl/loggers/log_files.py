"""A run's growing tables and journals: their length at a checkpoint, and cutting them back.

A resumed run plays again what it played after its checkpoint. Lines from there would appear twice,
so they are cut before anything is written.
"""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from game_rl.errors import UsageError
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Natural, Saved, parse_json


class TableSize(Saved):
    """Size of a table whose header may grow, which adds empty fields to older rows."""

    lines: Natural
    """Number of lines, the header included."""
    columns: Natural


def appended_files(run_dir: RunDir) -> tuple[Path, ...]:
    """Return the files of a run that are only appended to, whether they exist or not."""
    return (run_dir.monitor, run_dir.wandb_rows)


def synced_sizes(run_dir: RunDir) -> dict[str, int]:
    """Return the size in bytes of each file that exists, by name, once it is on the disk."""
    found = {}
    for path in appended_files(run_dir):
        if path.exists():
            with path.open("r+b") as file:
                os.fsync(file.fileno())
            found[path.name] = path.stat().st_size
    return found


def cut_file(path: Path, n_bytes: int | None) -> None:
    """Cut a file to its length at a checkpoint, or remove it if there was none."""
    if not path.exists():
        return
    if n_bytes is None:
        path.unlink()
    elif path.stat().st_size > n_bytes:
        os.truncate(path, n_bytes)


def table_size(path: Path) -> TableSize | None:
    """Return the size of a table; None if it does not exist or is empty."""
    content = path.read_bytes() if path.exists() else b""
    if not content:
        return None
    return TableSize(lines=content.count(b"\n"), columns=_columns(content))


def cut_table(path: Path, size: TableSize | None) -> None:
    """Cut a table to its size at a checkpoint, or remove it if there was none.

    Columns that appeared later are removed, so that a replay adds them where it did before.
    """
    if size is None:
        path.unlink(missing_ok=True)
        return
    content = path.read_bytes() if path.exists() else b""
    lines = content.split(b"\n")[: size.lines]
    if not lines or not content:
        return
    added = _columns(content) - size.columns
    header = b",".join(lines[0].split(b",")[: size.columns])
    rows = [line[: len(line) - added] if added > 0 else line for line in lines[1:]]
    cut = b"\n".join([header, *rows]) + b"\n"
    if cut != content:
        write_atomic(path, cut)


def _columns(table: bytes) -> int:
    return table.partition(b"\n")[0].count(b",") + 1


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
        rows = []
        for episode in episodes:
            success = "" if episode.is_success is None else episode.is_success
            since_s = round(episode.ended_s - self.t_start, 6)
            fields = (round(episode.reward, 6), episode.length, since_s, success)
            row = (*fields, episode.start_state, episode.timesteps)
            rows.append(",".join(map(str, row)) + "\n")
        data = "".join(rows).encode()
        while data:
            data = data[self._file.write(data) :]

    def close(self) -> None:
        self._file.close()


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
            f"{path} is damaged: its first line is not a header of SB3's Monitor; restore it from "
            "a copy, or delete it, and the next episodes start a new one"
        ) from None
