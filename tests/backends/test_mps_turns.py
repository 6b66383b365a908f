"""What notices lost work: the turns of dispatches, and sums over what prepare has copied."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from support.backends import emulated_library
from support.runs import integer_thresholds, run_settings, train
from support.small_run import small

from torchgbdt.backends import metal_checks
from torchgbdt.backends.metal_turns import Turns
from torchgbdt.backends.mps import MPSBackend
from torchgbdt.core.backend import RunRows
from torchgbdt.core.errors import BackendError
from torchgbdt.core.objectives import Logistic
from torchgbdt.core.splits import Histograms

# --------------------------------------------------------------------------- buffers of the run


@pytest.mark.parametrize("lost", ["labels", "weights", "margins", "start", "columns of bins"])
def test_what_did_not_arrive_on_the_device_is_named(
    lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A buffer of training or validation data keeps what was there before."""
    rng = np.random.default_rng(2)
    n_rows, settings = 50, run_settings(integer_thresholds([3, 4]))
    rows = RunRows(
        rng.integers(0, 3, (n_rows, 2)).astype(np.uint8),
        rng.random(n_rows, np.float32),
        rng.random(n_rows, np.float32),
        rng.random((n_rows, 1), np.float32),
        n_rows,
        start=rng.random((n_rows, 1), np.float32),
    )
    settings = replace(settings, objective=Logistic())
    plain = replace(rows, margins=None, weights=None, start=None)
    check = metal_checks.check_buffers

    def lose_one(given: Any, columns: Any, transfers: Any) -> None:
        if given.weights is not None:
            name = "predictions" if lost == "start" else lost
            stale = columns if lost == "columns of bins" else getattr(given, name)
            stale.view(torch.uint8).zero_()
        check(given, columns, transfers)

    for datasets in ((rows, [plain]), (plain, [rows])):
        backend = MPSBackend(emulated_library(), "cpu")
        backend.prepare(*datasets, settings)
        with monkeypatch.context() as patch:
            patch.setattr("torchgbdt.backends.metal_run.check_buffers", lose_one)
            with pytest.raises(BackendError, match=f"not what was copied there: {lost}. Work"):
                backend.prepare(*datasets, settings)
        backend.prepare(*datasets, settings)


def test_histograms_that_come_to_the_host_are_those_of_their_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The operation that gathers them is lost: what came before comes again."""
    backend = MPSBackend(emulated_library(), "cpu")
    expected = train(backend, small()).model.digest()
    monkeypatch.setattr("torchgbdt.backends.mps.can_filter", lambda rules: False)
    outcome = train(backend, small())
    assert outcome.model.digest() == expected
    assert outcome.session.diagnostics()["nodes_searched_on_host"] > 2

    read, seen = backend.read_histograms, []

    def stale(batch: Any) -> Any:
        seen.append(read(batch))
        earlier = seen[0]
        n_nodes = batch.nodes.size
        planes = (earlier.counts, earlier.gradients, earlier.hessians)
        return Histograms(*(np.resize(one, (n_nodes, *one.shape[1:])) for one in planes))

    monkeypatch.setattr(backend, "read_histograms", stale)
    with pytest.raises(BackendError, match="contradict the totals of their rows"):
        train(backend, small())
    assert len(seen) == 2


# --------------------------------------------------------------------------------------- the turns


def test_turns_name_the_first_kernel_that_is_missing() -> None:
    turns = Turns()
    for name in ("one", "two", "three"):
        turns.add(name)
    with pytest.raises(BackendError, match="kernel 'two' did not run in its turn"):
        turns.check(1)
    turns.add("four")
    turns.check(4)
    with pytest.raises(BackendError, match="a kernel did not run"):
        turns.check(0)


def test_turns_go_on_beyond_a_word() -> None:
    turns = Turns()
    turns.count = 2**32 - 2
    assert turns.next_turn() == 2**32 - 1
    turns.add("one")
    turns.check(-1)  # as int32
    assert turns.next_turn() == 0
    turns.add("two")
    turns.check(0)
