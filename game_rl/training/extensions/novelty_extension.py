"""Reward terms with `per_run`: the envs of a run hear at boundaries what all of them visited."""

from collections.abc import Mapping, Sequence
from typing import Self

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from game_rl.callbacks.boundary import BoundaryCallback, any_due
from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.errors import CheckpointError
from game_rl.files.saved import Saved
from game_rl.games.novelty_term import NewVisits, run_visits
from game_rl.games.reward_term import RewardTerm
from game_rl.places.novelty import (
    NOVELTY_FILE,
    SavedNovelty,
    SavedVisits,
    take_novelty,
    tell_novelty,
)
from game_rl.training.extension import Extension, RunParts


class NoveltyCallback(BoundaryCallback):
    """Adds up what the training's envs have visited, and tells it to all of them.

    They hear of each other at boundaries only, so what they earn depends neither on how many
    processes they run in, nor on when a checkpoint is saved. What an env has visited since then is
    part of its state. It must come before the callback that saves checkpoints.

    Args:
        terms: names of the reward terms.
        every_timesteps: see BoundaryCallback.

    Attributes:
        visits: all that the run has visited up to the last boundary, by term.
    """

    def __init__(self, terms: Sequence[str], *, every_timesteps: Sequence[int] = ()) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self.visits = {name: run_visits() for name in terms}

    def _on_training_start(self) -> None:
        super()._on_training_start()
        for interval in self._rhythm:  # a resumed run has acted there before it was saved
            interval.last_timesteps = self.num_timesteps

    def on_boundary(self, *, is_last: bool) -> None:
        # where a run breaks off, nothing happens that would not have without the break
        if is_last and self._rhythm and not any_due(self._rhythm, self.boundary_timesteps):
            return
        self.exchange(self.training_env)

    def exchange(self, vec_env: VecEnv) -> None:
        """Tell each env what the others have visited; all, if it knows nothing yet."""
        found: list[Mapping[str, NewVisits]] = vec_env.env_method("call", take_novelty)
        new = {name: run_visits() for name in self.visits}
        for of_env in found:
            for name, visits in of_env.items():
                new[name].add(visits.places)
        for name, visits_of_all in new.items():
            self.visits[name].add(visits_of_all)
        knows = [all(each.is_counting for each in of_env.values()) for of_env in found]
        for told, is_counting in ((new, True), (self.visits, False)):
            envs = [number for number, known in enumerate(knows) if known == is_counting]
            if envs:
                vec_env.env_method("call", tell_novelty, told, indices=envs)


class NoveltyExtension(Extension):
    """Counts what the run visits, for reward terms with `per_run`."""

    def __init__(self, parts: RunParts, terms: Mapping[str, RewardTerm]) -> None:
        self._terms = terms
        assert parts.model.env is not None
        self._vec_env = parts.model.env
        self._callback = NoveltyCallback(tuple(terms), every_timesteps=parts.rhythm)

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        rewards = parts.game.rewards_of(parts.config.env).items()
        terms = {name: term for name, term in rewards if term.per_run}
        return cls(parts, terms) if terms and not parts.is_offline else None

    def callbacks(
        self,
        parts: RunParts,  # noqa: ARG002
        checkpoints: CheckpointCallback,  # noqa: ARG002
    ) -> Sequence[BaseCallback]:
        return (self._callback,)

    def keep(self, model: BaseAlgorithm, name: str) -> Mapping[FileName, Saved]:  # noqa: ARG002
        visits = self._callback.visits
        saved = {
            term: SavedVisits(variables=self._variables(term), places=visits[term].to_bytes())
            for term in self._terms
        }
        return {NOVELTY_FILE.name: SavedNovelty(terms=saved)}

    def restore(self, checkpoint: Checkpoint) -> int:
        """Go on from the checkpoint's counts, unless they are of other variables or missing."""
        saved = checkpoint.read(NOVELTY_FILE)
        for term, visits in ({} if saved is None else saved.terms).items():
            if term in self._terms and visits.variables == self._variables(term):
                try:
                    self._callback.visits[term] = visits.visits()
                except ValueError as error:
                    file = checkpoint.path / NOVELTY_FILE.name
                    raise CheckpointError(f"{file} cannot be read: {error}") from None
        return 0

    def begin(self) -> None:
        """Tell the envs what the run has visited; what they have not told yet stays with them."""
        self._vec_env.env_method("call", tell_novelty, self._callback.visits)

    def _variables(self, term: str) -> tuple[str, ...]:
        return self._terms[term].variables or ()
