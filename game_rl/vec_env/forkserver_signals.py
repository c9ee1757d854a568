"""Make the forkserver that workers are forked from ignore what is sent to all of a job.

Only the forkserver imports this module. A batch system sends SIGTERM or SIGUSR1 to every process of
a job. If the forkserver died of one, every worker would look dead to the training, which needs the
workers to save the run. Processes forked from the server get the default handlers back, and our
workers then set their own.

Ctrl-C reaches them all as well. The server itself ignores it anyway; what is forked from it does so
too, since a worker that has just begun would end with a traceback.
"""

import os
import signal

_IGNORED = [getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name)]


def _set_all(handler: signal.Handlers) -> None:
    for number in _IGNORED:
        signal.signal(number, handler)


_set_all(signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)  # multiprocessing gives this to what it forks
os.register_at_fork(after_in_child=lambda: _set_all(signal.SIG_DFL))
