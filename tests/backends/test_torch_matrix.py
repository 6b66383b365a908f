"""X and bins as tensors: read where they lie, whatever their dtype and strides."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from support.exact import assert_identical
from support.forests import random_forest
from support.matrices import DTYPES, layouts, matrix_of, numbers
from support.runs import (
    integer_thresholds,
    make_session,
    run_rows,
    run_settings,
    settings_of,
    train,
    training_data,
)
from support.scenarios import scenario

from torchgbdt.backends import torch_row_order
from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.backends.torch_matrix import DeviceBins, TensorMatrix
from torchgbdt.backends.torch_scatter import TorchBackend
from torchgbdt.backends.torch_transfers import Transfers, to_host
from torchgbdt.core import feature_source
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.communicator import SINGLE_RANK
from torchgbdt.core.errors import BackendError
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.settings import BinningSettings

CPU = torch.device("cpu")
ROWS = 500


def tensor_of(matrix: HostMatrix) -> TensorMatrix:
    """The same numbers as a tensor."""
    values = np.array(matrix.values, order="K")  # writable
    if matrix.is_bfloat16:
        return TensorMatrix(torch.from_numpy(values.view(np.int16)).view(torch.bfloat16))
    return TensorMatrix(torch.from_numpy(values))


def thresholds_from(values: np.ndarray) -> BinThresholds:
    columns = [np.unique(c[~np.isnan(c)] + 0.0)[:6] for c in values.T]
    return BinThresholds.from_features([(c, c.size + 1) for c in columns])


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_come_to_the_host_as_float64(dtype: str) -> None:
    host = matrix_of(numbers(dtype, np.random.default_rng(1), (ROWS, 4)), dtype)
    matrix = tensor_of(host)
    assert (matrix.n_rows, matrix.n_features) == (ROWS, 4)
    rows = np.random.default_rng(2).integers(0, ROWS, 60)
    assert_identical(matrix.column(2, 10, 90), host.column(2, 10, 90))
    assert_identical(matrix.sample(rows, slice(1, 3)), host.sample(rows, slice(1, 3)))


@pytest.mark.parametrize("layout", ["rows", "columns", "strided", "transposed slice"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bins_and_predictions_of_a_tensor_are_those_of_the_oracle(dtype: str, layout: str) -> None:
    rng = np.random.default_rng(3)
    values = numbers(dtype, rng, (ROWS, 3))
    host = matrix_of(values, dtype)
    tensor = laid_out(tensor_of(host).tensor, layout)
    matrix, backend, oracle = TensorMatrix(tensor), TorchBackend("cpu"), OracleBackend()
    thresholds = thresholds_from(values)
    for kept in (None, np.flatnonzero(rng.random(ROWS) < 0.4)):
        expected = oracle.bin_features(host, kept, thresholds)
        assert_identical(np.asarray(backend.bin_features(matrix, kept, thresholds)), expected)
    pool = [np.unique(c[~np.isnan(c)]).tolist() for c in values.T]
    forest = random_forest(rng, pool)
    found, expected = np.ones((2, ROWS, 1), np.float32)
    backend.predict(forest, matrix, found)
    oracle.predict(forest, host, expected)
    assert_identical(found, expected)


def laid_out(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """The same numbers, each time lying in memory in another way."""
    if layout == "rows":
        return tensor.contiguous()
    if layout == "columns":
        return tensor.t().contiguous().t()
    n_rows, n_features = tensor.shape
    if layout == "strided":
        wide = torch.zeros((2 * n_rows, 3 * n_features), dtype=tensor.dtype)
        view = wide[::2, ::3]
    else:
        view = torch.zeros((n_features + 2, n_rows + 5), dtype=tensor.dtype)[1:-1, 2:-3].t()
    view.copy_(tensor)
    return view


def test_a_tensor_on_the_device_is_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[tuple[int, ...]] = []
    method = Transfers.to_device

    def watched(self: Transfers, array: np.ndarray) -> torch.Tensor:
        moved.append(array.shape)
        return method(self, array)

    monkeypatch.setattr(Transfers, "to_device", watched)
    X = torch.rand(ROWS, 3)
    TorchBackend("cpu").bin_features(TensorMatrix(X), None, integer_thresholds([2, 2, 2]))
    assert moved == [(3, 1), (3,)]  # threshold keys, missing codes


class ElsewhereMatrix:
    """A source that is neither a host matrix nor a tensor."""

    def __init__(self, host: HostMatrix) -> None:
        self.n_rows, self.n_features, self.sample = host.n_rows, host.n_features, host.sample


def test_any_other_source_is_moved_as_float64_keys() -> None:
    values = numbers("float64", np.random.default_rng(5), (ROWS, 3))
    thresholds = thresholds_from(values)
    found = TorchBackend("cpu").bin_features(ElsewhereMatrix(HostMatrix(values)), None, thresholds)
    assert_identical(
        np.asarray(found), OracleBackend().bin_features(HostMatrix(values), None, thresholds)
    )


@pytest.mark.parametrize("layout", layouts(np.zeros((2, 2))))
def test_a_host_matrix_of_any_layout_is_moved(layout: str) -> None:
    values = layouts(numbers("float32", np.random.default_rng(6), (ROWS, 3)).astype(np.float32))
    thresholds = thresholds_from(values["C order"].astype(np.float64))
    found = TorchBackend("cpu").bin_features(HostMatrix(values[layout]), None, thresholds)
    expected = OracleBackend().bin_features(HostMatrix(values["C order"]), None, thresholds)
    assert_identical(np.asarray(found), expected)


# ------------------------------------------------------------------------------------------ bins


def device_bins(codes: Any) -> DeviceBins:
    return DeviceBins.on(np.asarray(codes, np.uint8), Transfers(CPU))


@pytest.mark.parametrize(("n_features", "n_padded"), [(1, 8), (8, 8), (9, 16)])
def test_rows_of_bins_are_padded_to_whole_words(n_features: int, n_padded: int) -> None:
    codes = np.full((4, n_features), 7, np.uint8)
    bins = device_bins(codes)
    assert bins.shape == (4, n_features)
    assert bins.tensor.shape == (4, n_padded) and bins.tensor.is_contiguous()
    assert to_host(bins.tensor)[:, n_features:].sum() == 0
    assert_identical(np.asarray(bins), codes)


def test_some_rows_of_bins_are_a_copy_on_the_device() -> None:
    codes = np.arange(12, dtype=np.uint8).reshape(4, 3)
    bins = device_bins(codes)
    for rows in (np.array([2, 0, 2]), slice(1, 3), np.zeros(0, np.int64)):
        part = bins[rows]
        assert isinstance(part, DeviceBins)
        assert_identical(np.asarray(part), codes[rows])
        part.tensor.fill_(9)
    assert_identical(np.asarray(bins), codes)


def test_bins_of_the_device_are_used_where_they_lie_and_others_are_copied() -> None:
    codes = np.array([[0, 1], [2, 0]], np.uint8)
    bins = device_bins(codes)
    backend, settings = TorchBackend("cpu"), run_settings(integer_thresholds([3, 3]))
    rows = run_rows(codes)
    backend.prepare(replace(rows, bins=bins), [rows], settings)
    assert backend.run.rows[0].bins is bins
    assert_identical(np.asarray(backend.run.rows[1].bins), codes)
    codes[:] = 9
    assert_identical(np.asarray(backend.run.rows[1].bins), np.array([[0, 1], [2, 0]], np.uint8))


def test_data_binned_by_one_backend_trains_another() -> None:
    one = scenario("plain")
    expected = train(OracleBackend(), one).model.digest()
    backends = {"oracle": OracleBackend(), "torch": TorchBackend("cpu")}
    data = training_data(one)
    for maker in backends.values():
        binned = data.train.check().quantize(
            BinningSettings(settings_of(one).max_bins), maker, SINGLE_RANK
        )
        for backend in backends.values():
            session = make_session(backend, one)
            found = session.run(replace(data, train=binned))
            assert found.digest() == expected
    assert isinstance(binned.bins, DeviceBins)


@pytest.mark.parametrize("name", ["missing values", "3 classes"])
def test_blocks_of_rows_of_any_size_give_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = scenario(name)
    expected = train(OracleBackend(), one)
    X = HostMatrix(one.train.X)
    sums = np.zeros((2, X.n_rows, expected.model.baseline.size), np.float32)
    OracleBackend().predict(expected.model.forest, X, sums[0])
    monkeypatch.setattr(feature_source, "_BLOCK_BYTES", 700)
    monkeypatch.setattr(torch_row_order, "_CELLS_AT_ONCE", 50)
    found = train(TorchBackend("cpu"), one)
    assert found.model.digest() == expected.model.digest()
    assert_identical(found.history, expected.history)
    TorchBackend("cpu").predict(expected.model.forest, X, sums[1])
    assert_identical(sums[1], sums[0])


def test_codes_are_checked_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """MPS reduces a float32 copy of what it is given, and ends the process where that has 4 GB."""
    monkeypatch.setattr(feature_source, "_BLOCK_BYTES", 4 * 8 * 100)
    codes = np.random.default_rng(4).integers(0, 4, (ROWS, 3)).astype(np.uint8)
    codes[:, 1] = 0
    codes[250, 1] = 4
    cuts = integer_thresholds([3, 3, 3])
    reduced: list[int] = []
    amax = torch.Tensor.amax

    def noting_rows(tensor: torch.Tensor, dim: int) -> torch.Tensor:
        reduced.append(tensor.shape[0])
        return amax(tensor, dim)

    monkeypatch.setattr(torch.Tensor, "amax", noting_rows)
    transfers = Transfers(CPU)
    with pytest.raises(BackendError, match="feature 1 has the bin code 4; its missing code is 3"):
        DeviceBins.on(codes, transfers).check(cuts, transfers)
    assert max(reduced) == 100
    assert transfers.synchronizations == 1
