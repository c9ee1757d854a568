"""A run's growing tables and journals: their length at a checkpoint, and cutting them back.

A resumed run plays again what it played after its checkpoint. Lines from there would appear twice,
so they are cut before anything is written.
"""

import os
from pathlib import Path

from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Natural, Saved


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
