"""A person's play of a game, frame by frame: its record, and the way back."""

import json
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import FRAMES_PER_SECOND, Button, Emulator, Press
from game_rl.emulator.state_speed import why_states_are_slow
from game_rl.envs.game_boy_env import EnvState, GameBoyEnv
from game_rl.errors import GameFileError, LockUpError
from game_rl.games.actions import nearest_action
from game_rl.games.definition import Game
from game_rl.games.variables import Value

TAKEN_BACK_S = 10
"""Seconds that one step back takes back."""

POWER_ON = "power_on"
"""Name of the start state of a game without a game file: its first frame."""

_KEPT_S = 900  # of the way back
_SAVED_EVERY_S = 1
_SAVED_EVERY_S_IF_SLOW = 5  # a state takes as long as three frames
_OPPOSITES = (("left", "right"), ("up", "down"))


class PlayEnd(NamedTuple):
    """Why an episode is over.

    Attributes:
        ending: name of the ending, or a few words.
        is_success: None if the game defines none.
    """

    ending: str
    is_success: bool | None


class _Kept(NamedTuple):
    """A moment to go back to: after so many frames."""

    frames: int
    state: EnvState | bytes


class PlaySession:
    """One episode that a person plays, and the next one after `begin`.

    Rewards and endings are looked at as in an env, at the end of each timestep of `frame_skip`
    frames. The buttons count in every frame.

    Args:
        played: the game's env, which draws; or the emulator alone where there is no game file. The
            caller closes it.
        frame_skip: frames of a timestep, those of the env.

    Attributes:
        emulator: the emulator.
        env: the env; None without a game file.
        why_no_way_back: why nothing can be taken back; None if it can.
        start_state: where the episode has begun.
        frames: frames played in the episode.
        end: why the episode is over; None while it is not.
    """

    def __init__(self, played: GameBoyEnv | Emulator, *, frame_skip: int) -> None:
        self.env = played if isinstance(played, GameBoyEnv) else None
        self.emulator = played.emulator if isinstance(played, GameBoyEnv) else played
        self.frame_skip = frame_skip
        self._power_on = self.emulator.save_state()
        every_s = _SAVED_EVERY_S if why_states_are_slow() is None else _SAVED_EVERY_S_IF_SLOW
        self._every = -(-round(every_s * FRAMES_PER_SECOND) // frame_skip) * frame_skip
        self._kept: deque[_Kept] = deque(maxlen=_KEPT_S // every_s)
        self._presses: list[Press] = []
        self._seed = 0
        self._game_seed = 0
        self.start_state = POWER_ON
        self.frames = 0
        self.end: PlayEnd | None = None
        self.why_no_way_back: str | None = None

    def begin(self, start_state: str, *, seed: int) -> None:
        """Begin an episode.

        Raises:
            UsageError: the game has no such start state.
            LockUpError: the game locks up there.
        """
        if self.env is None:
            self.emulator.load_state(self._power_on)
            self.emulator.tick(1, render=True)
        else:
            self.env.reset(seed=seed, options={"start_state": start_state, "idle_frames": 0})
            self._game_seed = self.env.episode.game_seed
        self.start_state = start_state
        self._seed = seed
        self._presses = []
        self.frames = 0
        self.end = None
        self._kept.clear()
        self._keep()

    def play(self, held: Collection[Button]) -> None:
        """Play a frame with these buttons; does nothing once the episode is over."""
        if self.end is not None:
            return
        buttons = possible_buttons(held)
        self.emulator.hold(buttons)
        try:
            self.emulator.tick(1, render=True)
        except LockUpError:
            self.end = PlayEnd("locked up", None if self.env is None else self._is_success({}))
            return
        self._add(buttons)
        if self.frames % self.frame_skip:
            return
        if self.env is not None:
            self._follow(self.env)
        if self._kept and self.frames - self._kept[-1].frames >= self._every:
            self._keep()

    def _add(self, buttons: frozenset[Button]) -> None:
        self.frames += 1
        before = self._presses.pop() if self._presses else Press(buttons, 0)
        if before.buttons == buttons:
            self._presses.append(Press(buttons, before.frames + 1))
        else:
            self._presses += (before, Press(buttons, 1))

    def _follow(self, env: GameBoyEnv) -> None:
        """Look at what the timestep has led to."""
        presses = tuple(self._last(self.frame_skip))
        env.player.instead = ()  # they are played
        action = nearest_action(env.game.definition.actions, presses)
        _, _, terminated, truncated, info = env.step(env.action_names.index(action))
        if terminated or truncated:
            ending = info.get("ending", "the limit of timesteps")
            self.end = PlayEnd(str(ending), self._is_success(info))

    @staticmethod
    def _is_success(info: Mapping[str, object]) -> bool | None:
        found = info.get("is_success")
        return None if found is None else bool(found)

    def _last(self, frames: int) -> Iterator[Press]:
        """Return the presses of the last frames."""
        left = frames
        found = []
        for press in reversed(self._presses):
            found.append(Press(press.buttons, min(press.frames, left)))
            left -= found[-1].frames
            if not left:
                break
        return reversed(found)

    def _keep(self) -> None:
        try:
            state = self.emulator.save_state() if self.env is None else self.env.save_state()
        except GameFileError as error:  # of the game's own reward class
            self.why_no_way_back = str(error)
            return
        self._kept.append(_Kept(self.frames, state))

    def take_back(self, seconds: float = TAKEN_BACK_S) -> float:
        """Go back to a moment at least so long ago, or as far as there is one.

        What was played since is no longer part of the episode.

        Returns:
            The seconds that were taken back.
        """
        if not self._kept:
            return 0.0
        wanted = self.frames - seconds * FRAMES_PER_SECOND
        while len(self._kept) > 1 and self._kept[-1].frames > wanted:
            self._kept.pop()
        moment = self._kept[-1]
        if isinstance(moment.state, EnvState):
            assert self.env is not None
            self.env.load_state(moment.state)
        else:
            self.emulator.load_state(moment.state)
        taken = self.frames - moment.frames
        self._presses = list(_first(self._presses, moment.frames))
        self.frames = moment.frames
        self.end = None
        return taken / FRAMES_PER_SECOND

    @property
    def screen(self) -> NDArray[np.uint8]:
        """A view of the picture, uint8 [144, 160, 3]."""
        return self.emulator.screen()

    @property
    def reward_terms(self) -> dict[str, float]:
        """What each reward term has earned in the episode."""
        return {} if self.env is None else self.env.reward_terms

    def variables(self) -> dict[str, Value]:
        """Return the current values of the game's variables, by name."""
        return {} if self.env is None else self.env.read_variables()

    @property
    def presses(self) -> tuple[Press, ...]:
        """The buttons of all whole timesteps so far, frame by frame."""
        return tuple(_first(self._presses, self.frames - self.frames % self.frame_skip))

    @property
    def all_presses(self) -> tuple[Press, ...]:
        """The buttons of all frames so far, those of an unfinished timestep too."""
        return tuple(self._presses)

    def record(self) -> str:
        """Return the text of the recorded episode, JSON that `read_recorded_episode` reads."""
        episode = {
            "start_state": self.start_state,
            "seed": self._seed,
            "idle_frames": 0,
            "game_seed": self._game_seed,
            "frame_skip": self.frame_skip,
            **self._facts(),
            "presses": [[sorted(press.buttons), press.frames] for press in self.presses],
        }
        return json.dumps(episode, separators=(",", ":")) + "\n"

    def _facts(self) -> dict[str, object]:
        """Return what is compared when the episode is played again."""
        if self.env is None:
            return {}
        return {
            "rom_sha256": self.env.game.rom.sha256,
            "reward": sum(self.env.reward_terms.values()),
            "success": self._has_won(self.env.game),
        }

    def _has_won(self, game: Game) -> bool | None:
        """Whether the episode has ended in a success; None if the game has none."""
        if game.definition.success is None:
            return None
        return self.end is not None and bool(self.end.is_success)


def _first(presses: Collection[Press], frames: int) -> Iterator[Press]:
    """Yield what was held in the first frames."""
    left = frames
    for press in presses:
        if left <= 0:
            return
        yield Press(press.buttons, min(press.frames, left))
        left -= press.frames


def possible_buttons(held: Collection[Button]) -> frozenset[Button]:
    """Return the buttons that a directional pad lets somebody hold; of opposites the later one."""
    found = list(dict.fromkeys(held))
    for pair in _OPPOSITES:
        both = [button for button in found if button in pair]
        if len(both) > 1:
            found.remove(both[0])
    return frozenset(found)
