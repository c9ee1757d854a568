"""Behavioural cloning: a network learns a player's actions before it plays itself."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from game_rl.algorithms.algorithm import LeanAlgorithm
from game_rl.algorithms.data_parallel import Threads, data_parallel
from game_rl.algorithms.demonstrations import Demonstrations
from game_rl.config.learn_from import CloningConfig
from game_rl.envs.observation import rows_of

_LARGEST_BATCH = 256  # so that few timesteps still make many gradient steps
_STRETCH_TIMESTEPS = 128
_Indices = NDArray[np.int64]


@dataclass(frozen=True)
class ClonedEpoch:
    """A pass over the played timesteps.

    Attributes:
        epoch: its number, from 1 on.
        gradient_steps: number of all gradient steps up to its end.
        loss, accuracy: means over the pass of the imitation's loss, and of how often the network's
            best action was the player's, each before its gradient step.
        held_out_loss, held_out_accuracy: likewise on the held-out timesteps, after the pass.
        is_best: whether no pass before had as low a loss on those.
    """

    epoch: int
    gradient_steps: int
    loss: float
    accuracy: float
    held_out_loss: float
    held_out_accuracy: float
    is_best: bool


class Cloning:
    """Imitates demonstrations until the loss on those held out no longer falls.

    Beside its actions the network learns the player's discounted returns, as values of the
    observations or of the player's actions, so that the first updates of the run do not spoil what
    it has learned with values that mean nothing. The run's optimiser stays as it is.

    Args:
        model: the algorithm, whose policy learns.
        margin: see `LeanAlgorithm.imitation`.
        value_weight: weight of the values' loss; 0: the network does not learn them.
        seed: of the held-out timesteps and of the order of the others.

    Attributes:
        held_out: the timesteps that are not learned, int64 [n], ascending.
        gradient_steps_of_epoch: gradient steps in a pass.
    """

    def __init__(
        self,
        model: LeanAlgorithm,
        demonstrations: Demonstrations,
        config: CloningConfig,
        *,
        margin: float,
        value_weight: float,
        seed: int,
    ) -> None:
        self._model = model
        self._demonstrations = demonstrations
        self._config = config
        self._margin = margin
        self._value_weight = value_weight
        self._rng = np.random.default_rng(seed)
        n = len(demonstrations)
        self.held_out = held_out_stretches(n, config.held_out, self._rng)
        self._learned = np.setdiff1d(np.arange(n), self.held_out)
        self._batch_size = min(model.batch_size, _LARGEST_BATCH)  # type: ignore[attr-defined]  # each algorithm has one
        self._returns = torch.from_numpy(demonstrations.returns())
        self._threads = Threads()
        self.gradient_steps_of_epoch = -(-len(self._learned) // self._batch_size)

    @property
    def usual_accuracy(self) -> float:
        """Accuracy on the held-out timesteps of who always takes the most frequent action."""
        actions = self._demonstrations.actions
        usual = np.bincount(actions[self._learned]).argmax()
        return float((actions[self.held_out] == usual).mean())

    def epochs(
        self, *, is_stopped: Callable[[], bool], tell: Callable[[int], None]
    ) -> Iterator[ClonedEpoch]:
        """Learn, and yield each pass; at the end the network has the weights of the best one.

        It ends early, without them, where `is_stopped` says so.

        Args:
            tell: called after each gradient step, with the number of all so far.
        """
        policy = self._model.policy
        usual = policy.optimizer
        weights = [weight for group in usual.param_groups for weight in group["params"]]
        rate = float(self._model.lr_schedule(1.0))
        optimizer = type(usual)(weights, **{**usual.defaults, "lr": rate})
        lowest = np.inf
        best = {}
        since_best = steps = 0
        for epoch in range(1, self._config.n_epochs + 1):
            policy.set_training_mode(True)
            losses: list[tuple[float, int]] = []
            with data_parallel(weights, self._model.device, self._threads) as parallel:
                order = self._rng.permutation(self._learned)
                for start in range(0, len(order), self._batch_size):
                    if is_stopped():
                        return
                    which = order[start : start + self._batch_size]
                    losses += parallel.gradient(
                        self._loss_of(which), n_samples=len(which), micro_batch_size=self._together
                    )
                    torch.nn.utils.clip_grad_norm_(weights, self._model.max_grad_norm)  # type: ignore[attr-defined]  # likewise
                    optimizer.step()
                    steps += 1
                    tell(steps)
            policy.set_training_mode(False)
            held_out_loss, held_out_accuracy = self._judged()
            is_best = held_out_loss < lowest
            if is_best:
                lowest = held_out_loss
                best = {name: value.clone() for name, value in policy.state_dict().items()}
            since_best = 0 if is_best else since_best + 1
            n = len(order)
            yield ClonedEpoch(
                epoch=epoch,
                gradient_steps=steps,
                loss=sum(loss for loss, _ in losses) / n,
                accuracy=sum(right for _, right in losses) / n,
                held_out_loss=held_out_loss,
                held_out_accuracy=held_out_accuracy,
                is_best=is_best,
            )
            if since_best > self._config.no_improvement_epochs:
                break
        if best:  # empty if every loss was NaN; saving the phase's checkpoint says so
            policy.set_training_mode(True)
            policy.load_state_dict(best)
        policy.set_training_mode(False)

    @property
    def _together(self) -> int:
        """Timesteps that go through the network together."""
        micro_batch_size: int | None = getattr(self._model, "micro_batch_size", None)
        return micro_batch_size or self._batch_size

    def _loss_of(
        self, which: _Indices
    ) -> Callable[[slice], tuple[torch.Tensor, tuple[float, int]]]:
        device = self._model.device
        observations, actions = self._demonstrations.take(which, device)
        returns = self._returns[torch.from_numpy(which)].to(device)

        def loss_of(part: slice) -> tuple[torch.Tensor, tuple[float, int]]:
            seen = rows_of(observations, part)  # type: ignore[arg-type]  # tensors
            found = self._model.imitation(seen, actions[part], margin=self._margin)  # type: ignore[arg-type]
            loss = found.loss
            if self._value_weight:
                errors = functional.smooth_l1_loss(found.values, returns[part], reduction="sum")
                loss = loss + self._value_weight * errors
            return loss / len(which), (found.loss.item(), int(found.right))

        return loss_of

    def _judged(self) -> tuple[float, float]:
        """Return loss and accuracy on the held-out timesteps."""
        loss = 0.0
        right = 0
        for start in range(0, len(self.held_out), self._together):
            which = self.held_out[start : start + self._together]
            observations, actions = self._demonstrations.take(which, self._model.device)
            with torch.no_grad():
                found = self._model.imitation(observations, actions, margin=self._margin)
            loss += found.loss.item()
            right += int(found.right)
        return loss / len(self.held_out), right / len(self.held_out)


def held_out_stretches(n: int, share: float, rng: np.random.Generator) -> _Indices:
    """Return timesteps of 0..n-1 to hold out, in drawn stretches, ascending.

    Neighbours look alike, so single timesteps would be known from those before and after them. At
    least one timestep is held out and at least one is not.
    """
    size = min(_STRETCH_TIMESTEPS, max(1, int(n * share)))
    starts = np.arange(0, n, size)
    count = min(max(1, round(n * share / size)), max(1, len(starts) - 1))
    chosen = np.sort(rng.choice(starts, count, replace=False))
    found = [np.arange(start, min(start + size, n)) for start in chosen]
    return np.concatenate(found)
