"""`game-rl evaluate`, `record`."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from game_rl.checkpoints.named import open_run
from game_rl.checkpoints.run_game import changed_game_keys, check_playable, open_game
from game_rl.cli.arguments import (
    add_run_arguments,
    named_checkpoint,
    named_policy,
    not_negative,
    positive,
)
from game_rl.cli.episodes_command import (
    add_logged_choice,
    has_logged_choice,
    logged_choice,
    logged_of,
    refuse_empty,
)
from game_rl.cli.outputs import GIF, MP4, ROUTE, add_output
from game_rl.cli.printing import (
    SafeConsole,
    add_json,
    numbers,
    print_facts,
    print_notes,
    print_result,
)
from game_rl.config.schema import EnvConfig, RunConfig
from game_rl.envs.episode_starts import chosen_start_states, game_changes
from game_rl.episodes.logged_episodes import LoggedEpisodes
from game_rl.errors import UsageError
from game_rl.events import StartStateResult
from game_rl.explore.archive import Archive
from game_rl.explore.explore_dir import ExploreDir
from game_rl.explore.potentials import with_potentials
from game_rl.explore.route import BEST, explored_game, find_route, write_route
from game_rl.files.run_dir import RunDir
from game_rl.game_check.recorded_episode import read_recorded_episode
from game_rl.games.actions import RANDOM, constant_action
from game_rl.games.definition import Game, load_game
from game_rl.statistics import percent
from game_rl.system.output import visible
from game_rl.system.units import counted

if TYPE_CHECKING:
    from game_rl.callbacks.evaluation import Evaluation
    from game_rl.playback.shown_episode import OverlayItem


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_evaluate)
    add_run_arguments(parser)
    parser.add_argument(
        "--episodes",
        type=positive,
        default=100,
        metavar="N",
        help="episodes to play (default: 100)",
    )
    parser.add_argument(
        "--policy",
        metavar="POLICY",
        help="play an untrained policy instead of the run's, for comparison: "
        "random, constant:ACTION (always that action), or best-constant (the best of these)",
    )
    parser.add_argument(
        "--deterministic",
        action=argparse.BooleanOptionalAction,
        help="take the policy's most probable actions, or sample its actions (default: as in the "
        "evaluation that chose it)",
    )
    _add_episode_choice(
        parser,
        default="that of the run's final evaluation",
        states="play N episodes from each of these start states",
    )
    add_json(parser)


def _add_episode_choice(parser: argparse.ArgumentParser, *, default: str, states: str) -> None:
    parser.add_argument(
        "--seed", type=not_negative, metavar="N", help=f"seed of the episodes (default: {default})"
    )
    parser.add_argument(
        "--start-states",
        nargs="+",
        metavar="NAME",
        help=f"{states} instead of those of the training, possibly ones that the training never "
        "used",
    )


def add_record(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_record)
    add_run_arguments(
        parser,
        also=". Or the folder of an exploration, or a recorded episode, such as played/duel_1.json",
        game_of_others="; for a recorded episode, the game.yaml or the name of the game that was "
        "played",
    )
    parser.add_argument(
        "--episodes",
        type=positive,
        metavar="N",
        help="episodes to record (default: 2; with --best and --worst 1 of each)",
    )
    _add_episode_choice(
        parser,
        default="that of the run's own clip",
        states="start each episode in one of these start states, sampled uniformly,",
    )
    add_output(
        parser,
        "--output",
        GIF,
        MP4,
        ROUTE,
        text="file to write, .gif or .mp4 (default: a GIF in the run's videos/, in the folder of "
        "an exploration, or next to a recorded episode), or, with --route, .json, which "
        "check-game --recorded plays",
    )
    parser.add_argument(
        "--route",
        metavar="best|CELL|TERM",
        help="for an exploration, whose folder is named instead of a run: the route with the "
        "highest reward, the route to the cell with this number on the sheet, or the first route "
        "that earned this reward term (default: best)",
    )
    parser.add_argument(
        "--grid", action="store_true", help="show the episodes side by side, not one by one"
    )
    parser.add_argument(
        "--overlay",
        nargs="*",
        choices=("action", "reward", "value"),
        metavar="ITEM",
        help="items to write below the screen: action, reward (of the episode so far), value "
        "(that the policy of --checkpoint estimates); all three if none is named",
    )
    add_json(parser)
    logged = parser.add_argument_group(
        "logged episodes",
        "Replay episodes that the run has logged instead of playing new ones. Any of these "
        "options does so; game-rl episodes RUN lists the episodes.",
    )
    logged.add_argument(
        "--logged",
        type=positive,
        nargs="*",
        metavar="NUMBER",
        help="episodes with these numbers; without a number, those that the other options choose",
    )
    add_logged_choice(logged)


def evaluation_table(evaluation: "Evaluation", title: str) -> Group:
    """Return a table of the results, with a row for each start state if there are several.

    The title may have a path, so it stays one line beside narrower columns.
    """
    apart = evaluation.by_start_state
    if apart is not None:
        return _start_states_table({"all": evaluation, **apart}, f"{title}, {_way(evaluation)}")
    success = _with_interval(evaluation.success_rate, evaluation.success_interval, percent)
    reward = _with_interval(evaluation.mean_reward, evaluation.reward_interval, "{:.2f}".format)
    table = Table(show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    table.add_row("episodes", f"{evaluation.episodes:,}, {_way(evaluation)}")
    table.add_row("success", success)
    table.add_row("mean reward", f"{reward}; standard deviation {evaluation.std_reward:.2f}")
    table.add_row("mean length", f"{evaluation.mean_length:,.0f} timesteps")
    if evaluation.endings:
        endings = (f"{name} {count:,}" for name, count in evaluation.endings.items())
        table.add_row("endings", Text(", ".join(endings)))
    return _titled(title, table)


def _titled(title: str, table: Table) -> Group:
    return Group(Text(title, style="table.title", no_wrap=True, overflow="ignore"), table)


def _way(evaluation: "Evaluation") -> str:
    return "deterministic" if evaluation.deterministic else "stochastic"


def _with_interval(
    value: float | None, interval: tuple[float, float] | None, words: Callable[[float], str]
) -> str:
    if value is None:
        return "not defined"
    if interval is None:
        return words(value)
    low, high = map(words, interval)
    return f"{words(value)}, 95% interval {low} to {high}"


def _start_states_table(rows: "Mapping[str, Evaluation | StartStateResult]", title: str) -> Group:
    """Return a table of results by start state; a part of an evaluation has fewer cells."""
    more = numbers("episodes", "success", "mean reward", "95% interval", "timesteps")
    table = Table("start state", *more)
    for name, result in rows.items():
        success = result.success_rate
        cells = [
            f"{result.episodes}",
            "not defined" if success is None else percent(success),
            f"{result.mean_reward:.2f}",
        ]
        if not isinstance(result, StartStateResult):
            interval = result.reward_interval
            cells.append("" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}")
            cells.append(f"{result.mean_length:.0f}")
        table.add_row(Text(name), *cells)
    return _titled(title, table)


@dataclass(frozen=True)
class _Player:
    """The policy that `evaluate` plays: a run's, or one that has learned nothing.

    Attributes:
        play: plays from a start state, or from those of the config.
        facts: what --json has beside the results, which may depend on what was played.
        config: config of the run.
    """

    name: str
    play: Callable[[str | None], "Evaluation"]
    facts: Callable[["Evaluation"], dict[str, object]]
    config: RunConfig


def _evaluate(arguments: argparse.Namespace) -> int:
    root, checkpoint = named_policy(arguments)
    if arguments.policy is None:
        game = check_playable(root, checkpoint, arguments.game)
        chosen_start_states(arguments.start_states, game)
        player = _learned_player(arguments, root, checkpoint)
    else:
        run_dir, config = open_run(root)
        game = open_game(run_dir, config, arguments.game)
        chosen_start_states(arguments.start_states, game)
        player = _baseline_player(arguments, config, game)
    changes = game_changes(game, player.config.env.starting_in(arguments.start_states))
    changed = {"game_changes": changes} if changes else {}
    names = arguments.start_states or [None]
    results = {name: player.play(name) for name in names}
    if arguments.json:
        reports = {
            name: {**each.to_json(), **player.facts(each), **changed}
            for name, each in results.items()
        }
        print_facts(reports if arguments.start_states else reports[None])
        return 0
    evaluation = next(iter(results.values()))
    console = SafeConsole()
    if arguments.start_states:
        by_state = {str(name): each for name, each in results.items()}
        title = f"{root}, {player.name}, {_way(evaluation)}"
        console.print(_start_states_table(by_state, title))
    else:
        action = player.facts(evaluation).get("action")
        policy = player.name if action is None else f"always {action}"
        console.print(evaluation_table(evaluation, f"{root}, {policy}"))
        if evaluation.variables:
            title = "variables at the end of an episode"
            headings = numbers("mean", "deviation", "least", "largest")
            table = Table("variable", *headings, title=Text(title), title_justify="left")
            for name, found in evaluation.variables.items():
                cells = (f"{value:,.6g}" for value in (found.min, found.max))
                table.add_row(Text(name), f"{found.mean:,.2f}", f"{found.std:,.2f}", *cells)
            console.print(table)
    for change in changes:
        print(visible(f"the game is changed: {change}"))
    return 0


def _learned_player(arguments: argparse.Namespace, root: Path, checkpoint: str) -> _Player:
    from game_rl.playback.trained_run import evaluate_run, open_trained_run

    run = open_trained_run(root, checkpoint, arguments.game)
    if arguments.deterministic is not None:
        run = replace(run, deterministic=arguments.deterministic)
    notes = run.game_notes(arguments.game)
    print_notes(notes)

    def play(start_state: str | None) -> "Evaluation":
        return evaluate_run(
            run, episodes=arguments.episodes, seed=arguments.seed, start_state=start_state
        )

    facts = run.policy_facts() | ({"notes": notes} if notes else {})
    return _Player(run.name, play, lambda _: facts, run.config)


def _baseline_player(arguments: argparse.Namespace, config: RunConfig, game: Game) -> _Player:
    if arguments.checkpoint is not None or named_checkpoint(arguments.run)[1] is not None:
        raise UsageError(
            f"--policy {arguments.policy} is untrained and belongs to no checkpoint: name only "
            "the run"
        )
    if arguments.deterministic is not None:
        raise UsageError(
            f"--policy {arguments.policy} already fixes how actions are chosen; leave out "
            "--deterministic and --no-deterministic"
        )
    constant_action(arguments.policy, game.action_names)  # refuses an unknown one
    from game_rl.playback.trained_run import evaluate_baseline

    def play(start_state: str | None) -> "Evaluation":
        return evaluate_baseline(
            config,
            game,
            arguments.policy,
            episodes=arguments.episodes,
            seed=arguments.seed,
            start_state=start_state,
        ).evaluation

    def facts(played: "Evaluation") -> dict[str, object]:
        if not played.deterministic:
            return {"policy": RANDOM}
        taken = max(range(len(game.action_names)), key=played.action_counts.__getitem__)
        return {"policy": arguments.policy, "action": game.action_names[taken]}

    return _Player(f"{arguments.policy} policy", play, facts, config)


def _record(arguments: argparse.Namespace) -> int:
    if arguments.run.suffix.lower() == ROUTE.suffix and not arguments.run.is_dir():
        return _record_played(arguments)
    folder = ExploreDir(Path(arguments.run))
    if folder.exists():
        return _record_route(arguments, folder)
    if arguments.route is not None:
        folder.read()  # which says what is missing
    if arguments.output is not None and arguments.output.suffix.lower() == ROUTE.suffix:
        raise UsageError(
            f"--output {arguments.output}: only routes of explorations can be written as .json; "
            "name a .gif or .mp4"
        )
    if arguments.logged is not None or has_logged_choice(arguments):
        return _record_logged(arguments)
    root, checkpoint = named_policy(arguments)
    game = check_playable(root, checkpoint, arguments.game)
    chosen_start_states(arguments.start_states, game)
    _check_clip(arguments.output)
    from game_rl.playback.recording import record_run
    from game_rl.playback.trained_run import open_trained_run

    run = open_trained_run(root, checkpoint, arguments.game)
    notes = run.game_notes(arguments.game)
    print_notes(notes)
    made = record_run(
        run,
        episodes=arguments.episodes or 2,
        output=arguments.output or run.run_dir.clip(f"{run.checkpoint.path.name}.gif"),
        seed=arguments.seed,
        start_states=arguments.start_states,
        overlay=_overlay(arguments),
        grid=arguments.grid,
    )
    changes = game_changes(game, run.config.env.starting_in(arguments.start_states))
    facts = run.policy_facts() | ({"game_changes": changes} if changes else {})
    facts |= {"notes": notes} if notes else {}
    told = "".join(f"\nthe game is changed: {change}" for change in changes)
    print_result(arguments, {"file": str(made), **facts}, f"{made}{told}")
    return 0


def _record_played(arguments: argparse.Namespace) -> int:
    """Record a recorded episode, such as one of game-rl play."""
    path = arguments.run
    _refuse_choices_of_runs(arguments, f"{path} is one episode, which is always shown whole")
    if arguments.route is not None:
        raise UsageError(f"--route is for explorations, and {path} is a recorded episode")
    if arguments.game is None:
        raise UsageError(
            f"{path} does not name its game; add --game with the game.yaml or the name of the game "
            "that was played"
        )
    output = arguments.output or path.with_suffix(GIF.suffix)
    _check_clip(output)
    overlay = _overlay_without_value(arguments, "a recorded episode")
    game = with_potentials(load_game(arguments.game), EnvConfig())
    episode = read_recorded_episode(path, game)
    from game_rl.playback.played_replay import record_played

    made = record_played(episode, game, output, label=path.stem, overlay=overlay)
    if made.fault:
        print_notes(
            [
                f"{path} does not replay as it was recorded: {made.fault}. The game file, game_rl "
                "or PyBoy has changed since then"
            ]
        )
    print_result(
        arguments,
        {**asdict(made), "file": str(made.file)},
        f"{made.file}: {counted(made.timesteps, 'timestep')}, reward {made.reward:.2f}, "
        f"{made.ending or 'not ended'}",
    )
    return 0


_NOT_FOR_ROUTES = ("checkpoint", "episodes", "seed", "start_states", "logged")


def _record_route(arguments: argparse.Namespace, folder: ExploreDir) -> int:
    _refuse_choices_of_runs(arguments, "a route is chosen by --route")
    overlay = _overlay_without_value(arguments, "a route")
    game, settings = explored_game(folder, arguments.game)
    archive = Archive.read(folder.archive, settings.most_bytes, has_states=False)
    word = arguments.route or BEST
    if word == BEST and not settings.cell:
        raise UsageError(
            "this exploration has no rewards, so no route is the best; name the number of a "
            f"cell, such as those on {folder.sheet}: --route 12"
        )
    route = find_route(archive, word)
    output = arguments.output or folder.root / f"{route.name}.gif"
    if output.suffix.lower() == ROUTE.suffix:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_route(route, game, settings, output)
    else:
        from game_rl.playback.route_replay import record_route

        record_route(route, game, settings, output, overlay=overlay)
    facts: dict[str, object] = {"file": str(output), "timesteps": len(route.actions)}
    text = f"{output}: {counted(len(route.actions), 'timestep')}"
    if route.cell is not None:
        facts["cell"] = route.cell.number
        text += f" to cell {route.cell.number:,}"
        if settings.cell:
            facts["reward"] = route.cell.score.reward
            text += f", reward {route.cell.score.reward:g}"
    if route.term is not None:
        facts["term"] = route.term
        text += f", up to the first time that reward term {route.term} is earned"
    print_result(arguments, facts, text)
    return 0


def _refuse_choices_of_runs(arguments: argparse.Namespace, instead: str) -> None:
    found = [
        f"--{name.replace('_', '-')}"
        for name in _NOT_FOR_ROUTES
        if getattr(arguments, name) is not None
    ]
    if has_logged_choice(arguments):
        found.append("a choice among logged episodes")
    if arguments.grid:
        found.append("--grid")
    if found:
        raise UsageError(f"{found[0]} is for the episodes of a run; {instead}")


def _overlay_without_value(arguments: argparse.Namespace, what: str) -> "tuple[OverlayItem, ...]":
    """Return what --overlay names, where no policy plays."""
    overlay = _overlay(arguments)
    if arguments.overlay and "value" in overlay:
        raise UsageError(
            f"--overlay value: no policy plays {what}, so there are no values; use action and "
            "reward"
        )
    return overlay


def _overlay(arguments: argparse.Namespace) -> "tuple[OverlayItem, ...]":
    """Return what --overlay names; all if it names nothing."""
    if arguments.overlay is None:
        return ()
    return tuple(arguments.overlay) or ("action", "reward", "value")


def _check_clip(output: Path | None) -> None:
    """Refuse an --output that cannot be written, before anything is played."""
    from game_rl.playback.clip import clip_writer

    if output is not None:
        clip_writer(output)


def _record_logged(arguments: argparse.Namespace) -> int:
    """Record episodes that the run has logged; torch is needed only for values."""
    root, checkpoint = named_policy(arguments)
    run_dir, config = open_run(root)
    chosen = _chosen_logged(arguments, run_dir)
    _check_clip(arguments.output)
    overlay = _overlay(arguments)
    game = open_game(run_dir, config, arguments.game)
    seen = config.env.observation.parts
    if changed := changed_game_keys(chosen[0].under.game, game, seen):
        print_notes([f"changed since the episode was logged: {'; '.join(changed)}"])
    make_watcher = None
    if "value" in overlay:
        from game_rl.playback.recording import PolicyWatcher
        from game_rl.playback.trained_run import open_trained_run

        run = open_trained_run(root, checkpoint, arguments.game)
        if run.config.env.wrappers:
            raise UsageError(
                "the wrappers of the run change what its policy sees, and a logged episode is "
                "played without them, so there are no values; use --overlay action reward"
            )
        make_watcher = partial(PolicyWatcher, run)
    from game_rl.playback.episode_replay import record_logged

    name = f"episode_{chosen[0].number:06d}.gif"
    if len(chosen) > 1:
        name = f"episodes_{chosen[0].number:06d}_and_{len(chosen) - 1}_more.gif"
    output = arguments.output or run_dir.videos / name
    made = record_logged(
        chosen, game, output, overlay=overlay, grid=arguments.grid, make_watcher=make_watcher
    )
    facts = {"file": str(made), "episodes": [episode.to_json() for episode in chosen]}
    lines = [str(made)]
    lines += (
        f"episode {episode.number:,}: {episode.kind}, ended at timestep {episode.timesteps:,}, "
        f"{counted(episode.length, 'timestep')}, reward {episode.reward:.2f}, {episode.ending}"
        for episode in chosen
    )
    print_result(arguments, facts, "\n".join(lines))
    return 0


def _chosen_logged(arguments: argparse.Namespace, run_dir: RunDir) -> LoggedEpisodes:
    if arguments.seed is not None:
        raise UsageError("--seed chooses new episodes, and the others logged ones; leave one out")
    logged = logged_of(run_dir)
    if arguments.logged:
        if has_logged_choice(arguments) or arguments.start_states or arguments.episodes:
            raise UsageError(
                "--logged with numbers says which episodes are recorded; leave out the numbers, or "
                "the options that choose among all"
            )
        return logged.numbered(arguments.logged)
    choice = logged_choice(arguments)
    most = arguments.episodes or (1 if choice.best or choice.worst else 2)
    chosen = replace(choice, most=most, only_playable=True).of(logged)
    refuse_empty(chosen, logged, run_dir)
    return chosen
