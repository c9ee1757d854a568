"""`game-rl episodes`, and the options that choose among logged episodes, also of `record`."""

import argparse
from dataclasses import replace
from shlex import quote

from rich.table import Column, Table
from rich.text import Text

from game_rl.checkpoints.named import open_run
from game_rl.cli.arguments import not_negative, positive
from game_rl.cli.printing import SafeConsole, add_json, numbers, print_facts
from game_rl.config.values import expanded_path
from game_rl.episodes.logged_episodes import (
    EpisodeChoice,
    LoggedEpisodes,
    read_logged_episodes,
)
from game_rl.errors import UsageError
from game_rl.experiments.experiment_dir import run_of
from game_rl.files.durable_files import folder_bytes
from game_rl.files.pretrained import is_packed_agent, run_name
from game_rl.files.run_dir import RunDir
from game_rl.system.output import as_printed, visible
from game_rl.system.units import format_bytes

_SHOWN = 20


def add_logged_choice(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--best", action="store_true", help="only those with the highest rewards, the best first"
    )
    parser.add_argument(
        "--worst", action="store_true", help="only those with the lowest rewards, the worst first"
    )
    parser.add_argument(
        "--evaluations",
        action="store_true",
        help="episodes of evaluations instead of the training; --best and --worst then choose "
        "within each evaluation",
    )
    parser.add_argument(
        "--from",
        type=not_negative,
        dest="first",
        metavar="T",
        help="only those that ended at timestep T of the run or later",
    )
    parser.add_argument(
        "--to",
        type=not_negative,
        dest="last",
        metavar="T",
        help="only those that ended at timestep T of the run or before",
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
        raise UsageError(f"--from {first} is after --to {last}; swap them")
    choice = EpisodeChoice(
        first=first,
        last=last,
        start_states=arguments.start_states,
        best=arguments.best,
        worst=arguments.worst,
    )
    if arguments.evaluations:
        return replace(choice, kinds=("evaluation", "final"))
    if of_all:
        return replace(choice, kinds=("training", "evaluation", "final"))
    return choice


def logged_of(run_dir: RunDir) -> LoggedEpisodes:
    """Return the run's logged episodes.

    Raises:
        UsageError: it has none.
    """
    found = read_logged_episodes(run_dir)
    if not len(found) and is_packed_agent(run_dir.root):
        agent = run_name(run_dir.root)
        raise UsageError(
            f"{agent} is an agent without the episodes of its training; game-rl record "
            f"{quote(agent)} lets it play new ones"
        )
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
        f"none of the {len(logged):,} logged episodes of {run_dir.root} matches; they ended "
        f"between timestep {int(ended.min()):,} and {int(ended.max()):,}: game-rl episodes "
        f"{quote(str(run_dir.root))} lists them"
    )


def add_episodes(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_episodes)
    parser.add_argument(
        "run",
        type=expanded_path,
        metavar="RUN",
        help="run directory, or the directory of an experiment, which stands for its champion",
    )
    add_logged_choice(parser)
    parser.add_argument(
        "--start-states",
        nargs="+",
        metavar="NAME",
        help="only those that started in one of these start states",
    )
    parser.add_argument(
        "--episodes",
        type=positive,
        metavar="N",
        help="how many to list; with --best and --worst, of each; without them, the newest "
        f"(default: {_SHOWN}; all with --json)",
    )
    add_json(parser, "list")


def _episodes(arguments: argparse.Namespace) -> int:
    run_dir, config = open_run(run_of(arguments.run))
    logged = logged_of(run_dir)
    most = arguments.episodes or (None if arguments.json else _SHOWN)
    choice = logged_choice(arguments, of_all=True)
    if choice.best or choice.worst:
        chosen = replace(choice, most=most).of(logged)
    else:
        chosen = choice.of(logged)
        chosen = chosen[-most:] if most else chosen
    refuse_empty(chosen, logged, run_dir)
    if arguments.json:
        print_facts([episode.to_json() for episode in chosen])
        return 0
    headings = numbers("episode", "env", "timestep", "length", "reward", "success", no_wrap=True)
    table = Table(
        *headings,
        Column("kind", no_wrap=True),
        Column("start state", overflow="fold"),
        Column("ending", overflow="fold"),
        box=None,
        pad_edge=False,
        collapse_padding=True,  # fits 80 columns
    )
    for episode in chosen:
        is_drawn = episode.kind != "training" and not episode.deterministic
        fault = f"; no clip: {episode.fault}" if episode.fault else ""
        began = episode.start_state
        if episode.pool_state is not None:
            began = f"{began} {episode.pool_state}"
        table.add_row(
            f"{episode.number:,}",
            f"{episode.env}",
            f"{episode.timesteps:,}",
            f"{episode.length:,}",
            f"{episode.reward:.2f}",
            {None: "", True: "yes", False: "no"}[episode.success],
            f"{episode.kind}, sampled" if is_drawn else episode.kind,
            Text(as_printed(began)),
            Text(as_printed(f"{episode.ending}{fault}")),
        )
    SafeConsole().print(table)
    limit = "" if config.episodes is None else f" of at most {config.episodes.limit_mb:,} MB"
    print(
        f"{len(logged):,} episodes are logged, {logged[0].number:,} to {logged[-1].number:,}, in "
        f"{format_bytes(folder_bytes(run_dir.episodes))}{limit}"
    )
    if not arguments.quiet:
        example = f"game-rl record {quote(str(run_dir.root))} --logged {chosen[0].number}"
        print(visible(f"a clip of one: {example}"))
    return 0
