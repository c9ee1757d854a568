"""Check that what should vary episodes, the seed and idle frames, makes a difference."""

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from game_rl.emulator.emulator import Emulator
from game_rl.envs.episode_starts import EpisodeStarts
from game_rl.errors import LockUpError
from game_rl.games.definition import Game
from game_rl.games.variables import Variable

_SEED, _OTHER_SEED = 0x5A3C96E1, 0xA5C3691E  # they differ in every bit
_FRAMES = (60, 600)  # nearly every game differs after the first, in 50 ms
_THOROUGH_FRAMES = (60, 600, 4_800)  # the bundled games use random numbers within the last
_LONGEST_HOLD_FRAMES = 32
_RAM = (range(0xC000, 0xE000), range(0xFE00, 0xFEA0), range(0xFF80, 0xFFFF))
_REGISTERS = range(0xFF00, 0xFF80)


class StartVariety:
    """Plays the same buttons after different beginnings, and compares variables, screen and memory.

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
        alike = {name: self._alike(name) for name in names}
        seed, idle_frames = self._starts.seed_variable, self._starts.max_idle_frames
        by_seed, by_idling = (
            [name for name, kinds in alike.items() if kind in kinds] for kind in ("seed", "idle")
        )
        if seed is not None and by_seed:
            yield self._about_seed(seed, by_seed)
        if by_idling:
            yield (
                f"env.max_idle_frames: {idle_frames} frames without a button make no difference "
                f"{self._where(by_idling)}; let episodes vary by random_seed or more start states"
            )

    def _alike(self, name: str) -> Collection[str]:
        """Return what makes no difference, "seed" or "idle", as far as the game has them."""
        others = {}
        if self._starts.seed_variable is not None:
            others["seed"] = (_OTHER_SEED, 0)
        if self._starts.max_idle_frames:
            others["idle"] = (_SEED, self._starts.max_idle_frames)
        for frames in self._frames:
            if others:
                first = self._outcome(name, _SEED, 0, frames)
                others = {
                    k: o for k, o in others.items() if self._outcome(name, *o, frames) == first
                }
        return others.keys()

    def _outcome(self, name: str, game_seed: int, idle_frames: int, frames: int) -> object:
        """Return everything that is compared after `frames` frames of play."""
        try:
            self._starts.bring(name, game_seed=game_seed, idle_frames=idle_frames)
            self._play(frames)
        except LockUpError as error:
            return str(error)
        seen = [variable.read(self._emulator) for variable in self._variables]
        is_last = frames == self._frames[-1]  # reading the memory takes longer than to play
        ram = bytes(map(self._emulator.read, self._addresses if is_last else ()))
        return seen, ram, self._emulator.screen().tobytes()

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
        for value in (_SEED, _OTHER_SEED):
            seed.write(self._emulator, value)
            if seed.read(self._emulator) != value % 256**seed.n_bytes:
                return False
        return True

    def _where(self, names: list[str]) -> str:
        return f"within {self._frames[-1]:,} frames of random play from {', '.join(names)}"
