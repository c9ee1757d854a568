"""Starts the processes that upload: fresh interpreters with the lowest priority for the disk.

They are not forked, since obstore hangs in forked children.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

# `import game_rl` registers the games with Gymnasium, which takes 17 MB that an uploader does not
# need. A bare package of the same name finds the same modules.
_START = """\
import importlib, sys, types
package = types.ModuleType("game_rl")
package.__path__ = [sys.argv[1]]
sys.modules["game_rl"] = package
sys.exit(importlib.import_module(sys.argv[2]).main())
"""


def started(module: str) -> subprocess.Popen[str]:
    """Start a process that runs `main` of one of our modules, with pipes for input and output."""
    package = Path(__file__).parents[1]
    idle = ["ionice", "-c", "3"] if shutil.which("ionice") else []
    return subprocess.Popen(
        [*idle, sys.executable, "-c", _START, str(package), module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # libraries may print secrets there
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},  # whatever this terminal's is
    )
