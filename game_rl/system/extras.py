"""Packages that only some features need; each belongs to an extra of `pip install game_rl`."""

import importlib
import importlib.util
from types import ModuleType

from game_rl.errors import UsageError

EXTRAS = {"av": "video", "obstore": "upload", "ray": "ray", "wandb": "wandb"}
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
