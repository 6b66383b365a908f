"""``rank_rows`` and the area under the curve: exact, whatever the order of rows and the ranks."""

import math
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.class_runs import class_rows, prepare_classes
from support.exact import assert_identical
from support.forests import leaf_tree
from support.lockstep import in_lockstep
from support.naive_losses import float32, scale_of
from support.ranks import run_ranks
from support.recompute import area_under_curve
from support.runs import MANY_ROWS
from support.strategies import raw_predictions

from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.metrics import AreaUnderCurve
from torchgbdt.core.ranking import OrderedPairs, RankedWeights, merge_rankings

INF, NAN = np.inf, np.nan


def ranking(
    backend: ComputeBackend, raw: Any, codes: Any, weights: Any = None, scale: int = 0
) -> RankedWeights:
    return prepare_classes(backend, class_rows(raw, codes, weights)).rank_rows(0, scale)


def auc(backend: ComputeBackend, raw: Any, codes: Any, weights: Any = None) -> float:
    scale = scale_of(1.0 if weights is None else float(max(weights)), len(raw))
    backend = prepare_classes(backend, class_rows(raw, codes, weights))
    return AreaUnderCurve().finish(backend.count_pairs(0, scale, SINGLE_RANK))


def test_keys_are_in_the_order_of_predictions(backend: ComputeBackend) -> None:
    raw = [INF, 1.0, 0.0, -0.0, -1.0, -INF, 2.0**-126, -3.4e38]
    found = ranking(backend, raw, [0] * 8)
    one = 0x3F800000
    assert found.keys.tolist() == [
        -0x7F800000, -0x7F7FC99E, -one, 0, 0x00800000, one, 0x7F800000
    ]  # fmt: skip
    assert found.weights.tolist() == [[1, 0]] * 3 + [[2, 0]] + [[1, 0]] * 3


def test_weights_of_equal_predictions_add_up_by_class(backend: ComputeBackend) -> None:
    found = ranking(backend, [2.0, 1.0, 2.0, 2.0], [1, 0, 0, 1], [0.5, 1.0, 2.0, 0.25], scale=3)
    assert found.weights.tolist() == [[8, 0], [16, 6]] and found.finite


def test_weights_round_to_even_and_never_to_zero(backend: ComputeBackend) -> None:
    found = ranking(backend, [1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1], [0.5, 1.5, 2.5, 2.0**-100])
    assert found.weights.tolist() == [[1, 0], [0, 2], [2, 0], [0, 1]]


def test_a_prediction_that_is_no_number_ranks_nothing(backend: ComputeBackend) -> None:
    found = ranking(backend, [1.0, NAN], [0, 1])
    assert_identical(found, RankedWeights(np.zeros(0, np.int32), np.zeros((0, 2), np.int64), False))


def test_a_prediction_that_is_no_number_orders_no_pairs(backend: ComputeBackend) -> None:
    prepare_classes(backend, class_rows([1.0, NAN, 2.0], [0, 1, 1]))
    found = backend.count_pairs(0, 0, SINGLE_RANK)
    assert_identical(found, OrderedPairs(0, 0, finite=False))


def test_no_rows_are_ranked(backend: ComputeBackend) -> None:
    found = ranking(backend, [], [])
    assert_identical(found, RankedWeights(np.zeros(0, np.int32), np.zeros((0, 2), np.int64), True))


def test_predictions_that_differ_only_before_rounding_tie(backend: ComputeBackend) -> None:
    # 2^24 + 1 rounds to 2^24; the sums and margins differ, the raw predictions do not
    rows = class_rows([0.0, 1.0], [0, 1])
    found = prepare_classes(backend, rows, baseline=[2.0**24]).rank_rows(0, 0)
    assert found.weights.tolist() == [[1, 1]]


def test_a_prediction_that_becomes_subnormal_ties_with_zero(backend: ComputeBackend) -> None:
    # 1.5 * 2^-126 - 2^-126 = 2^-127
    tiny = 2.0**-126
    prepare_classes(backend, class_rows([1.5 * tiny, tiny, 2 * tiny], [1, 0, 1]))
    backend.update_predictions(leaf_tree(np.array([-tiny])), 0)
    assert backend.rank_rows(0, 0).keys.tolist() == [0, 0x00800000]
    assert backend.rank_rows(0, 0).weights.tolist() == [[1, 1], [0, 1]]


