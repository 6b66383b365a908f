"""What leaves the device in a run, which operations it is made of, and what errors say."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from support.random_rows import classes_of
from support.runs import Rows, Scenario, integer_thresholds, run_rows, run_settings, train
from torch.utils._python_dispatch import TorchDispatchMode

from torchgbdt.backends import torch_matrix, torch_transfers
from torchgbdt.backends.torch_scatter import TorchBackend
from torchgbdt.backends.torch_transfers import Transfers
from torchgbdt.core.errors import BackendError, DeviceMemoryError
from torchgbdt.core.feature_source import HostMatrix

N_ROWS, N_FEATURES, MAX_DEPTH, MAX_BINS = 20_000, 3, 3, 8

HOST_COPIES = {"_local_scalar_dense", "nonzero", "masked_select", "equal"}
"""Operations that wait for the device: their results are numbers, or shapes, on the host."""

BROKEN_ON_MPS = {
    *("bincount", "_unique2", "unique_dim", "unique_consecutive", "index_add", "index_add_"),
    *("put", "put_", "take", "mode", "segment_reduce", "histc", "kthvalue", "median"),
}


class OperationsOfARun(TorchDispatchMode):
    """Notes every operation; copies between devices are told apart by where they are made.

    On the host nothing really moves: a copy is one that asks for a device by name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.dtypes: set[torch.dtype] = set()
        self.unstable_sorts = 0
        self.copies = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        self.names.add(name)
        self.copies += name == "_to_copy" and kwargs.get("device") is not None
        self.unstable_sorts += name == "sort" and not kwargs.get("stable")
        result = func(*args, **kwargs)
        outputs = result if isinstance(result, tuple | list) else [result]
        self.dtypes |= {one.dtype for one in outputs if isinstance(one, torch.Tensor)}
        return result


@contextmanager
def sizes_of_transfers(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[int]]]:
    """Elements of each transfer, since ``prepare`` was done."""
    sizes: dict[str, list[int]] = {"to_host": [], "to_device": []}

    def watch(name: str) -> None:
        method = getattr(Transfers, name)

        def watched(self: Transfers, values: Any) -> Any:
            sizes[name].append(int(np.prod(values.shape)))
            return method(self, values)

        monkeypatch.setattr(Transfers, name, watched)

    watch("to_host")
    watch("to_device")
    prepare = TorchBackend.prepare

    def prepare_and_forget(self: TorchBackend, *args: Any) -> None:
        prepare(self, *args)
        sizes["to_host"].clear()
        sizes["to_device"].clear()

    monkeypatch.setattr(TorchBackend, "prepare", prepare_and_forget)
    yield sizes


def many_rows(objective: str) -> Scenario:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(N_ROWS, N_FEATURES)).astype(np.float32), rng.normal(size=N_ROWS)
    if objective != "squared_error":
        y = classes_of(y, 2 if objective == "logistic" else 3)
    settings = {"objective": objective, "max_depth": MAX_DEPTH, "max_bins": MAX_BINS}
    rows = Rows(X, y, rng.random(N_ROWS) + 0.5)
    return Scenario(rows, {**settings, "n_estimators": 2}, [rows])


