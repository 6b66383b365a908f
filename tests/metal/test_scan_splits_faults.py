"""Histograms that contradict their node, and results of older searches, are errors, not models."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from metal.row_cases import random_case
from metal.split_searches import NONCE, SearchCase, kernel_library

from torchgbdt.backends.split_candidates import SearchBuffers, decide_splits, queue_search
from torchgbdt.core.arrays import AnyArray
from torchgbdt.core.errors import BackendError

BINS = (255, 3, 40)
LAST = 256 + 4  # the last feature's first cell


def decide(case: SearchCase, buffers: SearchBuffers, nonce: int = NONCE) -> None:
    decide_splits(buffers.results.numpy(), case.nodes, case.rules, nonce)


def run(case: SearchCase, spoil: Callable[[AnyArray], None]) -> SearchBuffers:
    """Search after changing the histogram of node 1, int64 (planes, total_bins)."""
    buffers = case.buffers()
    spoil(buffers.histograms.numpy()[case.nodes.slots[1]])
    unit = case.hessian_unit
    queue_search(kernel_library(), buffers, case.nodes, case.rules, unit, NONCE)
    return buffers


def move(plane: int, amount: int) -> Callable[[AnyArray], None]:
    """From one cell of a feature to another: its totals stay as they are."""

    def spoil(cells: AnyArray) -> None:
        cells[plane, LAST + 5] += amount
        cells[plane, LAST + 6] -= amount

    return spoil


def add(plane: int, cell: int) -> Callable[[AnyArray], None]:
    def spoil(cells: AnyArray) -> None:
        cells[plane, cell] += 1

    return spoil


def clear(cells: AnyArray) -> None:
    cells[:] = 0


WRONG_TOTALS = {
    **{f"plane {p}, cell {c}": add(p, c) for p in range(3) for c in (0, 255, 259, LAST, LAST + 40)},
    "nothing": clear,
}

IMPOSSIBLE = {
    "a negative count": move(0, 1000),
    "a gradient beyond 2^30 per row": move(1, 2**40),
    "a Hessian beyond 2^29 per row": move(2, 2**38),
    "a gradient near 2^63": move(1, 2**62),
}


@pytest.mark.parametrize("spoil", {**WRONG_TOTALS, **IMPOSSIBLE}.values(), ids=lambda _: "")
def test_a_histogram_that_contradicts_its_node_is_an_error(
    spoil: Callable[[AnyArray], None],
) -> None:
    case = random_case(1, 3, BINS)
    with pytest.raises(BackendError, match="the histograms of 1 nodes contradict the totals"):
        decide(case, run(case, spoil))


@pytest.mark.parametrize("plane", [0, 1])
def test_with_a_constant_hessian(plane: int) -> None:
    case = random_case(1, 3, BINS, hessian_unit=2**28)
    decide(case, run(case, lambda _: None))
    with pytest.raises(BackendError, match="contradict"):
        decide(case, run(case, add(plane, LAST)))


def test_results_of_an_older_search_are_an_error() -> None:
    case = random_case(1, 3, BINS)
    buffers = run(case, lambda _: None)
    decide(case, buffers)
    with pytest.raises(BackendError, match="results of an older search"):
        decide(case, buffers, NONCE + 1)
    buffers.results[2] = 0  # of one node
    with pytest.raises(BackendError, match="results of an older search"):
        decide(case, buffers)


def test_candidates_of_an_older_search_are_an_error() -> None:
    """scan_splits did not run, or not all of it."""
    case = random_case(1, 3, BINS)
    buffers = run(case, lambda _: None)
    buffers.summaries[1, 2] = torch.from_numpy(np.array([0, 0, 0, NONCE - 1], np.int32))
    library = kernel_library()
    lists = [word for sums in case.nodes.sums[:, 0].tolist() for s in sums for word in halves(s)]
    search = [3, len(BINS), 0, 0, 1, 0, 1, 0, NONCE]
    library.kernel("select_candidates")(
        buffers.summaries,
        buffers.candidates,
        buffers.results,
        search,
        lists,
        threads=3 * 256,
        group_size=256,
    )
    with pytest.raises(BackendError, match="the histograms of 1 nodes contradict"):
        decide(case, buffers)


def halves(value: int) -> list[int]:
    return [int(word) for word in np.array([value], "<i8").view("<i4")]
