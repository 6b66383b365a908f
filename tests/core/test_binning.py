"""Thresholds and codes: one bin per value where few; the cutting of values into bins."""

import math

import numpy as np
import pytest
from core.fitting import fit
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.exact import assert_identical

from torchgbdt.core import binning
from torchgbdt.core.binning import BinThresholds, bin_column
from torchgbdt.core.columns import distinct_values
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.quantiles import midpoints

INF = np.inf
TINY = 5e-324
LARGEST = float(np.finfo(np.float64).max)

not_nan = st.floats(allow_nan=False)


def codes(X: np.ndarray, thresholds: BinThresholds) -> list[int]:
    return bin_column(np.asarray(X, np.float64), thresholds, 0).tolist()


# ------------------------------------------------------------------------------------- midpoints


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (1.0, 2.0, 1.5),
        (-3.0, 1.0, -1.0),
        (0.0, TINY, 0.0),  # 0 + 2.5e-324, which is 0
        (-TINY, 0.0, -TINY),  # the midpoint is -0, and -0 < 0 is false: a
        (-TINY, TINY, 0.0),
        (TINY, 2 * TINY, TINY),  # 0 + 1 units
        (TINY, 3 * TINY, 2 * TINY),  # 1.5 units round to 2
        (1.0, math.nextafter(1, 2), 1.0),  # neighbours: a/2 + b/2 rounds to even, here a
        (
            math.nextafter(1, 2),
            math.nextafter(math.nextafter(1, 2), 2),
            math.nextafter(1, 2),
        ),  # to b: a
        (-LARGEST, LARGEST, 0.0),
        (math.nextafter(LARGEST, 0), LARGEST, math.nextafter(LARGEST, 0)),
        (5.0, INF, 5.0),
        (LARGEST, INF, LARGEST),
        (-INF, 5.0, -INF),
        (-INF, -LARGEST, -INF),
        (-INF, INF, -INF),
    ],
)
def test_midpoint_by_hand(lower: float, upper: float, expected: float) -> None:
    (found,) = midpoints(np.array([lower]), np.array([upper])).tolist()
    assert found == expected


@given(not_nan, not_nan)
@example(1.0, float(math.nextafter(1, 2)))
def test_midpoint_lies_at_or_above_the_lower_value_and_below_the_upper(a: float, b: float) -> None:
    assume(a != b)
    lower, upper = min(a, b), max(a, b)
    (found,) = midpoints(np.array([lower]), np.array([upper])).tolist()
    assert lower <= found < upper


@given(st.floats(-LARGEST, 0), st.floats(0, LARGEST))
def test_midpoint_is_the_mean_of_halves_where_that_fits(lower: float, upper: float) -> None:
    middle = lower / 2 + upper / 2
    assume(lower <= middle < upper)
    assert midpoints(np.array([lower]), np.array([upper])).tolist() == [middle]


# ------------------------------------------------------------------------------- one bin per value


@given(st.lists(not_nan, min_size=1, max_size=30, unique=True))
@example([-0.0, 1.0])
@example([-INF, INF, 0.0, TINY, -TINY])
@example([1.0, float(math.nextafter(1, 2)), float(math.nextafter(1, 0))])
def test_few_distinct_values_have_a_bin_each(values: list[float]) -> None:
    column = np.array(values * 2)
    thresholds = fit(column)
    distinct = np.unique(column + 0.0)
    assert thresholds.n_value_bins.tolist() == [distinct.size]
    assert codes(column, thresholds) == np.searchsorted(distinct, column + 0.0).tolist()


@pytest.mark.parametrize(
    ("column", "expected", "n_value_bins"),
    [
        ([3.0, 1.0, 1.0, 2.0], [1.5, 2.5], 3),
        ([-INF, 0.0, INF], [-INF, 0.0], 3),
        ([-INF, INF], [-INF], 2),
        ([1.0, INF], [1.0], 2),
        ([-0.0, 0.0, 1.0], [0.5], 2),  # -0 equals +0
        ([-0.0, 0.0], [], 1),
        ([4.0, 4.0, np.nan], [], 1),  # constant, with a missing value
        ([np.nan, np.nan], [], 0),  # all missing
        ([7.0], [], 1),
    ],
)
def test_thresholds_of_small_columns(
    column: list[float], expected: list[float], n_value_bins: int
) -> None:
    thresholds = fit(np.array(column))
    assert thresholds.of_feature(0).tolist() == expected
    assert thresholds.n_value_bins.tolist() == [n_value_bins]


def test_a_threshold_of_zero_is_plus_zero() -> None:
    assert_identical(fit(np.array([-0.0, INF])).values, np.array([0.0]))


@pytest.mark.parametrize("max_bins", [3, 4, 17, 256])
def test_as_many_distinct_values_as_value_bins_still_have_a_bin_each(max_bins: int) -> None:
    column = np.repeat(np.arange(max_bins - 1.0), 3)
    thresholds = fit(column, max_bins)
    np.testing.assert_array_equal(thresholds.of_feature(0), np.arange(max_bins - 2) + 0.5)
    assert codes(column, thresholds) == column.tolist()


@pytest.mark.parametrize("max_bins", [3, 4, 17, 256])
def test_one_distinct_value_more_is_cut_into_quantiles(max_bins: int) -> None:
    thresholds = fit(np.arange(float(max_bins)), max_bins)
    assert 2 <= thresholds.n_value_bins[0] <= max_bins - 1
    assert thresholds.of_feature(0).size == thresholds.n_value_bins[0] - 1


