"""``find_splits``: which candidates exist, which are allowed, and what the best one gains."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.levels import HandMadeRun
from support.lockstep import in_lockstep
from support.runs import grow_tree, prepare
from support.strategies import bin_codes, gradients, split_settings

from torchgbdt.core.arrays import Int64Array, RecordArray
from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.splits import SplitRules


def best_split(
    backend: ComputeBackend,
    bins: list[list[int]],
    n_value_bins: list[int],
    g: list[list[float]],
    h: list[list[float]] | None = None,
    **rules: float,
) -> tuple[RecordArray, Int64Array]:
    """The split of a node that holds all rows; gradients are integers, Hessians 1 unless given."""
    h = np.ones_like(g, dtype=np.float32) if h is None else h
    run = HandMadeRun(backend, bins, n_value_bins, g, h)
    splits, left_sums = backend.find_splits(run.build([(0, len(bins))]), run.rules(**rules))
    return splits[0], left_sums[0]


def test_a_split_by_hand(backend: ComputeBackend) -> None:
    # bins 0 0 1 1 with g = 1 1 -1 -1: GL = 2, HL = 2, GR = -2, HR = 2
    # gain = 0.5 * ((4/4 + 4/4) - 0) - 0.25 with lambda 2 and gamma 0.25
    split, left = best_split(
        backend, [[0], [0], [1], [1]], [2], [[1], [1], [-1], [-1]], reg_lambda=2.0, gamma=0.25
    )
    assert split["found"] and split["gain"] == 0.75
    assert (split["feature"], split["split_bin"]) == (0, 0)
    assert (split["left_count"], split["right_count"]) == (2, 2)
    assert left.tolist() == [[2, 2]]


@pytest.mark.parametrize(
    ("gamma", "found"), [(0.5, False), (np.nextafter(0.5, 0), True)], ids=["equal", "below"]
)
def test_the_gain_must_exceed_gamma(backend: ComputeBackend, gamma: float, found: bool) -> None:
    # GL = 1, GR = -1, HL = HR = 1, lambda 1: 0.5 * ((1/2 + 1/2) - 0) = 0.5
    split, left = best_split(backend, [[0], [1]], [2], [[1], [-1]], gamma=gamma)
    assert split["found"] == found
    assert found or not (left.any() or any(split.item()))  # a node without a split is all zero


@pytest.mark.parametrize(("least", "found"), [(2, True), (3, False)])
def test_both_children_need_min_samples_leaf(
    backend: ComputeBackend, least: int, found: bool
) -> None:
    bins, g = [[0], [0], [1], [1], [1]], [[2], [2], [-1], [-1], [-1]]
    split, _ = best_split(backend, bins, [2], g, min_samples_leaf=least)
    assert split["found"] == found


@pytest.mark.parametrize("side", [0, 1], ids=["left", "right"])
@pytest.mark.parametrize(("least", "found"), [(3.0, True), (3.5, False), (4.0, False)])
def test_both_children_need_min_child_weight(
    backend: ComputeBackend, side: int, least: float, found: bool
) -> None:
    # Hessians 3 on one side and 9 on the other; fixed point holds integers, so 3.5 means 4
    h = [[3.0], [9.0]] if side == 0 else [[9.0], [3.0]]
    split, _ = best_split(backend, [[0], [1]], [2], [[5], [-5]], h, min_child_weight=least)
    assert split["found"] == found


def test_a_child_without_hessian_is_not_allowed(backend: ComputeBackend) -> None:
    split, _ = best_split(backend, [[0], [1]], [2], [[5], [-5]], [[0.0], [1.0]])
    assert not split["found"]


def test_a_gain_that_is_not_a_number_is_none(backend: ComputeBackend) -> None:
    # Output 1 has gradients and no Hessian, so with a tiny lambda each of its scores overflows:
    # inf + inf - inf. Output 0 alone would gain.
    g, h = [[5, 1], [-5, -2]], [[1.0, 0.0], [1.0, 0.0]]
    split, _ = best_split(backend, [[0], [1]], [2], g, h, reg_lambda=1e-310)
    assert not split["found"]
    split, _ = best_split(backend, [[0], [1]], [2], g, h, reg_lambda=1.0)
    assert split["found"]


def test_a_node_without_hessian_is_not_split(under_test: BackendUnderTest) -> None:
    zeros = [[0.0] * 2] * 2
    split, _ = best_split(in_lockstep(under_test), [[0], [1]], [2], [[5, 1], [-5, 2]], zeros)
    assert not split["found"]


def test_an_output_without_hessian_does_not_forbid_the_split(under_test: BackendUnderTest) -> None:
    g, h = [[5, 1, 0], [-5, 2, 0]], [[1.0, 0.0, 0.0]] * 2
    split, left = best_split(in_lockstep(under_test), [[0], [1]], [2], g, h)
    assert split["found"] and left.tolist() == [[5, 1], [1, 0], [0, 0]]


def test_every_output_with_hessian_needs_it_in_both_children(backend: ComputeBackend) -> None:
    g, h = [[5, 1], [-5, 2]], [[1.0, 1.0], [1.0, 0.0]]
    assert not best_split(backend, [[0], [1]], [2], g, h)[0]["found"]


@pytest.mark.parametrize("reg_lambda", [0.0, 1.0])
def test_proportional_children_gain_nothing(backend: ComputeBackend, reg_lambda: float) -> None:
    # 3/7 on both sides: with lambda 0 the formula gives 2^-52 in float64, 0 in real numbers
    g, h = [[3], [6]], [[7.0], [14.0]]
    split, _ = best_split(backend, [[0], [1]], [2], g, h, reg_lambda=reg_lambda)
    assert not split["found"]


def test_one_output_that_is_not_proportional_is_enough(under_test: BackendUnderTest) -> None:
    g, h = [[3, 1], [6, -1]], [[7.0, 1.0], [14.0, 1.0]]
    assert best_split(in_lockstep(under_test), [[0], [1]], [2], g, h)[0]["found"]


def test_the_last_value_bin_is_a_candidate_only_beside_missing_rows(
    under_test: BackendUnderTest,
) -> None:
    g = [[1], [1], [-2]]
    split, _ = best_split(in_lockstep(under_test), [[0], [1], [2]], [2], g, min_samples_leaf=1)
    assert (split["split_bin"], split["missing_left"]) == (1, False)  # values | missing
    split, _ = best_split(in_lockstep(under_test), [[1], [1], [1]], [2], g)
    assert not split["found"]


def test_missing_rows_go_to_the_side_that_gains_more(backend: ComputeBackend) -> None:
    for g_missing, expected in ((2, True), (-2, False)):
        split, _ = best_split(backend, [[0], [1], [2]], [2], [[2], [-2], [g_missing]])
        assert (split["split_bin"], split["missing_left"]) == (0, expected)


@pytest.mark.parametrize(
    ("bins", "missing_left"),
    [([[0], [0], [1]], True), ([[0], [1], [1]], False), ([[0], [0], [1], [1]], False)],
    ids=["more on the left", "more on the right", "equal"],
)
def test_without_missing_rows_they_would_go_to_the_larger_side(
    backend: ComputeBackend, bins: list[list[int]], missing_left: bool
) -> None:
    g = [[1 - 2 * b[0]] for b in bins]
    split, _ = best_split(backend, bins, [2], g, reg_lambda=0.0)
    assert split["found"] and split["missing_left"] == missing_left


def test_features_without_values_are_never_split(backend: ComputeBackend) -> None:
    bins = [[0, 0, 0], [0, 0, 1]]  # all missing; constant; two values
    split, _ = best_split(backend, bins, [0, 1, 2], [[1], [-1]])
    assert split["feature"] == 2


@pytest.mark.parametrize("informative", [0, 1, 15, 16, 31, 32, 39])
def test_the_best_feature_is_found_wherever_it_is(
    backend: ComputeBackend, informative: int
) -> None:
    bins = np.zeros((4, 40), np.uint8)
    bins[1::2] = 1  # all others separate rows 0 and 2 from 1 and 3, which gains nothing
    bins[:, informative] = [0, 0, 1, 1]
    split, _ = best_split(backend, bins.tolist(), [2] * 40, [[1], [1], [-1], [-1]])
    assert split["feature"] == informative


def find_in_copies(
    backend: ComputeBackend, bins: np.ndarray, g: np.ndarray, h: np.ndarray
) -> tuple[RecordArray, Int64Array]:
    """On 2^22 ranks that hold the same rows."""
    n_value_bins = [int(column.max()) + 1 for column in bins.T]
    run = HandMadeRun(backend, bins, n_value_bins, g, h)
    batch = run.build_in_copies([(0, len(bins))], 2**22)
    rules: SplitRules = run.rules(reg_lambda=1.0)
    return backend.find_splits(batch, rules)


def test_sums_close_to_the_limit_split_like_the_reference(under_test: BackendUnderTest) -> None:
    rng = np.random.default_rng(8)
    bins = rng.integers(0, 6, (2**10, 3))
    g = rng.choice([-(2.0**30), 2.0**30], (2**10, 1))
    h = rng.integers(2**28, 2**29, (2**10, 1))
    splits, _ = find_in_copies(in_lockstep(under_test), bins, g, h)
    assert splits["found"][0]


def test_products_that_agree_only_modulo_2_to_64_are_not_proportional(
    backend: ComputeBackend,
) -> None:
    # GL = 2^20 * 2^22, HR = 2^22, GR = 0: GL * HR = 2^64, which is 0 in 64 bits, as GR * HL is
    bins, g, h = np.array([[0], [1]]), np.array([[2.0**20], [0.0]]), np.ones((2, 1))
    splits, _ = find_in_copies(backend, bins, g, h)
    assert splits["found"][0]


@hypothesis.given(data=st.data(), n_outputs=st.sampled_from([1, 2, 3]))
def test_whole_trees_of_any_gradients(
    under_test: BackendUnderTest, data: st.DataObject, n_outputs: int
) -> None:
    bins, n_value_bins = data.draw(bin_codes())
    backend = in_lockstep(under_test)
    n_slots = data.draw(st.sampled_from([1, 2, 3, 8]))
    thresholds = prepare(backend, bins, n_value_bins, n_outputs, n_slots)
    backend.given = data.draw(gradients(bins.shape[0], n_outputs))
    grow_tree(backend, thresholds, n_slots, **data.draw(split_settings()))
