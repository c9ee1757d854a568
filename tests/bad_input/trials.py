"""Attempt many cases in a child process, which is restarted whenever a case ends it."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from tests.bad_input.case import Case, Outcome

_WALL_LIMIT_S = 120  # for a case that waits instead of computing, even on a busy machine


class Trials:
    """The attempts of one corpus; a context manager that owns the child process."""

    def __init__(self, corpus: str, cases: Sequence[Case]) -> None:
        self._corpus = corpus
        self._cases = cases
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_child()

    def outcomes(self, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Attempt the cases with these numbers in turn, and yield their outcomes."""
        for number in numbers:
            yield self._outcome(number)

    def _outcome(self, number: int) -> Outcome:
        name = self._cases[number].name
        child = self._running()
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(f"{number}\n")
        child.stdin.flush()
        if not select.select([child.stdout], [], [], _WALL_LIMIT_S)[0]:
            self._end_child()
            return Outcome(name, "hung", f"no answer in {_WALL_LIMIT_S} s")
        answer = child.stdout.readline()
        if answer:
            return Outcome(*json.loads(answer))
        status = self._end_child()
        if status == -signal.SIGPROF:
            return Outcome(name, "hung", "the CPU time was used up")
        return Outcome(name, "died", f"exit status {status}")

    def _running(self) -> "subprocess.Popen[str]":
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.bad_input.child", self._corpus],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
        return self._child

    def _end_child(self) -> int:
        if self._child is None:
            return 0
        child, self._child = self._child, None
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.close()
        try:
            return child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()
        finally:
            child.stdout.close()
