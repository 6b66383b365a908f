"""Which runs make up the table, in which order: contenders take turns within a row.

A B C D E, B A E D C, C D E A B, ...: when the machine slows down for a minute, it does so for all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contenders import OURS
from workloads import BUSY, FULL, MANY_ROWS

_BESIDES = {"W1": "; then prediction, and ours on one thread and on 4M rows"}
ROWS = {
    **{name: workload.title + _BESIDES.get(name, "") for name, workload in FULL.items()},
    "bin": "binning alone, with the rows of W1",
    "busy": f"{BUSY.title}, alone and beside processes that never rest",
}
"""What can be asked for, and what it is."""


@dataclass(frozen=True)
class Run:
    """One process to start."""

    contender: str
    workload: str
    task: str
    threads: int
    busy: bool = False

    def __str__(self) -> str:
        extras = [f"{self.threads} thread{'s' if self.threads > 1 else ''}"]
        extras += ["busy machine"] if self.busy else []
        extras += [self.task] if self.task == "bin" else []
        return f"{self.workload} {self.contender} ({', '.join(extras)})"


def make_plan(
    rows: Sequence[str], contenders: Sequence[str], threads: int, repeats: int
) -> Iterator[Run]:
    """All runs, in order."""
    for row in rows:
        for repeat in range(repeats):
            start = repeat % max(1, len(contenders))
            turn = [*contenders[start:], *contenders[:start]]
            if repeat % 2:
                turn[1:] = turn[:0:-1]
            # nobody is always first, or always after the same one
            yield from _turn(row, turn, threads)


def _turn(row: str, contenders: Sequence[str], threads: int) -> Iterator[Run]:
    """Each run of a row once."""
    if row == "bin":
        for name in contenders:
            yield Run(name, "W1", "bin", threads)
    elif row == "busy":
        for name in contenders:
            yield Run(name, BUSY.name, "train", threads)
            yield Run(name, BUSY.name, "train", threads, busy=True)
    else:
        for name in contenders:
            yield Run(name, row, "predict" if row == "W1" else "train", threads)
        if row == "W1" and OURS in contenders:
            if threads > 1:
                yield Run(OURS, "W1", "train", 1)
            yield Run(OURS, MANY_ROWS.name, "train", threads)
