"""Ties: bit-equal gains go by feature, then bin, then side; an ulp more is more."""

import itertools

import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.levels import HandMadeRun
from support.lockstep import in_lockstep
from support.naive_splits import gain

from torchgbdt.core.arrays import RecordArray
from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.splits import SplitRules


def split_of(
    backend: ComputeBackend, bins: list[list[int]], n_value_bins: list[int], g, **rules: float
) -> RecordArray:
    run = HandMadeRun(backend, bins, n_value_bins, np.array(g), np.ones_like(g))
    return backend.find_splits(run.build([(0, len(bins))]), run.rules(**rules))[0][0]


@pytest.mark.parametrize("n_features", [2, 3, 40])
def test_of_equal_features_the_first_wins(backend: ComputeBackend, n_features: int) -> None:
    bins = [[0] * n_features, [1] * n_features]
    assert split_of(backend, bins, [2] * n_features, [[1.0], [-1.0]])["feature"] == 0


def test_a_later_feature_wins_only_by_more(backend: ComputeBackend) -> None:
    # features 1 and 2 separate the rows, feature 0 does not quite, feature 3 ties with 1
    bins = [[0, 0, 0, 1], [0, 0, 0, 1], [0, 1, 1, 0], [1, 1, 1, 0]]
    split = split_of(backend, bins, [2] * 4, [[1.0], [1.0], [-1.0], [-1.0]])
    assert split["feature"] == 1


def test_of_equal_bins_the_smallest_wins(backend: ComputeBackend) -> None:
    # g = 1, -2, 1: {0} | {1, 2} and {0, 1} | {2} mirror each other
    split = split_of(backend, [[0], [1], [2]], [3], [[1.0], [-2.0], [1.0]])
    assert split["found"] and split["split_bin"] == 0


def test_empty_bins_are_candidates_and_lose_to_the_smaller_bin(backend: ComputeBackend) -> None:
    # bins 1, 2 and 3 hold no rows: splitting after any of 0..3 is the same split
    split = split_of(backend, [[0], [4]], [5], [[1.0], [-1.0]])
    assert split["split_bin"] == 0
    # bin 0 is empty: it cannot be split off, and splitting after 1, 2 or 3 is the same
    split = split_of(backend, [[1], [4]], [5], [[1.0], [-1.0]])
    assert split["split_bin"] == 1


def test_missing_rows_alone_go_left_at_the_smallest_bin(backend: ComputeBackend) -> None:
    # missing (code 3) against the rest, on either side of every bin: bins 0 and 1 are empty, so
    # {missing} | {2} exists after bin 0 with missing left; {2} | {missing} only after bin 2
    split = split_of(backend, [[3], [2]], [3], [[1.0], [-1.0]])
    assert (split["split_bin"], split["missing_left"]) == (0, True)


def test_of_equal_sides_missing_right_wins(backend: ComputeBackend) -> None:
    # g = 1, -1 and missing 0: {0} | {1, m} and {0, m} | {1} mirror each other
    split = split_of(backend, [[0], [1], [2]], [2], [[1.0], [-1.0], [0.0]])
    assert split["found"] and (split["split_bin"], split["missing_left"]) == (0, False)


def test_a_smaller_bin_comes_before_missing_right(backend: ComputeBackend) -> None:
    # bin 0: one row of g 1; bin 1 and missing: two rows of g -1 each; two rows per child needed.
    # {0, m} | {1} after bin 0 and {0, 1} | {m} after bin 1 mirror each other: bin 0, missing left
    bins, g = [[0], [1], [1], [2], [2]], [[1.0], [-1.0], [-1.0], [-1.0], [-1.0]]
    split = split_of(backend, bins, [2], g, min_samples_leaf=2)
    assert (split["split_bin"], split["missing_left"]) == (0, True)


def permuted_outputs(rng: np.random.Generator) -> np.ndarray:
    """Gradients of 4 rows and 3 outputs whose two splits gain the same in real numbers.

    Rows by (feature 0, feature 1): (L, L) 0, (L, R) abc, (R, L) cab, (R, R) -abc - cab. So the left
    sums are a, b, c for feature 0 and c, a, b for feature 1; only the order of addition differs.
    """
    a, b, c = rng.integers(1, 1000, 3).astype(float)
    one, other = np.array([a, b, c]), np.array([c, a, b])
    return np.stack((0 * one, one, other, -one - other))


def gains_of_both(g: np.ndarray, rules: SplitRules) -> tuple[float, float]:
    parent = [[0, 4]] * 3

    def of(rows: list[int]) -> float:
        left = [[int(total), 2] for total in g[rows].sum(axis=0)]
        right = [[-total, 2] for total, _ in left]
        return gain(left, right, parent, rules)

    return of([0, 1]), of([0, 2])


def test_a_gain_larger_by_one_ulp_wins(under_test: BackendUnderTest) -> None:
    rng, seen = np.random.default_rng(9), set()
    bins = list(map(list, itertools.product((0, 1), (0, 1))))
    for _ in range(120):
        g = permuted_outputs(rng)
        run = HandMadeRun(in_lockstep(under_test), bins, [2, 2], g, np.ones_like(g))
        rules = run.rules(reg_lambda=0.1)
        first, second = gains_of_both(g, rules)
        ulps = (second - first) / np.spacing(first)
        assert abs(ulps) <= 4
        splits, _ = run.backend.find_splits(run.build([(0, 4)]), rules)
        assert splits["feature"][0] == int(second > first)
        assert splits["gain"][0] == max(first, second)
        seen.add(ulps)
    assert seen >= {-1.0, 0.0, 1.0}  # the cases that matter occurred
