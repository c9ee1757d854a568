"""Data parallelism on the CPU: each core computes the gradient of a part of every minibatch."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import nn

from game_rl.buffers.batch_parts import parts
from game_rl.system.threads import torch_threads

Report = TypeVar("Report")
Gradients = tuple[torch.Tensor, ...]


class DataParallel:
    """The gradient of a minibatch, of which each thread takes a part.

    Torch's own threads share every operation and wait for each other at its end; NatureCNN's step
    has a hundred, most of them small. Threads that share the minibatch meet once. The gradients
    are added in the order of the parts, so no result depends on which thread was faster.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], pool: ThreadPoolExecutor | None, n_threads: int
    ) -> None:
        self._parameters = list(parameters)
        self._map = map if pool is None else pool.map
        self._n_threads = n_threads

    def gradient(
        self,
        loss_of: Callable[[slice], tuple[torch.Tensor, Report]],
        *,
        n_samples: int,
        micro_batch_size: int,
    ) -> list[Report]:
        """Leave the gradient of the sum of the parts' losses in the parameters.

        Args:
            loss_of: a part's loss, and what else is to be known of it.
            n_samples: in the minibatch.
            micro_batch_size: how many of them all threads together go through at a time.

        Returns:
            What `loss_of` said of each part.
        """

        def of_part(part: slice) -> tuple[Gradients, Report]:
            loss, report = loss_of(part)
            return torch.autograd.grad(loss, self._parameters), report

        for parameter in self._parameters:
            parameter.grad = None
        reports: list[Report] = []
        total: list[torch.Tensor] = []
        for start in range(0, n_samples, micro_batch_size):
            stop = min(start + micro_batch_size, n_samples)
            for gradients, report in self._map(of_part, parts(start, stop, self._n_threads)):
                reports.append(report)
                if total:
                    for sum_, gradient in zip(total, gradients, strict=True):
                        sum_.add_(gradient)
                else:
                    total = list(gradients)
                del gradients  # as large as the network; free before the next are computed
        for parameter, gradient in zip(self._parameters, total, strict=True):
            parameter.grad = gradient
        return reports


@contextmanager
def data_parallel(
    parameters: Iterable[nn.Parameter], device: torch.device
) -> Iterator[DataParallel]:
    """As many threads as torch has; on a GPU, none beside this one."""
    n_threads = torch.get_num_threads() if device.type == "cpu" else 1
    if n_threads == 1:
        yield DataParallel(parameters, None, 1)
        return
    one_each = ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,))
    with torch_threads(1), one_each as pool:
        yield DataParallel(parameters, pool, n_threads)
