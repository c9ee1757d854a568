"""What the curves and evaluations of a run say that a person should know, and the key to change.

Each rule is a function of a `Training`. It returns a `Hint`, or None if it has nothing to say. The
thresholds lie between the recorded runs that it is for and those that learn well: `duel_ppo`,
`duel_pqn` and `seasons_ppo` (tests/recorded_curves, where each file says how it was made).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from game_rl.events import BaselinePlayed, Evaluated
from game_rl.events.run_view import Curve
from game_rl.statistics import percent, wilson_interval

_REWARD = "rollout/ep_rew_mean"
_SUCCESS = "rollout/success_rate"
_LEAST_POINTS = 9  # of a curve, so that each third of it has three
# Success comes late: in its first 30,000 timesteps, seasons_ppo walks further and further and never
# wins. Shorter runs say nothing about what will not come.
_LONG_RUN_TIMESTEPS = 50_000


@dataclass(frozen=True)
class Hint:
    """Something that a person should know about a run.

    Attributes:
        name: its name in docs/how-to/hints.md.
        text: what the curves say, and what to change.
        key: the key of the config or of game.yaml to change.
        shown_by: a curve that has a value of each episode; one with a high value shows it. None if
            no single episode can.
    """

    name: str
    text: str
    key: str
    shown_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class HintSettings:
    """What the rules must know of the config and the game.

    Attributes:
        value_weight: weight of PPO's value loss; None for the others.
        scales_rewards: whether the algorithm scales, clips or normalises rewards.
        action_names: names of the actions.
        has_endings: whether an episode can end otherwise than by the limit.
        truncation: the condition that truncates episodes that are stuck, as game.yaml would have
            it.
    """

    total_timesteps: int
    n_actions: int
    value_weight: float | None
    scales_rewards: bool
    has_endings: bool
    truncation: str
    action_names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Training:
    """A run up to now.

    Attributes:
        curves: the curves by name, as `read_curves` returns them.
        evaluations: the evaluations during training, the oldest first.
        baselines: what policies reached that have learned nothing.
        is_at_end: whether the run has ended.
    """

    settings: HintSettings
    timesteps: int
    curves: Mapping[str, Curve]
    evaluations: Sequence[Evaluated]
    baselines: Sequence[BaselinePlayed] = ()
    is_at_end: bool = False

    @property
    def is_long(self) -> bool:
        return self.timesteps >= _LONG_RUN_TIMESTEPS

    @property
    def share_done(self) -> float:
        return self.timesteps / self.settings.total_timesteps

    def values(self, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return the values of a curve; an empty array if there is none."""
        return self.curves[name].values if name in self.curves else np.empty(0)

    def newest(self, name: str, n: int) -> float | None:
        """Return the mean of the last `n` points of a curve, or None if it has fewer."""
        values = self.values(name)
        return float(values[-n:].mean()) if len(values) >= n else None

    def at(self, name: str, timesteps: int) -> float | None:
        """Return the last value of a curve up to a timestep, or None if there is none."""
        curve = self.curves.get(name)
        n = 0 if curve is None else int(np.searchsorted(curve.timesteps, timesteps, side="right"))
        return None if curve is None or n == 0 else float(curve.values[n - 1])

    def has_won(self, rate: float) -> bool:
        """Whether the game defines success, and the training's success rate is at least this."""
        success = self.newest(_SUCCESS, 1)
        return success is not None and success >= rate

    def rise(self, name: str, *, since_third: int = 0) -> "Rise":
        """Return by how much a curve has risen from its first third to its last.

        Args:
            since_third: 1: from its second third.
        """
        values = self.values(name)
        third = len(values) // 3
        if third < _LEAST_POINTS // 3:
            return Rise(0.0, math.inf)
        first = values[since_third * third :][:third]
        last = values[-third:]
        error = math.sqrt((first.var() + last.var()) / third)
        return Rise(float(last.mean() - first.mean()), error)

    def has_levelled_off(self, name: str) -> bool:
        """Whether a curve rose less in its last third than half as much as in the one before.

        An agent that is on its way, as seasons_ppo before its first success, rises on.
        """
        first, middle, last = (float(part.mean()) for part in np.array_split(self.values(name), 3))
        return last - middle < (middle - first) / 2


