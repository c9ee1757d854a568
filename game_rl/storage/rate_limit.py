"""Limiting the number of bytes per second."""

import threading
import time
from collections.abc import Iterator

_BURST_S = 0.25


class RateLimit:
    """A token bucket, shared by all threads that send.

    Args:
        mb_s: limit in 10^6 bytes per second, or None for no limit.
    """

    def __init__(self, mb_s: float | None) -> None:
        self._bytes_s = None if mb_s is None else mb_s * 1e6
        self._free_at_s = time.monotonic()
        self._lock = threading.Lock()

    def slowed(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the chunks no faster than the limit allows."""
        for chunk in chunks:
            self._wait(len(chunk))
            yield chunk

    def _wait(self, n_bytes: int) -> None:
        if self._bytes_s is None:
            return
        with self._lock:
            now = time.monotonic()
            self._free_at_s = max(self._free_at_s, now - _BURST_S) + n_bytes / self._bytes_s
            pause_s = self._free_at_s - now
        if pause_s > 0:
            time.sleep(pause_s)
