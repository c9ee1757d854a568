"""A Q-network that another one is drawn towards (QDagger)."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from game_rl.algorithms.q_networks import PQNPolicy

TOP_PROBABILITY = 0.75
"""What an `auto` temperature gives the teacher's likeliest action in half of the situations."""
LAST_EVALUATIONS = 3
"""Of the student, whose success rates are averaged."""

_BISECTIONS = 64  # until no float64 lies between the bounds


def teacher_weight(
    weight: float,
    *,
    student: float | None,
    teacher: float | None,
    timestep: int,
    until: int | None,
) -> float:
    """Weight max(1 - s_student / s_teacher, 0), and 0 from timestep `until` on.

    Args:
        weight: at first.
        student: success rate, 0..1; None: not evaluated yet, which counts as 0.
        teacher: success rate; None, or 0: it says nothing, and the factor is 1.
        timestep: of the run.
        until: None: there is no such timestep.
    Source: Agarwal et al. 2022 (Reincarnating RL), with success rates for returns, whose ratio has
        no meaning where returns are not positive.
    """
    if until is not None and timestep >= until:
        return 0.0
    if not teacher:
        return weight
    return weight * max(1.0 - (student or 0.0) / teacher, 0.0)


def divergence(student: torch.Tensor, teacher: torch.Tensor, *, temperature: float) -> torch.Tensor:
    """KL(softmax(Q_T / tau) || softmax(Q_S / tau)), summed over the observations.

    Args:
        student: Q_S, float32 [batch, actions].
        teacher: Q_T, the same shape.
    """
    of_student, of_teacher = (
        functional.log_softmax(q / temperature, 1) for q in (student, teacher)
    )
    return functional.kl_div(of_student, of_teacher, reduction="sum", log_target=True)


def auto_temperature(values: NDArray[np.float64]) -> float:
    """The tau at which the median over rows of max softmax(Q / tau) is TOP_PROBABILITY.

    The probability of a row's best action falls as tau grows, and so does the median: bisection of
    tau's logarithm finds it. Multiplying all values by a number multiplies tau by it.

    Args:
        values: float64 [n, actions], with two actions or more.

    Raises:
        ValueError: no tau does so, as too many rows value several actions alike.
    """
    gaps = values - values.max(axis=1, keepdims=True)
    scale = float(np.median(-gaps.min(axis=1)))
    if scale <= 0 or _median_top(gaps, scale * 1e-6) <= TOP_PROBABILITY:
        raise ValueError("it values several actions alike")
    low, high = np.log(scale * 1e-6), np.log(scale * 1e6)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _median_top(gaps, float(np.exp(middle))) > TOP_PROBABILITY:
            low = middle
        else:
            high = middle
    return float(np.exp(low))


def _median_top(gaps: NDArray[np.float64], temperature: float) -> float:
    """Of rows whose largest number is 0."""
    with np.errstate(over="ignore", under="ignore"):  # exp(-inf) is 0, as it should be
        return float(np.median(1 / np.exp(gaps / temperature).sum(axis=1)))


class Teacher:
    """What a DQN is drawn towards, and how strongly at the moment.

    Args:
        policy: its network, where the student's is and in the same number format.
        temperature: of the softmax.
        weight: at first; see `teacher_weight`.
        until: see there.
        success_rate: its own; see there.
    """

    def __init__(
        self,
        policy: PQNPolicy,
        *,
        temperature: float,
        weight: float,
        until: int | None,
        success_rate: float | None,
    ) -> None:
        self.policy = policy
        self.temperature, self.success_rate = temperature, success_rate
        self._weight, self._until = weight, until
        self._evaluations: deque[float] = deque(maxlen=LAST_EVALUATIONS)
        policy.set_training_mode(False)

    def note_evaluation(self, success_rate: float | None) -> None:
        """The student was evaluated."""
        if success_rate is not None:
            self._evaluations.append(success_rate)

    def weight_at(self, timestep: int) -> float:
        """Of the divergence; see `teacher_weight`."""
        known = self._evaluations
        return teacher_weight(
            self._weight,
            student=float(np.mean(known)) if known else None,
            teacher=self.success_rate,
            timestep=timestep,
            until=self._until,
        )

    def values(self, observations: torch.Tensor) -> torch.Tensor:
        """float32 [batch, actions], without a gradient."""
        with torch.no_grad():
            values: torch.Tensor = self.policy.q_net(observations)
        return values

    def state(self) -> dict[str, Sequence[float]]:
        return {"evaluations": list(self._evaluations)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._evaluations.clear()
        self._evaluations.extend(map(float, state["evaluations"]))
