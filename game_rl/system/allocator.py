"""What the C library does with memory that was freed."""

import ctypes

from game_rl.system.units import MIB

# mallopt(3); the threshold is the largest that glibc accepts on 64 bits
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_THRESHOLD = 32 * MIB
_NEVER = 2**31 - 1


def keep_freed_memory() -> None:
    """Blocks below 32 MiB stay with the process when they are freed, ready to be used again.

    By itself glibc learns from what is freed that blocks of that size come and go, but gives the
    end of its heap back whenever it is free, and asks for it again in the next gradient step: up to
    14,000 page faults each. The most that a process has is the same. No effect without glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, _NEVER)
