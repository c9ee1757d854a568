"""What the forkserver's signal handlers leave to the processes that are forked from it."""

import subprocess
import sys

CODE = """
import multiprocessing, signal
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["game_rl.system.forkserver_signals"])
with context.Pool(1) as pool:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
        print(pool.apply(signal.getsignal, (number,)).name)
"""


def test_what_is_forked_ignores_ctrl_c_alone() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", CODE],
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    ).stdout
    assert printed.split() == ["SIG_IGN", "SIG_DFL", "SIG_DFL", "SIG_DFL"]
