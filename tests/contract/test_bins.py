"""``bin_features``: any dtype, any layout, any value, some rows; and where a bin ends."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.lockstep import in_lockstep
from support.matrices import DTYPES, layouts, matrix_of, numbers
from support.runs import MANY_ROWS
from support.strategies import matrices

from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.feature_source import HostMatrix

INF, NAN = np.inf, np.nan
ROWS = 700


def thresholds_of(*features: tuple[list[float], int]) -> BinThresholds:
    return BinThresholds.from_features([(np.array(t, np.float64), n) for t, n in features])


def thresholds_from(values: np.ndarray, n_bins: int) -> BinThresholds:
    """Thresholds that are values of the data: the awkward place for a border."""
    columns = [np.unique(c[~np.isnan(c)] + 0.0)[: n_bins - 1] for c in values.T]
    return thresholds_of(*((c.tolist(), c.size + 1) for c in columns))


def bins_of(
    backend: ComputeBackend,
    matrix: HostMatrix,
    thresholds: BinThresholds,
    kept: np.ndarray | None = None,
) -> np.ndarray:
    return np.asarray(backend.bin_features(matrix, kept, thresholds))


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_any_dtype(under_test: BackendUnderTest, dtype: str) -> None:
    values = numbers(dtype, np.random.default_rng(1), (ROWS, 5))
    matrix = matrix_of(values, dtype)
    bins_of(in_lockstep(under_test), matrix, thresholds_from(values, 9))


def test_many_rows(under_test: BackendUnderTest) -> None:
    values = np.random.default_rng(1).normal(size=(MANY_ROWS, 2))
    bins_of(in_lockstep(under_test), HostMatrix(values), thresholds_from(values[:40], 9))


@pytest.mark.parametrize("layout", layouts(np.zeros((2, 2))))
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_any_layout_gives_the_bins_of_c_order(
    backend: ComputeBackend, layout: str, dtype: str
) -> None:
    values = numbers(dtype, np.random.default_rng(2), (ROWS, 3))
    views = layouts(matrix_of(values, dtype).values)
    thresholds = thresholds_from(values, 7)
    expected = bins_of(backend, HostMatrix(views["C order"]), thresholds)
    assert np.array_equal(bins_of(backend, HostMatrix(views[layout]), thresholds), expected)


def test_a_broadcast_column_is_read_in_place(backend: ComputeBackend) -> None:
    matrix = HostMatrix(np.broadcast_to(np.array([1.0, 2.0, 3.0]), (9, 3)))
    bins = bins_of(backend, matrix, thresholds_of(([1.5], 2), ([1.5], 2), ([3.0], 2)))
    assert bins.tolist() == [[0, 1, 0]] * 9


def test_float32_and_its_float64_copy_give_the_same_bins(backend: ComputeBackend) -> None:
    values = np.random.default_rng(3).normal(size=(ROWS, 3)).astype(np.float32)
    thresholds = thresholds_from(values.astype(np.float64), 200)
    bins = [bins_of(backend, HostMatrix(values.astype(t)), thresholds) for t in "fd"]
    assert np.array_equal(*bins)


@pytest.mark.parametrize("layout", ["C order", "F order", "rows reversed"])
def test_kept_rows_are_binned_in_their_order(under_test: BackendUnderTest, layout: str) -> None:
    rng = np.random.default_rng(4)
    values = numbers("float64", rng, (ROWS, 3))
    kept = np.flatnonzero(rng.random(ROWS) < 0.3)
    matrix = HostMatrix(layouts(values)[layout])
    bins = bins_of(in_lockstep(under_test), matrix, thresholds_from(values, 8), kept)
    everything = bins_of(under_test.make(), matrix, thresholds_from(values, 8))
    assert np.array_equal(bins, everything[kept])


def test_no_kept_rows_give_no_bins(backend: ComputeBackend) -> None:
    kept = np.zeros(0, np.int64)
    bins = bins_of(backend, HostMatrix(np.ones((4, 2))), thresholds_of(([], 1), ([], 1)), kept)
    assert bins.shape == (0, 2)


def test_a_value_equal_to_a_threshold_lies_below_it(backend: ComputeBackend) -> None:
    t = np.float64(1) / 3
    column = [np.nextafter(t, -1), t, np.nextafter(t, 1)]
    bins = bins_of(backend, HostMatrix(np.array(column)[:, None]), thresholds_of(([t], 2)))
    assert bins[:, 0].tolist() == [0, 0, 1]


def test_infinities_are_values_and_nan_is_missing(backend: ComputeBackend) -> None:
    column = np.array([-INF, -1e300, 0.0, 1e300, INF, NAN])
    bins = bins_of(backend, HostMatrix(column[:, None]), thresholds_of(([-INF, 0.0, 1e300], 4)))
    assert bins[:, 0].tolist() == [0, 1, 1, 2, 3, 4]


def test_signed_zeros_share_a_bin(backend: ComputeBackend) -> None:
    column = np.array([[-0.0], [0.0]])
    for threshold in (0.0, -0.0):
        bins = bins_of(backend, HostMatrix(column), thresholds_of(([threshold], 2)))
        assert bins[:, 0].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_subnormal_values_are_told_apart(backend: ComputeBackend, dtype: str) -> None:
    tiny = float(np.finfo(dtype).smallest_subnormal)
    column = np.array([-tiny, 0.0, tiny, 2 * tiny, 3 * tiny])[:, None].astype(dtype)
    thresholds = thresholds_of(([-tiny, 0.0, tiny, 2 * tiny], 5))
    assert bins_of(backend, HostMatrix(column), thresholds)[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_all_missing_constant_and_finest_features(backend: ComputeBackend) -> None:
    finest = [float(t) for t in range(254)]
    X = np.column_stack([[NAN, NAN, 5.0], [2.0, NAN, 2.0], [253.0, 253.5, NAN]])
    bins = bins_of(backend, HostMatrix(X), thresholds_of(([], 0), ([], 1), (finest, 255)))
    assert bins.tolist() == [[0, 0, 253], [0, 1, 254], [0, 0, 255]]


def test_bins_between_the_largest_integers(backend: ComputeBackend) -> None:
    top = 2**53
    column = np.array([[top - 2], [top - 1], [top]])
    thresholds = thresholds_of(([top - 2.0, top - 1.0], 3))
    for dtype in (np.int64, np.uint64):
        bins = bins_of(backend, HostMatrix(column.astype(dtype)), thresholds)
        assert bins[:, 0].tolist() == [0, 1, 2]


@hypothesis.given(data=st.data())
def test_any_values_and_any_thresholds(under_test: BackendUnderTest, data: st.DataObject) -> None:
    values = data.draw(matrices())
    pool = np.unique(np.append(values[~np.isnan(values)], [-1.0, 1.0]) + 0.0)
    chosen = data.draw(st.lists(st.sampled_from(pool.tolist()), unique=True, max_size=9))
    thresholds = thresholds_of(*[(sorted(chosen), len(chosen) + 1)] * values.shape[1])
    bins_of(in_lockstep(under_test), HostMatrix(values), thresholds)
