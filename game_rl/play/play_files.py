"""The files of a person's play: recorded episodes, start states and moments."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from game_rl.errors import UsageError
from game_rl.files.durable_files import write_atomic
from game_rl.games.definition import Game
from game_rl.play.play_session import POWER_ON, PlaySession

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_LONGEST_SCRIPT_STEPS = 200
_LONGEST_STEP_FRAMES = 36_000


@dataclass(frozen=True)
class KeptState:
    """A start state that was written.

    Attributes:
        path: its file.
        lines: what stands for it under `start_states` in game.yaml.
    """

    path: Path
    lines: tuple[str, ...]


class PlayFiles:
    """Names the files of a play, none of which exists, and writes them.

    Args:
        recording: file of the first episode; those that follow have numbers.
        game: the game that is played; None without a game file.
        game_file: the path of its game.yaml; None for a bundled game.

    Raises:
        UsageError: the recording exists, or its folder cannot be made.
    """

    def __init__(self, recording: Path, *, game: Game | None, game_file: Path | None) -> None:
        self._first = recording
        self._game = game
        self.states = recording.parent if game_file is None else game_file.parent
        self.recording = recording
        self.written: list[Path] = []
        try:
            recording.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{recording.parent} cannot be made ({error.strerror}); name another file"
            ) from None
        if recording.exists():
            raise UsageError(
                f"--record {recording} exists, and a recording is never overwritten; name another "
                "file, or move it away"
            )

    def next_episode(self) -> None:
        """Let the next episode be written to a file of its own, if this one is written."""
        if self.recording in self.written:
            self.recording = _free(self._first)

    def write(self, record: str) -> None:
        """Write the episode so far.

        Raises:
            OSError: the disk refuses.
        """
        write_atomic(self.recording, record)
        if self.recording not in self.written:
            self.written.append(self.recording)

    def keep_start_state(self, session: PlaySession, name: str = "") -> KeptState:
        """Write the present moment as a start state.

        Args:
            name: its name; empty for a free one.

        Raises:
            UsageError: the name is not one for a start state, or is taken.
            OSError: the disk refuses.
        """
        known = set() if self._game is None else set(self._game.definition.start_states)
        if name and not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a name for a start state: letters, digits and _, at most 40, "
                "starting with a letter"
            )
        if name in known or (name and self._state(name).exists()):
            raise UsageError(f"there is a start state {name} already; choose another name")
        if not name:
            number = 1
            while f"kept_{number}" in known or self._state(f"kept_{number}").exists():
                number += 1
            name = f"kept_{number}"
        path = self._state(name)
        write_atomic(path, session.emulator.save_state())
        return KeptState(path, tuple(_entry(name, path, session)))

    @property
    def moments(self) -> Path:
        """The file of moments, to which each one is added."""
        return self._first.with_name(f"{self._first.stem}.moments.yaml")

    def mark(self, session: PlaySession, known: str = "") -> str:
        """Add the present moment to the file of moments, with a state; return what to tell.

        Args:
            known: what is known there, such as `health: 3, lives: 2`; empty for nothing yet.

        Raises:
            UsageError: it is not written so.
            OSError: the disk refuses.
        """
        facts = known_facts(known)
        number = 1
        stem = self._first.stem
        while (path := self._first.with_name(f"{stem}_moment_{number}.state")).exists():
            number += 1
        write_atomic(path, session.emulator.save_state())
        moment = {"at": {"state": path.name}, "known": facts}
        before = "moments:\n"
        if self.moments.exists():
            before = self.moments.read_text(encoding="utf-8")
        write_atomic(self.moments, f"{before}  - {json.dumps(moment, ensure_ascii=False)}\n")
        words = ", ".join(f"{name}: {fact}" for name, fact in facts.items())
        return f"moment {number} is in {self.moments}, with {words or 'nothing known yet'}"

    def next_commands(self, game: str) -> str:
        """Return the commands that go on with what was played, with what each is for.

        Args:
            game: the game or ROM, as a command names it.
        """
        lines: list[str] = []
        if self._game is not None:
            episode = quote(str(self.written[-1]))
            lines += (
                "Show its rewards and variables:",
                f"game-rl check-game {quote(game)} --recorded {episode}",
                "",
                "Record a clip of it:",
                f"game-rl record {episode} --game {quote(game)}",
            )
        if self.moments.exists():
            lines += [""] if lines else []
            lines += (
                "Search addresses by the marked moments:",
                f"game-rl find {quote(game)} --moments {quote(str(self.moments))}",
            )
        return "\n".join(lines)

    def _state(self, name: str) -> Path:
        return self.states / f"{name}.state"


def known_facts(text: str) -> dict[str, int | str]:
    """Return what is known at a moment by the names of numbers, from `health: 3, lives: 2`.

    Raises:
        UsageError: it is not written so.
    """
    found: dict[str, int | str] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, colon, fact = (word.strip() for word in part.partition(":"))
        if not colon or not fact or not _NAME.fullmatch(name):
            raise UsageError(
                f"{part!r} does not say what is known; write a name, a colon and a number or a "
                "word, such as health: 3, or health: decreased"
            )
        found[name] = int(fact) if fact.isdecimal() else fact
    return found


def _entry(name: str, path: Path, session: PlaySession) -> "list[str]":
    """Return the lines of game.yaml; from power-on, with the script as the other choice."""
    lines = [f"{name}: {{file: {path.name}}}"]
    presses = session.all_presses
    if session.start_state != POWER_ON or len(presses) > _LONGEST_SCRIPT_STEPS:
        return lines
    steps = ["{wait: 1}"]
    for press in presses:
        left = press.frames
        while left:
            part = min(left, _LONGEST_STEP_FRAMES)
            left -= part
            held = ", ".join(sorted(press.buttons))
            steps.append(f"{{hold: [{held}], frames: {part}}}" if held else f"{{wait: {part}}}")
    return [
        *lines,
        f"# or, whatever the version of PyBoy: {name}: {{script: [{', '.join(steps)}]}}",
    ]


def free_recording(folder: Path, stem: str) -> Path:
    """Return a file for a recording that does not exist, such as `played/duel_3.json`."""
    number = 1
    while (path := folder / f"{stem}_{number}.json").exists():
        number += 1
    return path


def _free(first: Path) -> Path:
    number = 2
    while (path := first.with_stem(f"{first.stem}_{number}")).exists():
        number += 1
    return path
