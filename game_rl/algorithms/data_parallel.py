"""Data parallelism on the CPU: each core computes the gradient of a part of every minibatch."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import nn

from game_rl.buffers.batch_parts import parts
from game_rl.system.threads import torch_threads

Part = TypeVar("Part")
Report = TypeVar("Report")
Gradients = tuple[torch.Tensor, ...]


class Threads:
    """Threads that compute with one of torch's threads each; they begin when first needed.

    They end when this object is collected. Neither a copy nor a fork of the process has them: each
    begins its own.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._n_threads = self._process = 0  # so many, and which one they are in

    def __reduce__(self) -> tuple[type["Threads"], tuple[()]]:
        return Threads, ()

    def map(self, function: Callable[[slice], Part], parts: Sequence[slice]) -> Iterable[Part]:
        """What `function` gives for each part, in order; a single one stays in this thread."""
        if len(parts) == 1:
            return map(function, parts)
        return self._for(len(parts)).map(function, parts)

    def _for(self, n_threads: int) -> ThreadPoolExecutor:
        if self._pool is None or self._n_threads < n_threads or self._process != os.getpid():
            self._n_threads, self._process = n_threads, os.getpid()
            self._pool = ThreadPoolExecutor(
                n_threads, initializer=torch.set_num_threads, initargs=(1,)
            )
        return self._pool


class DataParallel:
    """The gradient of a minibatch, of which each thread takes a part.

    Torch's own threads share every operation and wait for each other at its end; NatureCNN's step
    has a hundred, most of them small. Threads that share the minibatch meet once. The gradients
    are added in the order of the parts, so no result depends on which thread was faster.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], threads: Threads, n_threads: int
    ) -> None:
        self._parameters = list(parameters)
        self._threads = threads
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
            shares = parts(start, stop, self._n_threads)
            for gradients, report in self._threads.map(of_part, shares):
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
    parameters: Iterable[nn.Parameter], device: torch.device, threads: Threads
) -> Iterator[DataParallel]:
    """As many of `threads` as torch has; on a GPU, none beside this one."""
    n_threads = torch.get_num_threads() if device.type == "cpu" else 1
    with torch_threads(1 if n_threads > 1 else None):
        yield DataParallel(parameters, threads, n_threads)
