"""Medians and ratios of many measurements: one ``Row`` per line of the table."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from contenders import OURS
from measurement import Comparison, Measurement
from workloads import BUSY, FULL, MANY_ROWS

AIM_OF_PARTS = 3.0
"""Prediction and binning shall be so many times as fast as the fastest peer's."""


@dataclass(frozen=True)
class Row:
    """One figure of every contender that was measured.

    Attributes
    ----------
    values : medians, by contender.
    aim : ours shall be so many times smaller than the best peer's, if anything is asked.
    """

    title: str
    values: Mapping[str, float]
    aim: float | None = None

    @property
    def ours(self) -> float | None:
        """Our figure, if there is one."""
        return self.values.get(OURS)

    @property
    def best_peer(self) -> str | None:
        """The peer with the smallest figure."""
        peers = {name: value for name, value in self.values.items() if name != OURS}
        return min(peers, key=peers.__getitem__) if peers else None

    @property
    def ratio(self) -> float | None:
        """Ours by the best peer's: below 1 is better than every peer."""
        best = self.best_peer
        return None if best is None or self.ours is None else self.ours / self.values[best]

    def without(self, contender: str) -> "Row":
        """The row of the others."""
        others = {k: value for k, value in self.values.items() if k != contender}
        return replace(self, values=others)


def seconds_rows(comparison: Comparison) -> list[Row]:
    """Training of each workload, then prediction, then binning."""
    one = comparison.measurements
    threads = comparison.facts["threads"]
    rows = [
        replace(_row(workload.title, one, lambda m: m.seconds, name, threads), aim=workload.aim)
        for name, workload in FULL.items()
    ]
    parts = [
        _row(
            "predict 1M x 28, 100 trees, depth 6", one, lambda m: m.predict_seconds, "W1", threads
        ),
        _row("binning alone, 1M x 28", one, lambda m: m.seconds, "W1", threads, task="bin"),
    ]
    rows += [replace(part, aim=AIM_OF_PARTS) for part in parts]
    return [row for row in rows if row.values]


def training_rows(
    comparison: Comparison, figure: Callable[[Measurement], float | None]
) -> list[Row]:
    """Another figure of the training of each workload, such as memory or the test metric."""
    threads = comparison.facts["threads"]
    rows = [
        _row(workload.title, comparison.measurements, figure, name, threads)
        for name, workload in FULL.items()
    ]
    return [row for row in rows if row.values]


def slow_downs(comparison: Comparison) -> Row:
    """Seconds beside as many busy processes as threads, by seconds alone."""
    one, threads = comparison.measurements, comparison.facts["threads"]
    alone = _row("", one, lambda m: m.seconds, BUSY.name, threads)
    busy = _row("", one, lambda m: m.seconds, BUSY.name, threads, busy=True)
    both = alone.values.keys() & busy.values.keys()
    ratios = {name: busy.values[name] / alone.values[name] for name in alone.values if name in both}
    return Row(f"slow-down on a busy machine, {BUSY.title}", ratios)


def speed_up(comparison: Comparison) -> float | None:
    """Ours on W1: one thread's seconds by those of several."""
    one, threads = comparison.measurements, comparison.facts["threads"]
    single = _row("", one, lambda m: m.seconds, "W1", 1).ours
    several = _row("", one, lambda m: m.seconds, "W1", threads).ours
    return None if single is None or several is None or threads == 1 else single / several


def growth_per_row(comparison: Comparison) -> float | None:
    """Ours: seconds per row with many rows, by those of W1."""
    one, threads = comparison.measurements, comparison.facts["threads"]
    many = _row("", one, lambda m: m.seconds, MANY_ROWS.name, threads).ours
    few = _row("", one, lambda m: m.seconds, "W1", threads).ours
    if many is None or few is None:
        return None
    return many / few * FULL["W1"].n_rows / MANY_ROWS.n_rows


def digests(comparison: Comparison) -> dict[str, set[str]]:
    """Ours by workload: one each, whatever the threads and however busy the machine."""
    found: dict[str, set[str]] = {}
    for one in comparison.measurements:
        if one.digest is not None:
            found.setdefault(one.workload, set()).add(one.digest)
    return found


def _row(
    title: str,
    measurements: list[Measurement],
    figure: Callable[[Measurement], float | None],
    workload: str,
    threads: int,
    task: str | None = None,
    busy: bool = False,
) -> Row:
    """Medians over the runs that fit; ``task`` None takes all that train."""
    found: dict[str, list[float]] = {}
    for one in measurements:
        fits = (one.task == "bin") == (task == "bin")
        if fits and (one.workload, one.threads, one.busy) == (workload, threads, busy):
            value = figure(one)
            if value is not None:
                found.setdefault(one.contender, []).append(value)
    return Row(title, {name: statistics.median(values) for name, values in found.items()})
