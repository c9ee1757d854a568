"""What must hold before a run begins or goes on, as far as it can be checked without torch.

Loading torch takes seconds, and a mistake is better reported before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.checkpoints.named import check_rom, find_run, saved_state
from game_rl.checkpoints.run_game import check_playable, moved_game
from game_rl.config.allowed_changes import RESUME, role_in_words
from game_rl.config.custom_part import callback_problems, network_problems
from game_rl.config.loader import custom_part_problems, load_config
from game_rl.config.migration import saved_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Problem, differences
from game_rl.config.values import run_at
from game_rl.envs.episode_starts import pool_values
from game_rl.envs.make_env import wrapper_problems
from game_rl.errors import DoesNotFitError, GameFileError, UsageError
from game_rl.explore.potentials import with_potentials
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import Game, load_game
from game_rl.games.parts.part_spec import unused_parts
from game_rl.lake.lake_feed import level_problems
from game_rl.pool.pool_source import check_pool
from game_rl.preflight.preflight import PreflightReport, preflight
from game_rl.preflight.random_play import measured_lake
from game_rl.system.machine import detect_machine, with_room
from game_rl.system.packages import check_extra
from game_rl.training.wandb_log import check_wandb


def check_new_run(
    config: RunConfig, *, force: bool, show: Callable[[PreflightReport], None]
) -> PreflightReport:
    """Check a run that has not begun, and return the report of its preflight.

    Args:
        force: whether it may begin even if it does not fit this machine.
        show: receives the report.

    Raises:
        GameRLError: it cannot begin.
    """
    refuse_existing_run(RunDir(config.run_dir))
    game = with_potentials(load_game(config.game), config.env)
    check_teacher_named(config)
    check_pool_named(config, game)
    return check_fit(config, game, force=force, show=show, measures_lake=True)


def check_teacher_named(config: RunConfig) -> None:
    """Check that the policy exists that the config names as teacher, if it names one."""
    teacher = config.algorithm.teacher
    if teacher is not None:
        root, timesteps = run_at(teacher.run)
        check_playable(root, "latest" if timesteps is None else str(timesteps))


def check_pool_named(config: RunConfig, game: Game) -> None:
    """Check that what the config names for its pool is there, if it has one."""
    if config.env.pool is not None:
        check_pool(config.env.pool, game)
        pool_values(game, config.env)


def announced_parts(config: RunConfig) -> Iterator[str]:
    """Yield a sentence about each custom part, whose code runs in a training.

    Raises:
        ConfigError: there is no such module or class.
    """
    for part in config.custom_parts:
        source = part.source(Path.cwd())
        yield f"{part.name}, is Python from {source}, which runs with your rights"


def startable_config(
    path: str | Path,
    overrides: Sequence[str],
    *,
    announce: Callable[[str], None] = lambda _: None,
    is_saved: bool = False,
) -> RunConfig:
    """Load the config of a run that is about to train, with custom parts tried.

    Their modules are imported, and an env is made in the wrappers.

    Args:
        announce: is called with a sentence about each part before its code runs.
        is_saved: as in `load_config`.

    Raises:
        ConfigError: the file is wrong, or a part cannot be used.
    """

    def found_without_running(config: RunConfig) -> Iterator[Problem]:
        yield from level_problems(config)
        if is_saved:  # otherwise it is checked already
            yield from custom_part_problems(config)

    load = partial(load_config, path, overrides, is_saved=is_saved)
    config = load(more_checks=found_without_running)
    if config.custom_parts:
        for text in announced_parts(config):
            announce(text)
        load(more_checks=_found_by_running)
    return config


def _found_by_running(config: RunConfig) -> Iterator[Problem]:
    yield from callback_problems(config.custom_callbacks, Path.cwd())
    yield from network_problems(config.custom_networks, Path.cwd())
    with suppress(GameFileError, UsageError):  # reported when the game is loaded
        game = with_potentials(load_game(config.game), config.env)
        yield from wrapper_problems(config.env, game)


def check_custom_parts(config: RunConfig) -> None:
    """Check a loaded config's custom parts, as `startable_config` checks a file's.

    Raises:
        UsageError: a part cannot be used.
    """
    if not config.custom_parts:
        return
    for problem in _found_by_running(config):
        raise UsageError(f"{'.'.join(problem.key)}: {problem.message}")


def check_packages(config: RunConfig) -> None:
    """Check that the packages of extras that a run needs, and a login if it needs one, are there.

    Raises:
        UsageError: one is missing.
    """
    if config.recording.episodes > 0 and config.recording.format == "mp4":
        check_extra("av", "recording.format: mp4", way_out="set recording.format=gif")
    if config.upload is not None:
        check_extra("obstore", "upload", way_out="train without uploading: upload=null")
    check_wandb(config)


def check_new_fork(config: RunConfig) -> None:
    """Check a fork that has not been made; its preflight needs the parent's weights."""
    assert config.fork is not None
    check_packages(config)
    refuse_used_folder(config.run_dir)
    root, timesteps = run_at(config.fork.run)
    game = load_game(config.game)
    check_pool_named(config, game)
    if (found := saved_state(find_run(root), timesteps)) is not None:
        check_rom(*found, game)