def test_a_rare_value_in_the_last_row_of_many_has_a_bin(monkeypatch: pytest.MonkeyPatch) -> None:
    # The sample of ten rows misses it; whether there are few values is a matter of the column.
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 10)
    column = np.zeros(150_000)
    column[-1] = 7.0
    assert fit(column).of_feature(0).tolist() == [3.5]


def test_one_value_too_many_in_the_last_row_of_many_is_seen() -> None:
    column = np.zeros(150_000)
    column[-1] = 7.0
    column[0] = -5.0
    # Three values, two bins, one of which the 149,998 zeros fill. -5 is half of what is light and
    # gets the other one; 7 joins the zeros.
    assert fit(column, max_bins=3).of_feature(0).tolist() == [-2.5]


@given(st.lists(st.floats(), max_size=40), st.integers(1, 40))
@example([-0.0, 1.0], 40)
@example([0.0, -0.0, np.nan], 1)
def test_distinct_values_are_those_of_the_column_or_none(values: list[float], limit: int) -> None:
    column = np.array(values, np.float64)
    expected = sorted({value + 0.0 for value in values if value == value})
    (found,) = distinct_values(HostMatrix(column[:, None]), None, range(1), limit)
    if len(expected) > limit:
        assert found is None
    else:
        assert found is not None
        assert_identical(found, np.array(expected, np.float64))


def test_reading_stops_as_soon_as_there_are_too_many_distinct_values() -> None:
    class Counting(HostMatrix):
        rows_read = 0

        def column(self, feature: int, start: int, stop: int) -> np.ndarray:
            Counting.rows_read += stop - start
            return super().column(feature, start, stop)

    source = Counting(np.arange(100_000.0)[:, None])
    assert distinct_values(source, None, range(1), 255) == [None]
    assert Counting.rows_read < 10_000


# ---------------------------------------------------------------------------------------- codes


@given(
    st.lists(not_nan.filter(lambda t: t < INF), min_size=1, max_size=20, unique_by=lambda t: t),
    st.lists(st.floats(), max_size=20),
)
def test_code_is_the_bin_whose_thresholds_enclose_the_value(
    cuts: list[float], others: list[float]
) -> None:
    cuts = sorted(cuts)
    thresholds = BinThresholds.from_features([(np.array(cuts), len(cuts) + 1)])
    beside = [math.nextafter(cut, side) for cut in cuts for side in (INF, -INF)]
    values = [*others, *cuts, *beside, INF, -INF]
    bounds = [None, *cuts, None]
    for x, code in zip(values, codes(np.array(values), thresholds), strict=True):
        if x != x:
            assert code == len(cuts) + 1
            continue
        lower, upper = bounds[code], bounds[code + 1]
        assert lower is None or lower < x
        assert upper is None or x <= upper


def test_codes_are_bytes_up_to_255() -> None:
    thresholds = fit(np.arange(255.0))
    found = bin_column(np.array([0.0, 254.0, np.nan]), thresholds, 0)
    assert found.dtype == np.uint8
    assert found.tolist() == [0, 254, 255]


def test_a_feature_that_was_all_missing_has_one_code() -> None:
    thresholds = fit(np.array([np.nan, np.nan]))
    assert codes(np.array([np.nan, 3.0, INF]), thresholds) == [0, 0, 0]


# --------------------------------------------------------------------------------- BinThresholds


def test_features_lie_one_after_another() -> None:
    X = np.array([[0, np.nan, 5, 1], [1, np.nan, 5, np.nan], [2, np.nan, 5, 3]])
    thresholds = fit(X)
    assert thresholds.n_features == 4
    assert thresholds.values.tolist() == [0.5, 1.5, 2.0]
    assert thresholds.offsets.tolist() == [0, 2, 2, 2, 3]
    assert thresholds.n_value_bins.tolist() == [3, 0, 1, 2]
    assert thresholds.bin_offsets.tolist() == [0, 4, 5, 7, 10]  # value bins and a missing bin each
    assert thresholds.total_bins == 10
    assert [thresholds.of_feature(f).tolist() for f in range(4)] == [[0.5, 1.5], [], [], [2.0]]


def test_dtypes_of_thresholds() -> None:
    thresholds = fit(np.zeros((2, 1), np.float32))
    dtypes = (np.float64, np.int64, np.int32, np.int64)
    arrays = (thresholds.values, thresholds.offsets, thresholds.n_value_bins)
    assert [a.dtype for a in (*arrays, thresholds.bin_offsets)] == list(dtypes)


def test_upper_bound_of_the_last_value_bin_is_infinite() -> None:
    thresholds = fit(np.array([1.0, 2.0, 4.0]))
    assert [thresholds.upper_bound(0, b) for b in range(3)] == [1.5, 3.0, INF]


@pytest.mark.parametrize("n_features", [1, 8, 9, 17])
def test_every_feature_is_fitted_on_its_own(n_features: int) -> None:
    # Blocks of eight columns; columns with few and with many values take turns.
    X = np.random.default_rng(1).normal(size=(50, n_features))
    X[:, ::2] = np.round(X[:, ::2])
    joined = fit(X, 12)
    for feature in range(n_features):
        alone = fit(X[:, feature], 12)
        assert_identical(joined.of_feature(feature), alone.values)
        assert joined.n_value_bins[feature] == alone.n_value_bins[0]
