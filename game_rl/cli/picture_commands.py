"""`game-rl plot`, `report`, `places`."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self, TypeVar

from rich.progress import Progress

from game_rl.checkpoints.named import open_run
from game_rl.checkpoints.run_game import open_game
from game_rl.cli.arguments import positive
from game_rl.cli.outputs import GIF, HTM, HTML, MP4, PNG, SVG, add_output
from game_rl.cli.printing import PROGRESS, add_json, print_result, working
from game_rl.config.schema import RunConfig
from game_rl.config.values import expanded_path
from game_rl.errors import GameRLError, UsageError
from game_rl.events.event_log import read_events
from game_rl.events.run_view import PlotAxis
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.explore.explore_dir import ExploreDir
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir, has_file
from game_rl.games.definition import Game
from game_rl.look import LIGHT
from game_rl.places.place_counts import PlaceCounts
from game_rl.places.place_layers import layers
from game_rl.system.units import counted
from game_rl.viewer.panels import Panel
from game_rl.viewer.run_panels import fitness_panel, run_panels
from game_rl.viewer.shown_runs import (
    ShownExperiment,
    ShownRun,
    grouped_runs,
    read_run,
    shown_experiment,
)

if TYPE_CHECKING:
    from game_rl.places.joined_maps import JoinedMap
    from game_rl.places.place_flags import PlaceFlag
    from game_rl.places.screen_map import ScreenMap
    from game_rl.viewer.report_clips import ReportClip

_Item = TypeVar("_Item")
_MOST_GROUPS = len(LIGHT.series)
_CLIP_S = 60.0  # of a champion's episode
_STUDY_FILE = "registration.sha256"


def add_plot(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_plot)
    parser.add_argument(
        "runs",
        nargs="+",
        type=expanded_path,
        metavar="RUN",
        help="directories of runs; those whose configs differ only by the seed share a colour. An "
        "experiment stands for its members",
    )
    _add_axis(parser)
    parser.add_argument(
        "--panels",
        type=_panel_names,
        metavar="NAME,NAME",
        help="draw only these panels, in this order, such as success,reward (default: all; --json "
        "names them)",
    )
    parser.add_argument("--title", help="title of the picture (default: names of the runs)")
    add_output(parser, "--output", PNG, SVG, required=True, text="file to write, .png or .svg")
    add_json(parser)


def add_report(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_report)
    parser.add_argument(
        "run",
        type=expanded_path,
        metavar="RUN",
        help="run directory, or the directory of an experiment or an exploration",
    )
    _add_axis(parser)
    add_output(parser, "--output", HTML, HTM, required=True, text="file to write, .html")
    add_json(parser)


def _panel_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(
            f"{text!r} names no panels; write, for example, success,reward"
        )
    return list(dict.fromkeys(names))


def _add_axis(parser: argparse.ArgumentParser) -> None:
    choices = ["timesteps", "frames", "hours"]
    parser.add_argument(
        "--x",
        choices=choices,
        default="timesteps",
        help="x axis: timesteps, emulator frames or hours of training (default: timesteps)",
    )


def add_places(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_places)
    parser.add_argument(
        "run",
        type=expanded_path,
        metavar="RUN",
        help="run directory, of a finished or running run, or the folder of an exploration",
    )
    add_output(
        parser,
        "--output",
        PNG,
        GIF,
        MP4,
        default=Path("places.png"),
        text="PNG to write (default: places.png); a .gif or .mp4 is the whole training in 20 "
        "seconds, with agents that walk through logged episodes",
    )
    parser.add_argument(
        "--side",
        type=positive,
        metavar="PIXELS",
        help="width and height of the maps, at most (default: 1,000; 800 in a clip)",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="draw only the visits. By default, they are drawn on the screens that agents saw, if "
        "the game has a `place_screen`; some logged episodes are played again for them",
    )
    add_json(parser)


def _plot(arguments: argparse.Namespace) -> int:
    output: Path = arguments.output
    paths = list(dict.fromkeys(arguments.runs))
    panels = plotted_panels(paths, arguments.x)
    if arguments.panels is not None:
        panels = _chosen_panels(panels, arguments.panels)
    title = arguments.title
    if title is None:
        title = ", ".join(path.absolute().name for path in paths)
    from game_rl.viewer.panel_figure import panels_png, panels_svg

    draw = panels_png if output.suffix.lower() == ".png" else panels_svg
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, draw(panels, title))
    names = [panel.name for panel in panels]
    print_result(arguments, {"file": str(output), "panels": names}, str(output))
    return 0


def _chosen_panels(panels: Sequence[Panel], names: Sequence[str]) -> list[Panel]:
    """Return the panels of these names, in their order.

    Raises:
        UsageError: there is no such panel.
    """
    by_name = {panel.name: panel for panel in panels}
    for name in names:
        if name not in by_name:
            raise UsageError(
                f"--panels {name}: these runs have no such panel; they have {', '.join(by_name)}"
            )
    return [by_name[name] for name in names]


def _report(arguments: argparse.Namespace) -> int:
    output: Path = arguments.output
    _refuse_studies(arguments.run)
    if ExploreDir(arguments.run).exists():
        from game_rl.viewer.exploration_report import exploration_report

        text = exploration_report(ExploreDir(arguments.run), arguments.x)
    elif ExperimentDir(arguments.run).exists():
        experiment = shown_experiment(arguments.run)
        from game_rl.viewer.experiment_report import experiment_report

        text = experiment_report(experiment, arguments.x, _champion_clips(experiment))
    else:
        run = read_run(arguments.run)
        from game_rl.viewer.report_clips import early_best_worst
        from game_rl.viewer.run_report import run_report

        with working("playing logged episodes again"):
            clips = early_best_worst(run)
        text = run_report(run, arguments.x, clips)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, text)
    print_result(arguments, {"file": str(output), "bytes": len(text.encode())}, str(output))
    return 0


def _champion_clips(experiment: ShownExperiment) -> "Sequence[ReportClip]":
    """Return the champion at play, unless its folder has a clip; torch is needed for it alone."""
    root = experiment.folder.champion
    if experiment.champion is None or not root.is_dir() or any(RunDir(root).videos.glob("*.*")):
        return ()
    from game_rl.playback.recording import record_run
    from game_rl.playback.trained_run import open_trained_run
    from game_rl.viewer.report_clips import ReportClip

    title = f"The champion, {experiment.champion.folder}"
    try:
        with working("recording the champion"), TemporaryDirectory() as folder:
            run = open_trained_run(root, "best")
            output = Path(folder) / f"champion{GIF.suffix}"
            record_run(run, episodes=1, output=output, max_s=_CLIP_S)
            return (ReportClip(title, "The first episode of its clips.", output.read_bytes()),)
    except GameRLError as error:
        return (ReportClip(title, "", b"", str(error)),)


def plotted_panels(paths: Sequence[Path], axis: PlotAxis) -> list[Panel]:
    """Return the panels of runs and experiments.

    Raises:
        UsageError: a path is neither a run nor an experiment, nothing is recorded yet, or there are
            more different configs than colours.
    """
    runs: list[ShownRun] = []
    experiments: list[ShownExperiment] = []
    for path in paths:
        _refuse_studies(path)
        if ExperimentDir(path).exists():
            experiments.append(shown_experiment(path))
        else:
            runs.append(read_run(path))
    groups = [*grouped_runs(runs), *(group for each in experiments for group in each.groups)]
    if len(groups) > _MOST_GROUPS:
        raise UsageError(
            f"these runs have {len(groups)} different configs, but one plot can show at most "
            f"{_MOST_GROUPS}; name fewer runs, such as those of {groups[0].name} and "
            f"{groups[1].name}"
        )
    panels = run_panels(groups, axis)
    if len(experiments) == 1 and not runs:
        panels = [*filter(None, [fitness_panel(experiments[0], axis)]), *panels]
    if not panels:
        names = ", ".join(map(str, paths))
        raise UsageError(
            f"{names}: nothing is recorded yet; the first points come with the first update, or "
            "the first evaluation"
        )
    return panels


def _refuse_studies(path: Path) -> None:
    """Raise UsageError if a path is a study's file or the folder of its runs."""
    if path.is_file():
        raise UsageError(
            f"{path} is a file, not the directory of a run or an experiment; if it is a study, "
            f"game-rl compare {quote(str(path))} reports and plots it"
        )
    if has_file(path / _STUDY_FILE):
        inside = sorted(each.name for each in path.iterdir() if (each / "config.yaml").is_file())
        example = f", such as {path / inside[0]}" if inside else ""
        raise UsageError(
            f"{path} has the runs of a study: name single ones{example}, or report the whole study "
            "with game-rl compare and its file"
        )


