"""A process that attempts the cases of a corpus, one for each number on stdin.

Its address space is limited to a little more than its imports need, and each case has a limit of
CPU time. An input that fills the memory, crashes the emulator or never ends is thus noticed from
outside.
"""

import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from game_rl.errors import GameRLError
from tests.bad_input.case import Case, Outcome

_SPARE_BYTES = 256 * 2**20  # above what the imports took; the largest ROM has 8 MiB
_CPU_LIMIT_S = 20  # a case takes 0.1 s


def main(corpus: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryDirectory() as folder:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
        cases: tuple[Case, ...] = importlib.import_module(f"tests.bad_input.{corpus}").CASES
        _printed(printed.fileno())  # discard the output of imports
        _limit_memory()
        for line in sys.stdin:
            outcome = _attempt(cases[int(line)], Path(folder) / "input")
            if text := _printed(printed.fileno()):
                outcome = Outcome(outcome.name, "printed", text)
            answers.write(json.dumps([outcome.name, outcome.end, outcome.message]) + "\n")
            answers.flush()


def _attempt(case: Case, folder: Path) -> Outcome:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    signal.setitimer(signal.ITIMER_PROF, _CPU_LIMIT_S)  # the timer's signal ends the process
    try:
        case.attempt(folder)
    except GameRLError as error:
        return Outcome(case.name, "refused", str(error))
    except BaseException as error:  # noqa: BLE001 - such errors are what we look for
        return Outcome(case.name, "raised", f"{type(error).__name__}: {error}"[:1_000])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return Outcome(case.name, "loaded")


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    limit = pages * resource.getpagesize() + _SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _printed(descriptor: int) -> str:
    sys.stdout.flush()
    sys.stderr.flush()
    text = os.pread(descriptor, 1_000, 0).decode(errors="replace")
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return text


if __name__ == "__main__":
    main(sys.argv[1])
