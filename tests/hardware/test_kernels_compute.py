"""The tests of the kernels, which the emulator passes, on an Apple GPU; and the conformance probe.

Left out are those that only an emulator can pass: planted races and missing barriers, and what its
checks find.
"""

from collections.abc import Iterator
from types import ModuleType

import pytest
import torch
from hardware.copied_tensors import CopyingDevice
from metal import (
    test_bin_features,
    test_build_histograms,
    test_compute_gradients,
    test_compute_losses,
    test_predict,
    test_reduce_histograms,
    test_round_gradients,
    test_route_rows,
    test_scan_splits,
    test_scan_splits_arithmetic,
    test_scan_splits_faults,
    test_scan_splits_near_ties,
    test_scan_splits_training,
    test_select_candidates,
    test_update_predictions,
)
from metal.emulator.device import EmulatedDevice
from metal.split_searches import kernel_library

from torchgbdt.backends.conformance import check_conformance
from torchgbdt.backends.metal_library import MetalLibrary

pytestmark = pytest.mark.mps

EMULATOR_ONLY = (
    "test_a_missing_barrier_is_seen",
    "test_blocks_of_rows_need_totals_by_turns",
    "test_every_barrier_matters",
    "test_no_races_and_nothing_out_of_bounds",
    "test_under_the_checks_of_the_emulator",
)


@pytest.fixture(autouse=True)
def kernels_run_on_hardware(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    kernel_library.cache_clear()  # it may hold the emulator's
    hardware = CopyingDevice(torch.mps.compile_shader, "mps")
    monkeypatch.setattr(
        EmulatedDevice, "compile_shader", lambda _, source: hardware.compile_shader(source)
    )
    yield
    kernel_library.cache_clear()


def tests_of(module: ModuleType) -> type:
    """A class of a module's tests, for pytest to collect."""
    return type(
        module.__name__,
        (),
        {
            name: staticmethod(test)
            for name, test in vars(module).items()
            if name.startswith("test_") and name not in EMULATOR_ONLY
        },
    )


TestBinFeatures = tests_of(test_bin_features)
TestBuildHistograms = tests_of(test_build_histograms)
TestComputeGradients = tests_of(test_compute_gradients)
TestComputeLosses = tests_of(test_compute_losses)
TestPredict = tests_of(test_predict)
TestReduceHistograms = tests_of(test_reduce_histograms)
TestRoundGradients = tests_of(test_round_gradients)
TestRouteRows = tests_of(test_route_rows)
TestScanSplits = tests_of(test_scan_splits)
TestScanSplitsArithmetic = tests_of(test_scan_splits_arithmetic)
TestScanSplitsFaults = tests_of(test_scan_splits_faults)
TestScanSplitsNearTies = tests_of(test_scan_splits_near_ties)
TestScanSplitsTraining = tests_of(test_scan_splits_training)
TestSelectCandidates = tests_of(test_select_candidates)
TestUpdatePredictions = tests_of(test_update_predictions)


def test_the_device_conforms() -> None:
    check_conformance(MetalLibrary(torch.mps.compile_shader), torch.device("mps"))
