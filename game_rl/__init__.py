"""Train agents on Game Boy games; importing this package registers the games with Gymnasium.

The names of `__all__` are the public API. They are loaded when they are first used: workers import
this package too, and must stay small.
"""

import importlib
import os
import sys
from types import ModuleType

_program = "".join(sys.orig_argv[-len(sys.argv) :][:1])
_module = _program.removeprefix("-m") if sys.argv[:1] == ["-m"] else ""
if (
    _module.partition(".")[0] == __name__
    and not sys.flags.safe_path
    and __path__ != [os.path.join(sys.path[0], __name__)]  # noqa: PTH118 - pathlib is not loaded
):  # `python -m game_rl` has the current folder before all packages, which have such names too
    del sys.path[0]
if _module == __name__ or _program.endswith("/game-rl"):  # the command, and none of its workers
    from game_rl.system.processes import end_at_once_on_ctrl_c

    end_at_once_on_ctrl_c()

TYPE_CHECKING = False  # of `typing`, which is not loaded either
if TYPE_CHECKING:
    from game_rl import errors, events
    from game_rl.api import (
        Evaluation,
        Event,
        GameRLError,
        Lake,
        PreflightReport,
        RunConfig,
        Sampler,
        TrainedPolicy,
        TrainingResult,
        evaluate,
        export,
        forecast,
        fork,
        load_config,
        load_policy,
        make_env,
        make_vec_env,
        open_lake,
        preflight,
        read_events,
        record,
        resume,
        train,
    )

    __version__: str

__all__ = [
    "Evaluation",
    "Event",
    "GameRLError",
    "Lake",
    "PreflightReport",
    "RunConfig",
    "Sampler",
    "TrainedPolicy",
    "TrainingResult",
    "__version__",
    "errors",
    "evaluate",
    "events",
    "export",
    "forecast",
    "fork",
    "load_config",
    "load_policy",
    "make_env",
    "make_vec_env",
    "open_lake",
    "preflight",
    "read_events",
    "record",
    "resume",
    "train",
]

if "GAME_RL_WITHOUT_GYMNASIUM" not in os.environ:  # a server that plays nothing stays small
    from game_rl.envs.registration import register_bundled_games

    register_bundled_games()

if not TYPE_CHECKING:  # for type checkers, other names do not exist
    _MODULES = ("errors", "events")
    _GUESSES = {
        "DQN": 'train("duel_dqn")',
        "PPO": 'train("duel_ppo")',
        "Policy": "TrainedPolicy, which load_policy returns",
        "RunDir": "TrainingResult.run_dir, which every function takes that takes a run",
        "evaluate_policy": "evaluate",
        "learn": "train",
        "load": "load_policy",
        "make": "make_env",
        "play": "evaluate or record",
        "save": "export",
    }

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}{_guess(name)}",
            )
        found = globals()[name] = _found(name)
        return found

    def _found(name: str) -> object:
        if name == "__version__":
            return importlib.import_module("importlib.metadata").version(__name__)
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        return getattr(importlib.import_module(f"{__name__}.api"), name)

    def _guess(name: str) -> str:
        """Return what a name was probably meant to be, as the end of a sentence."""
        if name in _GUESSES:
            return f"; did you mean {_GUESSES[name]}?"
        if name.startswith("_"):  # tools look for such names in every module
            return ""
        known = {each.lower(): each for each in __all__}
        near = importlib.import_module("difflib").get_close_matches(name.lower(), known, n=1)
        return f"; did you mean {known[near[0]]}?" if near else f"; it has: {', '.join(__all__)}"

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

    class _Package(ModuleType):
        """Keeps a public name from becoming the folder of the same name once that is imported."""

        def __setattr__(self, name: str, value: object) -> None:
            if name in __all__ and isinstance(value, ModuleType) and name not in _MODULES:
                return
            super().__setattr__(name, value)

    sys.modules[__name__].__class__ = _Package
