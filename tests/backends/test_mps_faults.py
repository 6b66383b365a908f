"""Work of the GPU that fails without a word: an error that says so, or the model that is right.

torch does not report it. Each test loses dispatches of a run, lets them run too late, or spoils
what they wrote; what a run ends with must be a BackendError, or the digest of the run without.
"""

from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from metal.faulty_device import FaultyDevice, corrupt, delay, lose
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
from support.small_run import assert_given_up

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.backends.metal_run import MetalTuning
from torchgbdt.backends.mps import MPSBackend
from torchgbdt.core.errors import BackendError
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.model import Model

OBJECTIVES = ["squared_error", "logistic", "softmax"]

DEVICE = FaultyDevice()
LIBRARY = MetalLibrary(DEVICE.compile_shader)


def make_backend() -> MPSBackend:
    """Two nodes at a time: several slabs per level."""
    return MPSBackend(LIBRARY, "cpu", tuning=MetalTuning(slab_nodes=2, histogram_rows=20))


@cache
def small(objective: str, evaluated: bool = True) -> Scenario:
    """Two rounds of three levels, with weights for squared error, and a validation set if asked."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 3)).astype(np.float32), rng.normal(size=60)
    if objective == "squared_error":
        rows = Rows(X, y, rng.random(60) + 0.5)
    else:
        rows = Rows(X, classes_of(y, 2 if objective == "logistic" else 3))
    settings = {"objective": objective, "n_estimators": 2, "max_depth": 3, "max_bins": 8}
    one = Scenario(rows, {**settings, "min_samples_leaf": 2})
    return Scenario(rows, one.settings, [rows[:20]]) if evaluated else one.changed(eval_metric=None)


@cache
def healthy(objective: str, evaluated: bool = True) -> tuple[Model, list[str]]:
    """The model of a run without faults, and the kernels of its dispatches."""
    DEVICE.restart({})
    model = train(make_backend(), small(objective, evaluated)).model
    return model, list(DEVICE.calls)


def end_of_run(faults: dict[int, Any], objective: str, evaluated: bool = True) -> str | None:
    """The error of a run with these faults; None where it trains the model of the healthy run."""
    one, backend = small(objective, evaluated), make_backend()
    expected = healthy(objective, evaluated)[0].digest()
    DEVICE.restart(faults)
    session = make_session(backend, one)
    try:
        model = session.run(training_data(one))
    except BackendError as error:
        assert_given_up(session, backend)
        return str(error)
    assert model.digest() == expected, f"another model after faults at {sorted(faults)}"
    return None


def some_calls(calls: list[str]) -> list[int]:
    """The first, the middle and the last dispatch of each kernel."""
    places = [[i for i, one in enumerate(calls) if one == name] for name in sorted(set(calls))]
    return sorted({one[i] for one in places for i in (0, len(one) // 2, -1)})


def test_the_runs_use_every_kernel_of_training() -> None:
    used = {name for objective in OBJECTIVES for name in healthy(objective)[1]}
    assert used == {
        *("bin_features", "compute_softmax_terms", "compute_gradients", "round_gradients"),
        *("build_histograms", "reduce_histograms", "scan_splits", "select_candidates"),
        *("route_count", "route_scatter", "update_predictions", "write_words"),
        *("compute_losses", "sum_losses"),
    }


@pytest.mark.parametrize("fault", [lose, delay])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_dispatch_that_is_lost_or_late_is_an_error(objective: str, fault: Any) -> None:
    calls = healthy(objective)[1]
    for place in some_calls(calls):
        message = end_of_run({place: fault}, objective)
        assert message is not None, f"{calls[place]} at {place}"
        overtaken = [] if fault is lose else calls[place + 1 : place + 2]
        named = [f"kernel {name!r} did not run" for name in (calls[place], *overtaken)]
        assert any(one in message for one in named)
        assert "Train or predict again" in message and "backend='torch' or 'cpu'" in message


def test_every_single_dispatch_matters() -> None:
    for place in range(len(healthy("squared_error")[1])):
        assert end_of_run({place: lose}, "squared_error") is not None


def test_two_kernels_lost_at_once() -> None:
    calls = healthy("logistic")[1]
    firsts = [calls.index(name) for name in sorted(set(calls))]
    for one, other in combinations(firsts, 2):
        message = end_of_run({one: lose, other: lose}, "logistic")
        assert message is not None and repr(calls[min(one, other)]) in message


def test_a_kernel_that_never_runs() -> None:
    calls = healthy("softmax")[1]
    for name in sorted(set(calls)):
        faults = {i: lose for i, one in enumerate(calls) if one == name}
        assert end_of_run(faults, "softmax") is not None


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_only_the_last_update_is_no_loss_where_nobody_reads_predictions_again(
    objective: str,
) -> None:
    calls = healthy(objective, evaluated=False)[1]
    last_read = len(calls) - calls[::-1].index("select_candidates")
    assert set(calls[last_read:]) == {"write_words", "update_predictions"}
    for place in range(last_read - 8, len(calls)):
        is_lost = end_of_run({place: lose}, objective, evaluated=False) is not None
        assert is_lost == (place < last_read)


def test_predictions_that_a_callback_reads_are_not_those_of_an_earlier_round() -> None:
    class Reader:
        def on_round_end(self, context: Any) -> None:
            context.raw_predictions()

        def __getattr__(self, name: str) -> Callable[[Any], None]:
            return lambda context: None

    calls = healthy("logistic", evaluated=False)[1]
    DEVICE.restart({len(calls) - 1: lose})
    with pytest.raises(BackendError, match="'update_predictions' did not run in its turn"):
        train(make_backend(), small("logistic", evaluated=False), [Reader()])


def test_auc_is_of_predictions_that_are_up_to_date() -> None:
    one = small("logistic").changed(eval_metric="auc")
    DEVICE.restart({})
    train(make_backend(), one)
    last = len(DEVICE.calls) - 1
    assert DEVICE.calls[last] == "update_predictions"
    DEVICE.restart({last: lose})
    with pytest.raises(BackendError, match="'update_predictions' did not run in its turn"):
        train(make_backend(), one)


def test_an_update_after_a_lost_dispatch_leaves_predictions_alone() -> None:
    """It may have been the one that writes the tree: a walk through anything else may not end."""
    backend, tree = make_backend(), healthy("squared_error")[0].forest.tree(0)
    settings = run_settings(integer_thresholds([7, 7, 7]))
    backend.prepare(run_rows(np.zeros((30, 3))), [], settings)
    DEVICE.restart({0: lose})
    backend.run.cleared_results(1)
    backend.update_predictions(tree, 0)
    assert DEVICE.calls == ["write_words", "write_words", "update_predictions"]
    assert not backend.run.rows[0].predictions.any()


# ------------------------------------------------------------------------------- outside of a run


@pytest.mark.parametrize("fault", [lose, delay])
@pytest.mark.parametrize("call", ["bin_features", "predict", "predict_leaves"])
def test_calls_without_a_run_are_checked(
    call: str, fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several dispatches each: blocks of rows, stretches of trees."""
    monkeypatch.setattr("torchgbdt.core.feature_source._BLOCK_BYTES", 8 * 3 * 20)
    monkeypatch.setattr("torchgbdt.backends.metal_data._STEPS_AT_ONCE", 40)
    model = healthy("softmax")[0]
    X = HostMatrix(small("softmax").train.X.astype(np.float64))
    backend, forest, cuts = make_backend(), model.forest, thresholds()
    calls: dict[str, Callable[[], Any]] = {
        "bin_features": lambda: backend.bin_features(X, None, cuts),
        "predict": lambda: backend.predict(forest, X, np.zeros((60, 3), np.float32)),
        "predict_leaves": lambda: backend.predict_leaves(
            forest, X, np.zeros((60, forest.n_trees), np.int32)
        ),
    }
    DEVICE.restart({})
    calls[call]()
    n_calls = len(DEVICE.calls)
    assert set(DEVICE.calls) == {call}
    for place in range(n_calls):
        DEVICE.restart({place: fault})
        with pytest.raises(BackendError, match=f"kernel '{call}' did not run in its turn"):
            calls[call]()
    DEVICE.restart({})
    calls[call]()


