"""A small tree, forest and model written out by hand.

node 0: x1 <= 0.5, missing left      10 rows
  1: leaf -1.5                        4
  2: x0 <= inf, missing right         6
    3: leaf 0.25                      5
    4: leaf 2                         1
"""

from dataclasses import replace
from typing import Any

import numpy as np

from torchgbdt.core.model import Model
from torchgbdt.core.tree import NODE_ARRAYS, Forest, Tree

LEAF, MISSING_LEFT, CATEGORICAL = 1, 2, 4


def tree(**changes: Any) -> Tree:
    """The tree above; ``changes`` replace whole arrays."""
    arrays: dict[str, Any] = {
        "feature": [1, -1, 0, -1, -1],
        "split_bin": [3, 0, 0, 0, 0],
        "threshold": [0.5, 0, np.inf, 0, 0],
        "left": [1, -1, 3, -1, -1],
        "right": [2, -1, 4, -1, -1],
        "value": [[0], [-1.5], [0], [0.25], [2]],
        "gain": [3.5, 0, 1.25, 0, 0],
        "cover": [10, 4, 6, 5, 1],
        "count": [10, 4, 6, 5, 1],
        "flags": [MISSING_LEFT, LEAF, 0, LEAF, LEAF],
        "category_set": [-1] * 5,
    }
    typed = {name: np.array(arrays[name], NODE_ARRAYS[name]) for name in NODE_ARRAYS}
    return Tree(**{**typed, **changes})


def leaf(*values: float, count: int = 10) -> Tree:
    """A tree of one leaf."""
    arrays: dict[str, Any] = {
        "feature": [-1],
        "split_bin": [0],
        "threshold": [0],
        "left": [-1],
        "right": [-1],
        "value": [values],
        "gain": [0],
        "cover": [count],
        "count": [count],
        "flags": [LEAF],
        "category_set": [-1],
    }
    return Tree(**{name: np.array(arrays[name], NODE_ARRAYS[name]) for name in NODE_ARRAYS})


def changed(one: Tree, name: str, index: Any, value: Any) -> Tree:
    """The tree with one entry of one array replaced."""
    array = getattr(one, name).copy()
    array[index] = value
    return replace(one, **{name: array})


def model(**changes: Any) -> Model:
    """Three rounds: the tree, a leaf of 0.5, and the tree again; two features."""
    fields: dict[str, Any] = {
        "forest": Forest.from_trees([tree(), leaf(0.5), tree()], 1),
        "baseline": np.array([0.1]),
        "trees_per_round": 1,
        "n_features": 2,
        "objective": "squared_error",
        "link": "identity",
    }
    return Model(**{**fields, **changes})
