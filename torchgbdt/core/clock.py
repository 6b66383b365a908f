"""Seconds spent in each phase of a run, for diagnostics."""

import time


class PhaseClock:
    """Adds up wall time by phase name; phases do not nest.

    Attributes
    ----------
    seconds : phase -> wall seconds so far.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def phase(self, name: str) -> "_Phase":
        """Count the time of the ``with`` block, also when it raises."""
        return _Phase(self.seconds, name)


class _Phase:
    """One ``with`` block. A class: a generator would take longer than some phases do."""

    __slots__ = ("_name", "_seconds", "_start")

    def __init__(self, seconds: dict[str, float], name: str) -> None:
        self._seconds = seconds
        self._name = name

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        spent = time.perf_counter() - self._start
        self._seconds[self._name] = self._seconds.get(self._name, 0.0) + spent
