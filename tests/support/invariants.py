"""What holds of every histogram, every tree and every model, whoever made it."""

import numpy as np

from torchgbdt.core.arrays import Int64Array
from torchgbdt.core.backend import LevelBatch
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.model import Model, check_model
from torchgbdt.core.splits import Histograms
from torchgbdt.core.tree import Tree


def check_histograms(histograms: Histograms, batch: LevelBatch, thresholds: BinThresholds) -> None:
    """Every feature's bins hold all rows of the node and all of its gradient and Hessian."""
    counts = sum_over_bins(histograms.counts, thresholds)
    assert (histograms.counts >= 0).all(), "a bin holds a negative number of rows"
    assert (histograms.hessians >= 0).all(), "a bin holds a negative Hessian"
    assert (counts == batch.nodes["count"][:, None]).all(), "bins do not add up to the node's rows"
    for column, sums in enumerate((histograms.gradients, histograms.hessians)):
        totals = sum_over_bins(sums, thresholds)
        assert (totals == batch.sums[:, :, column, None]).all(), "bins do not add up to the node"


def sum_over_bins(cells: Int64Array, thresholds: BinThresholds) -> Int64Array:
    """Totals per feature: (..., total_bins) -> (..., n_features)."""
    return np.add.reduceat(cells, thresholds.bin_offsets[:-1], axis=-1)


def check_tree(tree: Tree, min_samples_leaf: int = 1, max_depth: int | None = None) -> None:
    """Splits gain something, children share their parent's rows and Hessian, leaves are allowed.

    After legate-boost's sanity_check_models. ``cover`` is an integer sum times a power of two; it
    is exact up to 2^53, which no data set of the tests reaches: a Hessian is at most 2^29.
    """
    split = np.flatnonzero(~tree.is_leaf)
    left, right = tree.left[split], tree.right[split]
    assert (tree.gain[split] > 0).all(), "a split gains nothing"
    assert (tree.count[split] == tree.count[left] + tree.count[right]).all(), "rows were lost"
    assert (tree.count[1:] >= min_samples_leaf).all(), "a child has too few rows"
    assert (tree.cover[1:] > 0).all(), "a child has no Hessian"
    children = tree.cover[left] + tree.cover[right]
    assert (tree.cover[split] == children).all(), "children do not share the parent's Hessian"
    assert max_depth is None or tree.depth <= max_depth, "the tree is too deep"


def check_trees(model: Model, min_samples_leaf: int = 1, max_depth: int | None = None) -> None:
    """``check_tree`` for each tree, and the model's own checks."""
    check_model(model)
    for index in range(model.n_trees):
        check_tree(model.forest.tree(index), min_samples_leaf, max_depth)
