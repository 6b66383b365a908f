"""A backend in plain Python numbers, which the oracle is held to. It shares no arithmetic with it.

Sums are Python integers, rounding goes through ``Fraction``, float32 through a C cast, rows are
walked one at a time: nothing here can overflow, reorder or vectorize. For a few hundred rows only.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from support.naive_losses import (
    fixed_point,
    float32,
    gradients,
    ranked,
    raw_prediction,
    row_loss,
    weighted,
)
from support.naive_splits import best_split

from torchgbdt.core.backend import ComputeBackend, LevelBatch, RunRows
from torchgbdt.core.errors import StateError
from torchgbdt.core.extremes import GradientExtremes
from torchgbdt.core.ranking import OrderedPairs, RankedWeights, merge_rankings
from torchgbdt.core.splits import SPLIT_DTYPE, Histograms


def bin_of(x: float, thresholds: Any, feature: int) -> int:
    """The number of thresholds below x; the missing code for NaN."""
    if math.isnan(x):
        return int(thresholds.n_value_bins[feature])
    return sum(t < x for t in thresholds.of_feature(feature).tolist())


def leaf_of(tree: Any, row: Sequence[float], missing: Any, bound: Any) -> int:
    """Walk down: ``row[feature] <= bound[node]`` goes left, missing rows follow the flag."""
    node = 0
    while tree.left[node] >= 0:
        x = row[tree.feature[node]]
        is_missing = missing(x, tree.feature[node])
        left = bool(tree.flags[node] & 2) if is_missing else x <= bound[node]
        node = int(tree.left[node] if left else tree.right[node])
    return node


class NaiveBackend(ComputeBackend):
    """See the module."""

    name = "naive"

    def __init__(self) -> None:
        self._datasets: list[RunRows] = []

    # --- outside a run -----------------------------------------------------------------------

    def bin_features(self, source, kept_rows, thresholds) -> np.ndarray:
        rows = range(source.n_rows) if kept_rows is None else kept_rows.tolist()
        bins = np.zeros((len(rows), source.n_features), np.uint8)
        for feature in range(source.n_features):
            column = source.column(feature, 0, source.n_rows).tolist()
            bins[:, feature] = [bin_of(column[row], thresholds, feature) for row in rows]
        return bins

    def predict(self, forest, source, sums) -> None:
        for row, values in enumerate(_raw_rows(source)):
            for index in range(forest.n_trees):
                tree = forest.tree(index)
                leaf = leaf_of(tree, values, _is_nan, tree.threshold)
                self._add(sums, row, tree.value[leaf].tolist(), index % sums.shape[1])

    def predict_leaves(self, forest, source, leaves) -> None:
        for row, values in enumerate(_raw_rows(source)):
            for index in range(forest.n_trees):
                tree = forest.tree(index)
                leaves[row, index] = leaf_of(tree, values, _is_nan, tree.threshold)

    # --- a run -------------------------------------------------------------------------------

    def prepare(self, train, valids, settings) -> None:
        self._datasets = [train, *valids]
        self._settings = settings
        self._predictions = [self._start(data) for data in self._datasets]
        self._row_gradients: list[tuple[list[float], list[float]]] | None = None
        self._slots: dict[int, list[list[int]]] = {}

    def release(self) -> None:
        self._datasets = []

    def _start(self, data: RunRows) -> np.ndarray:
        sums = np.zeros((data.n_rows, self._settings.objective.n_outputs), np.float32)
        if data.start is not None:
            sums[...] = data.start
        return sums

    def run_settings(self):
        if not self._datasets:
            raise StateError("no run")
        return self._settings

    def run_rows(self, dataset):
        self.run_settings()
        return self._datasets[dataset]

    def sample_rows(self, tree) -> int:
        self._order = list(range(self._datasets[0].n_rows))
        return len(self._order)

    def compute_gradients(self, output) -> GradientExtremes:
        train = self._datasets[0]
        if self._row_gradients is None:  # all trees of a round see its start
            name = self._settings.objective.name
            labels = train.labels.tolist()
            self._row_gradients = [
                gradients(name, self._seen(0, row), label) for row, label in enumerate(labels)
            ]
        width = self._settings.tree_outputs
        chosen = [
            [
                [weighted(v, weight) for v in values[output * width : (output + 1) * width]]
                for values, weight in zip(of_rows, _weights_of(train), strict=True)
            ]
            for of_rows in zip(*self._row_gradients, strict=True)
        ] or [[], []]
        g, h = (np.array(values, np.float32).reshape(-1, width) for values in chosen)
        return self.load_gradients(g, h)

    def load_gradients(self, gradients, hessians) -> GradientExtremes:
        self._g = [[float32(x) for x in row] for row in gradients.tolist()]
        self._h = [[float32(x) for x in row] for row in hessians.tolist()]
        used = [row for row in self._order]
        everything = [x for row in used for x in self._g[row] + self._h[row]]
        largest = [
            [
                max([abs(self._g[row][k]) for row in used], default=0.0),
                max([self._h[row][k] for row in used], default=0.0),
            ]
            for k in range(gradients.shape[1])
        ]
        smallest = min([x for row in used for x in self._h[row]], default=0.0)
        finite = all(map(math.isfinite, everything))
        return GradientExtremes(np.array(largest, np.float64), smallest, finite)

    def round_gradients(self, scales):
        outputs = range(self._settings.tree_outputs)
        pairs = scales.tolist()
        self._q_g = [[fixed_point(row[k], pairs[k][0]) for k in outputs] for row in self._g]
        self._q_h = [
            [max(fixed_point(row[k], pairs[k][1]), int(row[k] > 0)) for k in outputs]
            for row in self._h
        ]
        totals = [
            [sum(q[row][k] for row in self._order) for q in (self._q_g, self._q_h)] for k in outputs
        ]
        return np.array(totals, np.int64)

    def build_histograms(self, batch) -> None:
        offsets = self._settings.thresholds.bin_offsets.tolist()
        outputs = self._settings.tree_outputs
        for node in batch.nodes[batch.nodes["build"]]:
            cells = [[0] * (1 + 2 * outputs) for _ in range(offsets[-1])]
            for row in self._order[node["begin"] : node["begin"] + node["n_rows"]]:
                amounts = [1, *self._q_g[row], *self._q_h[row]]
                for feature, code in enumerate(self._datasets[0].bins[row].tolist()):
                    cell = cells[offsets[feature] + code]
                    for word, amount in enumerate(amounts):
                        cell[word] += amount
            self._slots[int(node["slot"])] = cells

    def exchange_histograms(self, batch, communicator) -> None:
        for node in batch.nodes[batch.nodes["build"]]:
            cells = np.array(self._slots[int(node["slot"])], np.int64)
            communicator.sum_int64(cells)
            self._slots[int(node["slot"])] = cells.tolist()

    def subtract_histograms(self, batch) -> None:
        for node in batch.nodes[~batch.nodes["build"]]:
            parent, sibling = (self._slots[int(node[f])] for f in ("slot", "sibling_slot"))
            self._slots[int(node["slot"])] = [
                [p - s for p, s in zip(ours, theirs, strict=True)]
                for ours, theirs in zip(parent, sibling, strict=True)
            ]

    def read_histograms(self, batch) -> Histograms:
        shape = (-1, self._settings.thresholds.total_bins, 1 + 2 * self._settings.tree_outputs)
        cells = np.array([self._slots[slot] for slot in batch.nodes["slot"].tolist()], np.int64)
        words = cells.reshape(shape).transpose(0, 2, 1)
        middle = 1 + self._settings.tree_outputs
        counts, gradients, hessians = np.split(words, [1, middle], axis=1)
        return Histograms(counts[:, 0], gradients, hessians)

    def find_splits(self, batch: LevelBatch, rules):
        records = np.zeros(batch.nodes.size, SPLIT_DTYPE)
        left_sums = np.zeros_like(batch.sums)
        offsets = self._settings.thresholds.bin_offsets.tolist()
        for index, node in enumerate(batch.nodes):
            cells = self._slots[int(node["slot"])]
            features = [cells[a:b] for a, b in pairwise(offsets)]
            sums = batch.sums[index].tolist()
            best = best_split(features, int(node["count"]), sums, rules)
            if best is not None:
                record, left = best
                for name, value in record.items():
                    records[name][index] = value
                left_sums[index] = left
        return records, left_sums

    def route_rows(self, nodes, splits):
        left_rows = []
        for node, split in zip(nodes, splits, strict=True):
            first, end = int(node["begin"]), int(node["begin"] + node["n_rows"])
            sides: tuple[list[int], list[int]] = ([], [])
            for row in self._order[first:end]:
                code = self._datasets[0].bins[row, split["feature"]]
                missing = self._is_missing(code, split["feature"])
                left = split["missing_left"] if missing else code <= split["split_bin"]
                sides[0 if left else 1].append(row)
            self._order[first:end] = sides[0] + sides[1]
            left_rows.append(len(sides[0]))
        return np.array(left_rows, np.int64)

    def update_predictions(self, tree, output) -> None:
        self._row_gradients = None
        for data, sums in zip(self._datasets, self._predictions, strict=True):
            for row, codes in enumerate(data.bins.tolist()):
                leaf = leaf_of(tree, codes, self._is_missing, tree.split_bin)
                self._add(sums, row, tree.value[leaf].tolist(), output)

    def compute_losses(self, metric, dataset):
        data, objective = self._datasets[dataset], self._settings.objective.name
        self._losses = [
            weighted(row_loss(objective, metric.name, self._seen(dataset, row), label), weight)
            for row, (label, weight) in enumerate(
                zip(data.labels.tolist(), _weights_of(data), strict=True)
            )
        ]
        finite = all(map(math.isfinite, self._losses))
        return (max(self._losses, default=0.0) if finite else 0.0), finite

    def sum_losses(self, scale) -> int:
        return sum(fixed_point(loss, scale) for loss in self._losses)

    def rank_rows(self, dataset, scale) -> RankedWeights:
        data = self.run_rows(dataset)
        raw = [self._seen(dataset, row)[0] for row in range(data.n_rows)]
        if any(map(math.isnan, raw)):
            return RankedWeights(np.zeros(0, np.int32), np.zeros((0, 2), np.int64), False)
        weights = None if data.weights is None else data.weights.tolist()
        table = ranked(raw, data.labels.tolist(), weights, scale)
        keys = np.array(list(table), np.int32)
        return RankedWeights(keys, np.array([*table.values()], np.int64).reshape(-1, 2), True)

    def count_pairs(self, dataset, scale, communicator) -> OrderedPairs:
        merged = merge_rankings(self.rank_rows(dataset, scale), communicator)
        below = twice = 0
        for first, second in merged.weights.tolist():
            twice += second * (2 * below + first)
            below += first
        total = below * sum(second for _, second in merged.weights.tolist())
        return OrderedPairs(twice, total, merged.finite)

    def _seen(self, dataset: int, row: int) -> list[float]:
        """What the objective reads: raw predictions; for squared error sums of leaf values."""
        sums = self._predictions[dataset][row].tolist()
        if self._settings.objective.name == "squared_error":
            return sums
        margins = self._datasets[dataset].margins
        given = [None] * len(sums) if margins is None else margins[row].tolist()
        return [
            raw_prediction(*parts)
            for parts in zip(self._settings.baseline.tolist(), sums, given, strict=True)
        ]

    def read_predictions(self, dataset):
        return self._predictions[dataset].copy()

    def read_gradients(self):
        return self._per_row(self._g, np.float32), self._per_row(self._h, np.float32)

    def read_fixed_point(self):
        return self._per_row(self._q_g, np.int32), self._per_row(self._q_h, np.int32)

    def _per_row(self, values, dtype):
        return np.array(values, dtype).reshape(-1, self._settings.tree_outputs)

    def read_row_order(self):
        return np.array(self._order, np.int64)

    def diagnostics(self) -> dict[str, Any]:
        return {"backend": self.name}

    def _is_missing(self, code, feature) -> bool:
        return bool(code == self._settings.thresholds.n_value_bins[feature])

    @staticmethod
    def _add(sums, row: int, values: list[float], column: int) -> None:
        columns = [column] if len(values) == 1 else range(len(values))
        for k, value in zip(columns, values, strict=True):
            sums[row, k] = float32(float(sums[row, k]) + value)


def _weights_of(data: RunRows) -> list[float | None]:
    return [None] * data.n_rows if data.weights is None else data.weights.tolist()


def _is_nan(x: float, feature: int) -> bool:
    return math.isnan(x)


def _raw_rows(source) -> Iterator[tuple[float, ...]]:
    columns = [source.column(f, 0, source.n_rows).tolist() for f in range(source.n_features)]
    return zip(*columns, strict=True)
