"""The threads that torch computes with, and data parallelism on the CPU.

With it, each core computes the gradient of a part of every minibatch.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import nn

from game_rl.algorithms.sizes import minibatch_parts


@contextmanager
def torch_threads(n_threads: int | None = None) -> Iterator[None]:
    """Set torch's number of threads, unless it is None, and restore the previous one afterwards."""
    before = torch.get_num_threads()
    if n_threads is not None:
        torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


Part = TypeVar("Part")
Report = TypeVar("Report")
Gradients = tuple[torch.Tensor, ...]


class Threads:
    """A pool of threads, each of which computes with a single torch thread.

    The threads start when they are first needed and end when this object is garbage-collected. A
    copy of the object, or a fork of the process, starts threads of its own.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._n_threads = self._process = 0  # size and owner (pid) of the pool

    def __reduce__(self) -> tuple[type["Threads"], tuple[()]]:
        return Threads, ()

    def map(self, function: Callable[[slice], Part], parts: Sequence[slice]) -> Iterable[Part]:
        """Apply `function` to each part, in order; a single part runs in the calling thread."""
        if len(parts) == 1:
            return map(function, parts)
        return self._for(len(parts)).map(function, parts)

    def _for(self, n_threads: int) -> ThreadPoolExecutor:
        if self._pool is None or self._n_threads < n_threads or self._process != os.getpid():
            self._n_threads = n_threads
            self._process = os.getpid()
            self._pool = ThreadPoolExecutor(
                n_threads, initializer=torch.set_num_threads, initargs=(1,)
            )
        return self._pool


class DataParallel:
    """Computes the gradient of a minibatch, with one part of it for each thread.

    Torch's own threads share every operation and wait for each other at its end. A gradient step
    of NatureCNN has a hundred operations, most of them small. Threads that share the minibatch
    wait for each other only once. The gradients are added in the order of the parts, so the result
    does not depend on which thread was faster.
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
        sample_timesteps: int = 1,
        adds: bool = False,
    ) -> list[Report]:
        """Leave the gradient of the sum of the parts' losses in the parameters.

        Args:
            loss_of: returns the loss of a part, and a report on it; unused weights get zeros.
            n_samples: samples in the minibatch.
            micro_batch_size: samples that all threads together process at a time.
            sample_timesteps: timesteps of a sample, more than one if samples are sequences.
            adds: whether the gradient is added to the one that is there.

        Returns:
            The report of `loss_of` on each part.
        """

        def of_part(part: slice) -> tuple[Gradients, Report]:
            loss, report = loss_of(part)
            return torch.autograd.grad(loss, self._parameters, materialize_grads=True), report

        for parameter in self._parameters:
            parameter.grad = parameter.grad if adds else None
        reports: list[Report] = []
        total: list[torch.Tensor] = []
        for start in range(0, n_samples, micro_batch_size):
            stop = min(start + micro_batch_size, n_samples)
            shares = minibatch_parts(start, stop, self._n_threads, sample_timesteps)
            for gradients, report in self._threads.map(of_part, shares):
                reports.append(report)
                if total:
                    for sum_, gradient in zip(total, gradients, strict=True):
                        sum_.add_(gradient)
                else:
                    total = list(gradients)
                del gradients  # as large as the network: free them before the next are computed
        for parameter, gradient in zip(self._parameters, total, strict=True):
            laid_out = _laid_out_as(parameter, gradient)
            parameter.grad = laid_out if parameter.grad is None else parameter.grad.add_(laid_out)
        return reports


def _laid_out_as(parameter: nn.Parameter, gradient: torch.Tensor) -> torch.Tensor:
    """Return the gradient in the memory order of its parameter.

    Autograd may return those of channels_last weights in the usual order. A fused optimiser refuses
    them on a GPU, and on the CPU it pairs them with the wrong weights.
    """
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


@contextmanager
def data_parallel(
    parameters: Iterable[nn.Parameter], device: torch.device, threads: Threads
) -> Iterator[DataParallel]:
    """Yield a DataParallel with as many threads as torch has; on a GPU, with this thread alone.

    Inside, torch itself uses one thread if there are several.
    """
    n_threads = torch.get_num_threads() if device.type == "cpu" else 1
    with torch_threads(1 if n_threads > 1 else None):
        yield DataParallel(parameters, threads, n_threads)
