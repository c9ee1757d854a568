"""The registration of a study: its plan and hashes, fixed before the first run."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from game_rl.config.allowed_changes import STUDY_FILE
from game_rl.config.custom_part import part_files
from game_rl.config.experiments.study_config import Study
from game_rl.config.strict_model import differences
from game_rl.errors import ExperimentError, UsageError
from game_rl.experiments.records import read_record
from game_rl.experiments.study.study_results import study_dir
from game_rl.files.durable_files import write_saved
from game_rl.files.saved import Saved, file_sha256
from game_rl.games.definition import bundled_games, load_game

_PACKAGE = Path(__file__).parents[2]
_SHOWN = 5


class Registration(Saved):
    """A study's registration; its file should be committed before the first run."""

    format: Literal[1] = 1
    registered: datetime
    """Time of the registration, in UTC."""
    study: str
    """Path of the study's file, relative to the folder of results."""
    plan: dict[str, Any]
    """The content of the study's file, with defaults filled in."""
    files: dict[str, str]
    """SHA-256 of each arm's file, of those of its members and learner, and of games that are not
    bundled, by path relative to the study's folder."""
    code: dict[str, str]
    """SHA-256 of each file of game_rl, by path."""

    def sha256(self) -> str:
        """Return the hash that results carry: of everything but the date and the study's path."""
        content = self.model_dump(mode="json", exclude={"registered", "study"})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def register(study: Study) -> Registration:
    """Write the registration.

    Raises:
        UsageError: there is one already, or a game does not define the metric.
    """
    for name, arm in study.arms.items():
        game = arm.players[0].game
        knows_success = load_game(game).definition.success is not None
        if study.config.metric == "success_rate" and not knows_success:
            raise UsageError(
                f"arm {name}: the game {game} does not define success; write metric: mean_reward, "
                "or give the game file a success condition"
            )
    path = study_dir(study.config).registration
    if path.exists():
        raise UsageError(
            f"{path} exists already: a study is registered once, before its first run. For another "
            "study, name another results folder in the file; to register this one again, "
            f"delete {path.parent} with the results in it"
        )
    registration = Registration(
        registered=datetime.now(UTC).replace(microsecond=0),
        study=Path(os.path.relpath(study.file, path.parent)).as_posix(),
        plan=_plan(study),
        files=_file_hashes(study),
        code=code_hashes(),
    )
    write_saved(path, registration)
    return registration


def registered(study: Study) -> Registration:
    """Return the study's registration, after a check that nothing differs from it.

    Raises:
        UsageError: the study is not registered.
        ExperimentError: the file, an arm's config or the code is not what was registered.
    """
    path = study_dir(study.config).registration
    registration = read_record(path, Registration)
    if registration is None:
        raise UsageError(
            f"{study.file} is not registered: before its first run, fix the question and the rule "
            f"with game-rl study register {quote(str(study.file))}, and commit {path}"
        )
    found = [
        f"{key} was {then}, is {now}"
        for key, (then, now) in differences(registration.plan, _plan(study)).items()
    ]
    found += _hash_differences(registration.files, _file_hashes(study), "")
    found += _hash_differences(registration.code, code_hashes(), "game_rl/")
    if found:
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise ExperimentError(
            f"{study.file} is not what was registered on {registration.registered:%Y-%m-%d}: "
            f"{'; '.join(found[:_SHOWN])}{more}. Check out the commit that "
            f"registered it (git log -1 --format=%h -- {path}), or register another study with "
            "another results folder"
        )
    return registration


def code_hashes() -> dict[str, str]:
    """Return the SHA-256 of every file of the package, by path.

    Compiled Python is left out, and so are the bundled configs, which only an installed package
    has inside; the configs that a study uses are hashed for themselves.
    """
    left_out = ("__pycache__", "configs")
    found = {}
    for path in sorted(_PACKAGE.rglob("*")):
        below = path.relative_to(_PACKAGE)
        if path.is_file() and not {*left_out} & {*below.parts}:
            found[below.as_posix()] = file_sha256(path)
    return found


def _plan(study: Study) -> dict[str, Any]:
    plan: dict[str, Any] = study.config.model_dump(mode="json", exclude={*STUDY_FILE.free})
    return plan


def _file_hashes(study: Study) -> dict[str, str]:
    """Return the hashes of the files that arms use, without the study's own and game_rl's."""
    paths = [path for arm in study.arms.values() for path in arm.files]
    for run in (run for arm in study.arms.values() for run in arm.players):
        if run.custom_parts:
            paths += part_files(run.custom_parts, Path.cwd()).values()
        if run.game in bundled_games():
            continue
        game = load_game(run.game)
        paths += [Path(run.game), game.rom.path]
        if game.reward_source is not None and Path(game.reward_source).is_file():
            paths.append(Path(game.reward_source))
    folder = study.file.absolute().parent
    unique = sorted({path.absolute() for path in paths})
    return {Path(os.path.relpath(path, folder)).as_posix(): file_sha256(path) for path in unique}


def _hash_differences(
    then: Mapping[str, str], now: Mapping[str, str], folder: str
) -> Iterator[str]:
    for name in sorted({**then, **now}):
        if name not in now:
            yield f"{folder}{name} is gone"
        elif name not in then:
            yield f"{folder}{name} is new"
        elif then[name] != now[name]:
            yield f"{folder}{name} has changed"
