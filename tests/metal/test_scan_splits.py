"""The split search of the kernels finds what core/splits.py finds: shapes, rules and borders."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metal.emulator.device import EmulatorOptions
from metal.row_cases import random_case, sums_of_rows
from metal.split_searches import (
    SearchCase,
    changed_library,
    kernel_library,
    run_kernels,
    search,
    split_rules,
)

from torchgbdt.core.splits import SplitRules, split_gain

MIXED = (255, 1, 40, 0, 2, 33, 32, 254)

OPTIONS = {
    "shuffled": EmulatorOptions(shuffle_seed=1),
    "shuffled again": EmulatorOptions(shuffle_seed=2),
    "flushing": EmulatorOptions(flush_subnormals=True),
    "512 threads": EmulatorOptions(max_total_threads=512),
    "checked": EmulatorOptions(shuffle_seed=3, checked=True),
    "c++17": EmulatorOptions(standard="c++17"),
}

# ------------------------------------------------------------------------------------- at random


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_device_decides_nothing(options: EmulatorOptions) -> None:
    library = kernel_library(options)
    for unit in (None, 2**28):
        assert not search(random_case(1, 2, MIXED, hessian_unit=unit), library).any()


@pytest.mark.parametrize("n_rows", [1, 2, 3, 10, 3000])
def test_nodes_of_any_size(n_rows: int) -> None:
    assert not search(random_case(n_rows, 12, MIXED, n_rows)).any()


@pytest.mark.parametrize("n_bins", [1, 2, 31, 32, 33, 64, 65, 253, 254, 255])
def test_features_of_any_number_of_bins(n_bins: int) -> None:
    assert not search(random_case(n_bins, 4, (n_bins, n_bins), 700)).any()


def test_many_nodes_and_many_features() -> None:
    assert not search(random_case(3, 256, (9, 3, 1), 30)).any()
    assert not search(random_case(4, 1, (3,) * 300, 300)).any()


@st.composite
def cases(draw: st.DrawFn) -> SearchCase:
    """Few rows, bins and distinct numbers: ties, empty bins, proportional sums; small and large."""
    n_value_bins = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    codes = st.tuples(*(st.integers(0, n) for n in n_value_bins))
    large = draw(st.booleans())
    gradient = st.integers(-(2**30), 2**30) if large else st.integers(-2, 2)
    unit = draw(st.sampled_from([None, None, 1, 2**29]))
    hessian = st.integers(0, 2**29 if large else 2) if unit is None else st.just(unit)
    row = st.tuples(codes, gradient, hessian)
    nodes = []
    for rows in draw(st.lists(st.lists(row, min_size=1, max_size=12), min_size=1, max_size=3)):
        columns = (np.array(column, np.int64) for column in zip(*rows, strict=True))
        nodes.append(sums_of_rows(n_value_bins, *columns))
    scale = st.sampled_from([-98, 0, 29, 30, 120]) if large else st.just(0)
    scales = draw(scale), draw(scale)
    reg_lambda = draw(st.sampled_from([0.0, 1e-200, 0.1, 1.0, 1e6, 1e30]))  # in integers' units
    gamma = draw(st.sampled_from([0.0, 1e-3, 0.5, 1e9]))
    rules = split_rules(
        math.ldexp(reg_lambda, -scales[1]),
        math.ldexp(gamma, scales[1] - 2 * scales[0]),
        draw(st.integers(1, 3)),
        draw(st.sampled_from([1, 2, 3, 2**29])),
        scales,
    )
    return SearchCase(tuple(n_value_bins), np.stack(nodes), rules, unit)


@given(cases())
def test_few_rows(case: SearchCase) -> None:
    search(case)


# -------------------------------------------------------------------------------------- the rules


def one_node(
    cells: list[tuple[int, int, int]],
    missing: tuple[int, int, int] = (0, 0, 0),
    rules: SplitRules | None = None,
) -> SearchCase:
    """One node and feature; (count, gradient, Hessian) of each bin."""
    words = np.array([*cells, missing], np.int64).T[None]
    return SearchCase((len(cells),), words, rules or split_rules())


def found(case: SearchCase) -> tuple[int, bool] | None:
    """Bin and side of the missing rows, after the kernels have been seen to find the same."""
    assert not search(case).any()
    record = case.expected()[0][0]
    return (int(record["split_bin"]), bool(record["missing_left"])) if record["found"] else None


BINS = [(3, 90, 30), (1, -50, 20), (4, 70, 25), (2, -80, 11)]
RIGHT_COUNTS = (7, 6, 2)
RIGHT_HESSIANS = (56, 36, 11)


@pytest.mark.parametrize("n", range(1, 7))
def test_min_samples_leaf(n: int) -> None:
    for cells in (BINS, BINS[::-1]):
        found(one_node(cells, rules=split_rules(min_samples_leaf=n)))


@pytest.mark.parametrize("least", [*range(9, 13), *range(29, 32), *range(35, 38), 2**62, 2**63 - 1])
def test_min_hessian(least: int) -> None:
    for cells in (BINS, BINS[::-1]):
        found(one_node(cells, rules=split_rules(min_hessian=least)))


def test_rules_beyond_32_bits() -> None:
    cells = [(2**31 + 5, 2**40, 2**59), (2**30, -(2**50), 2**58), (7, 5, 2**31)]
    for n in (1, 7, 8, 2**30 + 7, 2**30 + 8, 2**31, 2**32, 2**70):
        found(one_node(cells, rules=split_rules(min_samples_leaf=n)))
    for least in (2**31, 2**31 + 1, 2**58 + 2**31, 2**58 + 2**31 + 1):
        found(one_node(cells, rules=split_rules(min_hessian=least)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("right.count) >= rules", "right.count) > rules"),
        ("right.hessian) >= rules", "right.hessian) > rules"),
        ("right.count) >= rules", "right.count) + 1 >= rules"),
        ("right.hessian) >= rules", "right.hessian) + 1 >= rules"),
        ("min(left.count, right.count)", "left.count"),
        ("min(left.hessian, right.hessian)", "right.hessian"),
    ],
)
def test_a_rule_that_is_off_by_one_is_seen(old: str, new: str) -> None:
    library = changed_library((old, new))
    failures = 0
    for cells in (BINS, BINS[::-1]):
        for limits in ({"min_samples_leaf": 2}, {"min_hessian": 11}, {"min_hessian": 12}):
            for n in ({}, {"min_samples_leaf": 3}):
                case = one_node(cells, rules=split_rules(**{**limits, **n}))
                try:
                    search(case, library)
                except AssertionError:
                    failures += 1
    assert failures > 0


def test_proportional_sums_are_no_candidates() -> None:
    assert found(one_node([(1, 5, 10), (3, 15, 30), (2, 10, 20)])) is None
    assert found(one_node([(1, 0, 10), (3, 0, 30), (2, 0, 7)])) is None


@pytest.mark.parametrize("unit", [1, 2**24])
def test_proportional_sums_are_no_candidates_where_rounding_sees_a_gain(unit: int) -> None:
    rules = split_rules(0.0)
    n_gains = 0
    for left, right in itertools.product(range(1, 30), repeat=2):
        cells = [(n, n * 7 * unit, n * 11 * unit) for n in (left, right)]
        sums, node = (np.array([one[1:]]) for one in (cells[0], np.add(*cells)))
        if split_gain(sums, node, rules) > 0:
            n_gains += 1
            case = one_node(cells, rules=rules)
            assert run_kernels(case)[0, 0] == 0
            assert found(case) is None
    assert n_gains > 10


def test_only_missing_rows_on_the_left() -> None:
    assert found(one_node([(0, 0, 0), (5, 100, 5)], (3, -90, 3))) == (0, True)
    assert found(one_node([(5, 100, 5)], (3, -90, 3))) == (0, False)
    assert found(one_node([], (3, -90, 3))) is None
    assert found(one_node([(5, 100, 5)])) is None


def test_missing_rows_take_either_side() -> None:
    assert found(one_node([(5, 50, 5), (5, -50, 5)], (3, 29, 3))) == (0, True)
    assert found(one_node([(5, 50, 5), (5, -50, 5)], (3, -29, 3))) == (0, False)
    assert found(one_node([(5, 50, 5), (5, 50, 5)], (3, -29, 3))) == (1, False)


def test_missing_rows_without_any_gradient_leave_a_tie() -> None:
    assert found(one_node([(5, 50, 5), (5, -50, 5)], (3, 0, 0))) == (0, False)


def test_empty_bins_lose_the_tie_against_the_bin_before() -> None:
    assert found(one_node([(5, 50, 5), (0, 0, 0), (0, 0, 0), (5, -50, 5)])) == (0, False)
    assert found(one_node([(0, 0, 0), (5, 50, 5), (0, 0, 0), (5, -50, 5)])) == (1, False)


def test_what_mirrors_an_earlier_candidate_loses_the_tie() -> None:
    # Bin 90 has on the right what bin 0, empty, has on the left: the missing rows.
    bins = [(0, 0, 0)] * 90 + [(5, 50, 5)] + [(0, 0, 0)] * 90
    assert found(one_node(bins, (1, -5, 1))) == (0, True)


def test_rows_that_are_all_alike_have_no_candidates() -> None:
    """Weighted rows: sums are proportional but for their rounding, and gains are noise."""
    rng = np.random.default_rng(5)
    weights = rng.uniform(0.1, 1, 5000)
    gradients = np.rint(weights * 0.7 * 2**30).astype(np.int64)
    hessians = np.rint(weights * 2**29).astype(np.int64)
    codes = rng.integers(0, 255, (5000, 3))
    cells = sums_of_rows((255, 255, 255), codes, gradients, hessians)[None]
    case = SearchCase((255, 255, 255), cells, split_rules(scales=(30, 29)))
    assert not case.expected()[0]["found"].any()
    assert not search(case).any()
    no_lambda = dataclasses.replace(case, rules=split_rules(0.0, scales=(30, 29)))
    search(no_lambda)
