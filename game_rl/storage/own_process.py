"""How a process that sends something is started: a fresh interpreter, since forked children of
obstore hang, with the lowest priority for the disk.
"""

import shutil
import subprocess
import sys
from pathlib import Path

# `import game_rl` makes the games known to Gymnasium, which takes 17 MB that an uploader does not
# need: a bare package of the same name finds the same modules.
_START = """\
import importlib, sys, types
package = types.ModuleType("game_rl")
package.__path__ = [sys.argv[1]]
sys.modules["game_rl"] = package
sys.exit(importlib.import_module(sys.argv[2]).main())
"""


def started(module: str) -> subprocess.Popen[str]:
    """A process that runs `main` of a module of ours; text goes to it and comes from it."""
    package = Path(__file__).parents[1]
    idle = ["ionice", "-c", "3"] if shutil.which("ionice") else []
    return subprocess.Popen(
        [*idle, sys.executable, "-c", _START, str(package), module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # what a library prints there may have secrets in it
        text=True,
    )
