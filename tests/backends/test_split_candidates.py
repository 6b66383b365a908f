"""The host's part of the split search on a device: words for the kernels, and the decision."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from torchgbdt.backends.split_candidates import (
    MAX_NODES,
    RESULT_WORDS,
    SearchedNodes,
    can_filter,
    decide_splits,
    node_lists,
)
from torchgbdt.core.arrays import SMALLEST_NORMAL, AnyArray, Int32Array
from torchgbdt.core.errors import BackendError
from torchgbdt.core.splits import SPLIT_DTYPE, SplitRules, split_gain

NONCE = 7


def split_rules(
    reg_lambda: float = 1.0,
    gamma: float = 0.0,
    scales: tuple[int, int] = (0, 0),
    min_hessian: int = 1,
) -> SplitRules:
    return SplitRules(reg_lambda, gamma, 1, np.array([min_hessian]), np.array([scales], np.int64))


def words_of(*values: int) -> list[int]:
    """64-bit numbers as two words each, low first."""
    return [word for value in values for word in (_signed(value), _signed(value >> 32))]


def _signed(word: int) -> int:
    return (word + 2**31) % 2**32 - 2**31


# ---------------------------------------------------------------------------------- the decision

Candidate = tuple[int, int, int, int, int]
"""Feature, code, count, gradient and Hessian."""


def results_of(nodes: Sequence[Sequence[Candidate]]) -> Int32Array:
    """As the kernel writes them; what it does not write is not 0."""
    results = np.full((len(nodes), RESULT_WORDS), 123_456_789, np.int32)
    for row, candidates in zip(results, nodes, strict=True):
        words = [len(candidates), 0, NONCE, 0]
        for feature, code, *sums in candidates:
            words += [feature, code, *words_of(*sums)]
        row[: len(words)] = words
    return results


def searched(n_nodes: int, count: int, gradient: int, hessian: int) -> SearchedNodes:
    sums = np.tile(np.array([[[gradient, hessian]]], np.int64), (n_nodes, 1, 1))
    return SearchedNodes(np.arange(n_nodes, dtype=np.int32), np.full(n_nodes, count), sums)


def code(split_bin: int, side: int = 0, has_missing: int = 0) -> int:
    return split_bin | side << 8 | has_missing << 9


def decide(
    candidates: Sequence[Candidate],
    totals: tuple[int, int, int] = (10, 0, 10),
    rules: SplitRules | None = None,
) -> AnyArray:
    nodes = searched(1, *totals)
    records, sums, overflowed = decide_splits(
        results_of([candidates]), nodes, rules or split_rules(), NONCE
    )
    assert overflowed.tolist() == [False]
    record = records[0]
    expected = (0, 0)
    if record["found"]:
        chosen = (record["feature"], record["split_bin"], record["left_count"])
        (expected,) = {
            one[3:] for one in candidates if (one[0], one[1] & 255, one[2]) == tuple(chosen)
        }
    assert sums.tolist() == [[list(expected)]]
    return record


def test_the_largest_gain_wins_whatever_the_order() -> None:
    candidates = [(3, code(9), 4, 20, 4), (0, code(200), 5, 21, 5), (7, code(0), 5, 19, 5)]
    for order in (candidates, candidates[::-1]):
        record = decide(order)
        gain = split_gain(np.array([[21, 5]]), np.array([[0, 10]]), split_rules())
        expected = np.array((gain, 5, 5, 0, 200, True, False), SPLIT_DTYPE)
        assert record == expected


def test_ties_are_broken_by_feature_then_bin_then_side() -> None:
    sums = (5, 20, 5)
    order = [
        *((0, code(1, 0, 1), *sums), (0, code(1, 1, 1), *sums), (0, code(2), *sums)),
        *((1, code(0), *sums), (2, code(255), *sums), (300, code(0), *sums)),
    ]
    for first in range(len(order)):
        record = decide(order[first:][::-1])
        feature, words = order[first][:2]
        assert (record["feature"], record["split_bin"]) == (feature, words & 255)
        assert record["missing_left"] == (words >> 8 & 1 == 1)


def test_missing_rows_take_the_side_they_were_on_or_the_larger_one() -> None:
    assert not decide([(0, code(1, 0, 1), 9, 20, 5)])["missing_left"]
    assert decide([(0, code(1, 1, 1), 1, 20, 5)])["missing_left"]
    assert decide([(0, code(1), 6, 20, 5)])["missing_left"]
    assert not decide([(0, code(1), 5, 20, 5)])["missing_left"]
    assert not decide([(0, code(1), 4, 20, 5)])["missing_left"]


def test_a_split_must_gain() -> None:
    assert decide([])["found"] == np.False_
    assert decide([(0, 0, 5, 0, 5)]) == np.zeros((), SPLIT_DTYPE)
    gain = float(decide([(0, 0, 5, 20, 5)])["gain"])
    assert not decide([(0, 0, 5, 20, 5)], rules=split_rules(1.0, gain))["found"]
    assert decide([(0, 0, 5, 20, 5)], rules=split_rules(1.0, gain * 0.999))["found"]


def test_sums_beyond_32_bits() -> None:
    left = (2**31 + 5, -(2**61) + 3, 2**60 + 2**31)
    record = decide([(0, 0, *left)], (2**32, 17, 2**61))
    assert (record["left_count"], record["right_count"]) == (2**31 + 5, 2**31 - 5)


def test_each_node_is_decided_by_itself() -> None:
    nodes = [[(0, code(3), 4, 20, 4)], [], [(2, code(1), 5, -30, 5), (1, code(1), 5, 7, 5)]]
    results = results_of([*nodes, []])
    results[3, 0] = -1
    records, sums, overflowed = decide_splits(results, searched(4, 10, 0, 10), split_rules(), NONCE)
    assert records["found"].tolist() == [True, False, True, False]
    assert records["feature"].tolist() == [0, 0, 2, 0]
    assert sums[:, 0].tolist() == [[20, 4], [0, 0], [-30, 5], [0, 0]]
    assert overflowed.tolist() == [False, False, False, True]


def test_faults_and_stale_results_are_errors() -> None:
    nodes = searched(2, 10, 0, 10)
    results = results_of([[], []])
    with pytest.raises(BackendError, match="older search"):
        decide_splits(results, nodes, split_rules(), NONCE + 1)
    results[1, 1] = 1
    with pytest.raises(BackendError, match="1 nodes contradict"):
        decide_splits(results, nodes, split_rules(), NONCE)


# ------------------------------------------------------------------------------ before the search


def test_which_trees_the_kernels_are_for() -> None:
    assert can_filter(split_rules(0.0))
    assert can_filter(split_rules(2.0**100))
    assert not can_filter(split_rules(2.0**100 * 1.0001))
    assert can_filter(split_rules(2.0**-20, scales=(0, 120)))
    assert not can_filter(split_rules(2.0**-19, scales=(0, 120)))
    assert not can_filter(split_rules(1e308, scales=(0, 120)))
    assert can_filter(split_rules(1e50, scales=(0, -98)))
    assert not can_filter(split_rules(min_hessian=0))
    two = SplitRules(1.0, 0.0, 1, np.array([1, 1]), np.zeros((2, 2), np.int64))
    assert not can_filter(two)


CASES = {
    "ordinary": split_rules(1.0, 0.1, (30, 29)),
    "no lambda": split_rules(0.0, 0.0, (30, 29)),
    "tiny": split_rules(2.0**-140, 2.0**-200, (120, 120)),
    "huge": split_rules(2.0**190, 2.0**250, (-98, -99)),
    "gamma beyond all": split_rules(1.0, 1e308, (120, 0)),
    "tiny lambda": split_rules(1e-320, 1e-320, (0, 0)),
}


@pytest.mark.parametrize("rules", CASES.values(), ids=CASES)
def test_words_of_nodes_are_what_the_proof_takes_them_for(rules: SplitRules) -> None:
    rng = np.random.default_rng(1)
    counts = np.floor(2 ** rng.uniform(0, 32, MAX_NODES)).astype(np.int64)
    counts[:2] = (1, 2**32)
    hessians = np.floor(counts * 2 ** rng.uniform(-31, 29, MAX_NODES)).astype(np.int64)
    gradients = np.rint(counts * rng.choice([-1, 1], 256) * 2 ** rng.uniform(-31, 30, MAX_NODES))
    sums = np.stack((gradients.astype(np.int64), hessians), axis=1)[:, None]
    nodes = SearchedNodes(rng.permutation(MAX_NODES).astype(np.int32), counts, sums)
    lists = node_lists(nodes, rules)
    for i in range(MAX_NODES):
        part = slice(4 * i, 4 * i + 4)
        gradient, hessian = sums[i, 0].tolist()
        assert lists.nodes[part] == [nodes.slots[i], *words_of(int(counts[i])), 0]
        assert lists.sums[part] == words_of(gradient, hessian)
        if hessian > 0:
            numbers = [*_floats(lists.ratios[part]), *_floats(lists.limits[part][:2])]
            exponents = lists.limits[part][2:]
            _check_node(int(counts[i]), gradient, hessian, rules, numbers, exponents)


def _floats(words: list[int]) -> list[Fraction]:
    values = np.array(words, np.int32).view(np.float32)
    assert ((values == 0) | (np.abs(values) >= SMALLEST_NORMAL)).all()
    return [Fraction(float(value)) for value in values]


def _check_node(
    count: int,
    gradient: int,
    hessian: int,
    rules: SplitRules,
    numbers: list[Fraction],
    exponents: list[int],
) -> None:
    """What csrc/metal/split_bound.h says about these words, in exact numbers."""
    v = Fraction(1, 2**53)
    gradient_unit, hessian_unit = (Fraction(2) ** exponent for exponent in exponents)
    gradient_scale, hessian_scale = rules.scales[0].tolist()
    reg_lambda = Fraction(rules.reg_lambda) * Fraction(2) ** hessian_scale
    total = hessian + 2 * reg_lambda
    assert Fraction(1, 2) <= total / hessian_unit <= 1
    assert count * 2**30 <= gradient_unit

    mean_high, mean_low, lambda_high, lambda_low, tolerance, smallest = numbers
    mean = gradient / total * hessian_unit / gradient_unit
    scaled_lambda = reg_lambda / hessian_unit
    assert abs(mean_high + mean_low - mean) <= abs(mean) / 2**47 + Fraction(1, 2**125)
    assert abs(lambda_high + lambda_low - scaled_lambda) <= scaled_lambda / 2**47 + Fraction(
        1, 2**125
    )
    assert tolerance >= 16 * v * mean**2 + Fraction(1, 2**110)
    assert tolerance <= 17 * v * mean**2 + Fraction(1, 2**109)

    to_ranks = (hessian_unit / gradient_unit) ** 2
    gamma = Fraction(rules.gamma) * Fraction(2) ** (2 * gradient_scale - hessian_scale)
    penalty = mean**2 * reg_lambda / (hessian + reg_lambda)
    no_gain = penalty + 2 * gamma / total * to_ranks
    assert smallest <= max(0, no_gain - 15 * v * mean**2)
    if no_gain < 2**99:
        assert smallest >= no_gain * (1 - Fraction(1, 2**18)) - 17 * v * mean**2 - Fraction(
            1, 2**109
        )
    else:
        assert smallest >= 2**98  # above all ranks
