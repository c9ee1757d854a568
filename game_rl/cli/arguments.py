"""Arguments that several commands share, and types of arguments."""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

from game_rl.config.bundled_configs import find_config
from game_rl.config.values import run_at
from game_rl.errors import UsageError
from game_rl.experiments.experiment_dir import run_of

NO_CONFIG = (
    "a config is missing: name a file, or a config that comes with game_rl, such as duel_ppo; "
    "game-rl configs lists them"
)


def add_config_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add the config file and overrides of its keys: `FILE key=value …` or `--config` and `--set`.

    Args:
        required: whether the command needs a config file; see `take_words`.
    """
    parser.add_argument(
        "words",
        nargs="*",
        metavar="FILE|KEY=VALUE",
        help="config file, or the name of a bundled config, then keys to override, such as "
        "env.n_envs=16",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="the same as FILE")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="the same as KEY=VALUE; repeatable",
    )
    parser.set_defaults(needs_config=required)


def take_words(arguments: argparse.Namespace, unknown: Sequence[str]) -> list[str]:
    """Sort the words of `FILE key=value …` into `config` and `set`; return what is left unknown.

    Args:
        unknown: words that the parser left over, since they come after an option.

    Raises:
        UsageError: two files are named, or none where the command needs one.
    """
    if "words" not in arguments:
        return list(unknown)
    options = [word for word in unknown if word.startswith("-")]
    if options:
        return options
    words = [*arguments.words, *unknown]
    files = [word for word in words if _is_file(word)]
    if arguments.config is not None:
        files.insert(0, str(arguments.config))
    if len(files) > 1:
        if "=" in files[1] or find_config(Path(files[1])).exists():
            raise UsageError(f"{files[0]} and {files[1]} both name a config; leave one out")
        raise UsageError(f"{files[1]!r} is neither a config file nor KEY=VALUE")
    if not files and arguments.needs_config:
        raise UsageError(NO_CONFIG)
    arguments.config = None
    if files:
        path = Path(files[0])
        if any((path / name).is_file() for name in ("config.yaml", "experiment.yaml")):
            run = quote(str(path))
            raise UsageError(
                f"{path} is a run, not a config: continue it with game-rl train --resume {run}, "
                f"start a new run from its newest checkpoint with game-rl train --fork {run} "
                "run_dir=..., or name the config in it"
            )
        arguments.config = find_config(path)
    arguments.set = [*arguments.set, *(word for word in words if not _is_file(word))]
    return []


def _is_file(word: str) -> bool:
    """Whether a word is a path rather than `key=value`; a path may have a `=` in it."""
    return "=" not in word or Path(word).is_file()


def add_run_arguments(
    parser: argparse.ArgumentParser, *, also: str = "", game_of_others: str = ""
) -> None:
    """Add the options that name a run, its checkpoint and its game.

    Args:
        also: what may stand in the place of a run, for the help.
        game_of_others: what `--game` names then.
    """
    parser.add_argument(
        "run",
        type=Path,
        metavar="RUN[@T]",
        help="run directory, or the directory of an experiment, which stands for its champion; "
        f"@T means --checkpoint T{also}",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="best|latest|N",
        help="checkpoint to use; N is a timestep (default: best). The best one plays as in the "
        "evaluation that chose it, deterministic or stochastic. Any other plays as "
        "evaluation.deterministic says or, if that is auto, like the best one",
    )
    parser.add_argument(
        "--game",
        metavar="FILE",
        help="game.yaml to play instead of the run's own, for example if that was moved; it must "
        f"have the same ROM{game_of_others}",
    )


def named_checkpoint(run: str | Path) -> tuple[Path, int | None]:
    """Return the folder and the timestep of `RUN@T`; a folder may have such a name itself."""
    return (Path(run), None) if Path(run).is_dir() else run_at(str(run))


def named_policy(arguments: argparse.Namespace) -> tuple[Path, str]:
    """Return the run directory and the name of the checkpoint that a command asks for.

    Raises:
        UsageError: it names two checkpoints, or an experiment without a champion.
    """
    root, timesteps = named_checkpoint(arguments.run)
    if timesteps is None:
        return run_of(root), arguments.checkpoint or "best"
    if arguments.checkpoint is not None:
        raise UsageError(
            f"{arguments.run} and --checkpoint {arguments.checkpoint} both name a checkpoint; "
            "leave one out"
        )
    return run_of(root), str(timesteps)


def game_word(text: str) -> str:
    """Return a game as a command's argument names it, with the path of a folder's game.yaml.

    A folder in the current one needs no slash, unless a bundled game has its name.
    """
    from game_rl.games.definition import bundled_games

    file = Path(text) / "game.yaml"
    with suppress(OSError, ValueError):  # a name that is too long, or a folder without permission
        if text not in bundled_games() and file.is_file():
            return str(file)
    return text


def positive(text: str) -> int:
    """Parse an integer of at least 1, as the type of an argument."""
    return not_negative(text, least=1)


def not_negative(text: str, *, least: int = 0) -> int:
    """Parse an integer of at least 0, as the type of an argument."""
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
    return value
