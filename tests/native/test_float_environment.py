"""Results do not depend on what the calling thread does to its floating-point unit."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from support.runs import train
from support.scenarios import scenario

from torchgbdt.backends.native import NativeBackend
from torchgbdt.core.binning import BinThresholds, bin_column
from torchgbdt.core.feature_source import HostMatrix

# Computed here, where subnormal numbers still exist.
SUBNORMAL = 5e-324
VALUES = np.array([-SUBNORMAL, 0.0, SUBNORMAL, 2 * SUBNORMAL, 3 * SUBNORMAL])
THRESHOLDS = BinThresholds.from_features([(VALUES[1:4], 4)])


@pytest.fixture
def flushing() -> Iterator[None]:
    """Subnormal numbers are zero for this thread, as far as it is concerned."""
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush subnormal numbers")
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def is_flushing() -> bool:
    return bool((np.full(4, SUBNORMAL) * 1.0 == 0.0).all())


def test_subnormal_thresholds_separate_subnormal_values(flushing: None) -> None:
    bins = NativeBackend(2).bin_features(HostMatrix(VALUES[:, None]), None, THRESHOLDS)
    torch.set_flush_denormal(False)
    assert bins[:, 0].tolist() == [0, 0, 1, 2, 3]
    assert bins[:, 0].tolist() == bin_column(VALUES, THRESHOLDS, 0).tolist()


def test_caller_keeps_its_own_mode(flushing: None) -> None:
    train(NativeBackend(2), scenario("plain"))
    assert is_flushing()


def test_new_helper_threads_do_not_inherit_it(flushing: None) -> None:
    digest = train(NativeBackend(33), scenario("many rows")).model.digest()
    torch.set_flush_denormal(False)
    assert train(NativeBackend(1), scenario("many rows")).model.digest() == digest
