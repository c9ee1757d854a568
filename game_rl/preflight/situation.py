"""The data from which findings are made."""

from dataclasses import dataclass

from game_rl.config.schema import RunConfig
from game_rl.preflight.estimate import estimate
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.footprint import Footprint
from game_rl.preflight.measurements import EpisodeLengths
from game_rl.system.machine import Machine, is_same_disk, nearest_folder


@dataclass(frozen=True, kw_only=True)
class Situation:
    """A run and the machine that it should run on: all that a finding is made from."""

    config: RunConfig
    facts: RunFacts
    machine: Machine
    footprint: Footprint
    probe: EpisodeLengths | None = None

    @property
    def lake_is_on_this_disk(self) -> bool:
        """Whether the Lake is in the run directory, or at a path on the same disk.

        True also for a run without a Lake.
        """
        lake = self.config.lake
        return (
            lake is None
            or lake.path is None
            or is_same_disk(
                *(nearest_folder(path.absolute()) for path in (lake.path, self.config.run_dir))
            )
        )

    def footprint_of(self, config: RunConfig) -> Footprint:
        return estimate(config, self.facts)
