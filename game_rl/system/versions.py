"""What is installed, read without importing it."""

import functools
import hashlib
import platform
from importlib.metadata import version
from pathlib import Path

_PACKAGES = ("game_rl", "stable-baselines3", "torch", "gymnasium", "numpy", "pyboy")


def installed_versions() -> dict[str, str]:
    """Of all that a run's numbers depend on."""
    return {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES}


def version_differences(then: dict[str, str], now: dict[str, str]) -> tuple[str, ...]:
    """What is not as it was, item by item."""
    return tuple(
        f"{name} was {then.get(name, 'not there')}, is {now.get(name, 'not there')}"
        for name in {**then, **now}
        if then.get(name) != now.get(name)
    )


@functools.cache
def source_sha256() -> str:
    """Of this package's own Python files, by name: two checkouts of one version can differ."""
    package, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
