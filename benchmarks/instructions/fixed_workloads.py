"""What is counted; runs under valgrind, on one thread, without torch.

Before and after each workload the kernel MARK is called, which no training calls: there callgrind
writes what it has counted since the last call and starts again. So a part holds one workload, its
Python and numpy included, and nothing of starting up.
"""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import synthetic
from synthetic import Float32Array

import torchgbdt
from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.model import Model
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.core.trainer import TrainingSession

SHAPES = {
    "squared_error": {"n_rows": 20_000, "n_features": 16, "n_classes": 0, "n_rounds": 3},
    "logistic": {"n_rows": 10_000, "n_features": 16, "n_classes": 2, "n_rounds": 3},
    "softmax": {"n_rows": 5_000, "n_features": 30, "n_classes": 5, "n_rounds": 1},
    "few rows": {"n_rows": 500, "n_features": 5, "n_classes": 0, "n_rounds": 10},
}
"""Rows are few, as callgrind is slow: all of it takes 20 seconds."""

MARK = "portable_math"
PREDICT = "predict"
NAMES = (*SHAPES, PREDICT)


def main(extension: Path) -> None:
    """Run all workloads with this extension, a mark before and after each."""
    mark = _load(extension)
    _train("squared_error", 1, *_rows(SHAPES["few rows"]))  # what is imported late is imported now
    models = []
    for name, shape in SHAPES.items():
        X, y = _rows(shape)
        mark()
        models.append(_train(name, shape["n_rounds"], X, y))
        mark()
    source = HostMatrix(_rows(SHAPES["squared_error"])[0])
    sums = np.zeros((source.n_rows, 1), np.float32)
    mark()
    _backend().predict(models[0].forest, source, sums)
    mark()
    if not sums.any():
        raise RuntimeError("nothing was predicted.")


def _load(extension: Path) -> Callable[[], object]:
    """Take this extension in place of the installed one, which has no symbols."""
    spec = importlib.util.spec_from_file_location("torchgbdt._native", extension)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{extension} is no extension module.")
    native = importlib.util.module_from_spec(spec)
    sys.modules["torchgbdt._native"] = torchgbdt._native = native
    spec.loader.exec_module(native)
    one = np.ones(1, np.float32)
    return lambda: getattr(native, MARK)(0, one, one.copy(), 1)


def _backend() -> ComputeBackend:
    from torchgbdt.backends.native import NativeBackend  # after the extension was put in its place

    return NativeBackend(1)


def _rows(shape: dict[str, int]) -> tuple[Float32Array, Float32Array]:
    return synthetic.make_rows(1, shape["n_rows"], shape["n_features"], 1, shape["n_classes"], 1.0)


def _train(name: str, n_rounds: int, X: Float32Array, y: Float32Array) -> Model:
    objective = name if name in ("logistic", "softmax") else "squared_error"
    settings = TrainerSettings(objective=objective, n_estimators=n_rounds)
    return TrainingSession(settings, _backend()).run(TrainingData(RawData(HostMatrix(X), y)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