def _places(arguments: argparse.Namespace) -> int:
    if ExploreDir(arguments.run).exists():
        return _places_of_exploration(arguments)
    run_dir, config = open_run(arguments.run)
    from game_rl.game_check.sheets import save_sheet
    from game_rl.places.place_flags import place_flags
    from game_rl.places.places_picture import SIDE, places_picture, read_place_counts

    counts = read_place_counts(run_dir)
    if arguments.output.suffix.lower() != PNG.suffix:
        _check_clip(arguments.output, run_dir, counts)
    joined, why_not = _joined_maps(run_dir, config, counts, is_plain=arguments.plain)
    flags = place_flags(read_events(run_dir), counts.names, counts.offsets)
    title = f"{config.game}, {run_dir.root}"
    if arguments.output.suffix.lower() == ".png":
        side = arguments.side or SIDE
        picture = places_picture(counts, title=title, side=side, joined=joined, flags=flags)
        save_sheet(picture, arguments.output, "map of visited places")
    else:
        _save_clip(arguments, run_dir, config, counts, joined, flags, title)
    maps = layers(counts)
    facts = {
        "picture": str(arguments.output),
        "place": list(counts.names),
        "since": counts.since,
        "timesteps": counts.timesteps,
        "elsewhere": counts.elsewhere,
        "places": counts.n_places,
        "maps": [
            {"name": each.name, "timesteps": int(each.counts.sum()), "x": each.x0, "y": each.y0}
            for each in maps
        ],
        "screens": sum(len(each.pictures) for each in joined),
    }
    text = (
        f"{arguments.output}: {counted(counts.n_places, 'place')} of {', '.join(counts.names)}, "
        f"visited in {counted(counts.timesteps, 'timestep')}"
    )
    print_result(arguments, facts, text, why_not)
    return 0


