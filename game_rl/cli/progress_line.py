"""One line of a training's progress, which shows what matters most in any width."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from game_rl.events.time_left import TimeLeft
from game_rl.statistics import percent
from game_rl.system.units import format_duration

_GAP = "  "
_FEW_SECONDS = 10
_BAR_CELLS = (10, 40)  # the least and the most
_NO_BAR_CELLS = _BAR_CELLS[0] + len(_GAP)


def fitted(texts: Mapping[str, Sequence[str]], order: Sequence[str], width: int) -> dict[str, str]:
    """Return a text for each name, so that together, with gaps between, they fit into a width.

    Args:
        texts: for each name its texts, the longest first; an empty one leaves it out.
        order: the names whose texts become shorter, one step for each time that they stand here.
    """
    steps = dict.fromkeys(texts, 0)
    for name in (None, *order):
        if name is not None:
            steps[name] = min(steps[name] + 1, len(texts[name]) - 1)
        found = {each: choices[steps[each]] for each, choices in texts.items()}
        if cell_len(_GAP.join(filter(None, found.values()))) <= width:
            break
    return found


@dataclass(frozen=True)
class Standing:
    """How far a training is.

    Attributes:
        doing: what it does other than to train, such as an evaluation; empty while it trains.
        unit: what `done` and `total` count.
    """

    done: int = 0
    total: int = 0
    unit: str = "timesteps"
    speed: float | None = None
    mean_reward: float | None = None
    success_rate: float | None = None
    doing: str = ""

    def texts(self, left: TimeLeft | None) -> dict[str, list[str]]:
        """Return the texts of each part, as `fitted` takes them."""
        share = percent(min(1.0, self.done / self.total)) if self.total else ""
        counted = f"{self.done:,} / {self.total:,}"
        where = [f"{counted} {self.unit}", counted, share]
        if self.doing:
            where = [self.doing, self.doing.partition(",")[0], share]
        reward = ""
        success = ""
        if self.mean_reward is not None:
            reward = f"reward {self.mean_reward:.2f}"
        if self.success_rate is not None:
            success = f"success {percent(self.success_rate)}"
        speed = "" if self.speed is None or self.doing else f"{self.speed:,.0f}/s"
        return {
            "where": where,
            "speed": [speed, ""],
            "reward": [reward, ""] if success else [reward],
            "success": [success],
            "left": left_words(left),
        }


def left_words(left: TimeLeft | None) -> list[str]:
    """Return texts about the time that is left, the longest first; empty ones if it is unknown."""
    if left is None:
        return [""]
    seconds = round(left.seconds)
    if seconds < _FEW_SECONDS:  # half of a short run may be left
        return ["a few seconds left"]
    text = f"{format_duration(seconds)} left"
    return [f"{left.qualifier} {text}", text]


ORDER = ("speed", "where", "reward", "where", "left")
"""The parts that become shorter where a terminal is narrow, after the bar."""


class ProgressLine:
    """A renderable for `rich.live.Live`: a `Standing` with a bar, as wide as the terminal.

    Args:
        time_left: returns the time up to the end, and is called from the thread that draws.
    """

    def __init__(self, time_left: Callable[[], TimeLeft | None]) -> None:
        self._time_left = time_left
        self._standing = Standing()

    @property
    def standing(self) -> Standing:
        return self._standing

    def show(self, standing: Standing) -> None:
        self._standing = standing

    def show_doing(self, text: str) -> None:
        """Show what goes on, beside the result and the time that is left."""
        self._standing = replace(self._standing, doing=text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        standing = self._standing
        width = options.max_width
        texts = fitted(standing.texts(self._time_left()), ORDER, width)
        line = Text(no_wrap=True, overflow="crop")
        line.append(texts["where"], style="bold")
        rest = [texts[name] for name in ("speed", "reward", "success", "left") if texts[name]]
        free = width - cell_len(_GAP.join([texts["where"], *rest]))
        if free >= _NO_BAR_CELLS and standing.total:
            line.append(_GAP)
            cells = min(free - len(_GAP), _BAR_CELLS[1])
            filled = round(cells * min(1.0, standing.done / standing.total))
            line.append("━" * filled, "bar.complete")
            line.append("─" * (cells - filled), "bar.back")
        for text in rest:
            line.append(_GAP + text)
        yield line
