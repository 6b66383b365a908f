"""Raw predictions: how baseline, margins and sums of leaf values are put together."""

import numpy as np
import pytest
from support.exact import assert_identical

from torchgbdt.core.raw_predictions import baseline_parts, raw_float32, raw_float64

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = 2.0**-126


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float32)[:, None]


@pytest.mark.parametrize(
    ("baseline", "high", "low"),
    [
        (0.0, 0.0, 0.0),
        (0.5, 0.5, 0.0),
        (2.0**24 + 0.5, 2.0**24, 0.5),
        (1 + 2.0**-25, 1.0, 2.0**-25),
        (1 + 2.0**-40 + 2.0**-52, 1.0, 2.0**-40 + 2.0**-52),
        (-1e9 - 0.125, -1e9, -0.125),
        (1e-40, 0.0, 0.0),
        (SMALLEST * (1 + 2.0**-30), SMALLEST, 0.0),  # the rest, 2^-156, is flushed
        (LARGEST, LARGEST, 0.0),
    ],
)
def test_baseline_is_split_into_two_float32(baseline: float, high: float, low: float) -> None:
    parts = baseline_parts(np.array([baseline]))
    assert_identical(parts, (np.array([high], np.float32), np.array([low], np.float32)))


@pytest.mark.parametrize(
    ("baseline", "total", "expected"),
    [
        (0.5, 0.25, 0.75),
        # hi = 2^24, lo = 1/2; floats beside 2^24 are 2 apart. lo + 1/2 = 1 is a tie, to even.
        (2.0**24 + 0.5, 0.5, 2.0**24),
        (2.0**24 + 0.5, 1.0, 2.0**24 + 2),  # (hi + lo) + 1 would be 2^24
        (1e9 + 0.125, 0.0, 1e9),
        (SMALLEST, -1.5 * SMALLEST, 0.0),  # -2^-127 is flushed to +0
        (0.0, -0.0, 0.0),
        (LARGEST, LARGEST, np.inf),
    ],
)
def test_raw_float32_adds_the_small_part_first(
    baseline: float, total: float, expected: float
) -> None:
    found = raw_float32(np.array([baseline]), column(total), None)
    assert_identical(found, column(expected))


def test_raw_float32_adds_the_margin_to_the_sum_first() -> None:
    # hi = 1, lo = 2^-25. margin + sum = -1 + 2^-24; lo + that is a tie, to even: -1 + 2^-23.
    # (lo + margin) + sum would be -1 + 2^-24, as lo is lost in lo + margin.
    found = raw_float32(np.array([1 + 2.0**-25]), column(2.0**-24), column(-1))
    assert_identical(found, column(2.0**-23))


def test_each_result_on_the_way_is_flushed() -> None:
    # margin + sum = 2^-127 becomes 0; without that, hi + 2^-127 would be 1.5 * 2^-126.
    found = raw_float32(np.array([SMALLEST]), column(1.5 * SMALLEST), column(-SMALLEST))
    assert_identical(found, column(SMALLEST))


def test_the_sum_of_margin_and_leaf_values_is_flushed() -> None:
    # margin + sum = 2^-127 becomes 0. Left as it is, low + 2^-127 = 1.5 * 2^-126 would lie beyond
    # the middle of two floats at 2^-102, which are 2^-125 apart; low = 2^-126 is a tie, to even.
    found = raw_float32(
        np.array([2.0**-102 + 2.0**-126]), column(1.5 * SMALLEST), column(-SMALLEST)
    )
    assert_identical(found, column(2.0**-102))


def test_raw_float64_adds_baseline_and_sum_in_float64() -> None:
    # The float32 sums 0.1 and -0.25 are exact in float64.
    baseline = 1e9 + 1e-7
    found = raw_float64(np.array([baseline]), column(0.1, -0.25), None)
    expected = np.array([[baseline + float(np.float32(0.1))], [baseline - 0.25]])
    assert_identical(found, expected)


def test_raw_float64_adds_margin_and_sum_in_float32() -> None:
    # 1 + 2^-25 rounds to 1 in float32.
    margins = column(1)
    found = raw_float64(np.array([0.5]), column(2.0**-25), margins)
    assert_identical(found, np.array([[1.5]]))


def test_raw_float64_flushes_the_sum_of_margin_and_leaf_values() -> None:
    # -2^-126 + 1.5 * 2^-126 = 2^-127.
    margins = column(-SMALLEST)
    assert_identical(raw_float64(np.zeros(1), column(1.5 * SMALLEST), margins), np.zeros((1, 1)))


def test_each_output_has_its_baseline_and_each_entry_its_margin() -> None:
    sums = np.array([[1, 2], [3, 4]], np.float32)
    margins = np.array([[100, 500], [200, 700]], np.float32)
    baseline = np.array([10.0, 20.0])
    expected = np.array([[111, 522], [213, 724]])
    assert_identical(raw_float32(baseline, sums, margins), expected.astype(np.float32))
    assert_identical(raw_float64(baseline, sums, margins), expected.astype(np.float64))


def test_sums_are_left_as_they_were() -> None:
    sums = column(1, 2)
    raw_float32(np.array([5.0]), sums, column(1, 1))
    raw_float64(np.array([5.0]), sums, None)
    assert_identical(sums, column(1, 2))


def test_every_output_is_split_into_its_own_parts() -> None:
    high, low = baseline_parts(np.array([2.0**24 + 0.5, -1.0, 1 + 2.0**-25]))
    assert_identical(high, np.array([2.0**24, -1, 1], np.float32))
    assert_identical(low, np.array([0.5, 0, 2.0**-25], np.float32))


@pytest.mark.parametrize("margins", [None, np.zeros((0, 3), np.float32)])
def test_no_rows_have_no_predictions(margins: np.ndarray | None) -> None:
    sums = np.zeros((0, 3), np.float32)
    assert_identical(raw_float32(np.ones(3), sums, margins), sums)
    assert_identical(raw_float64(np.ones(3), sums, margins), np.zeros((0, 3)))


def test_sums_that_are_no_longer_finite_give_no_warning() -> None:
    sums, margins = column(np.inf, -np.inf, LARGEST), column(1, 1, LARGEST)
    for raw in (raw_float32, raw_float64):
        assert raw(np.array([LARGEST]), sums, margins)[:, 0].tolist() == [np.inf, -np.inf, np.inf]
