"""``bin_features`` of csrc/metal: X of any dtype and strides becomes words of bins."""

import numpy as np
import pytest
import torch
from metal.row_buffers import (
    CHECKED,
    LIBRARIES,
    ROW_COUNTS,
    device_matrix,
    library_of,
    strides,
    tensor,
)
from support.matrices import DTYPES, numbers

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.backends.threshold_keys import KEY_FORMS, float64_keys
from torchgbdt.core.binning import BinThresholds, bin_column

INF, NAN = np.inf, np.nan


def thresholds_of(*features: tuple[list[float], int]) -> BinThresholds:
    return BinThresholds.from_features([(np.array(t, np.float64), n) for t, n in features])


def thresholds_from(values: np.ndarray, n_bins: int) -> BinThresholds:
    """Thresholds that are values of the data, or lie just above or below one."""
    columns = []
    for place, column in enumerate(values.T):
        cuts = np.unique(column[~np.isnan(column)] + 0.0)[: n_bins - 1]
        columns.append(np.nextafter(cuts, [INF, -INF, cuts][place % 3]))
    return thresholds_of(*((c.tolist(), c.size + 1) for c in columns))


def words_of(
    library: MetalLibrary,
    x: torch.Tensor,
    dtype: str,
    thresholds: BinThresholds,
    kept: np.ndarray | None = None,
) -> np.ndarray:
    form = KEY_FORMS[dtype]
    n_rows = x.shape[0] if kept is None else kept.size
    n_features = x.shape[1]
    n_words = -(-n_features // 8)
    cuts = form.threshold_keys(np.append(thresholds.values, 0.0))  # never empty
    firsts = thresholds.offsets
    ranges = np.stack((firsts[:-1], np.diff(firsts), thresholds.n_value_bins), axis=1)
    words = torch.full((n_rows, 8 * n_words), 0xEE, dtype=torch.uint8)
    constants = {**form.constants(), "HAS_KEPT_ROWS": int(kept is not None)}
    library.kernel("bin_features", constants=constants)(
        x,
        x if kept is None else tensor(kept),
        tensor(cuts),
        tensor(ranges.astype(np.int32)),
        words,
        strides(x),
        n_features,
        threads=(n_rows, n_words),
        group_size=(min(n_rows, 256), 1),
    )
    return words.numpy()


def expected_words(values: np.ndarray, thresholds: BinThresholds) -> np.ndarray:
    n_rows, n_features = values.shape
    words = np.zeros((n_rows, 8 * -(-n_features // 8)), np.uint8)
    for feature in range(n_features):
        column = np.ascontiguousarray(values[:, feature])
        words[:, feature] = bin_column(column, thresholds, feature)
    return words


def tensor_of(values: np.ndarray, dtype: str) -> torch.Tensor:
    """X as the kernel reads it; of float64, the host makes keys."""
    return tensor(float64_keys(values)) if dtype == "float64" else device_matrix(values, dtype)


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_dtype(options, dtype: str) -> None:
    values = numbers(dtype, np.random.default_rng(1), (300, 11))
    thresholds = thresholds_from(values, 9)
    found = words_of(library_of(options), tensor_of(values, dtype), dtype, thresholds)
    assert np.array_equal(found, expected_words(values, thresholds))


@pytest.mark.parametrize("n_rows", ROW_COUNTS)
@pytest.mark.parametrize("n_features", [1, 7, 8, 9, 17])
def test_any_shape_and_padding_is_zero(n_rows: int, n_features: int) -> None:
    values = np.random.default_rng(2).normal(size=(n_rows, n_features)).astype(np.float32)
    thresholds = thresholds_of(*(([-0.5, 0.0, 0.7], 4),) * n_features)
    library = library_of(LIBRARIES["shuffled-1"])
    found = words_of(library, tensor(values), "float32", thresholds)
    assert np.array_equal(found, expected_words(values.astype(np.float64), thresholds))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_chosen_rows_of_any_layout(dtype: str) -> None:
    values = numbers(dtype, np.random.default_rng(3), (90, 6))
    x = device_matrix(values, dtype)
    wide = torch.zeros((181, 20), dtype=x.dtype)
    wide[1::2, 2::3] = x
    kept = np.array([0, 3, 4, 50, 89])
    thresholds = thresholds_from(values, 5)
    library = library_of(LIBRARIES["shuffled-1"])
    for view in (x, x.t().contiguous().t(), wide[1::2, 2::3]):
        found = words_of(library, view, dtype, thresholds, kept)
        assert np.array_equal(found, expected_words(values[kept], thresholds))


def test_a_broadcast_column_is_read_in_place() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0]]).expand(9, 3)
    thresholds = thresholds_of(([1.5], 2), ([1.5], 2), ([3.0], 2))
    found = words_of(library_of(LIBRARIES["ascending"]), x, "float32", thresholds)
    assert found.tolist() == [[0, 1, 0, 0, 0, 0, 0, 0]] * 9


def test_missing_values_and_features_of_few_bins() -> None:
    x = torch.tensor([[NAN, NAN, NAN], [-INF, 1.0, 0.0], [INF, NAN, -0.0]])
    thresholds = thresholds_of(([0.0], 2), ([], 1), ([], 0))
    found = words_of(library_of(LIBRARIES["ascending"]), x, "float32", thresholds)
    assert found[:, :3].tolist() == [[2, 1, 0], [0, 0, 0], [1, 1, 0]]


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
def test_subnormals_are_numbers_though_devices_flush_them(options) -> None:
    tiny = 2.0**-149
    x = torch.tensor([[-tiny], [-0.0], [0.0], [tiny], [2 * tiny]])
    thresholds = thresholds_of(([-tiny, 0.0, tiny], 4))
    found = words_of(library_of(options), x, "float32", thresholds)
    assert found[:, 0].tolist() == [0, 1, 1, 2, 3]


def test_two_hundred_and_fifty_four_cuts() -> None:
    cuts = np.arange(254.0)
    values = np.concatenate((cuts, cuts + 0.5, [-1.0, NAN]))[:, None]
    thresholds = thresholds_of((cuts.tolist(), 255))
    library = library_of(LIBRARIES["ascending"])
    found = words_of(library, tensor(values.astype(np.float32)), "float32", thresholds)
    assert np.array_equal(found, expected_words(values, thresholds))
    assert found[-1, 0] == 255


def test_thresholds_that_integers_do_not_reach() -> None:
    values = np.array([[-(2.0**31)], [2.0**31 - 1]])
    thresholds = thresholds_of(([-INF, -1e300, -(2.0**31), 2.0**31, INF], 6))
    library = library_of(LIBRARIES["ascending"])
    found = words_of(library, device_matrix(values, "int32"), "int32", thresholds)
    assert found[:, 0].tolist() == [2, 3]


def test_bools_of_any_byte() -> None:
    x = torch.tensor([[0], [1], [2], [255]], dtype=torch.uint8).view(torch.bool)
    thresholds = thresholds_of(([0.5, 1.0], 3))
    found = words_of(library_of(LIBRARIES["ascending"]), x, "bool", thresholds)
    assert found[:, 0].tolist() == [0, 1, 1, 1]


def test_under_the_checks_of_the_emulator() -> None:
    values = numbers("float32", np.random.default_rng(4), (33, 9))
    thresholds = thresholds_from(values, 5)
    found = words_of(library_of(CHECKED), tensor_of(values, "float32"), "float32", thresholds)
    assert np.array_equal(found, expected_words(values, thresholds))
