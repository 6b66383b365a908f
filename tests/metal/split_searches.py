"""Split searches by the kernels, on an emulated device, beside what core/splits.py finds."""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import torch
from metal.emulator.device import EmulatedDevice, EmulatedLibrary, EmulatorOptions
from support.exact import assert_identical
from support.runs import integer_thresholds

from torchgbdt.backends.metal_library import MetalLibrary, assemble
from torchgbdt.backends.split_candidates import (
    CANDIDATE_WORDS,
    MAX_CANDIDATES,
    RESULT_WORDS,
    SUMMARY_WORDS,
    SearchBuffers,
    SearchedNodes,
    can_filter,
    decide_splits,
    queue_search,
)
from torchgbdt.core.arrays import BoolArray, Int32Array, Int64Array, RecordArray
from torchgbdt.core.splits import Histograms, SplitRules, find_best_splits

NONCE = 12_345
STALE = -77


def split_rules(
    reg_lambda: float = 1.0,
    gamma: float = 0.0,
    min_samples_leaf: int = 1,
    min_hessian: int = 1,
    scales: tuple[int, int] = (0, 0),
) -> SplitRules:
    """Rules of a tree with one output; scales of gradients and Hessians."""
    return SplitRules(
        reg_lambda, gamma, min_samples_leaf, np.array([min_hessian]), np.array([scales], np.int64)
    )


@dataclass(frozen=True)
class SearchCase:
    """Nodes whose best splits are looked for.

    Attributes
    ----------
    n_value_bins : of each feature.
    cells : int64, (n_nodes, 3, total_bins); counts, gradients and Hessians.
    hessian_unit : where Hessians are constant: of a row.
    """

    n_value_bins: tuple[int, ...]
    cells: Int64Array
    rules: SplitRules = field(default_factory=split_rules)
    hessian_unit: int | None = None

    @property
    def nodes(self) -> SearchedNodes:
        """Totals of the first feature; slots are handed out backwards, one is left free."""
        totals = self.cells[:, :, : self.n_value_bins[0] + 1].sum(axis=2)
        slots = np.arange(len(totals), 0, -1, dtype=np.int32)
        return SearchedNodes(slots, totals[:, 0].copy(), totals[:, None, 1:].copy())

    def expected(self) -> tuple[RecordArray, Int64Array]:
        """What ``find_best_splits`` finds."""
        counts, gradients, hessians = (self.cells[:, i] for i in range(3))
        histograms = Histograms(counts, gradients[:, None], hessians[:, None])
        thresholds = integer_thresholds(self.n_value_bins)
        nodes = self.nodes
        return find_best_splits(histograms, nodes.counts, nodes.sums, thresholds, self.rules)

    def buffers(self) -> SearchBuffers:
        """Tensors of the case; whatever the kernels must write holds STALE words."""
        n_nodes, _, total_bins = self.cells.shape
        n_planes = 3 if self.hessian_unit is None else 2
        histograms = np.full((n_nodes + 1, n_planes, total_bins), 2**40, np.int64)
        histograms[self.nodes.slots] = self.cells[:, :n_planes]
        offsets = integer_thresholds(self.n_value_bins).bin_offsets[:-1]
        features = np.stack((offsets, self.n_value_bins), axis=1).astype(np.int32)
        n_features = len(features)
        return SearchBuffers(
            torch.from_numpy(histograms),
            torch.from_numpy(features),
            torch.full((n_nodes, n_features, SUMMARY_WORDS), STALE, dtype=torch.int32),
            torch.full(
                (n_nodes, n_features, MAX_CANDIDATES, CANDIDATE_WORDS), STALE, dtype=torch.int32
            ),
            torch.full((n_nodes, RESULT_WORDS), STALE, dtype=torch.int32),
        )


@lru_cache
def kernel_library(options: EmulatorOptions = EmulatorOptions()) -> MetalLibrary:  # noqa: B008
    """The shipped kernels on an emulated device."""
    return MetalLibrary(EmulatedDevice(options).compile_shader)


def changed_library(*changes: tuple[str, str]) -> MetalLibrary:
    """The kernels with new text in place of old, (old, new): for tests that must see the change."""
    sources = [assemble("scan_splits", {"CONSTANT_HESSIAN": 0}), assemble("select_candidates", {})]
    for old, _ in changes:
        assert any(old in source for source in sources), f"no kernel has {old!r}"

    def compile_changed(source: str) -> EmulatedLibrary:
        for old, new in changes:
            source = source.replace(old, new)
        return EmulatedDevice().compile_shader(source)

    return MetalLibrary(compile_changed)


def run_kernels(case: SearchCase, library: MetalLibrary | None = None) -> Int32Array:
    """Results of the kernels, int32 (n_nodes, RESULT_WORDS)."""
    assert can_filter(case.rules)
    buffers = case.buffers()
    library = library or kernel_library()
    queue_search(library, buffers, case.nodes, case.rules, case.hessian_unit, NONCE)
    results: Int32Array = buffers.results.numpy()
    return results


def decide(case: SearchCase, results: Int32Array) -> BoolArray:
    """Hold the decision over results equal to core/splits.py; which nodes overflowed."""
    records, left_sums, overflowed = decide_splits(results, case.nodes, case.rules, NONCE)
    expected, expected_sums = (found.copy() for found in case.expected())
    expected[overflowed] = 0
    expected_sums[overflowed] = 0
    assert_identical(records, expected)
    assert_identical(left_sums, expected_sums)
    return overflowed


def search(case: SearchCase, library: MetalLibrary | None = None) -> BoolArray:
    """Search on the device and decide; which nodes overflowed."""
    return decide(case, run_kernels(case, library))
