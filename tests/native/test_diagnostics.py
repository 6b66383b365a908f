"""What a native run counts."""

import numpy as np
import pytest
from support.runs import integer_thresholds, prepare, run_rows, run_settings, train
from support.scenarios import scenario

from torchgbdt.backends.native import NativeBackend
from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.metrics import MeanAbsoluteError

BINS = np.array([[0], [1], [2], [3]], np.uint8)
COUNTERS = (
    *("launches", "synchronizations", "bytes_to_host", "peak_memory_bytes"),
    "raised_hessians",
)


def test_the_host_launches_nothing_and_copies_nothing_back() -> None:
    backend = NativeBackend(2)
    assert [backend.diagnostics()[name] for name in COUNTERS] == [0] * 5
    facts = train(NativeBackend(2), scenario("plain")).session.diagnostics()
    assert [facts[name] for name in COUNTERS if name != "peak_memory_bytes"] == [0] * 4
    assert facts["peak_memory_bytes"] > 0


def test_raised_hessians_are_summed_over_outputs_and_trees_of_one_run() -> None:
    hessians = np.array([[0, 2**-40], [1, 1], [0.5, 0.25], [0.75, 2]], np.float32)
    scales = np.zeros((2, 2), np.int64)
    for backend in (NativeBackend(2), OracleBackend()):
        for _ in range(2):
            prepare(backend, BINS, [4], tree_outputs=2)
            for tree in range(3):
                backend.load_gradients(np.zeros((4, 2), np.float32), hessians)
                backend.round_gradients(scales)
                assert backend.diagnostics()["raised_hessians"] == 3 * (tree + 1)


@pytest.mark.parametrize(("scale", "raised"), [(0, 0), (-1, 4), (-30, 4)])
def test_constant_hessians_are_raised_as_general_ones_are(scale: int, raised: int) -> None:
    ones = np.ones((4, 1), np.float32)
    for constant in (True, False):
        backend = NativeBackend(2)
        prepare(backend, BINS, [4], constant=constant)
        backend.load_gradients(ones, ones)
        backend.round_gradients(np.array([[0, scale]]))
        assert backend.diagnostics()["raised_hessians"] == raised


def test_peak_memory_is_that_of_the_buffers_of_the_run() -> None:
    valid = run_rows(np.zeros((10, 1), np.uint8), np.zeros(10, np.float32))
    backend = NativeBackend(2)
    settings = run_settings(integer_thresholds([4]), n_slots=3)
    backend.prepare(run_rows(BINS, np.zeros(4, np.float32)), [valid], settings)
    bins_twice, of_valid_twice, sides = 2 * 4, 2 * 10, 4
    row_order_twice, gradients, fixed_point = 2 * 4 * 4, 2 * 4 * 4, 2 * 4 * 4
    histograms = 3 * 5 * 3 * 8
    predictions, losses, scales = 4 * (4 + 10), 4 * 10, 2 * 8
    expected = bins_twice + of_valid_twice + sides + row_order_twice + gradients + fixed_point
    expected += histograms + predictions + losses + scales
    assert backend.diagnostics()["peak_memory_bytes"] == expected
    for dataset in (0, 1, 0):
        backend.compute_losses(MeanAbsoluteError(), dataset)
        backend.sum_losses(0)
    assert backend.diagnostics()["peak_memory_bytes"] == expected
    backend.release()
    assert backend.diagnostics()["peak_memory_bytes"] == 0


def test_losses_of_one_data_set_replace_those_of_another() -> None:
    backend = NativeBackend(2)
    valid = run_rows(np.zeros((2, 1), np.uint8), np.array([5, 6], np.float32))
    settings = run_settings(integer_thresholds([4]))
    backend.prepare(run_rows(BINS, np.array([1, 2, 3, 4], np.float32)), [valid], settings)
    for dataset, total in ((0, 10), (1, 11), (0, 10)):
        backend.compute_losses(MeanAbsoluteError(), dataset)
        assert backend.sum_losses(0) == total
