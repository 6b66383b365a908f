"""X where it lies: memory layouts that only the native reader could get wrong."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from torchgbdt import _native
from torchgbdt.backends.native import NativeBackend
from torchgbdt.core.binning import BinThresholds, bin_column
from torchgbdt.core.feature_source import HostMatrix

RNG = np.random.default_rng(0)
VALUES = RNG.integers(-3, 4, (300, 3)).astype(np.float64)
THRESHOLDS = BinThresholds.from_features([(np.arange(-2.0, 3.0), 6)] * 3)


@dataclass(frozen=True)
class ForeignSource:
    """A FeatureSource that is no HostMatrix, as another device's would be."""

    matrix: HostMatrix

    @property
    def n_rows(self) -> int:
        return self.matrix.n_rows

    @property
    def n_features(self) -> int:
        return self.matrix.n_features

    def column(self, feature: int, start: int, stop: int) -> Any:
        return self.matrix.column(feature, start, stop)

    def sample(self, rows: Any, features: slice) -> Any:
        return self.matrix.sample(rows, features)


def bins_of(source: Any, kept_rows: np.ndarray | None = None) -> np.ndarray:
    return NativeBackend(2).bin_features(source, kept_rows, THRESHOLDS)


def expected_bins(values: np.ndarray) -> np.ndarray:
    return np.stack([bin_column(values[:, f], THRESHOLDS, f) for f in range(3)], axis=1)


def misaligned(values: np.ndarray) -> np.ndarray:
    """The same numbers inside packed records, one byte off every boundary."""
    records = np.zeros(values.shape, np.dtype([("tag", np.int8), ("x", values.dtype)]))
    records["x"] = values
    return records["x"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.int16])
def test_misaligned_numbers_are_read(dtype: type) -> None:
    X = misaligned(VALUES.astype(dtype))
    assert X.strides[1] % X.itemsize != 0
    assert np.array_equal(bins_of(HostMatrix(X)), expected_bins(VALUES))


def test_broadcast_columns_and_rows_are_read() -> None:
    row, column = np.broadcast_to(VALUES[:1], (300, 3)), np.broadcast_to(VALUES[:, :1], (300, 3))
    assert np.array_equal(bins_of(HostMatrix(row)), expected_bins(row))
    assert np.array_equal(bins_of(HostMatrix(column)), expected_bins(column))


def test_foreign_source_is_read_a_block_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchgbdt.core.feature_source._BLOCK_BYTES", 1000)
    kept = np.flatnonzero(VALUES[:, 0] > 0)
    foreign = ForeignSource(HostMatrix(VALUES))
    assert np.array_equal(bins_of(foreign), expected_bins(VALUES))
    assert np.array_equal(bins_of(foreign, kept), expected_bins(VALUES[kept]))


@pytest.mark.parametrize(
    "X",
    [
        VALUES.astype(">f8"),
        VALUES.astype(np.complex128),
        VALUES.astype(np.longdouble),
        VALUES.astype("U5"),
        VALUES.astype(object),
        VALUES[:, 0],
        VALUES[:, :, None],
    ],
    ids=["byte order", "complex", "long double", "text", "objects", "1-D", "3-D"],
)
def test_what_is_no_matrix_of_native_numbers_is_a_type_error(X: np.ndarray) -> None:
    cuts = (THRESHOLDS.values, THRESHOLDS.offsets, THRESHOLDS.n_value_bins)
    with pytest.raises(TypeError, match="X must"):
        _native.bin_features(X, False, None, *cuts, np.zeros((300, 3), np.uint8), 1)


def test_only_16_bit_words_can_be_bfloat16() -> None:
    cuts = (THRESHOLDS.values, THRESHOLDS.offsets, THRESHOLDS.n_value_bins)
    with pytest.raises(TypeError, match="bfloat16"):
        _native.bin_features(VALUES, True, None, *cuts, np.zeros((300, 3), np.uint8), 1)
