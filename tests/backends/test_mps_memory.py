"""Memory of the device: asked for before training; where it is short, an error with an estimate."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.backends import emulated_library
from support.random_rows import classes_of
from support.runs import (
    Rows,
    Scenario,
    integer_thresholds,
    make_session,
    run_rows,
    run_settings,
    train,
    training_data,
)
from support.small_run import assert_given_up, small

from torchgbdt.backends import mps
from torchgbdt.backends.mps import DeviceMemory, MPSBackend
from torchgbdt.core.errors import DeviceMemoryError

PLENTY = 1 << 40


def backend_with(free: int = PLENTY, largest: int = PLENTY) -> MPSBackend:
    return MPSBackend(emulated_library(), "cpu", DeviceMemory(lambda: free, largest))


def refused(backend: MPSBackend, one: Scenario | None = None) -> str:
    """The message of a run that is refused before its first dispatch after binning."""
    one = one or small()
    session = make_session(backend, one)
    with pytest.raises(DeviceMemoryError) as caught:
        session.run(training_data(one))
    assert "search_level" not in session.clock.seconds
    assert_given_up(session, backend)
    return str(caught.value)


def needed() -> int:
    backend = backend_with()
    train(backend, small())
    return backend.memory_estimate()


def test_memory_that_just_suffices_is_enough() -> None:
    expected = train(MPSBackend(emulated_library(), "cpu"), small()).model.digest()
    assert train(backend_with(free=needed()), small()).model.digest() == expected


def test_too_little_free_memory_is_an_error_before_training() -> None:
    message = refused(backend_with(free=needed() - 1))
    assert re.search(r"needs about 1 MiB on device 'cpu', where 1 MiB are free", message)
    assert "Lower histogram_budget_mb, max_depth or max_bins" in message
    assert "where 0 MiB are free" in refused(backend_with(free=0))


def test_free_memory_is_asked_for_at_each_run() -> None:
    free = iter([0, PLENTY])
    backend = MPSBackend(emulated_library(), "cpu", DeviceMemory(lambda: next(free), PLENTY))
    refused(backend)
    train(backend, small())  # a refused run leaves the backend as it was


def test_histograms_and_bins_beyond_one_buffer() -> None:
    n_slots, bins_of_each = 50, [255, 255]
    settings = run_settings(integer_thresholds(bins_of_each), n_slots=n_slots)
    histograms = n_slots * 3 * sum(n + 1 for n in bins_of_each) * 8
    rows = run_rows(np.zeros((1000, 2)))
    backend_with(largest=histograms).prepare(rows, [], settings)
    with pytest.raises(DeviceMemoryError, match=r"1 MiB for its histograms in one piece.*most 1"):
        backend_with(largest=histograms - 1).prepare(rows, [], settings)

    few = run_settings(integer_thresholds([3, 3]), n_slots=1)
    bins = 1000 * 8  # padded to 8 features
    backend_with(largest=bins).prepare(rows, [], few)
    for datasets in ((rows, []), (run_rows(np.zeros((9, 2))), [rows])):
        with pytest.raises(DeviceMemoryError, match="for its bins in one piece"):
            backend_with(largest=bins - 1).prepare(*datasets, few)


def test_bins_beyond_what_torch_can_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mps, "_MAX_TENSOR_NUMBERS", 1000 * 8 - 1)
    with pytest.raises(DeviceMemoryError, match="for its bins in one piece"):
        backend_with().prepare(
            run_rows(np.zeros((1000, 2))), [], run_settings(integer_thresholds([3, 3]))
        )


# ------------------------------------------------------------------------------------ the estimate

SHAPES: dict[str, dict[str, Any]] = {
    "narrow": {"shape": (20_000, 2)},
    "narrow, weights": {"shape": (20_000, 2), "weighted": True},
    "few rows": {"shape": (500, 3)},
    "wide": {"shape": (600, 200)},
    "few bins": {"shape": (5000, 30), "max_bins": 4},
    "many classes": {"shape": (3000, 4), "objective": "softmax", "n_classes": 12},
    "validation data": {"shape": (5000, 10), "objective": "logistic", "n_classes": 2},
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_run_takes_no_more_than_estimated_and_at_least_half(name: str) -> None:
    """Partial sums and candidates are estimated for as many nodes as a level may have."""
    given = dict(SHAPES[name])
    n_rows, n_features = given.pop("shape")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_rows, n_features)).astype(np.float32), rng.normal(size=n_rows)
    if "n_classes" in given:
        y = classes_of(y, given.pop("n_classes"))
    rows = Rows(X, y, rng.random(n_rows) + 0.5 if given.pop("weighted", False) else None)
    valids = [rows[: n_rows // 2]] if name == "validation data" else []
    backend = MPSBackend(emulated_library(), "cpu")
    one = Scenario(rows, {"n_estimators": 1, "max_depth": 4, **given}, valids)
    taken = train(backend, one).session.diagnostics()["peak_memory_bytes"]
    assert taken <= backend.memory_estimate() <= 2 * taken


# ------------------------------------------------------------------------------- torch's own errors

SHORT = [
    torch.OutOfMemoryError("out of memory"),
    RuntimeError("MPS backend out of memory (MPS allocated: 5 GB)"),
    RuntimeError("Invalid buffer size: 40 GB"),
]


@pytest.mark.parametrize("error", SHORT, ids=lambda error: str(error).partition(" ")[0])
@pytest.mark.parametrize("place", ["prepare", "search_level", "update_predictions"])
def test_torch_running_out_of_memory_within_a_call(
    place: str, error: RuntimeError, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = backend_with()
    expected = train(backend, small()).model.digest()
    call: Callable[..., Any] = getattr(backend, place)

    def short_of_memory(*args: Any) -> Any:
        def refuse(*args: Any, **kwargs: Any) -> None:
            raise error

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "empty", refuse)
            patch.setattr(torch, "zeros", refuse)
            return call(*args)

    monkeypatch.setattr(backend, place, short_of_memory)
    if place == "prepare":
        message = refused(backend)
    else:
        session = make_session(backend, small())
        with pytest.raises(DeviceMemoryError) as caught:
            session.run(training_data(small()))
        assert caught.value.__cause__ is error
        assert_given_up(session, backend)
        message = str(caught.value)
    assert f"does not suffice in {place} ({error})" in message
    assert re.search(r"about \d+ MiB", message)
    monkeypatch.undo()
    assert train(backend, small()).model.digest() == expected
