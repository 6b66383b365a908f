"""How a slab's rows are cut into chunks."""

import numpy as np
import pytest

from torchgbdt.backends.row_chunks import (
    MAX_SLAB_NODES,
    HistogramVariant,
    choose_rows_per_chunk,
    cut_rows,
)


def test_each_node_has_chunks_of_its_own_and_at_least_one() -> None:
    chunks = cut_rows(np.array([0, 30, 30, 50]), np.array([25, 0, 20, 1]), 10)
    assert chunks.counts.tolist() == [3, 1, 2, 1]
    assert chunks.first.tolist() == [0, 3, 4, 6]
    assert chunks.nodes == [0, 25, 0, 30, 0, 3, 30, 20, 4, 50, 1, 6]
    assert (chunks.n_nodes, chunks.n_chunks) == (4, 7)
    targets = chunks.targets(np.array([5, 6, 7, 8], np.int32), np.array([1, -1, 2, -1], np.int32))
    assert targets == [0, 3, 5, 1, 3, 1, 6, -1, 4, 2, 7, 2, 6, 1, 8, -1]


@pytest.mark.parametrize("n_nodes", [0, MAX_SLAB_NODES + 1])
def test_a_slab_has_a_limited_number_of_nodes(n_nodes: int) -> None:
    rows = np.zeros(n_nodes, np.int64)
    with pytest.raises(ValueError, match="a slab has"):
        cut_rows(rows, rows, 10)


def test_chunks_are_as_many_as_keep_the_device_busy_but_not_too_short() -> None:
    million = np.array([600_000, 400_000])
    assert choose_rows_per_chunk(million, 4, 400, 4096) == 10_000
    assert choose_rows_per_chunk(million, 4, 4_000, 4096) == 4096
    assert choose_rows_per_chunk(million, 500, 400, 4096) == 1_000_000
    assert choose_rows_per_chunk(np.array([0]), 4, 400, 4096) == 4096


def test_partial_histograms_of_a_chunk() -> None:
    assert HistogramVariant(constant_hessian=True).chunk_words(9, 2) == 2 * 16 * 256 * 3
    assert HistogramVariant(constant_hessian=False).chunk_words(9, 1) == 12 * 256 * 5
