from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from game_rl.config.schema import RunConfig
from game_rl.games.screen_area import CropSpec
from game_rl.preflight.facts import EpisodeLengths, RunFacts
from game_rl.preflight.findings import Finding, worst_first
from game_rl.preflight.footprint import Situation, estimate
from game_rl.preflight.preflight import explain
from game_rl.system.machine import Machine
from game_rl.system.units import GIB

FACTS = RunFacts(
    crop=CropSpec(),
    n_actions=9,
    four_shades=False,
    rom_bytes=32_768,
    n_game_curves=23,
    cpus=8,
    uses_gpu=False,
    uses_bf16=False,
    episode_timesteps=200,
)
MACHINE = Machine(
    ram_bytes=32 * GIB,
    ram_available_bytes=32 * GIB,
    gpus=(),
    disk_free_bytes=250 * GIB,
    cpus=8,
    cpu_has_bf16=False,
)


def make_config(**values: Any) -> RunConfig:
    """Make a config from dotted keys with __ for the dots, such as env__n_envs=2."""
    tree: dict[str, Any] = {
        "game": "duel",
        "total_timesteps": 1_000_000,
        "run_dir": "runs/x",
        "env": {"n_envs": 8},
        "algorithm": {"n_steps": 256, "batch_size": 256, "n_epochs": 4},
    }
    for key, value in values.items():
        *sections, last = key.split("__")
        section = tree
        for name in sections:
            section = section.setdefault(name, {})
        section[last] = value
    return RunConfig.model_validate(tree)


@pytest.fixture
def situation() -> Callable[..., Situation]:
    """A run on a machine, from the keys of make_config, `facts__`, `machine__` and `probe`."""

    def make(probe: EpisodeLengths | None = None, **values: Any) -> Situation:
        facts = {k[7:]: values.pop(k) for k in list(values) if k.startswith("facts__")}
        machine = {k[9:]: values.pop(k) for k in list(values) if k.startswith("machine__")}
        config = make_config(**values)
        changed = replace(FACTS, **facts)
        return Situation(
            config=config,
            facts=changed,
            machine=replace(MACHINE, **machine),
            footprint=estimate(config, changed),
            probe=probe,
        )

    return make


def check(situation: Situation) -> tuple[Finding, ...]:
    """Return every finding, the most severe first."""
    return worst_first(result.finding for result in explain(situation))
