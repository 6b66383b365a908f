"""The best split of a node, against a scalar search and against hand-made ties and borders."""

import math
from typing import Any

import numpy as np
import pytest
from core.split_cases import Case, Row, one_feature
from hypothesis import given, settings
from hypothesis import strategies as st
from support.exact import assert_identical
from support.naive_splits import best_split

from torchgbdt.core.splits import SPLIT_DTYPE

# ------------------------------------------------------------------------ against a scalar search


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Few rows, few bins and few distinct gradients: ties, empty bins and proportional sums."""
    n_outputs = draw(st.sampled_from([1, 1, 3]))
    n_value_bins = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=3)))
    codes = st.tuples(*(st.integers(0, n) for n in n_value_bins))
    large = draw(st.booleans())
    gradient = st.integers(-(2**30), 2**30) if large else st.integers(-2, 2)
    hessian = st.integers(0, 2**29) if large else st.integers(0, 2)
    row = st.tuples(codes, st.tuples(*[gradient] * n_outputs), st.tuples(*[hessian] * n_outputs))
    return Case(
        n_value_bins,
        draw(st.lists(st.lists(row, min_size=1, max_size=12), min_size=1, max_size=3)),
        draw(st.sampled_from([0.0, 0.1, 1.0, 1e6])),
        draw(st.sampled_from([0.0, 1e-3, 0.5])),
        draw(st.integers(1, 3)),
        tuple(draw(st.lists(st.integers(1, 3), min_size=n_outputs, max_size=n_outputs))),
        tuple((draw(st.integers(-40, 120)), draw(st.integers(-40, 120))) for _ in range(n_outputs))
        if large
        else ((0, 0),) * n_outputs,
    )


@settings(max_examples=200)
@given(cases())
def test_search_finds_what_a_scalar_search_finds(case: Case) -> None:
    records, left_sums = case.search()
    assert records.dtype == SPLIT_DTYPE
    for node in range(len(case.nodes)):
        best = best_split(case.cells(node), len(case.nodes[node]), case.sums(node), case.rules)
        expected = np.zeros((), SPLIT_DTYPE)
        sums = np.zeros_like(left_sums[node])
        if best is not None:
            for name, value in best[0].items():
                expected[name] = value
            sums[:] = best[1]
        assert_identical(records[node : node + 1], expected.reshape(1))
        assert_identical(left_sums[node], sums)


# ----------------------------------------------------------------------------------- by hand


def found(case: Case) -> dict[str, Any]:
    """The record of the first node."""
    record = case.search()[0][0]
    return {name: record[name].item() for name in SPLIT_DTYPE.names}


def choice(case: Case) -> tuple[int, int, bool] | None:
    """Feature, bin and side of the missing rows, or None."""
    record = found(case)
    return (
        (record["feature"], record["split_bin"], record["missing_left"])
        if record["found"]
        else None
    )


def test_a_split_by_hand() -> None:
    # g = 1 1 | -1 -1: scores 2^2/2 = 2 on both sides, 0 in the parent; gain (2 + 2 - 0) / 2 = 2.
    records, left_sums = one_feature([[1, 1], [-1, -1]]).search()
    record = {name: records[name][0].item() for name in SPLIT_DTYPE.names}
    assert record == {
        "gain": 2.0,
        "left_count": 2,
        "right_count": 2,
        "feature": 0,
        "split_bin": 0,
        "found": True,
        "missing_left": False,
    }
    assert left_sums.tolist() == [[[2, 2]]]


def test_scales_and_lambda_by_hand() -> None:
    # Gradient units 1/4, Hessian units 1/2: g = 1/4 | -1/4, h = 1/2 each; lambda = 1/2.
    # (1/16) / 1 on both sides: gain (1/16 + 1/16) / 2 = 1/16.
    case = one_feature([[1], [-1]], reg_lambda=0.5, scales=((2, 1),))
    assert found(case)["gain"] == 1 / 16


def test_where_nothing_is_found_the_record_is_all_zero() -> None:
    records, left_sums = one_feature([[1, 1]]).search()
    assert_identical(records, np.zeros(1, SPLIT_DTYPE))
    assert_identical(left_sums, np.zeros((1, 1, 2), np.int64))


def test_nodes_are_searched_independently() -> None:
    def rows(first: int, second: int) -> list[Row]:
        return [((0, 0), (first,), (1,)), ((1, 0), (second,), (1,)), ((1, 1), (0,), (1,))]

    nodes = [rows(1, -1), rows(0, 0), rows(-3, 2)]
    together, sums = Case((2, 2), nodes).search()
    for index, one in enumerate(nodes):
        alone, alone_sums = Case((2, 2), [one]).search()
        assert_identical(together[index : index + 1], alone)
        assert_identical(sums[index : index + 1], alone_sums)


# ---------------------------------------------------------------------------------------- ties


def test_of_equal_gains_the_smaller_feature_wins() -> None:
    # Feature 0 separates the gradients at its last threshold, features 1 and 2 at their first.
    rows: list[Row] = [((2, 0, 1), (1,), (1,)), ((3, 1, 0), (-1,), (1,))]
    assert choice(Case((4, 2, 2), [rows])) == (0, 2, False)


def test_of_equal_gains_of_a_feature_the_smaller_bin_wins() -> None:
    # 1 | -2 1 and 1 -2 | 1: scores 1 + 1/2 and 1/2 + 1.
    assert choice(one_feature([[1], [-2], [1]])) == (0, 0, False)


def test_empty_bins_tie_and_the_first_of_them_wins() -> None:
    assert choice(one_feature([[], [1], [], [], [-1], []])) == (0, 1, False)


def test_of_equal_gains_of_a_bin_missing_right_wins() -> None:
    # Missing 0 right: 1^2/1 + 1^2/2; left: 1^2/2 + 1^2/1.
    assert choice(one_feature([[1], [-1]], missing=[0])) == (0, 0, False)


def test_a_smaller_bin_wins_before_missing_right_does() -> None:
    # Two rows a side: {0, missing | 1, 2} and {0, 1 | 2, missing}; 1 and missing are alike.
    case = one_feature([[2], [2], [-3]], missing=[2], min_samples_leaf=2)
    assert choice(case) == (0, 0, True)


def test_a_gain_larger_by_one_unit_in_the_last_place_wins() -> None:
    # Parent 2/4, lambda 0. Feature 0: -5/1 | 7/3, feature 1: 6/1 | -4/3. Both gain 121/6; in
    # float64, 0.5 * ((25 + 49/3) - 1) is one unit less than 0.5 * ((36 + 16/3) - 1).
    rows: list[Row] = [((0, 1), (-5,), (1,)), ((1, 0), (6,), (1,)), ((1, 1), (1,), (2,))]
    record = found(Case((2, 2), [rows]))
    assert record["gain"] == 0.5 * ((36 + 16 / 3) - 1)
    assert math.nextafter(record["gain"], 0.0) == 0.5 * ((25 + 49 / 3) - 1)
    assert record["feature"] == 1


# ------------------------------------------------------------------------------- missing values


def test_missing_rows_go_where_the_gain_is_larger() -> None:
    # With the missing row left 4^2/2 + 2^2 = 12, right 2^2 + 0 = 4; and the other way round.
    assert choice(one_feature([[2], [-2]], missing=[2])) == (0, 0, True)
    assert choice(one_feature([[2], [-2]], missing=[-2])) == (0, 0, False)


def test_values_can_be_split_from_missing_ones_at_the_last_bin() -> None:
    # One value bin: the threshold is +inf, missing rows go right.
    assert choice(one_feature([[1, 1]], missing=[-1])) == (0, 0, False)


def test_without_missing_rows_the_last_bin_is_no_candidate() -> None:
    assert choice(one_feature([[1, -1]])) is None


@pytest.mark.parametrize(
    ("bins", "missing_left"),
    [([[1], [-1, -1]], False), ([[1, 1], [-1]], True), ([[1], [-1]], False)],
    ids=["right is larger", "left is larger", "tie"],
)
def test_without_missing_rows_missing_ones_would_go_to_the_larger_side(
    bins: list[list[int]], missing_left: bool
) -> None:
    assert choice(one_feature(bins)) == (0, 0, missing_left)


def test_a_feature_without_value_bins_is_never_split() -> None:
    rows: list[Row] = [((0, 0), (1,), (1,)), ((0, 1), (-1,), (1,))]
    assert choice(Case((0, 2), [rows])) == (1, 0, False)
    assert choice(Case((0,), [[((0,), (1,), (1,)), ((0,), (-1,), (1,))]])) is None


# -------------------------------------------------------------------------------------- borders


def test_a_gain_must_exceed_gamma() -> None:
    # 1 | -1 gains (1 + 1 - 0) / 2 = 1.
    assert choice(one_feature([[1], [-1]], gamma=1.0)) is None
    below = math.nextafter(1.0, 0.0)
    assert found(one_feature([[1], [-1]], gamma=below))["gain"] == 1.0 - below


def test_each_child_needs_min_samples_leaf_rows() -> None:
    bins = [[4], [4], [-1, -1, -1]]  # 4 4 | -1 -1 -1 is best, with two rows on the left
    assert choice(one_feature(bins, min_samples_leaf=2)) == (0, 1, False)
    assert choice(one_feature(bins, min_samples_leaf=3)) is None


def test_missing_rows_count_for_the_side_they_are_on() -> None:
    # The first bin has one row: with two missing ones on its side there are three.
    case = one_feature([[1], [-1, -1, -1]], missing=[1, 1], min_samples_leaf=3)
    assert found(case)["left_count"] == 3
    assert choice(case) == (0, 0, True)


def test_each_child_needs_min_hessian() -> None:
    rows: list[Row] = [((0,), (5,), (3,)), ((1,), (-5,), (4,))]
    assert choice(Case((2,), [rows], min_hessian=(3,))) == (0, 0, False)
    assert choice(Case((2,), [rows], min_hessian=(4,))) is None
    assert choice(Case((2,), [[rows[1], ((0,), (5,), (9,))]], min_hessian=(5,))) is None


def test_a_child_without_hessian_is_none() -> None:
    rows: list[Row] = [((0,), (5,), (0,)), ((1,), (-5,), (4,))]
    assert choice(Case((2,), [rows], reg_lambda=1.0)) is None


def test_an_output_whose_node_has_no_hessian_is_skipped() -> None:
    # Output 1 has no Hessian anywhere, output 0 has enough: by itself it gains 1.
    rows: list[Row] = [((0,), (1, 7), (1, 0)), ((1,), (-1, -7), (1, 0))]
    case = Case((2,), [rows], min_hessian=(1, 1), scales=((0, 0), (0, 0)))
    assert found(case)["gain"] == 1.0


def test_an_output_with_hessian_on_one_side_only_forbids_the_split() -> None:
    rows: list[Row] = [((0,), (1, 7), (1, 0)), ((1,), (-1, -7), (1, 1))]
    case = Case((2,), [rows], min_hessian=(1, 1), scales=((0, 0), (0, 0)), reg_lambda=1.0)
    assert choice(case) is None


def test_a_node_without_any_hessian_is_not_split() -> None:
    rows: list[Row] = [((0,), (1, 7), (0, 0)), ((1,), (-1, -7), (0, 0))]
    case = Case((2,), [rows], min_hessian=(1, 1), scales=((0, 0), (0, 0)), reg_lambda=1.0)
    assert choice(case) is None


def test_min_hessian_is_each_outputs_own() -> None:
    rows: list[Row] = [((0,), (1, 1), (2, 5)), ((1,), (-1, -1), (2, 5))]
    both = ((0, 0), (0, 0))
    assert choice(Case((2,), [rows], min_hessian=(2, 5), scales=both)) == (0, 0, False)
    assert choice(Case((2,), [rows], min_hessian=(3, 5), scales=both)) is None
    assert choice(Case((2,), [rows], min_hessian=(2, 6), scales=both)) is None
