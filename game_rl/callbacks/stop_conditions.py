"""Ending a run before its total, once it has won, no longer improves, or has trained for long."""

from dataclasses import dataclass, replace
from typing import Literal

from stable_baselines3.common.type_aliases import PolicyPredictor

from game_rl.callbacks.evaluation import Evaluation, EvaluationGames
from game_rl.checkpoints.checkpoint_state import StopCounters
from game_rl.config.schema import StopWhenConfig
from game_rl.event_log import EventLog
from game_rl.events import ConfirmationPlayed, Evaluating
from game_rl.seeds import seed_for

_Goal = Literal["success_rate", "mean_reward"]
_GOALS: tuple[_Goal, ...] = ("success_rate", "mean_reward")


@dataclass(frozen=True)
class StopDecision:
    """What an evaluation means for the conditions.

    Attributes:
        counters: the counters from now on; `met` says whether the run ends.
        confirmation: result of the new episodes, if the evaluation was a reason to play them.
        is_confirmed: whether they reached the goal as well.
    """

    counters: StopCounters
    confirmation: Evaluation | None = None
    is_confirmed: bool = False

    def event(self, timesteps: int) -> ConfirmationPlayed | None:
        played = self.confirmation
        if played is None:
            return None
        return ConfirmationPlayed(
            timesteps=timesteps,
            deterministic=played.deterministic,
            episodes=played.episodes,
            mean_reward=played.mean_reward,
            std_reward=played.std_reward,
            success_rate=played.success_rate,
            mean_length=played.mean_length,
            seconds=round(played.seconds, 3),
            is_reached=self.is_confirmed,
        )


class StopWhen:
    """The conditions that end a run before its total.

    The usual evaluations of a run play the same episodes, so a policy may be good at these alone.
    They only nominate: once enough of them in a row have reached a goal, new episodes decide, with
    seeds of their own, which depend on the timestep alone.

    Args:
        conditions: conditions of the run's config.
        games: games of the usual evaluations.
        seed: seed of the run.
        events: gets an event before new episodes.
    """

    def __init__(
        self, conditions: StopWhenConfig, games: EvaluationGames, *, seed: int, events: EventLog
    ) -> None:
        self._conditions, self._games = conditions, games
        self._seed, self._events = seed, events

    def has_trained_long_enough(self, training_s: float) -> bool:
        hours = self._conditions.hours
        return hours is not None and training_s >= hours * 3_600

    def after_hours(self, counters: StopCounters) -> StopCounters:
        """Return the counters of a run that has trained long enough."""
        text = f"stop_when.hours: the run has trained for {self._conditions.hours:g} h"
        return counters.model_copy(update={"met": text})

    def judge(
        self,
        policy: PolicyPredictor,
        evaluation: Evaluation,
        counters: StopCounters,
        *,
        is_best: bool,
        timesteps: int,
    ) -> StopDecision:
        """Count an evaluation, and play new episodes if it is a reason to.

        Args:
            evaluation: the one that counts, in the way in which the policy would be the best.
            counters: the counters before it.
            is_best: whether its mean reward is the best so far.

        Raises:
            EvaluationInterrupted: a stop was requested during the new episodes.
        """
        if counters.met:
            return StopDecision(counters)
        counted = self._counted(evaluation, counters, is_best=is_best)
        goals = [g for g in _GOALS if getattr(counted, g) >= self._conditions.evaluations]
        if not goals:
            return StopDecision(counted)
        played = self._confirmation(policy, evaluation, timesteps)
        reached = [goal for goal in goals if self._reaches(goal, played)]
        if not reached:
            return StopDecision(counted, played)
        met = {"met": self._reached_text(reached[0], played)}
        return StopDecision(counted.model_copy(update=met), played, is_confirmed=True)

    def _counted(
        self, evaluation: Evaluation, before: StopCounters, *, is_best: bool
    ) -> StopCounters:
        in_a_row = {
            goal: getattr(before, goal) + 1 if self._reaches(goal, evaluation) else 0
            for goal in _GOALS
        }
        without = 0 if is_best else before.without_improvement + 1
        most = self._conditions.no_improvement_evaluations
        met = ""
        if most is not None and without > most:
            met = (
                f"stop_when.no_improvement_evaluations: {without:,} evaluations in a row "
                "without a better mean reward"
            )
        return StopCounters(**in_a_row, without_improvement=without, met=met)

    def _reaches(self, goal: _Goal, evaluation: Evaluation) -> bool:
        wanted, found = getattr(self._conditions, goal), getattr(evaluation, goal)
        return wanted is not None and found is not None and found >= wanted

    def _confirmation(
        self, policy: PolicyPredictor, nominee: Evaluation, timesteps: int
    ) -> Evaluation:
        episodes = self._conditions.confirm_episodes
        self._events.emit(
            Evaluating(
                timesteps=timesteps,
                policy_timesteps=timesteps,
                episodes=episodes,
                is_confirmation=True,
            )
        )
        games = replace(
            self._games,
            episodes=episodes,
            ways=(nominee.deterministic,),
            seed=seed_for(self._seed, f"stop_when/{timesteps}"),
            values=None,
        )
        return games.play(policy)[0]

    def _reached_text(self, goal: _Goal, played: Evaluation) -> str:
        found, wanted = getattr(played, goal), getattr(self._conditions, goal)
        return (
            f"stop_when.{goal}: {found:.4g} in {played.episodes:,} new episodes, {wanted:g} wanted"
        )
