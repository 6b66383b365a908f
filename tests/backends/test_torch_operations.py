"""torch's side of the core's formulas has numpy's bits; integer scatter and torch's alert mode."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from support.exact import assert_identical
from support.runs import train
from support.scenarios import scenario

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.backends.torch_operations import TORCH, add_integers, place
from torchgbdt.backends.torch_scatter import TorchBackend
from torchgbdt.core import fixed_point, metrics
from torchgbdt.core.array_ops import NUMPY
from torchgbdt.core.objectives import OBJECTIVES, Logistic, Softmax
from torchgbdt.core.probabilities import predicted_codes, probabilities
from torchgbdt.core.ranking import order_keys
from torchgbdt.core.raw_predictions import add_baseline, raw_float64
from torchgbdt.core.row_values import float32_margins

N_CLASSES = 3
LARGEST = float(np.finfo(np.float32).max)
EDGES = [0.0, -0.0, 2.0**-126, -(2.0**-126), 2.0**-127, -(2.0**-149), 1.0, -1.0, LARGEST, -LARGEST]


def awkward(n_rows: int, n_columns: int, seed: int) -> np.ndarray:
    """float32 of all sizes, with ties in a row, and with what is no number."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_rows, n_columns)) * 10.0 ** rng.integers(-40, 39, (n_rows, 1))
    values[:400] = rng.choice([*EDGES, np.inf, -np.inf, np.nan], (400, n_columns))
    values[400:800] = rng.integers(-3, 4, (400, n_columns))
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def both(formula: Any, *arrays: np.ndarray | None) -> None:
    """The formula gives the same bits on tensors; NaN may be any NaN."""
    tensors = [None if array is None else torch.from_numpy(array) for array in arrays]
    with np.errstate(all="ignore"):
        expected, found = formula(NUMPY, *arrays), formula(TORCH, *tensors)
    for one, other in zip(_parts(found), _parts(expected), strict=True):
        one = one.numpy()
        assert one.dtype == other.dtype
        if other.dtype.kind == "f":
            nan = np.isnan(other)
            assert np.array_equal(np.isnan(one), nan)
            integers = f"i{other.itemsize}"
            one, other = one[~nan].view(integers), other[~nan].view(integers)
        assert np.array_equal(one, other)


def _parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_have_the_same_bits(name: str, weighted: bool) -> None:
    objective = Softmax(N_CLASSES) if name == "softmax" else OBJECTIVES[name]()
    x = awkward(4000, objective.n_outputs, 1)
    labels = np.random.default_rng(2).integers(0, max(2, objective.n_outputs), 4000)
    weights = np.abs(awkward(4000, 1, 3)[:, 0]) if weighted else None

    def gradients(ops: Any, x: Any, labels: Any, weights: Any) -> tuple[Any, ...]:
        terms = objective.shared_terms(x, ops)
        found: tuple[Any, ...] = ()
        for k in range(objective.n_outputs):
            found += objective.output_gradients(x[:, k], labels, weights, k, terms, ops)
        return found

    both(gradients, x, labels.astype(np.float32), weights)


@pytest.mark.parametrize(
    "metric", [one for one in metrics.METRICS if issubclass(one, metrics.MeanLoss)]
)
def test_losses_have_the_same_bits(metric: type[metrics.MeanLoss]) -> None:
    x = awkward(4000, N_CLASSES if metric.objective is Softmax else 1, 4)
    labels = np.random.default_rng(5).integers(0, 2 if metric.objective is Logistic else 3, 4000)
    both(lambda ops, x, y: metric().row_losses(x, y, ops), x, labels.astype(np.float32))


def test_raw_predictions_flushing_and_keys_have_the_same_bits() -> None:
    x, margins = awkward(4000, N_CLASSES, 6), awkward(4000, N_CLASSES, 7)
    high, low = np.array([[1, -1e-3, 2.0**-126], [2.0**-30, 0, -(2.0**-127)]], np.float32)

    def raw(ops: Any, high: Any, low: Any, sums: Any, margins: Any) -> Any:
        return add_baseline((high, low), sums, margins, ops)

    both(raw, high, low, x, margins)
    both(raw, high, low, x, None)
    both(lambda ops, x: fixed_point.flush_subnormals(x, ops), x)
    both(lambda ops, x: order_keys(x, ops), x)


@pytest.mark.parametrize("n_outputs", [1, N_CLASSES])
def test_classes_and_probabilities_have_the_same_bits(n_outputs: int) -> None:
    x, link = awkward(4000, n_outputs, 8), "logistic" if n_outputs == 1 else "softmax"
    for raw in (x, x.astype(np.float64)):
        both(lambda ops, raw: predicted_codes(raw, ops), raw)
    for dtype in (np.float32, np.float64):
        both(lambda ops, x, dtype=dtype: probabilities(link, x, dtype, ops), x)


