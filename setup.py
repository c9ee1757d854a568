"""Copies configs/ into the package when it is built; everything else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

_HERE = Path(__file__).parent


class BuildWithConfigs(build_py):
    """Builds the package with the configs as `game_rl/configs`, their only copy.

    An editable installation has none: there, they are found beside the package.
    """

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "game_rl", "configs")
            shutil.rmtree(target, ignore_errors=True)  # a config that is gone does not stay
            shutil.copytree(_HERE / "configs", target)


setup(cmdclass={"build_py": BuildWithConfigs})
