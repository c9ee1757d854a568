"""Scripted players with a person's delays, recorded with the buttons of every frame."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from game_rl.files.durable_files import write_atomic
from game_rl.files.saved import file_sha256
from tests.games.console import GAMES, Console


@dataclass(frozen=True)
class Delays:
    """How a person's presses differ from a script's, in frames; both bounds are included.

    A script sees the present only. With the reaction of a person, a fifth of a second, it walks
    into what a person has seen coming. So it is late by a few frames, as a person is who looks
    ahead, and it pauses now and then.

    Attributes:
        decides: from one decision to the next.
        reacts: from a decision to the press.
        pauses: frames without a button, when it hesitates.
        hesitates: probability of a pause at a decision.
    """

    decides: tuple[int, int] = (2, 5)
    reacts: tuple[int, int] = (0, 2)
    pauses: tuple[int, int] = (12, 30)
    hesitates: float = 0.01


HUMAN = Delays()


@dataclass(frozen=True)
class RecordedGame:
    """A game that is played on a console.

    Attributes:
        name: name of the bundled game.
        start_state: where it began.
        game_seed: value that the game's `random_seed` has got.
        is_over, has_won: say so of the present moment.
        longest_frames: after so many it is stopped.
    """

    console: Console
    name: str
    start_state: str
    game_seed: int
    is_over: Callable[[], bool]
    has_won: Callable[[], bool]
    longest_frames: int

    def record(self, choose: Callable[[], str], file: Path, delays: Delays = HUMAN) -> bool:
        """Play from where the console is, write a recorded episode, and return whether it won."""
        console = self.console
        rng = np.random.default_rng(self.game_seed)
        held: list[tuple[list[str], int]] = []
        buttons: list[str] = []
        frame = decides_at = 0
        coming: list[tuple[int, list[str]]] = []  # frames at which buttons change, and to what
        while not self.is_over() and frame < self.longest_frames:
            if frame >= decides_at:
                wanted = console.game["actions"][choose()]
                wait = delays.decides
                if rng.random() < delays.hesitates:
                    wanted = []
                    wait = delays.pauses
                coming.append((frame + int(rng.integers(*delays.reacts, endpoint=True)), wanted))
                decides_at = frame + int(rng.integers(*wait, endpoint=True))
            while coming and coming[0][0] <= frame:
                _, buttons = coming.pop(0)
            console.hold(buttons)
            console.run(1)
            frames = held.pop()[1] if held and held[-1][0] == buttons else 0
            held.append((buttons, frames + 1))
            frame += 1
        won = self.has_won()
        rom = GAMES / self.name / console.game["rom"]["path"]
        episode = {
            "start_state": self.start_state,
            "game_seed": self.game_seed,
            "rom_sha256": file_sha256(rom),
            "success": won if self.is_over() else None,
            "presses": held,
        }
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, json.dumps(episode) + "\n")
        return won
