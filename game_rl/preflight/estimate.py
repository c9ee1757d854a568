"""Estimate the footprint of a config by arithmetic, without torch and without an emulator."""

from game_rl.config.schema import RunConfig
from game_rl.preflight.arithmetic import training_arithmetic
from game_rl.preflight.disk import disk_footprint
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.footprint import Footprint
from game_rl.preflight.memory import ram_footprint
from game_rl.preflight.vram import replay_vram_footprint, vram_footprint


def estimate(config: RunConfig, facts: RunFacts) -> Footprint:
    """Return memory by phase, disk at the end, and the counts of the training."""
    training = training_arithmetic(config, began_at=facts.began_at)
    return Footprint(
        ram=ram_footprint(config, facts),
        vram=vram_footprint(config, facts),
        replay_vram=replay_vram_footprint(config, facts),
        disk=disk_footprint(config, facts, training),
        training=training,
    )
