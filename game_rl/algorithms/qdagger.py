"""A Q-network towards which another one is drawn (QDagger)."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from game_rl.algorithms.policies import PQNPolicy
from game_rl.buffers.unpacking import Tensors

TOP_PROBABILITY = 0.75
"""Median probability of the teacher's likeliest action at an `auto` temperature."""
LAST_EVALUATIONS = 3
"""Number of the student's last evaluations whose success rates are averaged."""

_BISECTIONS = 64  # enough that no float64 lies between the bounds


def teacher_weight(
    weight: float,
    *,
    student: float | None,
    teacher: float | None,
    timestep: int,
    until: int | None,
) -> float:
    """Return weight * max(1 - s_student / s_teacher, 0), or 0 from timestep `until` on.

    Args:
        weight: weight at the beginning.
        student: success rate of the student, 0..1, or None if it was not evaluated yet, which
            counts as 0.
        teacher: success rate of the teacher. If it is None or 0 the factor is 1.
        timestep: present timestep of the run.
        until: first timestep without a teacher, or None for no limit.
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
    """Return the tau at which the median over rows of max softmax(Q / tau) is TOP_PROBABILITY.

    The probability of a row's best action falls as tau grows, and so does the median. It is found
    by bisection of the logarithm of tau. Multiplying all values by a number multiplies tau by it.

    Args:
        values: float64 [n, actions], with at least two actions.

    Raises:
        ValueError: there is no such tau, because too many rows value several actions alike.
    """
    gaps = values - values.max(axis=1, keepdims=True)
    scale = float(np.median(-gaps.min(axis=1)))
    if scale <= 0 or _median_top(gaps, scale * 1e-6) <= TOP_PROBABILITY:
        raise ValueError("it values several actions alike too often")
    low = np.log(scale * 1e-6)
    high = np.log(scale * 1e6)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _median_top(gaps, float(np.exp(middle))) > TOP_PROBABILITY:
            low = middle
        else:
            high = middle
    return float(np.exp(low))


def _median_top(gaps: NDArray[np.float64], temperature: float) -> float:
    """Return the median over rows of max softmax; the largest number of each row must be 0."""
    with np.errstate(over="ignore", under="ignore"):  # exp(-inf) is rightly 0
        return float(np.median(1 / np.exp(gaps / temperature).sum(axis=1)))


class Teacher:
    """A policy towards which a DQN is drawn, and the present weight of that.

    Args:
        policy: the teacher's network, on the student's device and in the same number format.
        temperature: of the softmax.
        weight: see `teacher_weight`.
        until: see `teacher_weight`.
        success_rate: of the teacher; see `teacher_weight`.
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
        self.temperature = temperature
        self.success_rate = success_rate
        self._weight = weight
        self._until = until
        self._evaluations: deque[float] = deque(maxlen=LAST_EVALUATIONS)
        policy.set_training_mode(False)

    def note_evaluation(self, success_rate: float | None) -> None:
        """Note an evaluation of the student; None, an unknown success rate, is ignored."""
        if success_rate is not None:
            self._evaluations.append(success_rate)

    def weight_at(self, timestep: int) -> float:
        """Return the weight of the divergence in the loss; see `teacher_weight`."""
        known = self._evaluations
        return teacher_weight(
            self._weight,
            student=float(np.mean(known)) if known else None,
            teacher=self.success_rate,
            timestep=timestep,
            until=self._until,
        )

    def values(self, observations: Tensors) -> torch.Tensor:
        """Return the teacher's values, float32 [batch, actions], without a gradient."""
        with torch.no_grad():
            values: torch.Tensor = self.policy.q_net(observations)
        return values

    def state(self) -> dict[str, Sequence[float]]:
        return {"evaluations": list(self._evaluations)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._evaluations.clear()
        self._evaluations.extend(map(float, state["evaluations"]))