@dataclass(frozen=True)
class Rise:
    """The difference of two means, with its standard error."""

    by: float
    error: float

    @property
    def is_sure(self) -> bool:
        """Whether it is a rise by more than three standard errors."""
        return self.by > 3 * self.error and self.by > 1e-9


Rule = Callable[[Training], Hint | None]

# duel_ppo has a KL divergence up to 0.07 and clips up to 0.45 of the ratios, and a run on duel's
# variables with clip_range 0.5 learns as well at 0.4. A learning rate of 0.9 has 10^14 at its first
# update, and the policy does not move any more after it.
_LARGE_KL = 1.0
_HUGE_KL = 10.0
_LARGE_CLIP_FRACTION = 0.7
# The loss of a network that always says 0 is at most the square of the largest return.
_LOST_VALUES = 100.0


def updates_too_large(training: Training) -> Hint | None:
    kl = training.values("train/approx_kl")
    recent_kl = training.newest("train/approx_kl", 3)
    recent_clip = training.newest("train/clip_fraction", 3)
    rewards = training.values(_REWARD)
    losses = [training.newest(name, 1) for name in ("train/value_loss", "train/loss")]
    loss = next((abs(each) for each in losses if each is not None), 0.0)
    largest_return = float(np.abs(rewards).max()) + 1.0 if len(rewards) else math.inf
    if len(kl) and kl.max() > _HUGE_KL:
        found = f"the KL divergence of one update was {kl.max():.3g}"
    elif recent_kl is not None and recent_kl > _LARGE_KL:
        found = f"the KL divergence of the updates is {recent_kl:.2g}"
    elif recent_clip is not None and recent_clip > _LARGE_CLIP_FRACTION:
        found = f"{percent(recent_clip)} of the probability ratios are clipped"
    elif loss > _LOST_VALUES * largest_return**2:
        found = f"the loss of the values is {loss:.3g}, and returns reach {largest_return - 1:.3g}"
    else:
        return None
    return Hint(
        "updates_too_large",
        f"the updates are far too large: {found}; lower algorithm.learning_rate",
        "algorithm.learning_rate",
    )


_COLLAPSED = 0.05  # of the entropy of uniform actions; duel_ppo ends its run at 0.47


def entropy_collapsed(training: Training) -> Hint | None:
    """The policy has settled for one action everywhere while it does not win."""
    loss = training.newest("train/entropy_loss", 3)
    if loss is None or training.has_won(0.8) or training.settings.n_actions < 2:
        return None
    share = -loss / math.log(training.settings.n_actions)
    if share >= _COLLAPSED or (
        not len(training.values(_SUCCESS)) and training.rise(_REWARD).by > 0
    ):
        return None
    return Hint(
        "entropy_collapsed",
        f"the policy no longer explores: its entropy is {percent(share, 1)} of that of random "
        "actions; raise algorithm.ent_coef, or lower algorithm.learning_rate, and start again",
        "algorithm.ent_coef",
    )


_FAR_BELOW = 0.2  # of a success rate, beyond chance
_TWICE = 2  # evaluations in a row, as one may have drawn hard episodes
# Of the run, in which the likeliest action is little likelier than others: seasons_ppo, reduced to
# 80,000 timesteps, first earns 0.6 with it and 2.6 in training, and later 5 and 3.
_EARLY = 0.25
_NO_SUCCESS = 0.05  # below it, rewards are compared


