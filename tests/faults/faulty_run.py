"""Run `game-rl train` so that the disk fails or the process dies at a chosen operation.

    python -m tests.faults.faulty_run OPERATION:COUNT:FAULT RUN_DIR train --resume RUN_DIR

OPERATION is `write`, `fsync`, `mkdir`, `rename`, `link`, `unlink` or `rmdir`. It counts inside
RUN_DIR, and inside the folder that a fork fills before it is renamed to RUN_DIR. FAULT strikes at
operation number COUNT: `kill-before`, `kill-after` and, for a write, `kill-half` send SIGKILL.
`ENOSPC` and `EIO` let that operation and every later one of its kind fail. `none:0:none` only
counts. The counts are printed as JSON when the training ends. Files are written through Python's
`open`, so its raw file is wrapped.
"""

# ruff: noqa: PTH100, PTH115, PTH118
import builtins
import errno
import io
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_OPERATIONS = {
    "mkdir": "mkdir", "rename": "rename", "replace": "rename",
    "unlink": "unlink", "remove": "unlink", "rmdir": "rmdir", "link": "link",
}  # fmt: skip


class Faults:
    """A counter of operations inside one folder, which injects a fault at one of them."""

    def __init__(self, plan: str, folder: str) -> None:
        self.counts: Counter[str] = Counter()
        self.has_struck = False
        self._operation, count, self._fault = plan.split(":")
        self._at = int(count)
        self._folder = os.path.abspath(folder)
        parent, name = os.path.split(self._folder)
        self._begun = os.path.join(parent, f".{name}.fork")

    def around(self, operation: str, path: Any, act: Callable[[], Any]) -> Any:
        if not self.is_inside(path):
            return act()
        self.counts[operation] += 1
        number = self.counts[operation]
        if operation != self._operation:
            return act()
        if self._fault.startswith("E") and number >= self._at:
            self.has_struck = True
            code = getattr(errno, self._fault)
            raise OSError(code, os.strerror(code), os.fsdecode(path))
        if self._fault == "kill-before" and number == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return act()
        finally:  # also after an operation that raised, such as an unlink that found nothing
            if self._fault == "kill-after" and number == self._at:
                os.kill(os.getpid(), signal.SIGKILL)

    def half_way(self) -> None:
        if self._fault == "kill-half" and self.counts["write"] == self._at:
            os.kill(os.getpid(), signal.SIGKILL)

    def is_inside(self, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        found = os.path.abspath(os.fsdecode(path))
        return f"{found}{os.sep}".startswith(self._begun + os.sep) or found.startswith(
            self._folder + os.sep
        )


class FaultyFile(io.FileIO):
    """A file whose writes may fail or be cut in half by a kill of the process."""

    faults: Faults

    def write(self, data: Any) -> int:
        half = memoryview(data).cast("B")[: max(1, len(data) // 2)]

        def whole() -> int:
            # written in two parts, so a kill can leave half of it
            written = super(FaultyFile, self).write(half)
            self.faults.half_way()
            rest = memoryview(data).cast("B")[written:]
            return written + (super(FaultyFile, self).write(rest) if len(rest) else 0)

        return int(self.faults.around("write", self.name, whole))


@contextmanager
def injected(faults: Faults) -> Iterator[None]:
    """Inside, operations meet the faults."""
    real_open, real_fsync = builtins.open, os.fsync
    real = {name: getattr(os, name) for name in (*_OPERATIONS, "fsync")}
    FaultyFile.faults = faults

    def faulty_open(file: Any, mode: str = "r", *args: Any, **keywords: Any) -> Any:
        writes = set(mode) & set("wax+") and "b" in mode
        if writes and faults.is_inside(file):
            return io.BufferedWriter(FaultyFile(file, mode.replace("b", "")))
        return real_open(file, mode, *args, **keywords)

    def faulty_fsync(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        faults.around("fsync", path, lambda: real_fsync(descriptor))

    builtins.open = io.open = faulty_open
    os.fsync = faulty_fsync  # type: ignore[assignment]
    for name, operation in _OPERATIONS.items():
        setattr(os, name, _wrapped(real[name], operation, faults))
    try:
        yield
    finally:
        builtins.open = io.open = real_open
        for name, function in real.items():
            setattr(os, name, function)


def _wrapped(real: Callable[..., Any], operation: str, faults: Faults) -> Callable[..., Any]:
    def act(path: Any, *args: Any, **keywords: Any) -> Any:
        place = path
        if keywords.get("dir_fd") is not None:  # shutil.rmtree names files like this
            place = os.path.join(os.readlink(f"/proc/self/fd/{keywords['dir_fd']}"), path)
        if operation == "link":
            place = args[0]  # the new name
        return faults.around(operation, place, lambda: real(path, *args, **keywords))

    return act


def main() -> int:
    plan, folder, *arguments = sys.argv[1:]
    faults = Faults(plan, folder)
    with injected(faults):
        from game_rl.cli.main import main as game_rl

        code = game_rl(arguments)
    print("operations", json.dumps(faults.counts))
    print("the fault", "struck" if faults.has_struck else "never came")
    return code


if __name__ == "__main__":
    sys.exit(main())
