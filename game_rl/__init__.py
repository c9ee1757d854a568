"""Train agents on Game Boy games; importing this package registers the games with Gymnasium.

The names of `__all__` are the public API. They are loaded when they are first used: workers import
this package too, and must stay small.
"""

import importlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
        forecast,
        load_config,
        load_policy,
        make_env,
        make_vec_env,
        open_lake,
        record,
        resume,
        train,
    )

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
    "evaluate",
    "forecast",
    "load_config",
    "load_policy",
    "make_env",
    "make_vec_env",
    "open_lake",
    "record",
    "resume",
    "train",
]

if "GAME_RL_WITHOUT_GYMNASIUM" not in os.environ:  # a server that plays nothing stays small
    from game_rl.envs.registration import register_bundled_games

    register_bundled_games()

if not TYPE_CHECKING:  # for type checkers, other names do not exist

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(importlib.import_module("game_rl.api"), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
