"""Sorted columns, their quantiles and distinct values: the native readers equal the definitions."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from native.test_sources import ForeignSource, misaligned
from support.exact import assert_identical

from torchgbdt.backends.native import NativeBackend
from torchgbdt.core import columns, quantiles
from torchgbdt.core.feature_source import FeatureSource, HostMatrix

RNG = np.random.default_rng(0)
DTYPES = [
    *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, np.float32, np.float64),
]


def numbers(dtype: type, n_rows: int, n_features: int) -> np.ndarray:
    """Values of every size, many of them equal; missing, infinite, subnormal and -0 if floats."""
    if np.dtype(dtype).kind in "biu":
        lower = 0 if np.dtype(dtype).kind in "bu" else -100
        return RNG.integers(lower, 120, (n_rows, n_features)).astype(dtype)
    X = RNG.normal(size=(n_rows, n_features)) * 2.0 ** RNG.integers(-20, 15, (n_rows, n_features))
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.0**-24, -(2.0**-24), 1.0])
    X = np.where(RNG.random(X.shape) < 0.3, special[RNG.integers(0, 8, X.shape)], X)
    return X.astype(dtype)


def assert_same_columns(found: np.ndarray, expected: np.ndarray) -> None:
    """Bit for bit, but for the payload of a NaN, which means missing whatever it is."""
    plain = [np.where(np.isnan(array), np.nan, array) for array in (found, expected)]
    assert_identical(*plain)


def check(source: FeatureSource, n_threads: int = 2) -> None:
    backend = NativeBackend(n_threads)
    rows = np.sort(RNG.integers(0, source.n_rows, source.n_rows // 2))
    for features in (range(source.n_features), range(1, source.n_features), range(1, 1)):
        expected = columns.sort_columns(source, rows, features)
        assert_same_columns(backend.sort_columns(source, rows, features), expected)
        for kept_rows in (None, rows):
            for limit in (1, 2, 100, 255):
                arguments = (source, kept_rows, features, limit)
                expected_few = columns.distinct_values(*arguments)
                assert_identical(backend.distinct_values(*arguments), expected_few)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_reads_as_the_definition(dtype: type) -> None:
    X = numbers(dtype, 5000, 3)
    X[:, 2] = X[:1, 1]
    check(HostMatrix(X))
    check(HostMatrix(np.asfortranarray(X)[::-2]), 1)
    check(HostMatrix(misaligned(X[:200])), 7)


def test_bfloat16_reads_as_the_definition() -> None:
    bits = RNG.integers(0, 2**16, (5000, 3)).astype(np.uint16)
    check(HostMatrix(bits, is_bfloat16=True))


def test_foreign_sources_read_as_the_definition() -> None:
    check(ForeignSource(HostMatrix(numbers(np.float64, 700, 3))))


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 40), st.just(1))))
def test_float64_of_any_bits_sorts_as_the_definition(X: np.ndarray) -> None:
    source, rows = HostMatrix(X), np.arange(len(X))
    expected = columns.sort_columns(source, rows, range(1))
    assert_same_columns(NativeBackend(1).sort_columns(source, rows, range(1)), expected)


def test_more_features_than_a_task_reads_together() -> None:
    X = np.repeat(np.arange(300.0)[:, None], 40, axis=1) % np.arange(1, 41)
    check(HostMatrix(X.astype(np.float32)))


def check_cuts(values: np.ndarray, n_bins: int) -> None:
    values = np.sort(values.astype(np.float64) + 0.0)
    expected = quantiles.cut_column(values, n_bins)
    assert_identical(NativeBackend(1).cut_column(values, n_bins), expected)


@given(
    st.lists(st.tuples(st.floats(allow_nan=False), st.integers(1, 40)), max_size=60),
    st.integers(1, 30),
)
def test_columns_with_values_of_any_weight_are_cut_as_defined(
    runs: list[tuple[float, int]], n_bins: int
) -> None:
    values, counts = zip(*runs, strict=True) if runs else ((), ())
    check_cuts(np.repeat(np.array(values, np.float64), np.array(counts, np.int64)), n_bins)


@pytest.mark.parametrize("n_bins", [1, 2, 3, 16, 254, 255])
@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.5, 3.0])
def test_long_columns_with_heavy_values_are_cut_as_defined(n_bins: int, exponent: float) -> None:
    values = RNG.normal(size=20_000)
    if exponent > 0:  # few small numbers are most of them
        values = np.floor(RNG.pareto(exponent, 20_000) * 10)
    check_cuts(values, n_bins)


def test_weights_at_every_border_between_heavy_and_light_are_cut_as_defined() -> None:
    for counts in itertools.product((1, 2, 4, 6), repeat=5):
        for n_bins in (2, 3, 4):
            check_cuts(np.repeat(np.arange(5.0), counts), n_bins)


def test_neighbours_between_which_no_number_lies_are_cut_as_defined() -> None:
    tiny = 5e-324
    values = [-np.inf, -1.7e308, -tiny, 0.0, tiny, 1.0, 1.0 + 2.0**-52, 1.7e308, 1.79e308, np.inf]
    for n_bins in range(1, 12):
        check_cuts(np.array(values), n_bins)
