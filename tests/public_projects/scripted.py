"""Plays an example of `examples/` on the fake emulator, whose memory follows a script."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.emulator.emulator import MAP_SIDE, TILE_SIDE, Press, SpriteTile, TileArea
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import make_game_env
from game_rl.games.definition import Game, load_game
from game_rl.games.start_state import ScriptStep, StartStateSpec
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import FAKE_ROM

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/game.yaml"))

Memory = dict[int, int]
"""The byte at each address that matters."""


@dataclasses.dataclass(frozen=True)
class Moment:
    """What the console has at the end of a timestep."""

    memory: Memory
    tiles: NDArray[np.int16] | None = None  # [32, 32], those of the background's map
    scrolled: tuple[int, int] = (0, 0)  # SCX and SCY of every line
    sprites: Sequence[SpriteTile] = ()


class ScriptedEmulator(FakeEmulator):
    """Shows the first moment when an episode begins, and the next one after each timestep."""

    def __init__(self, moments: Sequence[Moment], *, colour: bool) -> None:
        super().__init__(colour=colour)
        self._moments, self._at = moments, 0
        self.presses: list[Sequence[Press]] = []

    def load_state(self, state: bytes) -> None:
        super().load_state(state)
        self._show(0)

    def play(self, presses: Sequence[Press], *, render: bool) -> None:
        self.presses.append(presses)
        super().play(presses, render=render)
        self._show(self._at + 1)

    def _show(self, at: int) -> None:
        self._at = at
        for address, value in self._moments[at].memory.items():
            self.write(address, value)

    def tiles(self, area: TileArea, *, follow_scroll: bool) -> NDArray[np.int16]:
        moment = self._moments[self._at]
        if moment.tiles is None:
            return super().tiles(area, follow_scroll=follow_scroll)
        across, down = moment.scrolled if follow_scroll else (0, 0)
        columns = np.arange(area.x, area.x + area.width) + across // TILE_SIDE
        rows = np.arange(area.y, area.y + area.height) + down // TILE_SIDE
        return moment.tiles[rows % MAP_SIDE][:, columns % MAP_SIDE]

    def sprites(self) -> list[SpriteTile]:
        moment = self._moments[self._at]
        return super().sprites() if moment.tiles is None else list(moment.sprites)


def run_of(name: str) -> RunConfig:
    return load_config(EXAMPLES / name / "run.yaml")


def game_of(name: str) -> Game:
    """The example's game with the fake ROM; its episodes begin where the fake game does."""
    game = load_game(str(EXAMPLES / name / "game.yaml"), without_rom=True)
    begin = StartStateSpec(script=(ScriptStep(wait=1),))
    starts = dict.fromkeys(game.definition.start_states, begin)
    definition = game.definition.model_copy(update={"start_states": starts})
    return dataclasses.replace(game, definition=definition, rom=FAKE_ROM)


def scripted_env(name: str, moments: Sequence[Moment]) -> tuple[GameBoyEnv, ScriptedEmulator]:
    game = game_of(name)
    emulator = ScriptedEmulator(moments, colour=game.is_colour)
    return make_game_env(run_of(name).env, game, emulator), emulator


@dataclasses.dataclass(frozen=True)
class Played:
    """What an env gave: observations have one more entry, that of the beginning."""

    observations: list[Any]
    rewards: list[float]
    ends: list[tuple[bool, bool]]  # terminated, truncated
    infos: list[Mapping[str, Any]]
    screens: list[NDArray[np.uint8]]
    presses: list[Sequence[Press]]


def played(name: str, moments: Sequence[Moment], actions: Sequence[int]) -> Played:
    """Play one episode until it ends, or no action is left."""
    env, emulator = scripted_env(name, moments)
    first, _ = env.reset(seed=0)
    found = Played([first], [], [], [], [emulator.screen().copy()], emulator.presses)
    emulator.presses.clear()
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(np.int64(action))
        found.observations.append(observation)
        found.rewards.append(reward)
        found.ends.append((terminated, truncated))
        found.infos.append(info)
        found.screens.append(emulator.screen().copy())
        if terminated or truncated:
            break
    env.close()
    return found
