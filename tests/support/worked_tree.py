"""A worked example: data, and every node of the trees of its first round."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from support.runs import Rows, Scenario

NAN = float("nan")


@dataclass(frozen=True)
class Split:
    """A split node: the values that a model file would hold."""

    feature: int
    split_bin: int
    threshold: float
    gain: float
    count: int
    missing_left: bool = False


@dataclass(frozen=True)
class Leaf:
    """A leaf."""

    value: float
    count: int


@dataclass(frozen=True)
class WorkedTree:
    """One round and where its numbers come from.

    Attributes
    ----------
    baseline : a number, or one for each class.
    nodes : breadth-first; the children of the i-th split are nodes 2i + 1 and 2i + 2.
    other_trees : nodes of the trees of the second class and so on.
    hessian : of each row, before its weight.
    """

    x: list[list[float]]
    y: list[float]
    baseline: float | list[float]
    nodes: list[Split | Leaf]
    settings: dict[str, Any] = field(default_factory=dict)
    weights: list[float] | None = None
    other_trees: list[list[Split | Leaf]] = field(default_factory=list)
    hessian: float = 1.0

    @property
    def trees(self) -> list[list[Split | Leaf]]:
        return [self.nodes, *self.other_trees]

    def scenario(self) -> Scenario:
        weights = None if self.weights is None else np.array(self.weights)
        rows = Rows(np.array(self.x, np.float64), np.array(self.y, np.float64), weights)
        unrestricted = {"min_samples_leaf": 1, "min_child_weight": 0.0, "learning_rate": 1.0}
        return Scenario(rows, {"n_estimators": 1, **unrestricted, **self.settings})
