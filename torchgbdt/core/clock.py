"""Seconds spent in each phase of a run, for diagnostics."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class PhaseClock:
    """Adds up wall time by phase name; phases do not nest.

    Attributes
    ----------
    seconds : phase -> wall seconds so far.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of the ``with`` block, also when it raises."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
