"""The packages that are installed: their versions, those that only some features need, and a digest
of this package.

Versions are read without importing a package. One that only some features need belongs to an extra,
which `pip install 'game_rl[NAME]'` adds where game_rl is installed.
"""

import functools
import hashlib
import importlib
import importlib.util
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from game_rl.errors import UsageError

EXTRAS = {
    "av": "video",
    "huggingface_hub": "hub",
    "obstore": "upload",
    "onnxscript": "onnx",
    "ray": "ray",
    "wandb": "wandb",
}
"""The extra that installs each package."""


def check_extra(package: str, needed_by: str, *, way_out: str = "") -> None:
    """Check that a package of `EXTRAS` is installed, without importing it.

    Args:
        needed_by: what needs it, such as `recording.format: mp4`.
        way_out: another way than to install it.

    Raises:
        UsageError: it is not.
    """
    if importlib.util.find_spec(package) is None:
        other = f", or {way_out}" if way_out else ""
        raise UsageError(
            f"{needed_by} needs the package {package}, which is not installed: "
            f"pip install 'game_rl[{EXTRAS[package]}]'{other}"
        )


def load_with_extra(module: str, package: str, needed_by: str, *, way_out: str = "") -> ModuleType:
    """Import a module of game_rl that imports a package of `EXTRAS`; see `check_extra`."""
    check_extra(package, needed_by, way_out=way_out)
    return importlib.import_module(module)


_OWN = "game_rl"
_SHOWN = 12  # characters of a digest
_PACKAGES = (_OWN, "stable-baselines3", "torch", "gymnasium", "numpy", "pyboy")


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a run's numbers depend on."""
    return {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES}


def version_differences(then: dict[str, str], now: dict[str, str]) -> tuple[str, ...]:
    """Describe each version that differs, except this package's; see `code_difference`."""
    return tuple(
        f"{name} was {then.get(name, 'not there')}, is {now.get(name, 'not there')}"
        for name in {**then, **now}
        if name != _OWN and then.get(name) != now.get(name)
    )


def code_difference(versions: Mapping[str, str], source: str | None) -> str:
    """Describe how this package differs from the one that wrote a record; empty if it does not.

    Other code may or may not compute other numbers, so this is no more than a note.

    Args:
        versions: `installed_versions` of the record.
        source: `source_sha256` of the record; None if it has none, so that only the version counts.
    """
    then = versions.get(_OWN, "not there")
    now = version(_OWN)
    if source == source_sha256() or (source is None and then == now):
        return ""
    return f"{_OWN} was {_code(then, source)}, is {_code(now, source_sha256())}"


def _code(number: str, source: str | None) -> str:
    return f"{number} (source {'not recorded' if source is None else source[:_SHOWN]})"


@functools.cache
def source_sha256() -> str:
    """Return a digest of this package's Python files: two checkouts of one version can differ."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
