"""Flat trees: every single corruption is refused; every tree has one representation."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from core.hand_made import CATEGORICAL, LEAF, MISSING_LEFT, changed, leaf, tree

from torchgbdt.core.errors import ModelFormatError
from torchgbdt.core.tree import NODE_ARRAYS, Forest, NodeFlag, Tree, check_forest

N_FEATURES = 2
NAN, INF = np.nan, np.inf


def check_tree(one: Tree, n_features: int) -> Tree:
    offsets = np.array([0, one.n_nodes], np.int64)
    return check_forest(Forest(offsets, one, np.zeros((0, 4), np.uint64)), n_features).nodes


def refusal(one: Tree) -> str:
    with pytest.raises(ModelFormatError) as caught:
        check_tree(one, N_FEATURES)
    return str(caught.value)


# ---------------------------------------------------------------------------------------- valid


@pytest.mark.parametrize(
    "one",
    [
        tree(),
        leaf(0.5),
        leaf(1, 2, 3),
        leaf(0.0, count=0),  # the leaf of an empty draw
        changed(tree(), "threshold", 0, -INF),
        changed(tree(), "threshold", 0, -0.0),
        changed(tree(), "value", 1, -0.0),
        changed(tree(), "value", 1, np.finfo(np.float32).max),
        changed(tree(), "cover", 1, 0.0),
        tree(value=np.array([[0, 0], [1, 2], [0, 0], [3, 4], [5, 6]], np.float32)),
        tree(flags=np.array([0, LEAF, MISSING_LEFT, LEAF, LEAF], np.uint8)),
    ],
)
def test_a_valid_tree_is_returned_as_it_is(one: Tree) -> None:
    assert check_tree(one, N_FEATURES) is one


def test_flags_keep_their_numbers() -> None:
    # They are stored in files.
    assert {flag.name: int(flag) for flag in NodeFlag} == {
        "LEAF": LEAF,
        "MISSING_LEFT": MISSING_LEFT,
        "CATEGORICAL": CATEGORICAL,
    }


def test_flags_are_read_as_booleans() -> None:
    assert tree().is_leaf.tolist() == [False, True, False, True, True]
    assert tree().missing_left.tolist() == [True, False, False, False, False]
    assert tree().is_leaf.dtype == tree().missing_left.dtype == np.bool_


@pytest.mark.parametrize(("one", "depth"), [(tree(), 2), (leaf(1), 0)])
def test_depth_counts_the_splits_on_the_longest_path(one: Tree, depth: int) -> None:
    assert one.depth == depth
    assert type(one.depth) is int


# ------------------------------------------------------------------------------ arrays, one by one


@pytest.mark.parametrize("name", NODE_ARRAYS)
@pytest.mark.parametrize("dtype", [np.int16, np.float16, np.uint64, ">i4", ">f8"])
def test_another_dtype_is_refused(name: str, dtype: Any) -> None:
    array = np.zeros(getattr(tree(), name).shape, dtype)
    expected = f"invalid tree: {name} has dtype {array.dtype}, not {np.dtype(NODE_ARRAYS[name])}."
    assert refusal(replace(tree(), **{name: array})) == expected


@pytest.mark.parametrize("name", NODE_ARRAYS)
def test_another_number_of_axes_is_refused(name: str) -> None:
    array = getattr(tree(), name)
    for other in (array[..., None], array.reshape(-1) if name == "value" else array[0, ...]):
        expected = f"invalid tree: {name} has {other.ndim} axes."
        assert refusal(replace(tree(), **{name: other})) == expected


@pytest.mark.parametrize("name", NODE_ARRAYS)
@pytest.mark.parametrize("rows", [slice(0, 4), [0, 1, 2, 3, 4, 4]])
def test_another_number_of_entries_is_refused(name: str, rows: Any) -> None:
    message = refusal(replace(tree(), **{name: getattr(tree(), name)[rows]}))
    assert message.endswith("entries.")


@pytest.mark.parametrize("name", NODE_ARRAYS)
def test_an_array_without_entries_is_refused(name: str) -> None:
    refusal(replace(tree(), **{name: getattr(tree(), name)[:0]}))


def test_a_tree_without_nodes_is_refused() -> None:
    empty = {name: getattr(tree(), name)[:0] for name in NODE_ARRAYS}
    assert refusal(Tree(**empty)) == "invalid tree: tree offsets do not ascend."


def test_a_tree_without_outputs_is_refused() -> None:
    assert refusal(tree(value=np.zeros((5, 0), np.float32))) == (
        "invalid tree: value has no outputs."
    )


# ----------------------------------------------------------------------- entries, one by one

SPLITS, LEAVES = (0, 2), (1, 3, 4)

ENTRIES: list[tuple[str, tuple[int, ...], list[Any], str]] = [
    # array, nodes, values that none of them may have, message
    ("flags", SPLITS + LEAVES, [8, 16, 128, 9], "flags has an unknown bit"),
    ("flags", LEAVES, [LEAF | MISSING_LEFT, LEAF | CATEGORICAL], "a leaf has split flags"),
    ("flags", SPLITS, [LEAF], "splits and leaves do not add up"),
    ("flags", LEAVES, [0, MISSING_LEFT], "splits and leaves do not add up"),
    ("flags", SPLITS, [CATEGORICAL], "categorical splits are not supported"),
    ("left", SPLITS, [-1, 0, 2, 4, 5, 2**31 - 1, -(2**31)], "left is not breadth-first"),
    ("right", SPLITS, [-1, 0, 1, 3, 5, 2**31 - 1, -(2**31)], "right is not breadth-first"),
    ("left", LEAVES, [0, 3, -2], "a leaf has a left"),
    ("right", LEAVES, [0, 4, -2], "a leaf has a right"),
    ("feature", LEAVES, [0, 1, -2], "a leaf has a feature"),
    ("feature", SPLITS, [-1, 2, 2**31 - 1, -(2**31)], "a feature is out of range"),
    ("split_bin", SPLITS, [-1, -(2**31)], "a split_bin is negative"),
    ("split_bin", LEAVES, [1, -1], "a leaf has a split_bin"),
    ("threshold", SPLITS + LEAVES, [NAN], "a threshold is NaN"),
    ("threshold", LEAVES, [1.0, INF, -5e-324], "a leaf has a threshold"),
    ("gain", SPLITS, [0.0, -0.0, -1.0, NAN, INF, -INF], "a gain is not > 0"),
    ("gain", LEAVES, [NAN, INF], "a gain is not > 0"),
    ("gain", LEAVES, [1.0, -5e-324], "a leaf has a gain"),
    ("value", LEAVES, [NAN, INF, -INF], "a leaf value is not finite"),
    ("value", SPLITS, [NAN, INF], "a leaf value is not finite"),
    ("value", SPLITS, [1.0, -1e-45], "a split node has a value"),
    ("cover", SPLITS + LEAVES, [-1.0, -5e-324, NAN, INF], "a cover is not >= 0"),
    ("count", LEAVES, [-1, -(2**63)], "a count is negative"),
    ("count", SPLITS + LEAVES, [7, 2**63 - 1], "counts of children do not add up"),
    ("category_set", SPLITS + LEAVES, [0, -2, 2**31 - 1], "category sets are not supported"),
]

CORRUPTIONS = [
    pytest.param(name, node, value, message, id=f"{name}[{node}]={value}")
    for name, nodes, values, message in ENTRIES
    for node in nodes
    for value in values
]


@pytest.mark.parametrize(("name", "node", "value", "message"), CORRUPTIONS)
def test_a_single_wrong_entry_is_refused(name: str, node: int, value: Any, message: str) -> None:
    assert refusal(changed(tree(), name, node, value)) == f"invalid tree: {message}."


@pytest.mark.parametrize("value", [1e-40, -1e-45])
def test_a_leaf_value_below_the_smallest_normal_is_refused(value: float) -> None:
    # Devices flush it, so such a model would predict other bits on other devices.
    found = refusal(changed(tree(), "value", 1, np.float32(value)))
    assert found == "invalid tree: a leaf value is subnormal."


def test_counts_that_add_up_only_after_wrapping_are_refused() -> None:
    count = tree().count.copy()
    count[[1, 2, 3, 4]] = 2**62, 2**62, 2**62, 0
    count[0] = -(2**63)  # 2^62 + 2^62 in int64
    assert refusal(tree(count=count)) == "invalid tree: a count is negative."


def test_a_feature_is_allowed_only_below_the_number_of_features() -> None:
    check_tree(tree(), 2)
    with pytest.raises(ModelFormatError, match="a feature is out of range"):
        check_tree(tree(), 1)


# --------------------------------------------------------------------------------- uniqueness


def from_leaves(is_leaf: tuple[bool, ...]) -> Tree:
    """The only tree that may have these leaves: the i-th split has the children 2i+1, 2i+2."""
    n_nodes = len(is_leaf)
    mask = np.array(is_leaf)
    index = np.cumsum(~mask) - 1
    ones = np.where(mask, 0, 1)
    arrays = {
        "feature": ones - 1,
        "split_bin": ones,
        "threshold": ones,
        "left": np.where(mask, -1, 2 * index + 1),
        "right": np.where(mask, -1, 2 * index + 2),
        "value": mask[:, None],
        "gain": ones,
        "cover": ones,
        "count": np.zeros(n_nodes),
        "flags": mask,
        "category_set": -np.ones(n_nodes),
    }
    return Tree(**{name: arrays[name].astype(dtype) for name, dtype in NODE_ARRAYS.items()})


@pytest.mark.parametrize(
    ("n_splits", "n_trees"), [(0, 1), (1, 1), (2, 2), (3, 5), (4, 14), (5, 42)]
)
def test_as_many_arrays_are_valid_as_there_are_binary_trees(n_splits: int, n_trees: int) -> None:
    # Catalan numbers: no shape has two representations, and none has none.
    accepted = 0
    for is_leaf in itertools.product((False, True), repeat=2 * n_splits + 1):
        try:
            check_tree(from_leaves(is_leaf), 1)
            accepted += 1
        except ModelFormatError:
            pass
    assert accepted == n_trees


def test_nodes_in_any_other_order_are_refused() -> None:
    one = tree()
    for order in itertools.permutations(range(5)):
        place = np.argsort(order)
        arrays = {name: getattr(one, name)[list(order)] for name in NODE_ARRAYS}
        for name in ("left", "right"):
            child = arrays[name]
            arrays[name] = np.where(child >= 0, place[child], -1).astype(np.int32)
        if order == tuple(range(5)):
            check_tree(Tree(**arrays), N_FEATURES)
        else:
            refusal(Tree(**arrays))
