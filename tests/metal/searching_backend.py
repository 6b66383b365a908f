"""A backend that trains with the split search of the Metal kernels, and counts their answers."""

from typing import Any

import numpy as np
from metal.split_searches import SearchCase, decide, run_kernels
from numpy.typing import NDArray

from torchgbdt.backends.native import NativeBackend
from torchgbdt.backends.split_candidates import MAX_CANDIDATES
from torchgbdt.core.arrays import Int64Array, RecordArray
from torchgbdt.core.backend import ComputeBackend, LevelBatch
from torchgbdt.core.splits import SplitRules, find_best_splits


class SearchingBackend(NativeBackend):
    """The cpu backend, but for the search.

    Attributes
    ----------
    n_candidates : of each node that was searched; -1 for an overflow.
    """

    def __init__(self) -> None:
        super().__init__(n_threads=1)
        self.n_candidates: list[int] = []

    # In three calls, so that histograms can be read in between.
    search_level = ComputeBackend.search_level

    def find_splits(self, batch: LevelBatch, rules: SplitRules) -> tuple[RecordArray, Int64Array]:
        """As the core; the kernels' answer is held equal to it, node by node."""
        histograms = self.read_histograms(batch)
        settings = self.run_settings()
        thresholds = settings.thresholds
        parts: list[NDArray[Any]] = [histograms.counts, histograms.gradients[:, 0]]
        cells = np.stack([*parts, histograms.hessians[:, 0]], axis=1)
        unit = None
        if settings.constant_hessian:
            unit = int(batch.sums[0, 0, 1] // batch.nodes["count"][0])
        case = SearchCase(tuple(thresholds.n_value_bins.tolist()), cells, rules, unit)
        results = run_kernels(case)
        decide(case, results)
        self.n_candidates += results[:, 0].tolist()
        counts = batch.nodes["count"]
        return find_best_splits(histograms, counts, batch.sums, thresholds, rules)

    def counts(self) -> list[int]:
        """How many nodes overflowed, and how many have 0, 1, .. MAX_CANDIDATES candidates."""
        return [self.n_candidates.count(n) for n in range(-1, MAX_CANDIDATES + 1)]
