"""A game for the fake emulator, as game.yaml would describe it."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.emulator.rom import CartridgeType, Rom
from game_rl.envs.episode_tracker import EnvParts, RunningEpisode, TrackerMaker
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import game_env
from game_rl.envs.observation import FrameFormat
from game_rl.games.definition import Game, GameDefinition
from game_rl.games.symbol_files import Location
from game_rl.games.variables import Values, place_array, place_variable
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator

FAKE_ROM = Rom(
    path=Path("fake.gb"),
    data=b"",
    sha256=fake.FAKE_ROM_SHA256,
    sha1="fa" * 20,
    title="FAKE",
    cartridge=CartridgeType("ROM"),
    n_ram_banks=0,
    supports_colour=True,
    requires_colour=False,
)

FAKE_GAME_YAML: dict[str, Any] = {
    "title": "Fake",
    "rom": {"path": "fake.gb"},
    "random_seed": "seed",
    "start_states": {
        "level_1": {"script": [{"wait": 10}]},
        "level_2": {"script": [{"wait": 10}, {"hold": ["start"], "frames": 1}, {"wait": 5}]},
        "level_3": {"script": [{"wait": 10}, {"hold": ["start"], "frames": 2}, {"wait": 5}]},
    },
    "actions": {"idle": [], "left": ["left"], "right": ["right"], "hurt": ["b"]},
    "variables": {
        "frames": {"address": fake.FRAME_COUNT, "type": "u16"},
        "x": {"address": fake.X},
        "health": {"address": fake.HEALTH},
        "result": {"address": fake.RESULT},
        "seed": {"address": fake.SEED},
        "level": {"address": fake.LEVEL},
    },
    "rewards": {
        "progress": {"variable": "x", "on": "increase", "weight": 0.5},
        "hurt": {"variable": "health", "on": "decrease", "weight": -1.0},
        "won": {"variable": "result", "on": "equals", "value": 1, "weight": 10.0, "once": True},
    },
    "endings": {"over": {"variable": "result", "in": [1, 2]}},
    "success": {"variable": "result", "equals": 1},
}


def fake_game(**changes: Any) -> Game:
    """The fake game with some entries of its definition replaced."""
    definition = GameDefinition.model_validate_json(json.dumps(FAKE_GAME_YAML | changes))
    variables = tuple(
        place_variable(name, spec, Location(spec.address, None), rom=FAKE_ROM, is_colour=False)
        if spec.address is not None
        else place_array(name, spec, spec.addresses or (), rom=FAKE_ROM, is_colour=False)
        for name, spec in definition.variables.items()
        if spec.operation is None
    )
    return Game("fake", Path(), definition, FAKE_ROM, variables)


def fake_game_seeded_at(address: int) -> Game:
    """The fake game, whose seed goes to the variable `other`, which is at this address."""
    variables = FAKE_GAME_YAML["variables"] | {"other": {"address": address}}
    return fake_game(variables=variables, random_seed="other")


_SCREEN = FrameFormat()


def fake_env(
    game: Game | None = None,
    *,
    emulator: FakeEmulator | None = None,
    frame_format: FrameFormat | None = _SCREEN,
    parts: Sequence[str] = (),
    trackers: Sequence[TrackerMaker] = (),
    **settings: Any,
) -> GameBoyEnv:
    """A GameBoyEnv on a FakeEmulator; `settings` of an EnvConfig replace the defaults below."""
    defaults: dict[str, Any] = {"max_idle_frames": 0, "max_episode_timesteps": 50}
    seen = ObservationConfig().model_copy(update={"parts": tuple(parts)})
    config = EnvConfig().model_copy(update={**defaults, **settings, "observation": seen})
    made_of = EnvParts(config, game or fake_game(), emulator or FakeEmulator())
    return game_env(made_of, frame_format, trackers=trackers)


def moment(values: Values, **known: Any) -> RunningEpisode:
    """What trackers are told after a timestep, or at the beginning of an episode."""
    return RunningEpisode(values=values, **known)


def with_folder(game: Game, folder: Path) -> Game:
    return dataclasses.replace(game, folder=folder)
