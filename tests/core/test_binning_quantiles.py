"""Quantile cuts: at most n_bins bins of like weight, in integers, for rows in any order."""

import numpy as np
import pytest
from core.fitting import fit
from hypothesis import example, given
from hypothesis import strategies as st
from support.exact import assert_identical

from torchgbdt.core.quantiles import quantile_cuts


@pytest.mark.parametrize(
    ("weights", "n_bins", "expected"),
    [
        ([1, 1, 1, 1, 1, 1], 3, [1, 3]),  # 6/3 = 2 each
        ([1, 1, 1, 1, 1, 1, 1], 3, [2, 4]),  # ceil(7/3) = 3, then ceil(4/2) = 2
        ([1, 1, 1], 3, [0, 1]),  # few: after each
        ([1, 1, 10], 3, [0, 1]),
        ([5, 1], 7, [0]),
        ([9], 2, []),
        ([], 2, []),
        ([1, 2, 3, 4], 2, [2]),  # half of 10 is 5; 1 + 2 < 5 <= 1 + 2 + 3
        # heavy first: 10 of 15 fill the first bin; the others share 5: ceil(5/2) = 3
        ([10, 1, 1, 1, 1, 1], 3, [0, 3]),
        ([2**29] * 6, 3, [1, 3]),
        ([1, 1, 1, 1], 2, [1]),
    ],
)
def test_quantile_cuts_by_hand(weights: list[int], n_bins: int, expected: list[int]) -> None:
    cuts = quantile_cuts(np.array(weights, np.int64), n_bins)
    assert cuts.dtype == np.int64
    assert cuts.tolist() == expected


def weight_of_bins(weights: list[int], n_bins: int) -> list[list[int]]:
    """The values' weights, bin by bin."""
    cuts = quantile_cuts(np.array(weights, np.int64), n_bins)
    return [part.tolist() for part in np.split(np.array(weights), cuts + 1)]


weight_lists = st.lists(st.integers(1, 2**29), min_size=1, max_size=60)
small_weight_lists = st.lists(st.integers(1, 20), min_size=1, max_size=60)


@given(weight_lists | small_weight_lists, st.integers(2, 20))
@example([1, 1, 1, 1, 10], 3)
def test_quantiles_make_at_most_n_bins_none_of_them_empty(weights: list[int], n_bins: int) -> None:
    bins = weight_of_bins(weights, n_bins)
    assert 1 <= len(bins) <= n_bins
    assert all(bins)


@given(small_weight_lists, st.integers(2, 20))
def test_without_heavy_values_no_bin_exceeds_its_share_by_a_whole_value(
    weights: list[int], n_bins: int
) -> None:
    share = -(-sum(weights) // n_bins)
    if max(weights) * n_bins >= sum(weights):
        return
    for one in weight_of_bins(weights, n_bins):
        assert sum(one) < share + max(one)


@given(weight_lists | small_weight_lists, st.integers(2, 20))
@example([40, *[80, 40] * 8, 80, *[1] * 300], 20)
def test_a_bin_holds_a_few_shares_beside_its_heaviest_value(
    weights: list[int], n_bins: int
) -> None:
    # A run between heavy values gets a bin of its own from half a share on, so what is left for
    # the last bins can grow: with ten runs to 10 * (1 - 1/20) * (1 - 1/18) ... (1 - 1/4) = 3.5.
    share = -(-sum(weights) // n_bins)
    for one in weight_of_bins(weights, n_bins):
        assert sum(one) - max(one) < 4 * share


@given(st.integers(2, 400), st.integers(2, 255))
def test_values_of_equal_weight_fill_all_bins_evenly(n_values: int, n_bins: int) -> None:
    sizes = [len(one) for one in weight_of_bins([3] * n_values, n_bins)]
    assert len(sizes) == min(n_values, n_bins)
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    "position",
    [0, 6, 12],
    ids=["first", "middle", "last"],
)
def test_a_heavy_value_fills_one_bin_and_leaves_the_others_to_the_rest(position: int) -> None:
    weights = [1] * 13
    weights[position] = 1000
    bins = weight_of_bins(weights, 5)
    assert [1000] in bins
    assert len(bins) >= 4


def test_a_feature_with_many_values_is_cut_by_hand() -> None:
    # Values 0..9 into 3 value bins: ceil(10/3) = 4 values, then 3, then 3.
    thresholds = fit(np.arange(10.0)[::-1], max_bins=4)
    assert thresholds.of_feature(0).tolist() == [3.5, 6.5]


def test_weights_move_the_cuts() -> None:
    # Weights 3,1,1,1,1,1 of 8 into 2 value bins: half is 4 = 3 + 1.
    weights = np.array([3, 1, 1, 1, 1, 1], np.float32)
    assert fit(np.arange(6.0), 3, weights).of_feature(0).tolist() == [1.5]
    assert fit(np.arange(6.0), 3).of_feature(0).tolist() == [2.5]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.floats(0.5, 1000, width=32)), min_size=10),
    st.integers(-80, 80),
)
def test_weights_scaled_by_a_power_of_two_give_the_same_cuts(
    rows: list[tuple[int, float]], power: int
) -> None:
    column = np.array([x for x, _ in rows], np.float64)
    weights = np.array([w for _, w in rows], np.float32)
    assert_identical(fit(column, 5, np.ldexp(weights, power)), fit(column, 5, weights))


