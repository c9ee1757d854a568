"""Versions of installed packages, read without importing them."""

import functools
import hashlib
import platform
from importlib.metadata import version
from pathlib import Path

_PACKAGES = ("game_rl", "stable-baselines3", "torch", "gymnasium", "numpy", "pyboy")


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a run's numbers depend on."""
    return {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES}


def version_differences(then: dict[str, str], now: dict[str, str]) -> tuple[str, ...]:
    """Describe each version that differs."""
    return tuple(
        f"{name} was {then.get(name, 'not there')}, is {now.get(name, 'not there')}"
        for name in {**then, **now}
        if then.get(name) != now.get(name)
    )


@functools.cache
def source_sha256() -> str:
    """Return a digest of this package's Python files: two checkouts of one version can differ."""
    package, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