def check_resumable(
    root: Path,
    *,
    overrides: Sequence[str],
    at: int | None,
    announce: Callable[[str], None] = lambda _: None,
) -> None:
    """Check a run that is to be resumed; see `train.resume` and `startable_config`."""
    run_dir = find_run(root)
    with run_dir.locked():
        found = [*moved_game(run_dir, overrides), *overrides]
        config = startable_config(run_dir.config, found, announce=announce, is_saved=True)
        check_packages(config)
        game = load_game(config.game)
        if at is None and not run_dir.has_checkpoints():
            return
        if (saved := saved_state(run_dir, at)) is not None:
            check_rom(*saved, game)
            changes(saved[1], config, game)


def refuse_existing_run(run_dir: RunDir) -> None:
    """Refuse to overwrite a run that has a checkpoint; one without may be overwritten."""
    run_dir.refuse_agent()
    if run_dir.has_checkpoints():
        checkpoints = run_dir.checkpoints_newest_first()
        timesteps = int(checkpoints[0].name) if checkpoints else 0
        raise UsageError(
            f"{run_dir.root} already holds a run at timestep {timesteps:,}; continue it with "
            f"{run_dir.way_on}, choose another place with "
            "--set run_dir=..., or delete it"
        )


def refuse_used_folder(root: Path) -> None:
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(
            f"{root} exists and is not empty; name a new folder for the fork with --set run_dir=..."
        )


def check_fit(
    config: RunConfig,
    game: Game,
    *,
    force: bool,
    show: Callable[[PreflightReport], None],
    measures_lake: bool = False,
) -> PreflightReport:
    """Return the preflight's report, after showing it.

    Args:
        measures_lake: whether to spend seconds on measuring how the game compresses, if the run
            writes a Lake. Without that, the Lake does not count.

    Raises:
        UsageError: a package is missing that the run needs.
        DoesNotFitError: the run does not fit this machine, and `force` is not set.
    """
    check_packages(config)
    machine = with_room(detect_machine(config.run_dir), _own_bytes(config))
    lake = measured_lake(config, game) if measures_lake else None
    report = preflight(config, game, machine, lake=lake)
    show(report)
    if report.verdict == "does_not_fit" and not force:
        raise DoesNotFitError(
            "the run does not fit this machine; apply one of the fixes above, or start it anyway "
            "with --force"
        )
    return report


def _own_bytes(config: RunConfig) -> int:
    """Return the bytes that the run has on the disk already, its stream of a Lake included."""
    run_dir = RunDir(config.run_dir)
    own_bytes = run_dir.size_bytes()
    if config.lake is None:
        return own_bytes
    files: Iterable[Path] = ()
    if config.lake.path is None:
        files = run_dir.lake.rglob("*")
    elif run_dir.identity_file.exists():
        files = config.lake.path.glob(f"{run_dir.identity().id}.*")
    return own_bytes + sum(path.stat().st_size for path in files if path.is_file())


def changes(state: CheckpointState, config: RunConfig, game: Game) -> list[str]:
    """List the differences of config and game file from the checkpoint's, as `key: old -> new`.

    `run_dir` and the ROM's path are left out, because files may have been moved.

    Raises:
        UsageError: a key differs that cannot change in a resumed run.
    """
    old = saved_config(state.config, source="the checkpoint").model_dump(mode="json")
    new_game = game.definition.model_dump(mode="json", by_alias=True)
    unused = unused_parts(config.env.observation.parts, state.game, new_game)
    return [
        *_changes(differences(old, config.model_dump(mode="json"), "run_dir")),
        *_changes(differences(state.game, new_game, "rom.path", *unused), "game."),
    ]


def _changes(changed: Mapping[str, tuple[object, object]], above: str = "") -> list[str]:
    refused = [
        f"{key} (it was {old}, now {new}; {role_in_words(f'{above}{key}')}): {reason}"
        for key, (old, new) in changed.items()
        if (reason := RESUME.reason(f"{above}{key}"))
    ]
    if refused:
        raise UsageError("a resumed run cannot change " + "; ".join(refused))
    return [f"{key}: {old} -> {new}" for key, (old, new) in changed.items()]
