"""What a person plays at: the session, its clock, its controls and its files."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any

from game_rl.emulator.emulator import FRAMES_PER_SECOND, Button
from game_rl.errors import GameRLError, LockUpError, UsageError
from game_rl.games.variables import Value
from game_rl.play.play_files import PlayFiles
from game_rl.play.play_session import POWER_ON, PlaySession

FAST = 4
"""Frames of the game in the time of one, fast forward."""

_LOST_AFTER_S = 0.25
_WRITTEN_EVERY_S = 10.0


class PlayTable:
    """A person's play in time: who shows the picture and reads the keys drives it.

    Args:
        title: name of the game, for people.
        seed: of the first episode; those that follow count on.

    Attributes:
        session: the play.
        files: where it is written.
        tell: is called with each line for the person.
        is_paused: whether the clock stands still, as at first.
        is_fast: whether it runs `FAST` times as fast.
        dropped: times at which the clock was more than a quarter of a second late, and gave it up.
        is_over: whether the play cannot go on.
    """

    def __init__(self, session: PlaySession, files: PlayFiles, *, title: str, seed: int) -> None:
        self.session = session
        self.files = files
        self.title = title
        self.tell: Callable[[str], None] = lambda _: None
        self.is_paused = True
        self.is_fast = False
        self.dropped = 0
        self.has_begun = False
        self._seed = seed
        self._held: Collection[Button] = ()
        self._is_redrawn = False
        self._due = 0.0

    @property
    def start_states(self) -> tuple[str, ...]:
        env = self.session.env
        return (POWER_ON,) if env is None else tuple(env.game.definition.start_states)

    def hold(self, buttons: Collection[Button]) -> None:
        """Hold these buttons from the next frame on; the first one of all begins the play."""
        self._held = buttons
        if buttons and not self.has_begun:
            self.go()

    def go(self) -> None:
        self.has_begun = True
        self.is_paused = False

    def pause(self) -> None:
        self.is_paused = True

    def go_fast(self) -> None:
        self.is_fast = True

    def go_normally(self) -> None:
        self.is_fast = False

    def frame(self) -> bool:
        """Play what is due now: one frame, or several if fast; return whether anything was."""
        session = self.session
        if self.is_paused or session.end is not None:
            return False
        for _ in range(FAST if self.is_fast else 1):
            session.play(self._held)
            if session.end is not None:
                self.tell(f"the episode is over: {self._end_in_words()}")
                break
        return True

    def wait_s(self) -> float:
        """Return the seconds until the next frame is due, at most 0 if it is due now.

        A clock that is far behind, as after the machine slept, gives up what it has missed.
        """
        now = time.perf_counter()
        if self.is_paused or self.session.end is not None:
            self._due = now
        elif now - self._due > _LOST_AFTER_S:
            self.dropped += 1
            self._due = now
        self._due += 1 / FRAMES_PER_SECOND
        return self._due - now

    async def ticks(self) -> AsyncIterator[bool]:
        """Play in time; yield after each frame's time whether there is a new picture.

        Raises:
            OSError: the episode cannot be written.
        """
        writing: asyncio.Task[None] | None = None
        since = time.monotonic()
        while True:
            is_new = self.frame()
            yield is_new or self._is_redrawn
            self._is_redrawn = False
            if writing is not None and writing.done():
                writing.result()
                writing = None
            if time.monotonic() - since > _WRITTEN_EVERY_S and self.session.presses:
                since = time.monotonic()
                # in a thread, as the disk may take longer than a frame
                write = self.files.write
                writing = asyncio.create_task(asyncio.to_thread(write, self.session.record()))
            await asyncio.sleep(max(0.0, self.wait_s()))

    def save(self) -> None:
        """Write the episode, if anything was played.

        Raises:
            OSError: the disk refuses.
        """
        if self.session.presses:
            self.files.write(self.session.record())

    def take_back(self) -> None:
        """Take the last seconds back, and pause until the person is ready."""
        session = self.session
        taken = session.take_back()
        if session.why_no_way_back is not None and not taken:
            self.tell(f"nothing can be taken back: {session.why_no_way_back}")
            return
        self.tell(f"{taken:.1f} s taken back; they are not in the recording")
        self._is_redrawn = True
        self.is_paused = True
        self._held = ()

    def begin_again(self, start_state: str = "") -> None:
        """Write this episode, and begin the next one; empty: where this one has begun."""
        chosen = start_state or self.session.start_state
        if chosen not in self.start_states:
            return
        try:
            self.save()
            self.files.next_episode()
            self._seed += 1
            self.session.begin(chosen, seed=self._seed)
        except (LockUpError, OSError) as error:
            self.tell(str(error))
            return
        self._is_redrawn = True
        self.has_begun = False
        self.is_paused = True
        self._held = ()
        self.tell(f"a new episode starts in {chosen}; it is recorded to {self.files.recording}")

    def keep(self, name: str = "") -> None:
        """Keep the present moment as a start state."""
        try:
            kept = self.files.keep_start_state(self.session, name)
        except (UsageError, OSError) as error:
            self.tell(f"not kept: {error}")
            return
        lines = "\n  ".join(("start_states:", *kept.lines))
        self.tell(f"{kept.path} written; for game.yaml:\n{lines}")

    def mark(self, facts: str = "") -> None:
        """Mark the present moment for `game-rl find`."""
        try:
            self.tell(self.files.mark(self.session, facts))
        except (GameRLError, OSError) as error:
            self.tell(f"not marked: {error}")

    def _end_in_words(self) -> str:
        end = self.session.end
        assert end is not None
        success = {None: "", True: ", a success", False: ", no success"}[end.is_success]
        return f"{end.ending}{success}"

    def facts(self) -> dict[str, Any]:
        """Return what stays the same, for a page."""
        env = self.session.env
        definition = None if env is None else env.game.definition
        return {
            "title": self.title,
            "start_states": self.start_states,
            "endings": [] if definition is None else list(definition.endings),
            "has_success": definition is not None and definition.success is not None,
            "has_game_file": definition is not None,
        }

    def state(self) -> dict[str, Any]:
        """Return what changes, for a page."""
        session = self.session
        end = session.end
        terms = session.reward_terms
        return {
            "paused": self.is_paused,
            "begun": self.has_begun,
            "fast": self.is_fast,
            "over": None if end is None else self._end_in_words(),
            "ending": None if end is None else end.ending,
            "start_state": session.start_state,
            "seconds": round(session.frames / FRAMES_PER_SECOND, 1),
            "timesteps": session.frames // session.frame_skip,
            "reward": sum(terms.values()),
            "reward_terms": terms,
            "variables": {name: _shown(value) for name, value in session.variables().items()},
            "recording": str(self.files.recording),
            "dropped": self.dropped,
        }


def _shown(value: Value) -> str | int | float:
    return " ".join(map(str, value)) if isinstance(value, tuple) else value
