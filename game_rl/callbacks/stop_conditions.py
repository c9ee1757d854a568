"""Ending a run before its total, once it has won, no longer improves, or has trained for long."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from stable_baselines3.common.type_aliases import PolicyPredictor

from game_rl.callbacks.evaluation import Evaluation, EvaluationGames, joined_evaluations
from game_rl.checkpoints.checkpoint_state import StopCounters
from game_rl.config.schema import StopWhenConfig
from game_rl.events import ConfirmationPlayed, Evaluating
from game_rl.events.event_log import EventLog
from game_rl.seeds import seed_for
from game_rl.statistics import MOST_BATCHES, mean_interval, rate_test

_Goal = Literal["success_rate", "mean_reward"]
_GOALS: tuple[_Goal, ...] = ("success_rate", "mean_reward")


@dataclass(frozen=True)
class Confirmation:
    """New episodes that were played because evaluations had reached a goal.

    Attributes:
        played: all of them.
        goal: the goal that they have reached as well, or one that they have not.
    """

    played: Evaluation
    goal: _Goal
    is_reached: bool = False

    @property
    def over_at_start(self) -> int:
        """Number of episodes that an ending or success held from the start, whoever played."""
        return self.played.over_at_start

    @property
    def wins(self) -> int:
        """Number of successful episodes, without those."""
        played = self.played
        if not self.over_at_start:
            return sum(played.successes)
        pairs = zip(played.successes, played.ends, strict=False)
        return sum(success and not end.over_at_start for success, end in pairs)

    def event(self, timesteps: int) -> ConfirmationPlayed:
        played = self.played
        return ConfirmationPlayed(
            timesteps=timesteps,
            deterministic=played.deterministic,
            episodes=played.episodes,
            mean_reward=played.mean_reward,
            std_reward=played.std_reward,
            success_rate=played.success_rate,
            mean_length=played.mean_length,
            seconds=round(played.seconds, 3),
            goal=self.goal,
            is_reached=self.is_reached,
            over_at_start=self.over_at_start,
        )


@dataclass(frozen=True)
class StopDecision:
    """What an evaluation means for the conditions.

    Attributes:
        counters: the counters from now on; `met` says whether the run ends.
        confirmation: the new episodes, if the evaluation was a reason to play them.
    """

    counters: StopCounters
    confirmation: Confirmation | None = None

    @property
    def is_confirmed(self) -> bool:
        """Whether new episodes have reached a goal as well."""
        return self.confirmation is not None and self.confirmation.is_reached

    def event(self, timesteps: int) -> ConfirmationPlayed | None:
        return None if self.confirmation is None else self.confirmation.event(timesteps)


class StopWhen:
    """The conditions that end a run before its total.

    The usual evaluations of a run play the same episodes, so a policy may be good at these alone.
    They only nominate: once enough of them in a row have reached a goal, new episodes decide, with
    seeds of their own, which depend on the timestep alone. They are played in batches, at most
    four, until the goal is decided: a success rate by `rate_test`, a mean reward once the interval
    of the mean leaves it out, or else by the mean of all. An episode that
    was over before the first action is no win here.

    Args:
        conditions: conditions of the run's config.
        games: games of the usual evaluations.
        seed: seed of the run.
        events: gets an event before new episodes.
    """

    def __init__(
        self, conditions: StopWhenConfig, games: EvaluationGames, *, seed: int, events: EventLog
    ) -> None:
        self._conditions = conditions
        self._games = games
        self._seed = seed
        self._events = events

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
        confirmation = self._confirm(policy, evaluation, goals, timesteps)
        if not confirmation.is_reached:
            return StopDecision(counted, confirmation)
        met = {"met": self._reached_text(confirmation, timesteps)}
        return StopDecision(counted.model_copy(update=met), confirmation)

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
        wanted = getattr(self._conditions, goal)
        found = getattr(evaluation, goal)
        return wanted is not None and found is not None and found >= wanted

    def _confirm(
        self, policy: PolicyPredictor, nominee: Evaluation, goals: Sequence[_Goal], timesteps: int
    ) -> Confirmation:
        """Play new episodes in batches until a goal is reached, or none can be any more."""
        played: list[Evaluation] = []
        while True:
            played.append(self._batch(policy, nominee, timesteps, number=len(played)))
            confirmation = Confirmation(joined_evaluations(played), goals[0])
            decisions = {goal: self._decision(goal, confirmation) for goal in goals}
            reached = [goal for goal, decision in decisions.items() if decision]
            if reached:
                return replace(confirmation, goal=reached[0], is_reached=True)
            if all(decision is False for decision in decisions.values()):
                return confirmation

    def _batch(
        self, policy: PolicyPredictor, nominee: Evaluation, timesteps: int, *, number: int
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
        stream = f"stop_when/{timesteps}"
        games = replace(
            self._games,
            episodes=episodes,
            ways=(nominee.deterministic,),
            seed=seed_for(self._seed, f"{stream}/{number}" if number else stream),
            values=None,
        )
        return games.play(policy)[0]

    def _decision(self, goal: _Goal, confirmation: Confirmation) -> bool | None:
        """Return whether the goal is reached, or None if more episodes have to decide."""
        played = confirmation.played
        batch = self._conditions.confirm_episodes
        wanted: float = getattr(self._conditions, goal)
        if goal == "success_rate":
            if not played.successes:
                return False
            return rate_test(wanted, batch).decide(confirmation.wins, played.episodes)
        if confirmation.over_at_start == played.episodes:
            return False
        interval = mean_interval(played.mean_reward, played.std_reward, played.episodes)
        if played.episodes >= MOST_BATCHES * batch:
            return played.mean_reward >= wanted
        if interval is None or interval[0] < wanted <= interval[1]:
            return None
        return interval[0] >= wanted

    def _reached_text(self, confirmation: Confirmation, timesteps: int) -> str:
        goal = confirmation.goal
        wanted = getattr(self._conditions, goal)
        text = f"{wanted:g}" if goal == "mean_reward" else f"{100 * wanted:g}%"
        return f"stop_when.{goal}: {confirmation.event(timesteps).in_words}, {text} wanted"
