"""Runs every command of the docs in a fresh clone: `python docs/check_commands.py [PAGE ...]`.

A command is a block tagged `bash`, or the lines of a block tagged `console` that begin with `$ `.
The blocks of a page run in one shell, in their order, in a clone of the commit that is checked out,
with the Python that runs this script. HTML comments, which no reader sees, change how:

    <!-- setup: COMMAND -->          run this here, too
    <!-- with KEY=VALUE ... -->      for every later command that begins a run from a config
    <!-- replace A with B -->        in every later command
    <!-- writes FILE -->             the next block is the content of this file
    <!-- puts FILE -->               the next block becomes a section of this YAML file
    <!-- instead: COMMAND -->        run this in place of the next block
    <!-- exit N -->                  each command of the next block ends with this exit code
    <!-- not run: REASON -->         the next block is left out

At most a tenth of the blocks of all pages may be left out. The exit code is 1 if a page fails, or
more are.
"""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_LEFT_OUT = 0.1
_FENCE = re.compile(r"^( *)(`{3,})(.*?)\s*$")
_COMMENT = re.compile(
    r"^ *<!-- (setup:|with|replace|writes|puts|instead:|exit|not run:) ?(.*) -->$"
)
_BEGINS_A_RUN = re.compile(
    r" *(game-rl|python train\.py) .*?(train|import|--config)\b"
    r"(?!.*(--resume|--smoke|total_timesteps=))"
)


_PRELUDE = r"""
set -e
write_file() { mkdir -p "$(dirname "$1")"; cat > "$1"; }
put_section() { python -c '
import re, sys
from pathlib import Path
path, block = Path(sys.argv[1]), sys.stdin.read()
name = re.match(r"\w+:", block)[0]
section = re.compile(rf"^{name}.*\n(?:[ #].*\n|\n(?=[ ]))*", re.MULTILINE)
path.write_text(section.sub("", path.read_text()).rstrip() + "\n\n" + block)
' "$1"; }
"""


@dataclass(frozen=True)
class Block:
    """A block of commands, or of a file's content, with the comments directly above it."""

    line: int
    language: str
    text: str
    notes: tuple[tuple[str, str], ...]

    def note(self, name: str) -> str | None:
        return next((value for key, value in self.notes if key == name), None)

    @property
    def is_command(self) -> bool:
        return self.language in {"bash", "console"}


@dataclass
class Page:
    """A page as a shell script, and what became of its blocks."""

    path: Path
    blocks: int = 0
    instead: int = 0
    left_out: list[str] = field(default_factory=list)
    script: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))


def parts_of(text: str) -> Iterator[Block | tuple[str, str]]:
    """Yield the blocks of a page and, apart from those of one block, its comments in order."""
    notes: list[tuple[str, str]] = []
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        if comment := _COMMENT.match(line):
            name, value = comment[1].rstrip(":"), comment[2].strip()
            if name in {"setup", "with", "replace"}:
                yield name, value
            else:
                notes.append((name, value))
        elif fence := _FENCE.match(line):
            inside = []
            for _, inner in lines:
                if inner.strip() == fence[2]:
                    break
                inside.append(inner.removeprefix(fence[1]))
            yield Block(number, fence[3], "\n".join(inside) + "\n", tuple(notes))
            notes = []
        elif line.strip():
            notes = []


def read(path: Path) -> Page:
    page, replaced, extra = Page(path), {}, ""
    for part in parts_of(path.read_text(encoding="utf-8")):
        match part:
            case ("setup", command):
                page.script.append(command)
            case ("with", keys):
                extra = keys
            case ("replace", words):
                old, new = words.split(" with ")
                replaced[old] = new
            case Block():
                page.script += _steps(page, part, replaced, extra)
    return page


def _steps(page: Page, block: Block, replaced: dict[str, str], extra: str) -> Iterator[str]:
    """Yield the lines of the shell script for one block."""
    for name, function in (("writes", "write_file"), ("puts", "put_section")):
        if file := block.note(name):
            yield f"{function} {shlex.quote(file)} <<'END_OF_BLOCK'\n{block.text}END_OF_BLOCK"
    if not block.is_command:
        return
    page.blocks += 1
    if reason := block.note("not run"):
        page.left_out.append(f"{page.name}:{block.line}: {reason}")
        return
    yield f"echo '@@ {page.name}:{block.line}'"
    if (command := block.note("instead")) is not None:
        page.instead += 1
        yield command
        return
    text = block.text
    if block.language == "console":
        text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
    for old, new in replaced.items():
        text = text.replace(old, new)
    lines = (_with(line, extra) for line in text.replace("\\\n", " ").splitlines())
    code = block.note("exit")
    for line in lines:
        yield line if code is None else f"code=0; {line} || code=$?; [ $code = {code} ]"


def _with(line: str, extra: str) -> str:
    command, mark, comment = line.partition("  #")
    if not extra or not _BEGINS_A_RUN.match(command):
        return line
    return f"{command} {extra}{mark}{comment}"


def run(page: Page, scratch: Path, timeout_s: float) -> str | None:
    """Run a page, and return why it failed, or None."""
    clone = scratch / page.name.replace("/", "_").removesuffix(".md")
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    (clone / ".venv").symlink_to(sys.prefix)
    binaries = Path(sys.prefix) / "bin"
    env = os.environ | {"PATH": f"{binaries}:{os.environ['PATH']}", "PYTHONPATH": str(clone)}
    script = "\n".join([_PRELUDE, *page.script, ""])
    log = clone.with_suffix(".log")
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=clone,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code == 0:
        return None
    shown = log.read_text(encoding="utf-8", errors="replace").splitlines()
    at = next((line[3:] for line in reversed(shown) if line.startswith("@@ ")), page.name)
    return f"{at}: exit code {code}; {log}\n    " + "\n    ".join(shown[-6:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, help="pages (default: all, and README.md)")
    parser.add_argument("--scratch", type=Path, help="folder of clones and logs (default: new)")
    parser.add_argument("--timeout", type=float, default=900, help="seconds a page may take")
    parser.add_argument("--list", action="store_true", help="count the blocks, run nothing")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the page's processes end, too
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    chosen = [path.resolve() for path in arguments.pages] or [
        path for path in found if "_build" not in path.parts
    ]
    pages = [page for page in map(read, chosen) if page.script or page.blocks]
    scratch = arguments.scratch or Path(tempfile.mkdtemp(prefix="game_rl_docs_"))
    failed = 0
    for page in pages:
        began = time.monotonic()
        fault = None if arguments.list else run(page, scratch, arguments.timeout)
        failed += fault is not None
        took = "" if arguments.list else f", {time.monotonic() - began:.0f} s"
        print(
            f"{page.name}: {page.blocks} blocks, {page.instead} in another form, "
            f"{len(page.left_out)} left out{took}{'' if fault is None else ': FAILED'}",
            flush=True,
        )
        if fault is not None:
            print(f"  {fault}", flush=True)
    blocks, left_out = sum(p.blocks for p in pages), sum(len(p.left_out) for p in pages)
    print(f"{blocks} blocks, {left_out} left out ({left_out / max(blocks, 1):.0%})")
    for page in pages:
        for reason in page.left_out:
            print(f"  {reason}")
    are_all = not arguments.pages
    return int(failed > 0 or (are_all and left_out > MOST_LEFT_OUT * blocks))


if __name__ == "__main__":
    sys.exit(main())