def test_float64_predictions_have_the_same_bits() -> None:
    x, margins = awkward(4000, N_CLASSES, 10), awkward(4000, N_CLASSES, 11)
    baseline = np.array([1e9 + 0.1, -1e-300, 0])
    both(lambda ops, b, x: raw_float64(b, x, None, ops), baseline, x)
    both(lambda ops, b, x, m: raw_float64(b, x, m, ops), baseline, x, margins)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_margins_have_the_same_bits(dtype: Any) -> None:
    given = awkward(4000, N_CLASSES, 12)
    given = np.where(np.isfinite(given), given, 0)
    given = np.clip(given, -(2.0**62), 2.0**62) if dtype == np.int64 else given
    given = given.astype(dtype)
    both(lambda ops, m: float32_margins(m, 4000, "m", N_CLASSES, ops=ops), given)


@pytest.mark.parametrize("scale", [-98, -3, 0, 20, 120])
def test_rounding_has_the_same_bits(scale: int) -> None:
    values = np.random.default_rng(9).integers(-(2**24), 2**24, 4000)
    x = np.ldexp(values.astype(np.float32), 4 - scale)  # up to 2^28, in units of 2^4
    halves = np.ldexp(values.astype(np.float32), -1 - scale)
    for given in (x, halves):
        given = fixed_point.flush_subnormals(given)
        size = np.abs(given)
        both(lambda ops, x: fixed_point.round_gradients(x, scale, ops), given)
        both(lambda ops, x: fixed_point.round_hessians(x, scale, ops), size)
        both(lambda ops, x: fixed_point.round_weights(x, scale, ops), size)
        both(lambda ops, x: fixed_point.round_losses(x, scale, ops), size)
        both(lambda ops, x: fixed_point.are_raised(x, scale, ops), size)


# ----------------------------------------------------------------------------- torch's alert mode


@pytest.fixture(params=[False, True], ids=["raises", "warns"])
def deterministic(request: pytest.FixtureRequest) -> Iterator[bool]:
    """torch.use_deterministic_algorithms(True), in both of its ways."""
    torch.use_deterministic_algorithms(True, warn_only=request.param)
    yield request.param
    torch.use_deterministic_algorithms(False)


def mode() -> tuple[bool, bool]:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def watch_mode(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception | None = None) -> Any:
    """The modes in which a method of tensors is called; it may raise instead of working."""
    seen: list[tuple[bool, bool]] = []
    method = getattr(torch.Tensor, name)

    def watched(self: torch.Tensor, *args: Any) -> torch.Tensor:
        seen.append(mode())
        if error is not None:
            raise error
        return method(self, *args)

    monkeypatch.setattr(torch.Tensor, name, watched)
    return seen


def scatter(values: list[int]) -> list[int]:
    sums = torch.zeros(2, dtype=torch.int64)
    add_integers(sums, torch.tensor([1] * len(values)), torch.tensor(values))
    return sums.tolist()


def test_the_mode_is_off_for_integers_alone(
    deterministic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watch_mode(monkeypatch, "scatter_add_")
    assert scatter([3, 4]) == [0, 7]
    assert seen == [(False, False)]
    assert mode() == (True, deterministic)
    seen = watch_mode(monkeypatch, "scatter_")
    target = torch.zeros(2, dtype=torch.int64)
    place(target, torch.tensor([1, 0]), torch.tensor([5, 6]))
    assert target.tolist() == [6, 5]
    assert seen == [(False, False)]
    assert mode() == (True, deterministic)


def test_the_mode_is_put_back_after_an_error(
    deterministic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in (RuntimeError("planted"), KeyboardInterrupt()):
        with monkeypatch.context() as patch:
            watch_mode(patch, "scatter_add_", error)
            with pytest.raises(type(error)):
                scatter([1])
        assert mode() == (True, deterministic)


def test_the_last_thread_that_leaves_puts_the_mode_back(
    deterministic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = torch.Tensor.scatter_add_
    inside, may_leave = threading.Event(), threading.Event()
    waits = threading.local()
    seen = []

    def slow(self: torch.Tensor, *args: Any) -> torch.Tensor:
        seen.append(mode())
        if getattr(waits, "here", False):
            inside.set()
            assert may_leave.wait(20)
            seen.append(mode())
        return method(self, *args)

    def work() -> None:
        waits.here = True
        scatter([1])

    monkeypatch.setattr(torch.Tensor, "scatter_add_", slow)
    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(20)
    assert scatter([2]) == [0, 2]
    assert mode() == (False, False)  # the other thread is still inside
    may_leave.set()
    thread.join(20)
    assert seen == [(False, False)] * 3
    assert mode() == (True, deterministic)


@pytest.mark.parametrize("was_on", [False, True])
def test_training_leaves_the_mode_as_it_was(was_on: bool) -> None:
    torch.use_deterministic_algorithms(was_on)
    try:
        found = train(TorchBackend("cpu"), scenario("plain"))
        assert mode() == (was_on, False)
    finally:
        torch.use_deterministic_algorithms(False)
    assert_identical(found.model.digest(), train(OracleBackend(), scenario("plain")).model.digest())