@pytest.mark.parametrize("objective", ["squared_error", "logistic", "softmax"])
def test_only_numbers_of_nodes_leave_the_device(
    objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = TorchBackend("cpu")
    with sizes_of_transfers(monkeypatch) as sizes:
        facts = train(backend, many_rows(objective)).session.diagnostics()
    histogram = N_FEATURES * MAX_BINS * 3
    assert 0 < max(sizes["to_host"]) <= 2 ** (MAX_DEPTH - 1) * histogram
    assert 0 < max(sizes["to_device"]) < N_ROWS // 20
    assert facts["bytes_to_host"] >= 8 * max(sizes["to_host"])
    assert facts["synchronizations"] > len(sizes["to_host"])  # those of prepare count as well
    assert facts["uploads"] > len(sizes["to_device"])


@pytest.mark.parametrize("objective", ["squared_error", "logistic", "softmax"])
def test_a_run_consists_of_operations_that_every_device_has(objective: str) -> None:
    one = many_rows(objective)
    backend = TorchBackend("cpu")
    with OperationsOfARun() as operations:
        found = train(backend, one)
        sums = np.zeros((N_ROWS, found.model.baseline.size), np.float32)
        backend.predict(found.model.forest, HostMatrix(one.train.X), sums)
    assert operations.names & (HOST_COPIES | BROKEN_ON_MPS) == set()
    assert operations.unstable_sorts == 0
    assert torch.float64 not in operations.dtypes
    assert operations.dtypes <= {
        *(torch.float32, torch.int32, torch.int64, torch.uint8, torch.bool),
    }


def test_nothing_is_copied_but_by_the_two_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    n_copies = 0

    def count(method: Any) -> Any:
        def counting(*args: Any) -> Any:
            nonlocal n_copies
            n_copies += 1
            return method(*args)

        return counting

    for name in ("to_host", "to_device"):
        monkeypatch.setattr(torch_transfers, name, count(getattr(torch_transfers, name)))
    with OperationsOfARun() as operations:
        train(TorchBackend("cpu"), many_rows("logistic"))
    assert 0 < operations.copies == n_copies


def test_a_new_run_counts_from_nothing() -> None:
    backend = TorchBackend("cpu")
    first = train(backend, many_rows("logistic")).session.diagnostics()
    second = train(backend, many_rows("logistic")).session.diagnostics()
    for counter in ("synchronizations", "bytes_to_host", "uploads", "launches"):
        assert first[counter] == second[counter]


def test_buffers_are_as_many_bytes_as_they_are() -> None:
    backend = TorchBackend("cpu")
    backend.prepare(
        run_rows(np.zeros((10, 3))), [], run_settings(integer_thresholds([2, 3, 1]), n_slots=5)
    )
    bins, gradients, fixed, histograms = 10 * 8, 2 * 40, 2 * 40, 5 * 3 * 9 * 8
    per_row = 40 + 40 + 40  # labels, predictions, row order
    facts = backend.diagnostics()
    assert facts["peak_memory_bytes"] == bins + gradients + fixed + histograms + per_row
    assert facts["launches"] == 0


# ---------------------------------------------------------------------------------------- errors


def test_memory_that_does_not_suffice_is_an_error_with_an_estimate() -> None:
    backend = TorchBackend("cpu")
    settings = run_settings(integer_thresholds([2, 3]), n_slots=2**50)
    with pytest.raises(DeviceMemoryError, match=r"about \d{10,} MiB.*histogram_budget_mb"):
        backend.prepare(run_rows(np.zeros((4, 2))), [], settings)
    backend.prepare(run_rows(np.zeros((4, 2))), [], run_settings(integer_thresholds([2, 3])))


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB."),
        RuntimeError("MPS backend out of memory (MPS allocated: 5 GB)"),
        RuntimeError("Invalid buffer size: 40 GB"),
    ],
    ids=lambda error: str(error).partition(" ")[0],
)
@pytest.mark.parametrize("call", ["predict", "bin_features", "update_predictions"])
def test_memory_may_be_short_in_any_call(
    error: RuntimeError, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any) -> None:
        raise error

    backend = TorchBackend("cpu")
    found = train(TorchBackend("cpu"), many_rows("squared_error"))
    X, forest = HostMatrix(many_rows("squared_error").train.X), found.model.forest
    backend.prepare(
        run_rows(np.zeros((4, N_FEATURES))),
        [],
        run_settings(integer_thresholds([MAX_BINS - 1] * N_FEATURES)),
    )
    monkeypatch.setattr(Transfers, "to_device", refuse)
    calls = {
        "predict": lambda: backend.predict(forest, X, np.zeros((N_ROWS, 1), np.float32)),
        "bin_features": lambda: backend.bin_features(X, None, integer_thresholds([2] * N_FEATURES)),
        "update_predictions": lambda: backend.update_predictions(forest.tree(0), 0),
    }
    with pytest.raises(DeviceMemoryError, match=call) as caught:
        calls[call]()
    assert caught.value.__cause__ is error


def test_other_errors_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(torch_matrix, "bin_features", fail)
    with pytest.raises(RuntimeError, match=r"^shapes do not match$"):
        TorchBackend("cpu").bin_features(HostMatrix(np.ones((1, 1))), None, integer_thresholds([1]))


def test_bins_beyond_their_feature_are_refused() -> None:
    bins = np.zeros((4, 2), np.uint8)
    bins[2, 1] = 4
    backend = TorchBackend("cpu")
    with pytest.raises(BackendError, match=r"feature 1 has the bin code 4; its missing code is 3"):
        backend.prepare(run_rows(bins), [], run_settings(integer_thresholds([4, 3])))
    with pytest.raises(BackendError, match="2 features do not fit thresholds of 3"):
        backend.prepare(run_rows(bins), [], run_settings(integer_thresholds([4, 4, 4])))
