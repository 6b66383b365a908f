"""Candidates that gain almost or exactly the same: the winner is always among those returned.

The bound that makes it so is proven in csrc/metal/split_bound.h; constants that are 16 times
smaller lose winners here.
"""

import numpy as np
import pytest
from metal.emulator.device import EmulatorOptions
from metal.near_ties import near_ties, two_bin_case
from metal.split_searches import (
    SearchCase,
    changed_library,
    kernel_library,
    run_kernels,
    search,
    split_rules,
)

from torchgbdt.backends import split_candidates
from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.core.splits import SplitRules

FLOAT32_ULPS = 2.0**-22  # of D, or of a gain: four units in the last place
FLOAT64_ULPS = 2.0**-51

SCALES = {
    "ordinary": (30, 29),
    "tiny": (120, 120),
    "huge": (-98, -99),
    "tiny gradients": (120, -99),
    "tiny Hessians": (-98, 120),
}

LAMBDAS = {  # in units of the Hessian; a node has 2^58
    "no": 0.0,
    "tiny": 2.0**-60,
    "small": 2.0**30,
    "large": 2.0**59,
    "huge": 2.0**99,
}


def rules_of(units: float, scales: tuple[int, int]) -> SplitRules:
    return split_rules(float(np.ldexp(units, -scales[1])), scales=scales)


