"""Two backends that do the same run at the same time; every result of every call is compared.

A training session on a ``LockstepBackend`` compares whatever that run makes them do: extremes,
totals, rounded gradients, histograms, split records, row order, predictions, losses and rankings.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from support.backends import BackendUnderTest
from support.exact import assert_identical
from support.invariants import check_histograms

from torchgbdt.core.backend import ComputeBackend, LevelBatch
from torchgbdt.core.extremes import GradientExtremes


def in_lockstep(under_test: BackendUnderTest) -> "LockstepBackend":
    """The backend and its reference."""
    return LockstepBackend(under_test.make_reference(), under_test.make())


class LockstepBackend(ComputeBackend):
    """Calls both backends and returns what ``found`` returned, once it equals ``expected``'s.

    Attributes
    ----------
    compared : name of what was compared -> how often; a test that needs a comparison asks here.
    in_one_pass : whether a level is searched by one call, and not by the steps it consists of.
    given : gradients and Hessians, (n_rows, tree_outputs) each; loaded instead of computed.
    """

    def __init__(self, expected: ComputeBackend, found: ComputeBackend) -> None:
        self.name = f"{found.name} against {expected.name}"
        self.expected = expected
        self.found = found
        self.compared: Counter[str] = Counter()
        self.in_one_pass = False
        self.given: tuple[np.ndarray, np.ndarray] | None = None

    def _both(self, what: str, call: Callable[[ComputeBackend], Any]) -> Any:
        expected, found = call(self.expected), call(self.found)
        self._compare(what, found, expected)
        return found

    def _compare(self, what: str, found: Any, expected: Any) -> None:
        assert_identical(found, expected, f"{what} of {self.name}")
        self.compared[what] += 1

    def _out(self, what: str, out: np.ndarray, call: Callable[[ComputeBackend, Any], None]) -> None:
        """A call that fills ``out``: each backend fills a copy of its own."""
        expected = out.copy()
        call(self.expected, expected)
        call(self.found, out)
        self._compare(what, out, expected)

    def bin_features(self, source, kept_rows, thresholds) -> Any:
        expected = self.expected.bin_features(source, kept_rows, thresholds)
        found = self.found.bin_features(source, kept_rows, thresholds)
        self._compare("shape of bins", found.shape, expected.shape)
        self._compare("bins", np.asarray(found), np.asarray(expected))
        return found

    def predict(self, forest, source, sums) -> None:
        self._out("predict", sums, lambda one, out: one.predict(forest, source, out))

    def predict_leaves(self, forest, source, leaves) -> None:
        self._out("leaves", leaves, lambda one, out: one.predict_leaves(forest, source, out))

    def prepare(self, train, valids, settings) -> None:
        self._n_datasets = 1 + len(valids)
        self.expected.prepare(train, valids, settings)
        own_bins = train.bins[np.arange(train.n_rows)]  # a copy
        own = replace(train, bins=own_bins, bins_are_shared=False)  # as in most runs
        self.found.prepare(own, valids, settings)
        self._compare_predictions()

    def release(self) -> None:
        self._both("release", lambda one: one.release())

    def run_settings(self):
        return self.found.run_settings()

    def run_rows(self, dataset):
        """Bins that are not shared may have been changed: they are left out of the comparison."""

        def rows(one: ComputeBackend) -> Any:
            return replace(one.run_rows(dataset), bins=np.zeros((0, 0)), bins_are_shared=True)

        self._both("rows", rows)
        return self.found.run_rows(dataset)

    def sample_rows(self, tree) -> int:
        n_rows = self._both("sampled rows", lambda one: one.sample_rows(tree))
        self._compare_row_order([0, n_rows])
        return n_rows

    def compute_gradients(self, output) -> GradientExtremes:
        if self.given is not None:
            return self.load_gradients(*self.given)
        return self._gradients(lambda one: one.compute_gradients(output))

    def load_gradients(self, gradients, hessians) -> GradientExtremes:
        return self._gradients(lambda one: one.load_gradients(gradients, hessians))

    def _gradients(self, call: Callable[[ComputeBackend], GradientExtremes]) -> GradientExtremes:
        expected, found = call(self.expected), call(self.found)
        self._compare("finite flag", found.finite, expected.finite)
        if expected.finite:  # otherwise only the flag means something
            self._compare("smallest hessian", found.smallest_hessian, expected.smallest_hessian)
            if expected.smallest_hessian >= 0:
                self._compare("extremes", found, expected)
            self._both("gradients", lambda one: one.read_gradients())
        return found

    def round_gradients(self, scales):
        totals = self._both("totals", lambda one: one.round_gradients(scales))
        self._both("fixed point", lambda one: one.read_fixed_point())
        return totals

    def build_histograms(self, batch) -> None:
        self._both("build", lambda one: one.build_histograms(batch))
        built = batch.nodes["build"]
        self._histograms("built", LevelBatch(batch.nodes[built], batch.sums[built]))

    def exchange_histograms(self, batch, communicator) -> None:
        self._both("exchange", lambda one: one.exchange_histograms(batch, communicator))
        built = batch.nodes["build"]
        self._histograms("exchanged", LevelBatch(batch.nodes[built], batch.sums[built]))

    def subtract_histograms(self, batch) -> None:
        self._both("subtract", lambda one: one.subtract_histograms(batch))
        histograms = self._histograms("subtracted", batch)
        check_histograms(histograms, batch, self.run_settings().thresholds)

    def _histograms(self, what: str, batch: LevelBatch) -> Any:
        return self._both(f"{what} histograms", lambda one: one.read_histograms(batch))

    def read_histograms(self, batch):
        return self._histograms("read", batch)

    def find_splits(self, batch, rules):
        return self._both("splits", lambda one: one.find_splits(batch, rules))

    def search_level(self, batch, rules, communicator, keep):
        """Step by step, so that each is compared; or as the backends do it."""
        if not self.in_one_pass:
            return super().search_level(batch, rules, communicator, keep)
        found = self._both("search", lambda one: one.search_level(batch, rules, communicator, keep))
        if keep:
            histograms = self._histograms("searched", batch)
            check_histograms(histograms, batch, self.run_settings().thresholds)
        return found

    def route_rows(self, nodes, splits):
        left_rows = self._both("left rows", lambda one: one.route_rows(nodes, splits))
        begins, ends = nodes["begin"], nodes["begin"] + nodes["n_rows"]
        self._compare_row_order(np.concatenate((begins, begins + left_rows, ends)))
        return left_rows

    def _compare_row_order(self, borders: Any) -> None:
        """Between these borders both hold the same rows; in which order is each one's own."""

        def stretches(one: ComputeBackend) -> list[np.ndarray]:
            return [np.sort(part) for part in np.split(one.read_row_order(), np.unique(borders))]

        self._both("row order", stretches)

    def update_predictions(self, tree, output) -> None:
        self._both("update", lambda one: one.update_predictions(tree, output))
        self._compare_predictions()

    def _compare_predictions(self) -> None:
        for dataset in range(self._n_datasets):
            self.read_predictions(dataset)

    def compute_losses(self, metric, dataset):
        return self._both("losses", lambda one: one.compute_losses(metric, dataset))

    def sum_losses(self, scale) -> int:
        return self._both("loss sum", lambda one: one.sum_losses(scale))

    def evaluate(self, metric, dataset, communicator):
        return self._both("metric", lambda one: one.evaluate(metric, dataset, communicator))

    def rank_rows(self, dataset, scale):
        return self._both("ranking", lambda one: one.rank_rows(dataset, scale))

    def count_pairs(self, dataset, scale, communicator):
        return self._both("pairs", lambda one: one.count_pairs(dataset, scale, communicator))

    def read_predictions(self, dataset):
        return self._both("predictions", lambda one: one.read_predictions(dataset))

    def read_gradients(self):
        return self._both("gradients", lambda one: one.read_gradients())

    def read_fixed_point(self):
        return self._both("fixed point", lambda one: one.read_fixed_point())

    def read_row_order(self):
        return self._both("row order", lambda one: one.read_row_order())

    def synchronize(self) -> None:
        self._both("synchronize", lambda one: one.synchronize())

    def diagnostics(self) -> dict[str, Any]:
        return self.found.diagnostics()
