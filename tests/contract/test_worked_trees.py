"""Trees worked out by hand, node by node; the arithmetic is in support/hand_trees*.py."""

import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.hand_trees import REGRESSION_TREES
from support.hand_trees_of_classes import CLASS_TREES
from support.runs import train
from support.worked_tree import Leaf, Split

from torchgbdt.core.tree import Tree

HAND_TREES = {**REGRESSION_TREES, **CLASS_TREES}
every_example = pytest.mark.parametrize("name", HAND_TREES)


def nodes_of(tree: Tree) -> list[Split | Leaf]:
    """The tree as hand_trees writes it."""
    nodes: list[Split | Leaf] = []
    for i in range(tree.n_nodes):
        count = int(tree.count[i])
        if tree.is_leaf[i]:
            nodes.append(Leaf(float(tree.value[i, 0]), count))
        else:
            nodes.append(
                Split(
                    int(tree.feature[i]),
                    int(tree.split_bin[i]),
                    float(tree.threshold[i]),
                    float(tree.gain[i]),
                    count,
                    bool(tree.missing_left[i]),
                )
            )
    return nodes


def as_float32(node: Split | Leaf) -> Split | Leaf:
    return Leaf(float(np.float32(node.value)), node.count) if isinstance(node, Leaf) else node


@every_example
def test_every_node_is_as_worked_out(under_test: BackendUnderTest, name: str) -> None:
    example = HAND_TREES[name]
    model = train(under_test.make(), example.scenario()).model
    baseline = example.baseline
    assert model.baseline.tolist() == (baseline if isinstance(baseline, list) else [baseline])
    found = [nodes_of(model.forest.tree(index)) for index in range(model.n_trees)]
    assert found == [[as_float32(node) for node in tree] for tree in example.trees]


@every_example
def test_covers_are_sums_of_weighted_hessians(under_test: BackendUnderTest, name: str) -> None:
    example = HAND_TREES[name]
    forest = train(under_test.make(), example.scenario()).model.forest
    total = sum(example.weights or [1.0] * len(example.y)) * example.hessian
    for tree in (forest.tree(index) for index in range(len(example.trees))):
        assert tree.cover[0] == tree.cover[tree.is_leaf].sum() == total


def test_a_leaf_of_zero_is_plus_zero(under_test: BackendUnderTest) -> None:
    example = HAND_TREES["min_child_weight_forbids"]
    value = train(under_test.make(), example.scenario()).model.forest.nodes.value
    assert value.tolist() == [[0.0]] and not np.signbit(value).any()