@given(st.lists(st.integers(-9, 9), min_size=10, max_size=60))
def test_order_of_rows_does_not_change_quantiles(values: list[int]) -> None:
    column = np.array(values, np.float64)
    assert_identical(fit(np.sort(column), 5), fit(column, 5))


def test_float32_and_integer_columns_bin_like_their_float64_copies() -> None:
    rng = np.random.default_rng(0)
    for X in (rng.normal(size=(700, 3)).astype(np.float32), rng.integers(0, 900, (700, 2))):
        assert_identical(fit(X, 60), fit(X.astype(np.float64), 60))


def test_missing_values_take_no_part_in_quantiles() -> None:
    column = np.arange(20.0)
    with_missing = np.full(60, np.nan)
    with_missing[::3] = column
    assert_identical(fit(with_missing, 6), fit(column, 6))


@pytest.mark.parametrize("position", [0, 150, 300])
def test_one_heavy_value_among_many_costs_one_bin(position: int) -> None:
    weights = [1] * 300
    weights.insert(position, 100_000)
    assert len(weight_of_bins(weights, 255)) == 255
    assert [100_000] in weight_of_bins(weights, 255)


def test_several_heavy_values_by_hand() -> None:
    # 37 in 5 bins: 12 and 20 weigh more than a fair share, so three bins are left for what is
    # light, 5: ceil(5/3) = 2 and then, of 3 left in two bins, ceil(3/2) = 2 and the last one.
    assert weight_of_bins([1, 1, 12, 1, 1, 20, 1], 5) == [[1, 1], [12], [1, 1], [20], [1]]


def test_light_values_of_less_than_half_a_share_join_the_heavy_one_behind_them() -> None:
    # 8 light in two bins: a share is 4. One before 90 is less than half of it, two are not.
    assert weight_of_bins([1, 90, *[1] * 7], 3) == [[1, 90], [1] * 4, [1] * 3]
    assert weight_of_bins([1, 1, 90, *[1] * 6], 3) == [[1, 1], [90], [1] * 6]


@pytest.mark.parametrize(
    ("n_bins", "expected"),
    [
        # 4 of 12 is a fair share of 3 bins exactly, so it is heavy and 8 are left for two bins.
        (3, [[1, 1], [4], [1] * 6]),
        # 10 light in two bins: 2 are less than half of 5, and 8 are left.
        (3, [[1, 1, 90], [1] * 4, [1] * 4]),
        # 9 light in three bins: 2 are more than half of 3, and 7 in two bins are left.
        (4, [[1, 1], [90], [1] * 4, [1] * 3]),
        # 4 light in one bin, which half of them take: the others join the next heavy value.
        (4, [[1, 1], [90], [1, 1, 90], [90]]),
    ],
)
def test_shares_around_heavy_values_by_hand(n_bins: int, expected: list[list[int]]) -> None:
    assert weight_of_bins([weight for one in expected for weight in one], n_bins) == expected


@given(weight_lists | small_weight_lists, st.integers(2, 20))
def test_a_column_and_its_mirror_image_get_about_as_many_bins(
    weights: list[int], n_bins: int
) -> None:
    forth, back = (len(weight_of_bins(w, n_bins)) for w in (weights, weights[::-1]))
    assert abs(forth - back) <= 1 + n_bins // 3