@pytest.mark.parametrize("call", ["predict", "predict_leaves"])
def test_one_dispatch_of_a_prediction_is_done_before_the_next_is_queued(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch hands over all that is queued as one piece of work, which a device may break off."""
    forest, backend = healthy("softmax")[0].forest, make_backend()
    depth = max(tree.depth for tree in forest.trees())
    two_trees = 60 * 2 * depth + 1  # rows, trees, and how deep they are
    monkeypatch.setattr("torchgbdt.backends.metal_data._STEPS_AT_ONCE", two_trees)
    X = HostMatrix(small("softmax").train.X.astype(np.float64))
    queued: list[int] = []
    to_host = backend.transfers.to_host

    def waiting(tensor: torch.Tensor) -> Any:
        queued.append(len(DEVICE.calls))
        return to_host(tensor)

    monkeypatch.setattr(backend.transfers, "to_host", waiting)
    DEVICE.restart({})
    if call == "predict":
        backend.predict(forest, X, np.zeros((60, 3), np.float32))
    else:
        backend.predict_leaves(forest, X, np.zeros((60, forest.n_trees), np.int32))
    n_calls = -(-forest.n_trees // 2)
    assert DEVICE.calls == [call] * n_calls
    assert n_calls > 2
    assert queued[: n_calls + 1] == [*range(1, n_calls + 1), n_calls]


def thresholds() -> Any:
    backend, one = make_backend(), small("softmax")
    seen: list[Any] = []
    prepare = backend.prepare
    backend.prepare = lambda *args: (seen.append(args[2].thresholds), prepare(*args))[1]  # type: ignore[method-assign]
    train(backend, one)
    return seen[0]


# ------------------------------------------------------------------------------- results in ruins

SPOILED = {
    "round_gradients": (3,),  # fixed_point
    "build_histograms": (3,),  # partials
    "reduce_histograms": (2,),  # histograms
    "route_count": (4,),  # chunk_counts
    "route_scatter": (5,),  # routed_fixed_point
}
"""Kernels, and which of their tensors are sums of rows, or rows that are summed."""


@pytest.mark.parametrize("kernel", SPOILED)
def test_a_word_of_a_sum_that_is_spoiled_is_an_error_or_never_read(kernel: str) -> None:
    calls = healthy("squared_error")[1]
    places = [i for i, one in enumerate(calls) if one == kernel]
    rng = np.random.default_rng(0)
    found = []
    for place in (places[0], places[len(places) // 2], places[-1]):
        for tensor in SPOILED[kernel]:
            for word in (0, *rng.integers(0, 200, 4).tolist()):
                found.append(end_of_run({place: corrupt(tensor, word)}, "squared_error"))
    errors = [one for one in found if one is not None]
    assert len(errors) >= 3
    for message in errors:
        assert "backend='torch' or 'cpu'" in message


@pytest.mark.parametrize(("word", "message"), [(1, "contradict"), (2, "an older search")])
def test_marks_of_results_that_are_spoiled(word: int, message: str) -> None:
    place = healthy("squared_error")[1].index("select_candidates")
    assert message in str(end_of_run({place: corrupt(2, word)}, "squared_error"))