def _places_of_exploration(arguments: argparse.Namespace) -> int:
    from game_rl.explore.exploration_view import ExplorationView
    from game_rl.explore.explore_pictures import exploration_map, why_no_map
    from game_rl.explore.route import explored_game
    from game_rl.game_check.sheets import save_sheet
    from game_rl.places.places_picture import SIDE

    folder = ExploreDir(arguments.run)
    output: Path = arguments.output
    if output.suffix.lower() != PNG.suffix:
        raise UsageError(
            f"{folder.root} is an exploration, which does not say when its places were visited: "
            "name a .png"
        )
    game, _ = explored_game(folder)
    view = ExplorationView(folder, game.definition.place, game.map_offsets())
    view.refresh()
    title = f"{game.definition.title}, {folder.root}"
    side = arguments.side or SIDE
    picture = exploration_map(view, game, title=title, side=side, plain=arguments.plain)
    if picture is None:
        raise UsageError(f"{folder.root} has no map. {why_no_map(game)}")
    save_sheet(picture, output, "map of visited places")
    last = view.last
    facts = {"picture": str(output), "places": last.places, "maps": last.maps}
    print_result(arguments, facts, f"{output}: {counted(last.places, 'place')}")
    return 0


def _check_clip(output: Path, run_dir: RunDir, counts: PlaceCounts) -> None:
    """Raise UsageError if no clip can be made, before episodes are played again for it."""
    from game_rl.playback.clip import clip_writer

    clip_writer(output)
    if not counts.until:
        raise UsageError(
            f"{run_dir.places} does not record when places were visited: an earlier version wrote "
            "it; name a .png, which needs no times"
        )


def _save_clip(
    arguments: argparse.Namespace,
    run_dir: RunDir,
    config: RunConfig,
    counts: PlaceCounts,
    joined: "Sequence[JoinedMap]",
    flags: "Sequence[PlaceFlag]",
    title: str,
) -> None:
    from game_rl.places.map_clip import CLIP_S, CLIP_SIDE, N_PICTURES, Walk, map_pictures
    from game_rl.playback.clip import save_clip
    from game_rl.playback.played_map import played_walks

    walks: Sequence[Walk] = ()
    if any(each.pictures for each in joined):
        with _Playing("playing logged episodes again for the agents") as playing:
            walks = played_walks(run_dir, open_game(run_dir, config), progress=playing)
    side = arguments.side or CLIP_SIDE
    pictures = map_pictures(counts, joined, title=title, side=side, flags=flags, walks=walks)
    with _Playing("drawing the clip") as drawing:
        shown = drawing.each(pictures, N_PICTURES)
        save_clip(shown, CLIP_S / N_PICTURES, arguments.output)


class _Playing:
    """Shows in the terminal how far something is."""

    def __init__(self, text: str) -> None:
        self._progress = Progress(
            console=PROGRESS, transient=True, disable=not PROGRESS.is_terminal
        )
        self._task = self._progress.add_task(text, total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, done: int, total: int) -> None:
        self._progress.update(self._task, completed=done, total=total)

    def each(self, items: "Iterable[_Item]", total: int) -> "Iterator[_Item]":
        """Yield the items, and show how many were yielded."""
        for done, item in enumerate(items, 1):
            self(done, total)
            yield item


def _joined_maps(
    run_dir: RunDir, config: RunConfig, counts: PlaceCounts, *, is_plain: bool
) -> "tuple[Sequence[JoinedMap], str]":
    """Return the maps, on their screens unless these are to be left out; if there are none, why."""
    from game_rl.places.joined_maps import joined_maps
    from game_rl.places.screen_map import ScreenMap

    found = ScreenMap()
    why_not = ""
    try:
        game = open_game(run_dir, config)
    except GameRLError as error:
        why_not = "" if is_plain else f"without screens: {error}"
        return joined_maps(counts, found, pixels=1, names={}), why_not
    if not is_plain:
        found, why_not = _screens(run_dir, game, counts)
    return joined_maps(counts, found, pixels=found.pixels, names=game.map_names()), why_not


def _screens(run_dir: RunDir, game: Game, counts: PlaceCounts) -> "tuple[ScreenMap, str]":
    """Return the screens of logged episodes; if there are none, why."""
    from game_rl.places.screen_map import ScreenMap
    from game_rl.playback.played_map import update_screen_map

    if game.definition.place_screen is None:
        why_not = "game.yaml has no `place_screen`, which says how they lie"
        return ScreenMap(), f"without screens: {why_not}"
    with _Playing("playing logged episodes again") as playing:
        found = update_screen_map(run_dir, game, counts, progress=playing)
    if found.maps():
        return found, ""
    why_not = "no logged episode can be played again (`episodes` in its config)"
    return found, f"without screens: {why_not}"
