"""What a device's backend adds up may lie on the device, and is the same as on the host."""

from typing import Any

import numpy as np
import pytest
import torch
from support.backends import mps_emulated, on_torch
from support.exact import assert_identical
from support.second_device import copies_to_host, elsewhere, start_second_device

import torchgbdt as tg
from torchgbdt.backends.torch_matrix import TensorMatrix
from torchgbdt.backends.torch_operations import TORCH
from torchgbdt.core.array_ops import NUMPY
from torchgbdt.core.feature_source import HostMatrix

N_ROWS = 300
X = np.random.default_rng(0).normal(size=(N_ROWS, 4)).astype(np.float32)
LABELS = np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])
MODELS = {
    "one output": tg.train(X, X[:, 0] + X[:, 1] ** 2, n_estimators=3, max_depth=3),
    "three outputs": tg.train(X, LABELS, objective="softmax", n_estimators=2, max_depth=3),
}

BACKENDS = {
    "torch": (on_torch("cpu"), torch.from_numpy),
    "second device": (on_torch("lazy"), lambda array: elsewhere(torch.from_numpy(array))),
    "mps": (mps_emulated, torch.from_numpy),
}


@pytest.mark.parametrize("kind", ["device", "host"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", BACKENDS)
def test_sums_and_leaves_of_the_device(name: str, model: str, kind: str) -> None:
    start_second_device()
    make, to_device = BACKENDS[name]
    backend, forest = make(), MODELS[model]._core.forest
    source: Any = TensorMatrix(to_device(X)) if kind == "device" else HostMatrix(X)
    n_outputs = 1 if model == "one output" else 3
    sums = np.linspace(-1, 1, N_ROWS * n_outputs, dtype=np.float32).reshape(-1, n_outputs)
    leaves = np.full((N_ROWS, forest.n_trees), -1, np.int32)
    on_device = to_device(sums.copy()), to_device(leaves.copy())
    backend.predict(forest, source, on_device[0])
    backend.predict_leaves(forest, source, on_device[1])
    backend.predict(forest, source, sums)
    backend.predict_leaves(forest, source, leaves)
    assert_identical(on_device[0].cpu().numpy(), sums)
    assert_identical(on_device[1].cpu().numpy(), leaves)
    assert leaves.min() >= 0


@pytest.mark.parametrize("name", BACKENDS)
def test_they_do_not_visit_the_host(name: str) -> None:
    start_second_device()
    make, to_device = BACKENDS[name]
    backend, forest = make(), MODELS["one output"]._core.forest
    source = TensorMatrix(to_device(X))
    sums = torch.zeros((N_ROWS, 1), dtype=torch.float32, device=backend.device)
    leaves = torch.zeros((N_ROWS, forest.n_trees), dtype=torch.int32, device=backend.device)
    with copies_to_host() as sizes:
        backend.predict(forest, source, sums)
        backend.predict_leaves(forest, source, leaves)
    assert sizes == []
    assert backend.diagnostics()["bytes_to_host"] <= 2 * 4  # per call, the word of metal_turns


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("place", [lambda one: one, elsewhere], ids=["host", "second device"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_first_of_several_largest_is_found(dtype: Any, place: Any) -> None:
    """``argmax`` of a device may answer with any of them; 40 columns go through its reductions."""
    rows = np.random.default_rng(1).integers(0, 3, (500, 40)).astype(dtype)
    rows[0] = 0
    if dtype != np.int32:
        rows[1:4, 5:9] = [[INF, NAN, 0, NAN], [-INF, 0, INF, INF], [NAN] * 4]
        rows[4] = -INF
    expected = NUMPY.first_largest(rows)
    found = TORCH.first_largest(place(torch.from_numpy(rows)))
    assert found.dtype == torch.int64
    assert found.tolist() == expected.tolist()
