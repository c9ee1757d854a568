import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from game_rl.system.processes import deferred_interrupts


def test_ctrl_c_takes_effect_after_the_block() -> None:
    done: list[str] = []

    def work() -> None:
        with deferred_interrupts():
            signal.raise_signal(signal.SIGINT)
            done.append("all")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_ctrl_c_does_not_abort_a_program_that_loads_torch(tmp_path: Path) -> None:
    """An exception that Python raises in some of its C++ ends the process with SIGABRT."""
    torch = "import os\ntry:\n  os.kill(os.getpid(), 2)\nexcept KeyboardInterrupt:\n  os.abort()\n"
    (tmp_path / "torch.py").write_text(torch, encoding="utf-8")
    code = (
        "import os\n"
        "from game_rl.system.processes import end_at_once_on_ctrl_c, raise_on_ctrl_c\n"
        "end_at_once_on_ctrl_c()\n"
        "raise_on_ctrl_c()\n"
        "try:\n"
        "  os.kill(os.getpid(), 2)\n"
        "except KeyboardInterrupt:\n"
        "  import torch\n"
    )
    command = [sys.executable, "-c", code]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, env=environ, capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (130, b"interrupted\n")
