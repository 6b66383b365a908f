"""Several ranks in one process: a thread each, and shards cut at given borders."""

import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from support.runs import Outcome, Scenario, train

from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.communicator import Communicator, InProcessRanks

T = TypeVar("T")

SECONDS_UNTIL_STUCK = 100
"""Below pytest's timeout; a rank that waits for another one for ever shall fail, not hang."""


def run_ranks(size: int, work: Callable[[Communicator], T]) -> list[T]:
    """``work`` of every rank, in rank order. If one raises, the others are woken and it is raised.

    Of several errors the first one counts: those of the other ranks only report it.
    """
    group = InProcessRanks(size)
    results: list[T | None] = [None] * size
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = work(group.rank(rank))
        except BaseException as error:
            errors.append(error)
            group.abort()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS_UNTIL_STUCK)
        assert not thread.is_alive(), "the ranks wait for each other"
    if errors:
        raise errors[0]
    return results  # type: ignore[return-value]


def shards(scenario: Scenario, borders: Sequence[int]) -> list[Scenario]:
    """The scenario cut at these rows, 0 and n_rows included; validation rows in proportion."""
    n_rows = scenario.train.n_rows
    assert borders[0] == 0 and borders[-1] == n_rows
    return [
        Scenario(
            scenario.train[first:end],
            scenario.settings,
            [
                valid[first * valid.n_rows // n_rows : end * valid.n_rows // n_rows]
                for valid in scenario.valids
            ],
            scenario.init_model,
        )
        for first, end in pairwise(borders)
    ]


def train_in_ranks(
    make_backend: Callable[[], ComputeBackend], scenario: Scenario, borders: Sequence[int]
) -> list[Outcome]:
    """One training run whose rows lie on several ranks; the outcome on each of them."""
    parts = shards(scenario, borders)
    return run_ranks(
        len(parts),
        lambda communicator: train(
            make_backend(), parts[communicator.rank], communicator=communicator
        ),
    )