def likeliest_action_stuck(training: Training) -> Hint | None:
    """Evaluations that take the most probable action are far below the training, which draws."""
    played = [each for each in training.evaluations if each.deterministic and not each.is_final]
    early = _EARLY * training.settings.total_timesteps
    newest = [each for each in played if each.policy_timesteps >= early][-_TWICE:]
    if len(newest) < _TWICE or not all(_is_far_below(each, training) for each in newest):
        return None
    last = newest[-1]
    reward = training.at(_REWARD, last.policy_timesteps)
    success = training.at(_SUCCESS, last.policy_timesteps) or 0.0
    if last.success_rate is not None and success > _NO_SUCCESS:
        numbers = f"succeed in {percent(last.success_rate)}, the training in {percent(success)}"
    else:
        numbers = f"have a mean reward of {last.mean_reward:.2f}, the training {reward:.2f}"
    return Hint(
        "likeliest_action_stuck",
        f"deterministic evaluations {numbers}: where several actions are "
        "about equally good, taking the same one again and again gets stuck; "
        "evaluation.deterministic: auto also evaluates with sampled actions and keeps the better "
        "way; a lower algorithm.ent_coef makes the policy more decisive; if the game ignores that "
        "action there, such as a blocked move, let the agent see its latest actions with a part "
        "{actions: 4}",
        "evaluation.deterministic",
    )


def _is_far_below(played: Evaluated, training: Training) -> bool:
    success = training.at(_SUCCESS, played.policy_timesteps)
    if played.success_rate is not None and success is not None and success > _NO_SUCCESS:
        successes = round(played.success_rate * played.episodes)
        return success - wilson_interval(successes, played.episodes)[1] > _FAR_BELOW
    rewards = training.values(_REWARD)
    reward = training.at(_REWARD, played.policy_timesteps)
    if reward is None or len(rewards) < _LEAST_POINTS:
        return False
    highest_likely = played.mean_reward + 2 * played.std_reward / math.sqrt(played.episodes)
    return reward - highest_likely > 0.25 * max(float(np.ptp(rewards)), abs(reward))


def reward_without_success(training: Training) -> Hint | None:
    """The reward has risen and levelled off, but success has not come: one term is a trap."""
    is_early = training.share_done < 0.4 or not training.is_long
    if is_early or training.has_won(0.5) or not len(training.values(_SUCCESS)):
        return None
    reward = training.rise(_REWARD)
    success = training.rise(_SUCCESS)
    if not reward.is_sure or success.by > 0.05 or not training.has_levelled_off(_REWARD):
        return None
    prefix = "game/reward/"
    rises = {
        n.removeprefix(prefix): training.rise(n) for n in training.curves if n.startswith(prefix)
    }
    rising = [name for name, rise in rises.items() if rise.is_sure]
    earning = [name for name in rising if training.values(prefix + name)[-1] > 0]
    if len(earning) != 1:
        return None
    term = earning[0]
    return Hint(
        "reward_without_success",
        f"the reward has risen by {reward.by:.2g} while success stays at "
        f"{percent(training.values(_SUCCESS)[-1])}: of the terms that earn something, {term} alone "
        f"rises (by {rises[term].by:.2g} an episode); if it can be earned without coming closer to "
        "success, lower its weight or let it earn less often (`once`, `new_maximum`, `cap`)",
        f"rewards.{term}",
    )


def flat_at_the_end(training: Training) -> Hint | None:
    """The last third of a run has brought nothing."""
    played = [each for each in training.evaluations if not each.is_final]
    is_early = not (training.is_at_end and training.is_long) or len(played) < 6
    if is_early or training.has_won(0.9) or training.rise(_REWARD, since_third=1).is_sure:
        return None
    third = len(played) // 3
    middle = played[-2 * third : -third]
    last = played[-third:]
    if max(each.success_rate or 0 for each in last) >= 0.9:
        return None
    before, after = (np.array([e.mean_reward for e in part]) for part in (middle, last))
    errors = [e.std_reward**2 / e.episodes for e in (*middle, *last)]
    error = math.sqrt(sum(errors)) / third
    if after.mean() - before.mean() > error:
        return None
    return Hint(
        "flat_at_the_end",
        f"the last third of the run brought no improvement: evaluations had a mean reward of "
        f"{after.mean():.2f}, and {before.mean():.2f} in the third before; more timesteps alone "
        "will not help: change the rewards, the observation or algorithm.learning_rate, or lower "
        "total_timesteps",
        "total_timesteps",
    )


