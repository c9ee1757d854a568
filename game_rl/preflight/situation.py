"""What findings look at."""

from dataclasses import dataclass
from pathlib import Path

from game_rl.config.schema import RunConfig
from game_rl.preflight.estimate import estimate
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.footprint import Footprint
from game_rl.preflight.measurements import EpisodeLengths
from game_rl.system.machine import Machine, is_same_disk


@dataclass(frozen=True, kw_only=True)
class Situation:
    """All that a finding looks at."""

    config: RunConfig
    facts: RunFacts
    machine: Machine
    footprint: Footprint
    probe: EpisodeLengths | None = None

    @property
    def lake_is_on_this_disk(self) -> bool:
        """As far as the config says: in the run's directory, or at a path of the same disk."""
        lake = self.config.lake
        return (
            lake is None
            or lake.path is None
            or is_same_disk(
                *(_nearest_folder(path.absolute()) for path in (lake.path, self.config.run_dir))
            )
        )

    def footprint_of(self, config: RunConfig) -> Footprint:
        return estimate(config, self.facts)


def _nearest_folder(path: Path) -> Path:
    """That exists already."""
    return next((p for p in (path, *path.parents) if p.exists()), path)