@pytest.mark.parametrize("scales", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("units", LAMBDAS.values(), ids=LAMBDAS)
def test_near_ties(units: float, scales: tuple[int, int]) -> None:
    for seed, spread in enumerate((0.0, FLOAT64_ULPS, 2.0**-35, FLOAT32_ULPS)):
        for offset in (0.0, 2.0**-3):
            case = near_ties(seed, 4, rules_of(units, scales), offset, spread)
            assert case.expected()[0]["found"].all()
            assert not search(case).any()


def float64_noise(offset: float) -> float:
    """By how much rounding moves a gain, as a factor of its D."""
    return float(4 * 2.0**-53 * offset**2)


@pytest.mark.parametrize("offset", [2.0**8, 2.0**16, 2.0**20, 2.0**24])
def test_near_ties_of_nodes_with_a_large_gradient(offset: float) -> None:
    """Their gains are small differences of large scores, and rounding decides among them."""
    for units in (0.0, 1.0, 2.0**52 / offset**2):
        for seed, spread in enumerate((0.0, FLOAT32_ULPS, float64_noise(offset))):
            case = near_ties(seed, 16, rules_of(units, (30, 29)), offset, spread)
            assert case.expected()[0]["found"].all()
            assert not search(case).any()


@pytest.mark.parametrize("offset", [2.0**8, 2.0**16, 2.0**20, 2.0**24])
def test_near_ties_where_lambda_takes_the_gain(offset: float) -> None:
    """Nodes have Hessians of 2^57 to 2^59; splits gain where that exceeds lambda * offset^2."""
    found = []
    for seed, spread in enumerate((0.0, FLOAT32_ULPS, float64_noise(offset))):
        case = near_ties(seed, 32, rules_of(2.0**58 / offset**2, (30, 29)), offset, spread)
        found += case.expected()[0]["found"].tolist()
        assert not search(case).any()
    assert any(found)
    assert not all(found)


@pytest.mark.parametrize("rows", [2**8, 2**16, 2**32])
def test_near_ties_of_any_number_of_rows(rows: int) -> None:
    for offset in (0.0, 1.0, 100.0):
        case = near_ties(rows, 16, rules_of(0.0, (30, 29)), offset, FLOAT32_ULPS, rows)
        assert not search(case).any()


@pytest.mark.parametrize("offset", [0.0, 2.0**10, 2.0**20])
def test_near_ties_with_a_constant_hessian(offset: float) -> None:
    rules = rules_of(0.0, (30, 29))
    spread = max(FLOAT32_ULPS, float64_noise(offset))
    assert not search(near_ties(0, 32, rules, offset, spread, constant_hessian=True)).any()


@pytest.mark.parametrize("flush", [False, True])
def test_sums_of_a_few_units_among_many_rows(flush: bool) -> None:
    """Ranks fall below what float32 holds: all such candidates are returned."""
    library = kernel_library(EmulatorOptions(flush_subnormals=flush))
    rng = np.random.default_rng(1)
    shape = (16, 1, 6)
    for n_rows in (2**8, 2**20, 2**32):
        parent = np.full((16, 3, 1), n_rows)
        parent[:, 1] = rng.integers(-3, 4, (16, 1))
        parent[:, 2] = n_rows << 29
        parts = (rng.integers(1, n_rows, shape), rng.integers(-3, 4, shape))
        left = np.concatenate((*parts, parts[0] << 29), axis=1)
        assert not search(two_bin_case(left, parent, split_rules(0.0)), library).any()


@pytest.mark.parametrize(("n_bins", "overflows"), [(9, False), (10, True)])
def test_there_is_room_for_eight_near_ties_of_a_feature(n_bins: int, overflows: bool) -> None:
    """Bins of as many rows each, and left gradients of sqrt(D * HL * HR)."""
    n_rows = 2**20
    through = np.arange(1, n_bins + 1)
    left = np.rint(2.0**44 * np.sqrt(through * (n_bins - through))).astype(np.int64)
    gradients = np.diff(left, prepend=0)
    ones = np.ones_like(gradients)
    cells = np.stack((n_rows * ones, gradients, (n_rows << 28) * ones))
    cells = np.concatenate((cells, np.zeros((3, 1), np.int64)), axis=1)[None]
    for unit in (None, 2**28):
        case = SearchCase((n_bins,), cells, split_rules(0.0), unit)
        assert search(case).tolist() == [overflows]


# ------------------------------------------------------------------------ gamma as large as a gain


@pytest.mark.parametrize("offset", [0.0, 2.0**10, 2.0**20])
def test_gamma_at_the_gain(offset: float) -> None:
    n_found = []
    for seed in range(6):
        case = near_ties(seed, 1, split_rules(0.0), offset, float64_noise(offset))
        gain = case.expected()[0]["gain"][0]
        for gamma in (np.nextafter(gain, 0), gain, np.nextafter(gain, np.inf), gain / 2, 2 * gain):
            rules = split_rules(0.0, float(gamma))
            with_gamma = SearchCase(case.n_value_bins, case.cells, rules)
            assert not search(with_gamma).any()
            n_found.append(int(with_gamma.expected()[0]["found"][0]))
    assert n_found == [1, 0, 0, 1, 0] * 6


def test_where_nothing_can_gain_nothing_is_returned() -> None:
    for gamma in (1e300, 1e30):
        case = near_ties(0, 4, split_rules(1.0, gamma), 1.0, FLOAT32_ULPS)
        assert run_kernels(case)[:, 0].tolist() == [0] * 4


# ------------------------------------------------------------------------- whether these tests bite


def lost_winners(library: MetalLibrary, offset: float, spread: float, lam: float = 0.0) -> int:
    """In how many cases of 8 the decision is wrong."""
    lost = 0
    for seed in range(8):
        try:
            search(near_ties(seed, 32, split_rules(lam), offset, spread), library)
        except AssertionError:
            lost += 1
    return lost


def test_a_smaller_share_loses_winners() -> None:
    sixteenth = changed_library(
        ("1.00000095367431640625f", "1.000000059604644775390625f"),  # 1 + 2^-24
        ("0.99999904632568359375f", "0.999999940395355224609375f"),  # 1 - 2^-24
    )
    for offset in (0.0, 1.0, 2.0**8):
        assert lost_winners(kernel_library(), offset, FLOAT32_ULPS) == 0
        assert lost_winners(sixteenth, offset, FLOAT32_ULPS) > 0


@pytest.mark.parametrize(("divisor", "at_least"), [(16.0, 1), (np.inf, 8)])
def test_a_smaller_tolerance_loses_winners(
    monkeypatch: pytest.MonkeyPatch, divisor: float, at_least: int
) -> None:
    offset = 2.0**22
    assert lost_winners(kernel_library(), offset, float64_noise(offset)) == 0
    full = split_candidates._FLOAT64_ROUNDING
    monkeypatch.setattr(split_candidates, "_FLOAT64_ROUNDING", full / divisor)
    assert lost_winners(kernel_library(), offset, float64_noise(offset)) >= at_least
