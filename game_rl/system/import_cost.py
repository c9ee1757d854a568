"""Memory that the training's libraries take once they are imported, measured on this installation.

It depends on the build of torch: with the one for CUDA, importing takes several hundred MB more
than with the one for CPUs, even on a machine without a GPU.
"""

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from game_rl.files.durable_files import write_atomic
from game_rl.system.processes import python_variables

_LIBRARIES = ("torch", "stable_baselines3", "tensorboard", "pyboy", "numpy")
_TIMEOUT_S = 120.0  # a slow disk takes half a minute for the first import
# The Rss of a process is what it has mapped and touched, however many others share its libraries.
_CHILD = """\
import json
import pyboy, stable_baselines3, torch, torch.utils.tensorboard
for line in open("/proc/self/smaps_rollup"):
    if line.startswith("Rss:"):
        print(json.dumps({"bytes": int(line.split()[1]) * 1024, "cuda": torch.version.cuda}))
"""
_PORTABLE_CHILD = """\
import json
import psutil, pyboy, stable_baselines3, torch, torch.utils.tensorboard
size = psutil.Process().memory_info().rss
print(json.dumps({"bytes": size, "cuda": torch.version.cuda}))
"""


@dataclass(frozen=True)
class ImportCost:
    """Memory of a process that has imported torch, SB3, TensorBoard and PyBoy, and done no more.

    Attributes:
        bytes: its resident set size.
        cuda: the version of CUDA that torch was built for; None for a build without CUDA.
    """

    bytes: int
    cuda: str | None


USUAL_IMPORT_COST = ImportCost(bytes=274_000_000, cuda=None)
"""The cost of torch 2.13 built for CPUs, for where it cannot be measured."""


def import_cost() -> ImportCost:
    """Return what importing costs here: measured once in a child process, then kept in a file.

    The file is in the user's cache folder, by versions and place of the libraries. Where nothing
    can be measured, as with a library that is missing, it is `USUAL_IMPORT_COST`.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    file = folder / "game_rl" / "import_cost.json"
    key = " ".join((sys.prefix, sys.version.split()[0], *map(_version, _LIBRARIES)))
    known = _read(file)
    if key in known:
        return known[key]
    measured = _measure()
    if measured is None:
        return USUAL_IMPORT_COST
    costs = {name: asdict(cost) for name, cost in (known | {key: measured}).items()}
    with suppress(OSError):  # a home that cannot be written: it is measured again the next time
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, json.dumps(costs))
    return measured


def _version(library: str) -> str:
    try:
        return f"{library}=={version(library)}"
    except PackageNotFoundError:
        return f"{library}=?"


def _measure() -> ImportCost | None:
    child = _CHILD if Path("/proc/self/smaps_rollup").exists() else _PORTABLE_CHILD
    command = [sys.executable, "-c", child]
    try:
        measured = subprocess.run(
            command,
            capture_output=True,
            check=True,
            timeout=_TIMEOUT_S,
            env=os.environ | python_variables(),
        )
        return ImportCost(**json.loads(measured.stdout.splitlines()[-1]))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError, TypeError):
        return None


def _read(file: Path) -> dict[str, ImportCost]:
    """Return the costs of all installations that were measured; none of a damaged file."""
    try:
        return {key: ImportCost(**cost) for key, cost in json.loads(file.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
