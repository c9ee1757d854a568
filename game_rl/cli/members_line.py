"""A line that says how far several runs are: live on a terminal, else once a minute."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from rich.console import Console
from rich.live import Live
from rich.text import Text

from game_rl.cli.printing import print_words
from game_rl.cli.progress_line import fitted, left_words
from game_rl.errors import GameRLError
from game_rl.events.time_left import TimeLeft
from game_rl.experiments.experiment_status import MembersProgress

_LOOK_EVERY_S = 2.0  # at the run directories, which takes some milliseconds
_LINE_EVERY_S = 60.0  # without a terminal
_KNOWN_FROM = 0.02  # of the work, since the first look
_ORDER = ("members", "members", "left", "members", "title", "members")


class MembersLine:
    """Shows the progress of runs that other processes train, from a thread of its own.

    Args:
        look: reads how far they are.
        clock: function that returns the time in seconds.
    """

    def __init__(
        self,
        console: Console,
        look: Callable[[], MembersProgress],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._look = look
        self._clock = clock
        self._first: tuple[float, float] | None = None
        self._has_ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._live: Live | None = None

    def start(self) -> None:
        """Begin a generation."""
        self.close()
        self._first = None
        if self._console.quiet:
            return
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._has_ended.clear()
        self._thread = threading.Thread(target=self._draw, name="members", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take the line away; may be called twice."""
        self._has_ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self) -> None:
        period_s = _LINE_EVERY_S if self._live is None else _LOOK_EVERY_S
        while not self._has_ended.wait(period_s):
            # a member may be moved aside, or write a file, at this moment
            with suppress(GameRLError, OSError, ValueError):
                text = self.text()
                if self._live is None:
                    print_words(self._console, text)
                else:
                    self._live.update(Text(text, no_wrap=True, overflow="crop"), refresh=True)

    def text(self) -> str:
        """Return the line of this moment, which fits the terminal."""
        progress = self._look()
        shares = progress.shares.items()
        members = [f"{name} {'done' if share >= 1 else f'{share:.0%}'}" for name, share in shares]
        running = [f"{name} {share:.0%}" for name, share in shares if 0 < share < 1]
        done = f"{progress.n_done} of {len(shares)} done"
        whole = f"{done}, {progress.mean:.0%} in all"
        texts = {
            "title": [progress.title, ""],
            "members": [", ".join(members), ", ".join([done, *running]), whole, done, ""],
            "left": left_words(self._time_left(progress)),
        }
        width = self._console.width if self._console.is_terminal else 1_000
        return "  ".join(filter(None, fitted(texts, _ORDER, width).values()))

    def _time_left(self, progress: MembersProgress) -> TimeLeft | None:
        """Return the time left at the pace since the first look."""
        now_s = self._clock()
        mean = progress.mean
        if self._first is None:
            self._first = (now_s, mean)
        since_s, before = self._first
        gained = mean - before
        if gained < _KNOWN_FROM:
            return None
        left_s = (1 - mean) / gained * (now_s - since_s)
        return TimeLeft(left_s, is_about=True, is_at_most=False)
