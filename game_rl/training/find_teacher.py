"""Find the policy that teaches a run, and check that it has learned the same task."""

import json
from collections.abc import Iterator, Mapping

from game_rl.checkpoints.checkpoint import config_of
from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.checkpoints.checkpoint_store import best_of, newest_valid_checkpoint
from game_rl.checkpoints.named import find_run
from game_rl.config.algorithms import DQNConfig, PPOConfig, TeacherConfig
from game_rl.config.schema import RunConfig
from game_rl.config.values import run_at
from game_rl.errors import UsageError
from game_rl.games.definition import Game
from game_rl.playback.teacher_copy import has_teacher, read_teacher
from game_rl.playback.trained_run import TrainedRun, open_trained_run
from game_rl.run_dir import RunDir
from game_rl.system.units import format_bytes, with_frames


def teacher_config(config: RunConfig) -> TeacherConfig | None:
    return config.algorithm.teacher if isinstance(config.algorithm, DQNConfig) else None


def check_teacher(config: RunConfig, game: Game) -> TrainedRun | None:
    """Return the run that the config names as teacher, or None if it names none.

    Raises:
        GameRLError: it cannot teach this run.
    """
    teacher = teacher_config(config)
    return None if teacher is None else find_teacher(teacher, config, game)


def describe_teacher(config: RunConfig, game: Game) -> str | None:
    """Describe the teacher in one line, or the run's copy once it exists; None without a teacher.

    Raises:
        GameRLError: it cannot teach this run, or the copy is damaged.
    """
    run_dir = RunDir(config.run_dir)
    if teacher_config(config) is not None and has_teacher(run_dir):
        record, _ = read_teacher(run_dir)
        when = with_frames(record.timesteps, record.frame_skip)
        return f"{run_dir.teacher}, the run's copy of {record.path}, timestep {when}"
    teacher = check_teacher(config, game)
    if teacher is None:
        return None
    name, theirs = config_of(teacher.checkpoint).algorithm.name, teacher.run_dir.root
    return f"{theirs}, {teacher.name} ({name}, {format_bytes(teacher.checkpoint.nbytes)})"


def find_teacher(settings: TeacherConfig, config: RunConfig, game: Game) -> TrainedRun:
    """Open the teacher: its best policy, or that of timestep T if the config says @T.

    Before the first evaluation, the newest policy counts as the best.

    Raises:
        GameRLError: there is no such policy, or it cannot teach this run.
    """
    root, timesteps = run_at(settings.run)
    name = str(timesteps)
    if timesteps is None:
        run_dir = find_run(root)
        newest, _ = newest_valid_checkpoint(run_dir)
        name = "latest" if best_of(run_dir, newest) is None else "best"
    run = open_trained_run(root, name)
    theirs = config_of(run.checkpoint)
    if isinstance(theirs.algorithm, PPOConfig):
        raise UsageError(
            f"the teacher {settings.run} is a run of ppo, which has no values of actions; name a "
            "run of dqn or pqn in algorithm.teacher.run"
        )
    if found := list(_disagreements(run.state, theirs, config, game)):
        raise UsageError(
            f"the teacher {settings.run} has learned another task: "
            + "; ".join(found)
            + "; make them agree, or choose another teacher"
        )
    return run


def _disagreements(
    state: CheckpointState, theirs: RunConfig, config: RunConfig, game: Game
) -> Iterator[str]:
    """Yield the settings because of which a stack of pictures or an action has another meaning."""
    if state.rom_sha256 != game.rom.sha256:
        yield f"the ROM's sha256 is {state.rom_sha256} there and {game.rom.sha256} here"
    here: Mapping[str, object] = game.definition.model_dump(mode="json", by_alias=True)
    for key in ("actions", "observation"):
        if state.game.get(key) != here.get(key):
            there, now = (json.dumps(document.get(key)) for document in (state.game, here))
            yield f"{key} of game.yaml is {there} there and {now} here"
    pairs: dict[str, tuple[object, object]] = {
        "env.observation.size": (theirs.env.observation.size, config.env.observation.size),
        "env.observation.colour": (theirs.env.observation.colour, config.env.observation.colour),
        "env.frame_stack": (theirs.env.frame_stack, config.env.frame_stack),
        "env.frame_skip": (theirs.env.frame_skip, config.env.frame_skip),
    }
    for key, (theirs_now, ours) in pairs.items():
        if theirs_now != ours:
            yield f"{key} is {theirs_now} there and {ours} here"
