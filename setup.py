"""What pyproject.toml cannot say: the package gets configs and agents, and one module is compiled.

The module, `game_rl/emulator/fast_states.pyx`, is optional. Without Cython, a C compiler or the
headers of Python, and with `GAME_RL_PURE=1` in the environment, game_rl is installed without it.
"""

import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError

_HERE = Path(__file__).parent


class BuildWithConfigs(build_py):
    """Builds the package with the configs as `game_rl/configs`, their only copy.

    Trained agents become `game_rl/pretrained` in the same way. An editable installation has
    neither: there, they are found beside the package.
    """

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for name in ("configs", "pretrained"):
                target = Path(self.build_lib, "game_rl", name)
                shutil.rmtree(target, ignore_errors=True)  # what is gone does not stay
                not_agents = shutil.ignore_patterns("*.py", "__pycache__")
                shutil.copytree(_HERE / name, target, ignore=not_agents)


class BuildWhatCompiles(build_ext):
    """Builds the optional module, with its C code in `build/`, or goes on without it."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.cython_c_in_temp = True

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception as error:  # Cython's are none that setuptools forgives an optional module
            raise CompileError(f"{type(error).__name__}: {error}") from error


def extensions() -> list[Extension]:
    if os.environ.get("GAME_RL_PURE") == "1":
        return []
    try:
        import Cython  # noqa: F401 - setuptools uses it
        import numpy as np

        pyboy_version = version("pyboy")
    except ImportError:
        return []
    return [
        Extension(
            "game_rl.emulator.fast_states",
            ["game_rl/emulator/fast_states.pyx"],
            include_dirs=[np.get_include()],  # PyBoy's declarations use NumPy's
            define_macros=[("GAME_RL_PYBOY_VERSION", f'"{pyboy_version}"')],
            extra_compile_args=["-g0"] if sys.platform == "linux" else [],
            optional=True,
        )
    ]


setup(
    ext_modules=extensions(),
    cmdclass={"build_py": BuildWithConfigs, "build_ext": BuildWhatCompiles},
)
