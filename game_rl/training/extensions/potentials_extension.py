"""The potentials of a run's reward terms, saved with it, so that it needs no exploration later."""

from collections.abc import Mapping
from typing import Self

from stable_baselines3.common.base_class import BaseAlgorithm

from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.config.schema import RunConfig
from game_rl.errors import TrainingError
from game_rl.explore.potentials import POTENTIALS_FILE, SavedPotentials, with_potentials
from game_rl.files.durable_files import write_saved
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Saved
from game_rl.games.definition import Game
from game_rl.training.extension import Extension, RunParts
from game_rl.training.fork_parts import ForkPlan
from game_rl.training.resuming import disk_fault


class PotentialsExtension(Extension):
    """Keeps the potentials that the run has begun with, in its folder and in each checkpoint."""

    def __init__(self, parts: RunParts) -> None:
        self._run_dir = parts.run_dir
        found = parts.game.potentials
        self._saved = SavedPotentials(terms={name: each.saved() for name, each in found.items()})

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        return cls(parts) if parts.game.potentials else None

    @classmethod
    def check_new(cls, config: RunConfig, game: Game) -> None:
        with_potentials(game, config.env)

    @classmethod
    def begin_anew(cls, run_dir: RunDir) -> None:
        run_dir.potentials.unlink(missing_ok=True)

    @classmethod
    def check_fork(cls, plan: ForkPlan) -> None:
        """Check that what the fork does not take over can be read.

        Raises:
            UsageError: it cannot.
        """
        saved = None if plan.new.counters else plan.source.checkpoint.read(POTENTIALS_FILE)
        with_potentials(plan.game, plan.config.env, [] if saved is None else [saved])

    def keep(self, model: BaseAlgorithm, name: str) -> Mapping[FileName, Saved]:  # noqa: ARG002
        return {POTENTIALS_FILE.name: self._saved}

    def begin(self) -> None:
        """Write the file of the run directory.

        Raises:
            TrainingError: the disk fails.
        """
        try:
            write_saved(self._run_dir.potentials, self._saved)
        except OSError as error:
            raise TrainingError(disk_fault(error, self._run_dir)) from error
