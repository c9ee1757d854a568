"""Find out whether episodes really vary by what is said to vary them."""

from collections.abc import Iterable, Iterator

import numpy as np

from game_rl.emulator.emulator import Emulator
from game_rl.envs.episode_starts import EpisodeStarts
from game_rl.errors import LockUpError
from game_rl.games.definition import Game
from game_rl.games.variables import Variable

_SEEDS = (0x5A3C96E1, 0xA5C3691E, 0x0F87D24B)  # they differ in every byte and half-byte
_FRAMES = (60, 600)  # nearly every game differs after the first, which takes 50 ms
_THOROUGH_FRAMES = (60, 600, 4_800)  # the bundled games use random numbers within the last
_LONGEST_HOLD_FRAMES = 32
_RAM = (range(0xC000, 0xE000), range(0xFE00, 0xFEA0), range(0xFF80, 0xFFFF))
_REGISTERS = range(0xFF00, 0xFF80)


class StartVariety:
    """Plays the same buttons after different beginnings, and compares memory and screen.

    Args:
        emulator: it may end up in any state.
        is_thorough: whether a seed also has to make a difference to something other than itself, in
            a longer play. Otherwise, what is found is certain.
    """

    def __init__(
        self, emulator: Emulator, game: Game, starts: EpisodeStarts, *, is_thorough: bool
    ) -> None:
        self._emulator, self._game, self._starts = emulator, game, starts
        self._frames = _THOROUGH_FRAMES if is_thorough else _FRAMES
        seed = starts.seed_variable
        own = range(seed.address, seed.address + seed.n_bytes) if seed and is_thorough else range(0)
        self._addresses = [a for area in _RAM for a in area if a not in own]
        self._variables = [v for v in game.variables if not (v == seed and is_thorough)]

    def warnings(self, names: Iterable[str]) -> Iterator[str]:
        """Yield what does not vary episodes from these start states, though it is said to."""
        names = tuple(names)
        seed, idle_frames = self._starts.seed_variable, self._starts.max_idle_frames
        if seed is not None:
            alike = [name for name in names if self._is_alike(name, _SEEDS, (0,))]
            if alike:
                yield self._about_seed(seed, alike)
        if idle_frames:
            alike = [name for name in names if self._is_alike(name, _SEEDS[:1], (0, idle_frames))]
            if alike:
                yield (
                    f"env.max_idle_frames: {idle_frames} frames without a button make no "
                    f"difference {self._where(alike)}; let episodes vary by random_seed or more "
                    "start states"
                )

    def _is_alike(self, name: str, seeds: Iterable[int], idle_frames: Iterable[int]) -> bool:
        beginnings = [(seed, idle) for seed in seeds for idle in idle_frames]
        for frames in self._frames:
            first, *others = (self._outcome(name, *beginning, frames) for beginning in beginnings)
            if any(other != first for other in others):
                return False
        return True

    def _outcome(self, name: str, game_seed: int, idle_frames: int, frames: int) -> object:
        """Return everything that is compared after `frames` frames of play."""
        try:
            self._starts.bring(name, game_seed=game_seed, idle_frames=idle_frames)
            self._play(frames)
        except LockUpError as error:
            return str(error)
        ram = bytes(self._emulator.read(address) for address in self._addresses)
        variables = [variable.read(self._emulator) for variable in self._variables]
        return ram, variables, self._emulator.screen().tobytes()

    def _play(self, frames: int) -> None:
        rng = np.random.default_rng(0)
        actions = tuple(self._game.definition.actions.values())
        while frames > 0:
            self._emulator.hold(actions[rng.integers(len(actions))])
            held = min(frames, int(rng.integers(1, _LONGEST_HOLD_FRAMES + 1)))
            self._emulator.tick(held, render=held == frames)
            frames -= held

    def _about_seed(self, seed: Variable, alike: list[str]) -> str:
        register = ", as it is a hardware register," if seed.address in _REGISTERS else ""
        why = "" if self._keeps(seed) else f"does not keep what is written to it{register} and "
        return (
            f"random_seed: {seed.name} (0x{seed.address:04X}) {why}makes no difference "
            f"{self._where(alike)}; name the variable in which the game keeps its random numbers"
        )

    def _keeps(self, seed: Variable) -> bool:
        for value in _SEEDS:
            seed.write(self._emulator, value)
            if seed.read(self._emulator) != value % 256**seed.n_bytes:
                return False
        return True

    def _where(self, names: list[str]) -> str:
        return f"within {self._frames[-1]:,} frames of random play from {', '.join(names)}"
