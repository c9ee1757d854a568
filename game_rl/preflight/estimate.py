"""The estimate of a run on a machine: what findings are made from."""

from dataclasses import dataclass, replace

from game_rl.config.schema import RunConfig
from game_rl.preflight.disk import disk_footprint
from game_rl.preflight.facts import EpisodeLengths, RunFacts
from game_rl.preflight.footprint import Footprint
from game_rl.preflight.memory import ram_footprint, replay_vram_footprint, vram_footprint
from game_rl.preflight.workload import training_arithmetic
from game_rl.system.machine import Machine


def estimate(config: RunConfig, facts: RunFacts) -> Footprint:
    """Return memory by phase, disk at the end, and the counts of the training."""
    training = training_arithmetic(config, began_at=facts.began_at)
    training = replace(training, has_waits=facts.has_waits)
    return Footprint(
        ram=ram_footprint(config, facts),
        vram=vram_footprint(config, facts),
        replay_vram=replay_vram_footprint(config, facts),
        disk=disk_footprint(config, facts, training),
        training=training,
    )


@dataclass(frozen=True, kw_only=True)
class Situation:
    """A run and the machine that it should run on: all that a finding is made from."""

    config: RunConfig
    facts: RunFacts
    machine: Machine
    footprint: Footprint
    probe: EpisodeLengths | None = None

    def footprint_of(self, config: RunConfig) -> Footprint:
        return estimate(config, self.facts)
