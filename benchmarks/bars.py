"""What torchgbdt asks of itself, and whether a comparison meets it."""

from collections.abc import Iterator
from dataclasses import dataclass

from contenders import OURS, TITLES
from measurement import Comparison
from summary import (
    Row,
    digests,
    growth_per_row,
    seconds_rows,
    slow_downs,
    speed_up,
    training_rows,
)
from workloads import FULL

MOST_METRIC = 1.002
SYMMETRIC = "catboost"
"""Tests the same feature at all nodes of a level: another family of models."""

LEAST_SPEED_UP = 1.8
BUSY_MARGIN = 1.25


@dataclass(frozen=True)
class Bar:
    """One demand: the figure must not exceed the limit, or not fall below it if ``at_least``."""

    title: str
    figure: float
    limit: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether it is."""
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit


def bars(comparison: Comparison) -> Iterator[Bar]:
    """Those that the comparison has measurements for."""
    for row in seconds_rows(comparison):
        if row.ratio is not None and row.aim is not None:
            title = f"times as fast as the fastest peer: {row.title}"
            yield Bar(title, 1 / row.ratio, row.aim, at_least=True)
    for row in training_rows(comparison, lambda m: m.metric):
        yield from _of_metric(row)
    for row in training_rows(comparison, lambda m: m.growth_bytes):
        if row.title == FULL["W1"].title and row.ratio is not None:
            yield Bar(f"peak memory / leanest peer's: {row.title}", row.ratio, 1.0)
    if (figure := speed_up(comparison)) is not None:
        title = f"{comparison.facts['threads']} threads, times as fast as one"
        yield Bar(title, figure, LEAST_SPEED_UP, at_least=True)
    if (figure := slow_downs(comparison).ours) is not None:
        # as many others as threads: half of each core is the fair share
        yield Bar(slow_downs(comparison).title, figure, 2 * BUSY_MARGIN)
    if (figure := growth_per_row(comparison)) is not None:
        yield Bar("seconds per row with 4M rows / with 1M", figure, 1.0)
    if found := digests(comparison):
        most = max(len(one) for one in found.values())
        yield Bar(f"different models of {OURS} on the same workload", most, 1)


def _of_metric(row: Row) -> Iterator[Bar]:
    """By the best peer's; where that grows other trees, by the best with our kind as well."""
    if row.ratio is not None and row.best_peer is not None:
        title = f"test metric / best peer's ({TITLES[row.best_peer]}): {row.title}"
        yield Bar(title, row.ratio, MOST_METRIC)
        if row.best_peer == SYMMETRIC:
            yield from _of_metric(row.without(SYMMETRIC))
