"""The report of an exploration: one file for people who have nothing but a browser."""

import base64
import io
from pathlib import Path

import numpy as np
from PIL import Image

from game_rl.events.run_view import PlotAxis
from game_rl.explore.exploration_view import ExplorationView
from game_rl.explore.explore_dir import ExploreDir
from game_rl.explore.explore_pictures import exploration_map, why_no_map
from game_rl.explore.route import explored_game
from game_rl.games.definition import Game
from game_rl.look import BEST, CELLS, MAPS, PLACES
from game_rl.system.units import format_duration
from game_rl.viewer.panels import Panel, PlotLine, SeedCurve, thinned
from game_rl.viewer.report_sections import plots_section, shown_clip
from game_rl.viewer.report_style import Html, element, note, report, section, table, tile

_S_IN_HOUR = 3600
_X_LABELS = {"timesteps": "timesteps", "frames": "emulator frames", "hours": "hours"}
_STATES = {
    "exploring": ("exploring", "good"),
    "stopped": ("stopped", ""),
    "unknown": ("state unknown", ""),
}


def exploration_report(folder: ExploreDir, axis: PlotAxis = "timesteps") -> str:
    """Return an exploration's report as HTML, with everything in it.

    Raises:
        GameRLError: the folder is none of an exploration, or its game cannot be read.
    """
    game, _ = explored_game(folder)
    view = ExplorationView(folder, game.definition.place, game.map_offsets())
    view.refresh()
    settings = view.saved.settings
    links = [("curves", "Curves"), ("screens", "Screens"), ("commands", "Commands")]
    of_rewards: list[Html] = []
    if settings.cell:  # pictures have neither rewards nor places
        links[1:1] = [("rewards", "Rewards"), ("best", "The best route"), ("places", "Places")]
        of_rewards = [_rewards_section(view), _best_section(view), _places_section(view, game)]
    return report(
        folder.root.absolute().name,
        f"An exploration of {game.definition.title} from {settings.start_state}, "
        f"seed {settings.seed}",
        _STATES[view.state],
        element("nav", *(element("a", text, href=f"#{name}") for name, text in links)),
        _tiles(view),
        plots_section(exploration_panels(view, axis)),
        *of_rewards,
        _screens_section(view),
        _commands_section(view),
    )


def _tiles(view: ExplorationView) -> Html:
    last = view.last
    found = [tile("cells", f"{last.cells:,}", f"{len(view.points):,} rounds")]
    if last.places:
        maps = f"on {last.maps:,} maps" if last.maps > 1 else ""
        found.append(tile("places", f"{last.places:,}", maps))
    if view.saved.settings.cell:
        ending = (
            "a route ends with a success" if view.has_success else "no route ends with a success"
        )
        found.append(tile("best reward", f"{last.reward:g}", ending))
    frames = last.timesteps * view.saved.settings.env.frame_skip
    found.append(tile("timesteps", f"{last.timesteps:,}", f"{frames:,} emulator frames"))
    speed = f"{last.timesteps / last.seconds:,.0f} timesteps/s" if last.seconds else ""
    found.append(tile("time", format_duration(last.seconds), speed))
    return element("div", *found, class_="tiles")


def exploration_panels(view: ExplorationView, axis: PlotAxis) -> list[Panel]:
    """Return the panels of an exploration: cells and places, maps, the best reward."""
    points = view.points
    if not points:
        return []
    x = np.array([point.timesteps for point in points], np.float64)
    if axis == "frames":
        x = x * view.saved.settings.env.frame_skip
    elif axis == "hours":
        x = np.array([point.seconds / _S_IN_HOUR for point in points])
    last = view.last

    def line(label: str, colour: int, values: list[float]) -> PlotLine:
        curve = thinned(SeedCurve(x, np.array(values, np.float64)))
        return PlotLine(label, colour, curve.x, curve.y)

    def panel(name: str, title: str, note: str, *lines: PlotLine) -> Panel:
        return Panel(name, title, "number", lines, note, from_zero=True, x_label=_X_LABELS[axis])

    cells = [line("cells", CELLS, [point.cells for point in points])]
    title = "Cells"
    if last.places:
        title = "Cells and places"
        cells.append(line("places", PLACES, [point.places for point in points]))
    panels = [panel("cells", title, "different ones that were found", *cells)]
    if last.maps > 1:
        maps = line("maps", MAPS, [point.maps for point in points])
        panels.append(panel("maps", "Maps", "different ones that were found", maps))
    if view.saved.settings.cell:
        reward = line("reward", BEST, [point.reward for point in points])
        panels.append(panel("reward", "Best reward", "sum of the best route's rewards", reward))
    return panels


def _rewards_section(view: ExplorationView) -> Html:
    title = "When each reward was first earned"
    if not view.terms:
        return section(title, "rewards", note("No reward term was earned yet."))
    rows = [
        (
            element("code", term.name),
            f"{term.timesteps:,}",
            format_duration(term.seconds),
            f"{term.most:g}",
            element("code", f"--route {term.name}") if term.has_route else "",
        )
        for term in view.terms
    ]
    head = ("reward term", "after timesteps", "after", "most in an episode", "its route")
    return section(title, "rewards", table(head, rows, numbers=(1, 2, 3)))


def _best_section(view: ExplorationView) -> Html:
    title = "The best route"
    parts = list(filter(None, [_clip(view.folder)]))
    if (picture := _png(view.folder.best_picture)) is not None:
        label = "Screens of the best route, at each reward that it earns"
        parts.append(_wide_picture(picture, label))
    if not parts:
        parts = [
            note("Its screens are drawn after the first minute, and when the exploration ends.")
        ]
    return section(title, "best", *parts)


def _clip(folder: ExploreDir) -> Html | None:
    """Return the clip that `record --route best` has made, if there is one."""
    for name in ("best.mp4", "best.gif"):
        path = folder.root / name
        if path.is_file():
            return element("div", shown_clip(path, f"The best route, from {name}"), class_="card")
    return None


def _places_section(view: ExplorationView, game: Game) -> Html:
    title = "Visited places"
    picture = exploration_map(view, game, title=game.definition.title)
    if picture is None:
        return section(title, "places", note(why_no_map(game)))
    return section(
        title, "places", _wide_picture(_png_of(picture), "Map of the visited places", kind="map")
    )


def _screens_section(view: ExplorationView) -> Html:
    picture = _png(view.folder.sheet)
    if picture is None:
        text = "They are drawn after the first minute, and when the exploration ends."
        return section("Screens", "screens", note(text))
    about = "Some cells: number, timesteps of the best route to it, and its reward, if any."
    shown = _wide_picture(picture, "Screens of some cells")
    return section("Screens", "screens", element("p", about, class_="muted"), shown)


def _commands_section(view: ExplorationView) -> Html:
    text = "\n".join(view.commands())
    return section("Commands", "commands", element("pre", element("code", text)))


def _wide_picture(png: bytes, label: str, *, kind: str = "sheet") -> Html:
    data = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return element(
        "div", element("img", src=data, alt=label), class_=f"wide picture {kind}", tabindex="0"
    )


def _png(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _png_of(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, format="PNG", optimize=True)
    return file.getvalue()
