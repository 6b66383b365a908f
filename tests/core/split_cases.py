"""Histograms of a few nodes from a list of rows each, for tests of the split search."""

from dataclasses import dataclass, field

import numpy as np
from support.runs import integer_thresholds

from torchgbdt.core.splits import Histograms, SplitRules, find_best_splits

Row = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Codes of each feature, then gradient and Hessian of each output, in fixed point."""


@dataclass(frozen=True)
class Case:
    """Nodes whose best splits are looked for.

    Attributes
    ----------
    nodes : the rows of each node. A code equal to the number of value bins means missing.
    """

    n_value_bins: tuple[int, ...]
    nodes: list[list[Row]]
    reg_lambda: float = 0.0
    gamma: float = 0.0
    min_samples_leaf: int = 1
    min_hessian: tuple[int, ...] = (1,)
    scales: tuple[tuple[int, int], ...] = ((0, 0),)

    n_outputs: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_outputs", len(self.scales))

    @property
    def rules(self) -> SplitRules:
        return SplitRules(
            self.reg_lambda,
            self.gamma,
            self.min_samples_leaf,
            np.array(self.min_hessian, np.int64),
            np.array(self.scales, np.int64),
        )

    def cells(self, node: int) -> list[list[list[int]]]:
        """[count, G..., H...] of each code of each feature, in Python integers."""
        cells = [[[0] * (1 + 2 * self.n_outputs) for _ in range(n + 1)] for n in self.n_value_bins]
        for codes, gradients, hessians in self.nodes[node]:
            for feature, code in enumerate(codes):
                words = (1, *gradients, *hessians)
                cells[feature][code] = [
                    a + b for a, b in zip(cells[feature][code], words, strict=True)
                ]
        return cells

    def sums(self, node: int) -> list[list[int]]:
        """[G, H] of each output."""
        rows = self.nodes[node]
        return [
            [sum(row[1][k] for row in rows), sum(row[2][k] for row in rows)]
            for k in range(self.n_outputs)
        ]

    def search(self) -> tuple[np.ndarray, np.ndarray]:
        """What ``find_best_splits`` finds: records and left sums."""
        flat = [
            [words for cells in self.cells(node) for words in cells]
            for node in range(len(self.nodes))
        ]
        words = np.array(flat, np.int64)  # (n_nodes, total_bins, 1 + 2 * n_outputs)
        gradients = words[:, :, 1 : 1 + self.n_outputs].transpose(0, 2, 1)
        hessians = words[:, :, 1 + self.n_outputs :].transpose(0, 2, 1)
        return find_best_splits(
            Histograms(words[:, :, 0], gradients, hessians),
            np.array([len(rows) for rows in self.nodes], np.int64),
            np.array([self.sums(node) for node in range(len(self.nodes))], np.int64),
            integer_thresholds(self.n_value_bins),
            self.rules,
        )


def one_feature(bins: list[list[int]], missing: list[int] = (), **rules: object) -> Case:
    """One node, one feature, h = 1 for each row: gradients bin by bin, and the missing ones."""
    rows: list[Row] = [((code,), (g,), (1,)) for code, gs in enumerate(bins) for g in gs]
    rows += [((len(bins),), (g,), (1,)) for g in missing]
    return Case((len(bins),), [rows], **rules)
