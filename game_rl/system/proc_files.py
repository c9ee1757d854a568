"""Read small text files of the kernel in /proc and cgroups. Unreadable files count as empty."""

from pathlib import Path


def read_text(path: Path) -> str:
    """Return the file's text; "" if it does not exist, cannot be read, or its process has ended."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def read_number(path: Path) -> int | None:
    text = read_text(path).strip()
    return int(text) if text.isdigit() else None  # "max" and "-1" mean no limit


def read_table(path: Path) -> dict[str, int]:
    """Return the first number of each "name: number ..." line of meminfo, memory.stat or smaps."""
    table = {}
    for line in read_text(path).splitlines():
        words = line.split()
        if len(words) >= 2 and words[1].isdigit():
            table[words[0].rstrip(":")] = int(words[1])
    return table