def all_truncated(training: Training) -> Hint | None:
    """No episode has ever come to its end."""
    truncated = training.values("rollout/truncated")
    is_early = training.share_done < 0.1 or len(truncated) < _LEAST_POINTS
    if is_early or not training.settings.has_endings or training.has_won(0.5):
        return None
    if truncated.mean() < 0.98:
        return None
    return Hint(
        "all_truncated",
        f"{percent(truncated.mean())} of the episodes are truncated, so the agent never sees how "
        "one ends; raise env.max_episode_timesteps, or start closer to the end (env.start_states)",
        "env.max_episode_timesteps",
    )


# Weight of the value loss times the loss, over the loss of the policy, whose advantages are
# normalised. duel_ppo has 65 at first and 1 to 2 later; with a thousand times its rewards, it has
# more than a million.
_DROWNS = 300.0
# Of an episode. A network's values begin with errors of this size, and with rewards of 0.0005 their
# loss was still 500 times the squared returns after 10,000 timesteps. No reward at all is not the
# scale's fault.
_LITTLE_REWARD = 0.05


def reward_scale(training: Training) -> Hint | None:
    """The value loss takes the whole gradient, or the returns vanish in its noise."""
    weight = training.settings.value_weight
    settings = training.settings
    n = 5
    value, policy = (training.newest(f"train/{x}_loss", n) for x in ("value", "policy_gradient"))
    rewards = np.abs(training.values(_REWARD))
    if weight is None or settings.scales_rewards or value is None or policy is None:
        return None
    policy = float(np.abs(training.values("train/policy_gradient_loss")[-n:]).mean())
    ratio = weight * value / max(policy, 1e-6)
    largest = float(rewards.max(initial=0.0))
    if ratio > _DROWNS and largest > 10:
        what = f"{ratio:,.0f} times the policy's loss, so the policy hardly learns"
        size = f"large (up to {largest:,.3g} an episode)"
        change = "lower"
    elif 0 < largest < _LITTLE_REWARD and value > largest**2:
        what = f"{value / largest**2:,.0f} times their square, so the values are only noise"
        size = f"small (up to {largest:.1g} an episode)"
        change = "raise"
    else:
        return None
    return Hint(
        "reward_scale",
        f"the rewards are {size}: the value loss is {what}; {change} the weights of the rewards, "
        "or set algorithm.reward.normalize: true",
        "algorithm.reward.normalize",
    )


def episodes_stuck(training: Training) -> Hint | None:
    """Many episodes show the same few states for long."""
    share = training.newest("game/stuck/episodes", 5)
    if share is None or share < 0.25 or training.has_won(0.8):
        return None
    wasted = training.newest("game/stuck/timesteps", 5) or 0.0
    return Hint(
        "episodes_stuck",
        f"{percent(share)} of the episodes are stuck: the same states repeat for {wasted:,.0f} "
        f"timesteps of an episode; game.yaml can truncate them with {training.settings.truncation}",
        "endings",
        shown_by="game/stuck/timesteps",
    )


# The terms of duel_pqn and seasons_ppo stay below 0.03. A term that pays for jumping has 0.1
# to 0.2 in duel, because the fight changes other variables meanwhile.
_LOOPED = 0.15


