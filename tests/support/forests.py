"""Trees that no training made: any shape, any threshold, for kernels that only read them."""

from collections.abc import Sequence

import numpy as np

from torchgbdt.core.tree import Forest, NodeFlag, Tree, check_forest


def random_tree(
    rng: np.random.Generator,
    thresholds: Sequence[Sequence[float]],
    n_outputs: int = 1,
    n_splits: int = 7,
    keep_splitting: float = 0.7,
) -> Tree:
    """A valid tree whose splits are drawn from the thresholds of each feature, +inf included.

    Parameters
    ----------
    keep_splitting : probability that a node splits while splits are left; 1 gives a full tree, and
        the root always splits.
    """
    splits, n_nodes, node = [], 1, 0
    while node < n_nodes:
        if len(splits) < n_splits and (node == 0 or rng.random() < keep_splitting):
            splits.append(node)
            n_nodes += 2
        node += 1
    feature = rng.integers(0, len(thresholds), len(splits))
    pools = [[*pool, np.inf] for pool in thresholds]
    bins = [int(rng.integers(0, len(pools[f]))) for f in feature]
    return tree_of(
        n_nodes,
        splits,
        feature,
        bins,
        [pools[f][b] for f, b in zip(feature, bins, strict=True)],
        rng.random(len(splits)) < 0.5,
        rng.normal(size=(n_nodes, n_outputs)).astype(np.float32),
    )


def chain_tree(n_splits: int) -> Tree:
    """Split i sends x <= i left, to a leaf, and the rest on: as deep as it has splits."""
    splits = [0, *range(2, 2 * n_splits, 2)]
    steps = np.arange(n_splits)
    values = np.arange(2.0 * n_splits + 1, dtype=np.float32)[:, None]
    return tree_of(2 * n_splits + 1, splits, 0 * steps, steps, steps, steps < 0, values)


def tree_of(n_nodes, splits, feature, split_bin, threshold, missing_left, value) -> Tree:
    """A tree from its split nodes, in node order; one entry of each argument per split."""
    flags = np.full(n_nodes, NodeFlag.LEAF, np.uint8)
    flags[splits] = np.where(missing_left, NodeFlag.MISSING_LEFT, 0)
    value = value.copy()
    value[splits] = 0

    def spread(values, dtype, elsewhere):
        array = np.full(n_nodes, elsewhere, dtype)
        array[splits] = values
        return array

    children = 2 * np.arange(len(splits))
    return Tree(
        feature=spread(feature, np.int32, -1),
        split_bin=spread(split_bin, np.int32, 0),
        threshold=spread(threshold, np.float64, 0.0),
        left=spread(children + 1, np.int32, -1),
        right=spread(children + 2, np.int32, -1),
        value=value,
        gain=spread(1.0, np.float64, 0.0),
        cover=np.ones(n_nodes),
        count=np.zeros(n_nodes, np.int64),
        flags=flags,
        category_set=np.full(n_nodes, -1, np.int32),
    )


def forest_of(trees: Sequence[Tree], n_features: int, n_outputs: int = 1) -> Forest:
    return check_forest(Forest.from_trees(trees, n_outputs), n_features)


def random_forest(
    rng: np.random.Generator,
    thresholds: Sequence[Sequence[float]],
    n_trees: int = 6,
    n_outputs: int = 1,
) -> Forest:
    """Bushes and chains, a single leaf among them."""
    sizes = [0, 1, 15, 31, 12, 12][:n_trees]
    trees = [
        random_tree(rng, thresholds, n_outputs, size, 1.0 if size == 15 else 0.6)
        if size
        else leaf_tree(rng.normal(size=n_outputs))
        for size in sizes
    ]
    return forest_of(trees, len(thresholds), n_outputs)


def leaf_tree(values: np.ndarray) -> Tree:
    """A root that is a leaf."""
    return tree_of(1, [], [], [], [], [], np.array([values], np.float32))
