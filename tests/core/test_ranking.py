"""Ranked rows and the area under the curve: pairs counted one by one, in fractions."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.exact import assert_identical
from support.ranks import run_ranks

from torchgbdt.core.communicator import SINGLE_RANK
from torchgbdt.core.metrics import AreaUnderCurve
from torchgbdt.core.ranking import (
    OrderedPairs,
    RankedWeights,
    count_pairs,
    merge_rankings,
    order_keys,
    rank_rows,
    weight_scale,
)

INF = float("inf")
LARGEST = float(np.finfo(np.float32).max)
SMALLEST = 2.0**-126

ASCENDING = [
    -INF, -LARGEST, -1.5, -1.0, -(1 - 2.0**-24), -2 * SMALLEST, -SMALLEST, -SMALLEST / 2,
    -(2.0**-149), 0.0, 2.0**-149, SMALLEST / 2, SMALLEST, 2 * SMALLEST, 1 - 2.0**-24, 1.0, 1.5,
    LARGEST, INF,
]  # fmt: skip

predictions = st.sampled_from([-1.0, 0.0, -0.0, 0.5, INF, -INF]) | st.floats(
    width=32, allow_nan=False
)
weights = st.integers(1, 2**20).map(float) | st.integers(1, 2**20).map(lambda w: w / 2**20)
rows = st.lists(st.tuples(predictions, st.integers(0, 1), weights), min_size=1, max_size=12)


def float32(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def rank(x: Any, y: Any, w: Any = None, n_rows: int | None = None) -> RankedWeights:
    scale = weight_scale(1.0 if w is None else max(w), len(x) if n_rows is None else n_rows)
    return rank_rows(float32(x), float32(y), None if w is None else float32(w), scale)


def area(x: Any, y: Any, w: Any = None) -> float:
    ranked = rank(x, y, w)
    assert ranked.finite
    return AreaUnderCurve().finish(count_pairs(ranked))


def counted(x: Any, y: Any, w: Any) -> float:
    """Each pair of the two classes in turn; a tie is half a pair."""
    won, pairs = Fraction(0), Fraction(0)
    for x_0, y_0, w_0 in zip(x, y, w, strict=True):
        for x_1, y_1, w_1 in zip(x, y, w, strict=True):
            if (y_0, y_1) == (0, 1):
                pair = Fraction(w_0) * Fraction(w_1)
                pairs += pair
                won += pair * (Fraction(1, 2) if x_0 == x_1 else int(x_0 < x_1))
    return float(won / pairs) if pairs else math.nan


# ----------------------------------------------------------------------------------------- area


@pytest.mark.parametrize(
    ("x", "y", "w", "expected"),
    [
        ([1, 2], [0, 1], None, 1.0),
        ([2, 1], [0, 1], None, 0.0),
        ([1, 1], [0, 1], None, 0.5),
        ([1, 2, 3, 4], [0, 1, 0, 1], None, 0.75),  # (1,2) (1,4) (3,4) of four pairs
        ([1, 2, 3, 2], [0, 0, 1, 1], None, 0.875),  # three and a tie of four
        # pairs 1*2 + 1*4 won, 3*2 lost, 3*4 won: 18 of (1 + 3) * (2 + 4)
        ([1, 2, 3, 4], [0, 1, 0, 1], [1, 2, 3, 4], 0.75),
        ([1, 2, 3, 4], [0, 1, 0, 1], [3, 1, 1, 3], 15 / 16),
        ([-INF, INF, 0, INF], [0, 1, 1, 0], None, 0.625),  # (-inf, inf) (-inf, 0), a tie of four
        ([-0.0, 0.0], [0, 1], None, 0.5),
        ([SMALLEST, -SMALLEST], [1, 0], None, 1.0),
    ],
)
def test_area_by_hand(x: Any, y: Any, w: Any, expected: float) -> None:
    assert_identical(area(x, y, w), expected)


@given(rows)
@example([(0.0, 0, 1.0), (-0.0, 1, 2.0**-20)])
@example([(1.0, 0, 2.0**20), (2.0, 1, 2.0**-20), (0.0, 1, 2.0**-20)])
def test_area_is_the_share_of_pairs_in_order(drawn: list[tuple[float, int, float]]) -> None:
    x, y, w = map(list, zip(*drawn, strict=True))
    assert_identical(area(x, y, w), counted(x, y, w))
    assert_identical(area(x, y), counted(x, y, [1] * len(x)))


@given(rows)
def test_rows_may_come_in_any_order(drawn: list[tuple[float, int, float]]) -> None:
    x, y, w = map(list, zip(*drawn, strict=True))
    assert_identical(rank(x[::-1], y[::-1], w[::-1]), rank(x, y, w))


@pytest.mark.parametrize("n_rows", [2, 7, 100])
def test_predictions_that_are_all_the_same_tell_nothing(n_rows: int) -> None:
    y = np.arange(n_rows) % 2
    assert area(np.full(n_rows, 0.3), y) == 0.5
    assert area(np.full(n_rows, 0.3), y, np.linspace(1e-6, 1e6, n_rows)) == 0.5


@pytest.mark.parametrize("y", [[0, 0, 0], [1, 1, 1], []])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_one_of_the_classes_there_is_no_area(y: list[int], weighted: bool) -> None:
    assert math.isnan(area(np.arange(len(y)), y, [0.5] * len(y) if weighted and y else None))


# ------------------------------------------------------------------------------------- weights


def test_weights_are_rounded_to_even_in_fixed_point() -> None:
    # Three rows leave 62 - 2 bits: 1.5 = 0.75 * 2^1, so s = 59. At a scale of 1 instead:
    assert weight_scale(1.5, 3) == 59
    assert weight_scale(1.0, 2**32) == 62 - 33 - 1
    found = rank_rows(float32([3, 1, 2]), float32([0, 1, 1]), float32([1.5, 1.25, 0.75]), 1)
    assert_identical(found.weights, np.array([[0, 2], [0, 2], [3, 0]]))
    assert_identical(found.keys, order_keys(float32([1, 2, 3])))


def test_no_positive_weight_rounds_to_zero() -> None:
    # 2^32 rows leave 29 bits, and 1e6 = 0.95 * 2^20: 1e-6 * 2^9 would be 0, and its class empty.
    ranked = rank([1, 2, 3], [0, 1, 0], [1e6, 1e-6, 1e6], n_rows=2**32)
    assert ranked.weights[:, 1].tolist() == [0, 1, 0]
    assert AreaUnderCurve().finish(count_pairs(ranked)) == 0.5


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_very_different_sizes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=60).round(1), rng.integers(0, 2, 60)
    w = float32(10.0 ** rng.uniform(-6, 6, 60))
    scale = weight_scale(float(w.max()), 60)
    rounded = [max(1, round(Fraction(float(one)) * Fraction(2) ** scale)) for one in w]
    assert_identical(area(x, y, w), counted(float32(x), y, rounded))


def test_rows_with_the_same_prediction_are_added_up() -> None:
    found = rank_rows(float32([5, 0, 5, -0.0, 5]), float32([0, 1, 1, 0, 0]), None, 3)
    assert_identical(found.keys, order_keys(float32([0, 5])))
    assert_identical(found.weights, np.array([[8, 8], [16, 8]]))
    assert found.finite


@given(st.lists(st.tuples(st.integers(0, 2**59), st.integers(0, 2**59)), min_size=1, max_size=7))
@example([(2**61, 0), (0, 2**61)])
@example([(2**60, 2**60), (2**60 - 1, 2**60 - 1)])
@example([(0xFFFF, 0x10000), (0xFFFFFFFF, 0x100000000)])
def test_products_beyond_int64_are_exact(distinct: list[tuple[int, int]]) -> None:
    # Up to 2^61 * 2^61 = 2^122: as weights of many rows with few distinct predictions.
    first, second = zip(*distinct, strict=True)
    pairs = sum(first) * sum(second)
    twice = sum(b * (2 * sum(first[:index]) + first[index]) for index, b in enumerate(second))
    ranked = RankedWeights(np.arange(len(distinct)), np.array(distinct, np.int64), finite=True)
    assert_identical(count_pairs(ranked), OrderedPairs(twice, pairs, finite=True))


def test_many_rows_of_the_largest_weight_do_not_overflow() -> None:
    # 100,000 rows leave 62 - 17 bits; their weights sum to 0.76 * 2^62.
    n_rows = 100_000
    ranked = rank(np.arange(n_rows), np.arange(n_rows) % 2, np.full(n_rows, LARGEST))
    sums = ranked.weights.sum(axis=0)
    assert sums.tolist() == [n_rows // 2 * int(ranked.weights.max())] * 2
    # Row 2k + 1 lies above k + 1 of the 50,000 rows of the first class.
    half = n_rows // 2
    assert AreaUnderCurve().finish(count_pairs(ranked)) == (half + 1) / (2 * half)


# ---------------------------------------------------------------------------------------- keys


def test_keys_are_in_the_order_of_the_numbers() -> None:
    keys = order_keys(float32(ASCENDING))
    assert keys.dtype == np.int32
    assert (np.diff(keys.astype(np.int64)) > 0).all()


@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False))
def test_keys_compare_as_the_numbers_do(a: float, b: float) -> None:
    first, second = order_keys(float32([a, b])).tolist()
    assert (first < second, first == second) == (a < b, a == b)


def test_zeros_of_either_sign_have_one_key() -> None:
    assert order_keys(float32([0.0, -0.0])).tolist() == [0, 0]


def test_no_values_have_no_keys() -> None:
    assert_identical(order_keys(float32([])), np.zeros(0, np.int32))


# ------------------------------------------------------------------------------------------ NaN


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_prediction_that_is_no_number_leaves_no_ranking(position: int) -> None:
    x = [1.0, 2.0, 3.0]
    x[position] = math.nan
    empty = RankedWeights(np.zeros(0, np.int32), np.zeros((0, 2), np.int64), finite=False)
    assert_identical(rank(x, [0, 1, 1]), empty)
    assert_identical(merge_rankings(rank(x, [0, 1, 1]), SINGLE_RANK), empty)


@pytest.mark.parametrize("bad_rank", [0, 1, 2])
def test_a_prediction_that_is_no_number_on_one_rank_is_known_on_all(bad_rank: int) -> None:
    x = [[1.0], [2.0, 3.0], [4.0]]
    x[bad_rank][0] = math.nan
    found = run_ranks(3, lambda c: merge_rankings(rank(x[c.rank], np.ones(len(x[c.rank]))), c))
    assert [one.finite for one in found] == [False] * 3


# ---------------------------------------------------------------------------------------- ranks


@pytest.mark.parametrize("borders", [(0, 20, 40), (0, 0, 40), (0, 1, 1, 39, 40), (0, 40, 40)])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_ranking_of_ranks_is_that_of_all_rows(borders: tuple[int, ...], weighted: bool) -> None:
    rng = np.random.default_rng(4)
    x, y = float32(rng.normal(size=40).round(1)), float32(rng.integers(0, 2, 40))
    w = float32(10.0 ** rng.uniform(-6, 6, 40)) if weighted else None
    scale = weight_scale(1.0 if w is None else float(w.max()), 40)
    expected = rank_rows(x, y, w, scale)

    def work(communicator: Any) -> RankedWeights:
        own = slice(*borders[communicator.rank : communicator.rank + 2])
        part = rank_rows(x[own], y[own], None if w is None else w[own], scale)
        return merge_rankings(part, communicator)

    for found in run_ranks(len(borders) - 1, work):
        assert_identical(found, expected)


def test_a_single_rank_keeps_its_ranking() -> None:
    own = rank([1, 2], [0, 1])
    assert merge_rankings(own, SINGLE_RANK) is own
