"""The options that choose among a run's logged episodes, of `game-rl episodes` and `record`."""

import argparse
from dataclasses import replace
from shlex import quote

from game_rl.cli.arguments import not_negative
from game_rl.episodes.logged_episodes import EpisodeChoice, LoggedEpisodes, read_logged_episodes
from game_rl.errors import UsageError
from game_rl.files.run_dir import RunDir


def add_logged_choice(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--best", action="store_true", help="those with the highest rewards, the best first"
    )
    parser.add_argument(
        "--worst", action="store_true", help="those with the lowest rewards, the worst first"
    )
    parser.add_argument(
        "--evaluations",
        action="store_true",
        help="episodes of evaluations instead of the training; --best and --worst then choose in "
        "each evaluation",
    )
    parser.add_argument(
        "--from",
        type=not_negative,
        dest="first",
        metavar="T",
        help="those that ended at timestep T of the run or later",
    )
    parser.add_argument(
        "--to",
        type=not_negative,
        dest="last",
        metavar="T",
        help="those that ended at timestep T of the run or before",
    )


def has_logged_choice(arguments: argparse.Namespace) -> bool:
    """Whether one of the options was given."""
    is_given = arguments.best or arguments.worst or arguments.evaluations
    return is_given or arguments.first is not None or arguments.last is not None


def logged_choice(arguments: argparse.Namespace, *, of_all: bool = False) -> EpisodeChoice:
    """Return what the options choose.

    Args:
        of_all: whether episodes of evaluations are meant as well, without --evaluations.
    """
    first = arguments.first
    last = arguments.last
    if first is not None and last is not None and first > last:
        raise UsageError(f"--from {first} is after --to {last}; exchange them")
    choice = EpisodeChoice(
        first=first,
        last=last,
        start_states=arguments.start_states,
        best=arguments.best,
        worst=arguments.worst,
    )
    if arguments.evaluations:
        return replace(choice, kinds=("evaluation", "final"))
    return replace(choice, kinds=("training", "evaluation", "final")) if of_all else choice


def logged_of(run_dir: RunDir) -> LoggedEpisodes:
    """Return the run's logged episodes.

    Raises:
        UsageError: it has none.
    """
    found = read_logged_episodes(run_dir)
    if not len(found):
        raise UsageError(
            f"{run_dir.root} has no logged episodes: none has ended yet, its config says "
            "episodes: null, or an earlier version trained it"
        )
    return found


def refuse_empty(chosen: LoggedEpisodes, logged: LoggedEpisodes, run_dir: RunDir) -> None:
    """Raise UsageError if no episode was chosen."""
    if len(chosen):
        return
    ended = logged.rows["timesteps"]
    raise UsageError(
        f"none of the {len(logged):,} logged episodes of {run_dir.root} fits; they ended between "
        f"timestep {int(ended.min()):,} and {int(ended.max()):,}: game-rl episodes "
        f"{quote(str(run_dir.root))} lists them"
    )
