"""Training rows that are stored anew: what moves, when, and that nobody else's data is changed."""

from dataclasses import replace

import numpy as np
import pytest
from support.runs import make_session, training_data
from support.scenarios import scenario

from torchgbdt.backends.native import NativeBackend
from torchgbdt.backends.stored_rows import Grouping, StoredRows
from torchgbdt.core.backend import RunRows
from torchgbdt.core.errors import BackendError

ALWAYS = Grouping(trees=1, min_bytes=0)


def run_rows(*, shared: bool = True) -> RunRows:
    random = np.random.default_rng(3)
    return RunRows(
        bins=random.integers(0, 9, (7, 3), np.uint8),
        labels=random.random(7, np.float32),
        weights=random.random(7, np.float32),
        margins=random.random((7, 2), np.float32),
        total_rows=7,
        start=random.random((7, 2), np.float32),
        bins_are_shared=shared,
    )


def stored(given: RunRows) -> StoredRows:
    return StoredRows(given, 2, np.full(3, 9, np.int32), 2)


@pytest.mark.parametrize("shared", [True, False])
def test_everything_that_belongs_to_a_row_moves_with_it(shared: bool) -> None:
    given = run_rows()
    rows = stored(run_rows(shared=shared))
    first = np.array([3, 0, 6, 2, 5, 1, 4], np.uint32)
    second = np.array([1, 2, 0, 6, 5, 4, 3], np.uint32)
    for order, ids in ((first, first), (second, first[second])):
        rows.group(order)
        assert np.array_equal(rows.ids, ids)
        assert np.array_equal(rows.bins, given.bins[ids])
        assert np.array_equal(rows.columns, given.bins[ids].T)
        assert np.array_equal(rows.labels, given.labels[ids])
        assert np.array_equal(rows.weights, given.weights[ids])
        assert np.array_equal(rows.margins, given.margins[ids])
        assert np.array_equal(rows.predictions, given.start[ids])


def test_both_ways_between_given_and_stored_rows() -> None:
    rows = stored(run_rows())
    values = np.arange(7.0)
    assert np.array_equal(rows.as_stored(values), values)
    rows.group(np.array([3, 0, 6, 2, 5, 1, 4], np.uint32))
    assert rows.as_stored(values).tolist() == [3, 0, 6, 2, 5, 1, 4]
    assert np.array_equal(rows.as_given(rows.as_stored(values)), values)
    assert rows.given_ids(np.array([0, 2], np.uint32)).tolist() == [3, 6]


def test_shared_bins_are_copied_before_they_move() -> None:
    given = run_rows()
    before = given.bins.copy()
    rows = stored(given)
    bytes_before = rows.n_bytes()
    rows.group(np.arange(7, dtype=np.uint32)[::-1].copy())
    assert np.array_equal(given.bins, before)
    assert rows.bin_bytes() == 3 * before.nbytes
    assert rows.n_bytes() == bytes_before + before.nbytes + 7 * 4 * (1 + 1 + 1 + 2)


def test_only_an_order_of_all_rows_is_taken() -> None:
    with pytest.raises(BackendError, match="7 rows cannot be stored by 3 row ids"):
        stored(run_rows()).group(np.arange(3, dtype=np.uint32))


@pytest.mark.parametrize(
    ("shape", "worth"),
    [((10, 10), True), ((9, 11), False), ((33, 3), False), ((50, 20), True), ((50, 21), False)],
)
def test_few_bins_and_long_rows_are_left_as_they_are(shape: tuple[int, int], worth: bool) -> None:
    grouping = Grouping(min_bytes=100, max_row_bytes=20)
    assert grouping.is_worth(np.zeros(shape, np.uint8)) is worth


class Watched(NativeBackend):
    """Notes which given rows were stored where when each tree began."""

    def __init__(self, grouping: Grouping) -> None:
        super().__init__(2, grouping)
        self.ids: list[np.ndarray | None] = []

    def sample_rows(self, tree: int) -> int:
        n_rows = super().sample_rows(tree)
        self.ids.append(self.run.rows[0].ids)
        return n_rows


def grouped_before(watched: Watched) -> list[int]:
    """Trees before which rows were grouped."""
    return [
        tree
        for tree, (before, now) in enumerate(zip([None, *watched.ids], watched.ids, strict=False))
        if now is not before
    ]


@pytest.mark.parametrize(
    ("grouping", "expected"),
    [
        (ALWAYS, [1, 2, 3, 4, 5, 6, 7]),
        (Grouping(trees=3, min_bytes=0), [1, 4, 7]),
        (Grouping(trees=1), []),  # the scenario is small
    ],
)
def test_rows_are_grouped_after_the_first_round_and_then_now_and_then(
    grouping: Grouping, expected: list[int]
) -> None:
    watched = Watched(grouping)
    case = scenario("plain")
    session = make_session(watched, replace(case, settings={**case.settings, "n_estimators": 8}))
    session.run(training_data(case))
    assert grouped_before(watched) == expected
    for ids in watched.ids:
        if ids is not None:
            assert np.array_equal(np.sort(ids), np.arange(ids.size))
            assert not np.array_equal(ids, np.arange(ids.size))
