"""Torch's own account of the memory that it allocates on the CPU."""

import gc
from collections.abc import Callable
from itertools import accumulate

from torch.profiler import ProfilerActivity, profile


def peak_of_tensors(work: Callable[[], object]) -> int:
    """The most bytes in tensors that were alive at once of those that `work` made."""
    gc.collect()  # or what others have left is freed meanwhile, and counts as less
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        result = work()
    assert profiler.profiler is not None
    assert profiler.profiler.kineto_results is not None
    events = profiler.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    del result
    return max(accumulate(nbytes for _, nbytes in changes))
