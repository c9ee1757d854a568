"""Imported by the server that workers are forked from, and by nobody else: it outlives signals.

A batch system sends SIGTERM or SIGUSR1 to every process of a job. If the server died of it, every
worker would look dead to the training, which needs them to save the run. What is forked from the
server has the usual handlers again; our workers set their own.
"""

import os
import signal

_IGNORED = [getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name)]


def _set_all(handler: signal.Handlers) -> None:
    for number in _IGNORED:
        signal.signal(number, handler)


_set_all(signal.SIG_IGN)
os.register_at_fork(after_in_child=lambda: _set_all(signal.SIG_DFL))