def test_rankings_follow_the_predictions(under_test: BackendUnderTest) -> None:
    data = (class_rows([1.0, -1.0], [0, 1]), class_rows([5.0], [1]))
    backend = prepare_classes(in_lockstep(under_test), *data)
    backend.update_predictions(leaf_tree(np.array([1.0])), 0)
    assert backend.rank_rows(0, 0).keys.tolist() == [0, 0x40000000]
    assert backend.rank_rows(1, 0).keys.tolist() == [0x40C00000]


def test_area_by_hand(backend: ComputeBackend) -> None:
    # first class at 1 and 3, second at 2 and 3: the pairs are right, half, wrong, right
    assert auc(backend, [1.0, 3.0, 2.0, 3.0], [0, 0, 1, 1]) == 2.5 / 4
    # weights 1 and 3 against 2 and 1: (1*2 + 1*1 + 3*1/2) / (4 * 3)
    assert auc(backend, [1.0, 3.0, 2.0, 3.0], [0, 0, 1, 1], [1.0, 3.0, 2.0, 1.0]) == 4.5 / 12
    assert auc(backend, [7.0] * 4, [0, 1, 0, 1]) == 0.5
    assert auc(backend, [-INF, INF], [0, 1]) == 1.0
    assert math.isnan(auc(backend, [1.0, 2.0], [1, 1]))


def test_ranking_of_many_rows(under_test: BackendUnderTest) -> None:
    rng = np.random.default_rng(1)
    raw = rng.normal(size=MANY_ROWS).astype(np.float32)
    raw[::3] = np.round(raw[::3], 1)
    weights = 2.0 ** rng.integers(-20, 20, MANY_ROWS)
    codes = rng.integers(0, 2, MANY_ROWS)
    both, scale = in_lockstep(under_test), scale_of(2.0**19, MANY_ROWS)
    ranking(both, raw, codes, weights, scale)
    pairs = both.count_pairs(0, scale, SINGLE_RANK)
    assert pairs.total > 2**100


@pytest.mark.parametrize("borders", [(0, 1, 40), (0, 0, 40), (0, 20, 21, 40)], ids=str)
def test_ranks_merge_to_one_ranking(under_test: BackendUnderTest, borders) -> None:
    rng = np.random.default_rng(7)
    raw, codes, weights = rng.integers(0, 9, 40), rng.integers(0, 2, 40), rng.random(40)
    scale = scale_of(float(weights.max()), 40)

    def work(communicator: Communicator) -> RankedWeights:
        mine = slice(*borders[communicator.rank : communicator.rank + 2])
        found = ranking(in_lockstep(under_test), raw[mine], codes[mine], weights[mine], scale)
        return merge_rankings(found, communicator)

    expected = ranking(under_test.make_reference(), raw, codes, weights, scale)
    assert_identical(run_ranks(len(borders) - 1, work), [expected] * (len(borders) - 1))


def test_one_rank_with_a_nan_ranks_nothing_on_all(under_test: BackendUnderTest) -> None:
    def work(communicator: Communicator) -> bool:
        raw = [1.0, NAN if communicator.rank == 1 else 0.0]
        return merge_rankings(ranking(under_test.make(), raw, [0, 1]), communicator).finite

    assert run_ranks(2, work) == [False, False]


@hypothesis.given(data=st.data())
def test_area_is_the_share_of_pairs_in_the_right_order(
    under_test: BackendUnderTest, data: st.DataObject
) -> None:
    raw, codes, weights = data.draw(raw_predictions(1))
    hypothesis.assume(not np.isnan(raw).any())
    found = auc(in_lockstep(under_test), raw, codes, weights)
    given = [1.0] * len(raw) if weights is None else np.float32(weights).tolist()
    flushed = [float32(x) for x in raw[:, 0].tolist()]
    assert_identical(found, area_under_curve(flushed, codes.tolist(), given))