def reward_in_a_loop(training: Training) -> Hint | None:
    """A term is earned again and again in states in which it was earned before."""
    looped = "game/looped/"
    earned = "game/reward/"
    sums = {n: training.newest(n, 5) for n in training.curves if n.startswith(earned)}
    gains = sum(value for value in sums.values() if value is not None and value > 0)
    for name in training.curves:
        share = training.newest(name, 5) if name.startswith(looped) else None
        term = name.removeprefix(looped)
        own = sums.get(earned + term)
        if share is None or own is None or share < _LOOPED or own < 0.25 * gains:
            continue
        return Hint(
            "reward_in_a_loop",
            f"reward term {term} is earned in a loop: {percent(share)} of what it earns comes in a "
            f"state in which the episode has earned it before, {own:.2f} an episode; let it earn "
            "less often (`once`, `new_maximum`, `cap`), or make the way back cost as much",
            f"rewards.{term}",
            shown_by=name,
        )
    return None


_LEAST_ACTIONS = 50  # in an evaluation, from which one action alone is no chance


def one_action(training: Training) -> Hint | None:
    """The policy takes the same action in every timestep of its evaluations."""
    newest = _newest_two(training, since=_EARLY)
    if training.settings.n_actions < 2 or not newest:
        return None
    taken = {_only_action(each) for each in newest}
    if len(taken) > 1 or None in taken:
        return None
    (action,) = taken
    names = training.settings.action_names
    count = sum(newest[-1].action_counts)
    name = names[action] if action is not None and action < len(names) else f"number {action}"
    return Hint(
        "one_action",
        f"the policy takes only one action: {name} in all {count:,} timesteps of the newest "
        f"evaluation (reward {newest[-1].mean_reward:.2f}); if that is enough to succeed, make "
        "success or the rewards of game.yaml harder to get; if not, raise algorithm.ent_coef or "
        "the exploration, and start again",
        "rewards",
    )


def _newest_two(training: Training, *, since: float) -> list[Evaluated]:
    """Return the evaluations at the last two timesteps, in each way; none before `since`."""
    first = since * training.settings.total_timesteps
    played = [each for each in training.evaluations if not each.is_final]
    timesteps = sorted({e.policy_timesteps for e in played if e.policy_timesteps >= first})
    if len(timesteps) < _TWICE:
        return []
    return [each for each in played if each.policy_timesteps in timesteps[-_TWICE:]]


def _only_action(played: Evaluated) -> int | None:
    taken = [action for action, count in enumerate(played.action_counts) if count]
    return taken[0] if len(taken) == 1 and sum(played.action_counts) >= _LEAST_ACTIONS else None


_LATE = 0.5  # of the run: until then an agent may not have begun to learn


def no_better_than_baseline(training: Training) -> Hint | None:
    """Evaluations are no better than random actions, or than the best constant action."""
    newest = _newest_two(training, since=_LATE)
    if not training.baselines or not newest:
        return None
    best = max(training.baselines, key=lambda each: each.mean_reward)
    if any(_is_better(each, best) for each in newest):
        return None
    return Hint(
        "no_better_than_baseline",
        "the agent is no better than an untrained policy: evaluations have a mean reward of "
        f"{newest[-1].mean_reward:.2f}; {best.in_words}; check that the observation shows what "
        "matters and that the rewards come often enough, or change algorithm.learning_rate",
        "rewards",
    )


def _is_better(played: Evaluated, baseline: BaselinePlayed) -> bool:
    """Whether its mean reward is higher by more than the standard error of the difference."""
    pair = (played, baseline)
    error = math.sqrt(sum(each.std_reward**2 / each.episodes for each in pair))
    if played.mean_reward - baseline.mean_reward > error:
        return True
    return (played.success_rate or 0.0) > (baseline.success_rate or 0.0)


RULES: tuple[Rule, ...] = (
    updates_too_large,
    reward_scale,
    entropy_collapsed,
    all_truncated,
    reward_in_a_loop,
    reward_without_success,
    likeliest_action_stuck,
    one_action,
    no_better_than_baseline,
    episodes_stuck,
    flat_at_the_end,
)


def hints_for(training: Training) -> Iterator[Hint]:
    """Yield what the rules have to say, the most urgent first."""
    for rule in RULES:
        if (hint := rule(training)) is not None:
            yield hint
