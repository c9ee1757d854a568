"""The number of threads that torch computes with."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


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
