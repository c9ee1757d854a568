"""Small text files of the kernel: /proc and cgroups. What cannot be read is empty."""

from pathlib import Path


def read_text(path: Path) -> str:
    """The file's text; empty when it is not there, ended, or is not ours to read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def read_number(path: Path) -> int | None:
    text = read_text(path).strip()
    return int(text) if text.isdigit() else None  # "max" and "-1" mean no limit


def read_table(path: Path) -> dict[str, int]:
    """First number of each "name: number ..." line, as meminfo, memory.stat and smaps have."""
    table = {}
    for line in read_text(path).splitlines():
        words = line.split()
        if len(words) >= 2 and words[1].isdigit():
            table[words[0].rstrip(":")] = int(words[1])
    return table
