"""Trees laid end to end: joined, sliced and checked."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from core.hand_made import changed, leaf, tree
from support.exact import assert_identical

from torchgbdt.core.errors import ModelFormatError
from torchgbdt.core.tree import NODE_ARRAYS, Forest, Tree, check_forest

TREES = [tree(), leaf(0.5), changed(tree(), "value", 4, 7.0)]


def forest() -> Forest:
    return Forest.from_trees(TREES, 1)


def test_trees_come_back_as_they_went_in() -> None:
    joined = forest()
    assert joined.offsets.tolist() == [0, 5, 6, 11]
    assert joined.offsets.dtype == np.int64
    assert (joined.n_trees, joined.n_outputs) == (3, 1)
    for index, one in enumerate(TREES):
        assert_identical(joined.tree(index), one)
    assert_identical(joined.trees(), TREES)


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 3), (0, 0), (0, 1), (1, 2), (1, 3), (2, 3), (3, 3)]
)
def test_a_slice_is_the_forest_of_those_trees(start: int, stop: int) -> None:
    assert_identical(forest().slice(start, stop), Forest.from_trees(TREES[start:stop], 1))


def test_a_slice_of_a_slice_counts_from_its_own_start() -> None:
    assert_identical(forest().slice(1, 3).slice(1, 2).tree(0), TREES[2])


def test_slices_and_trees_are_views() -> None:
    joined = forest()
    assert np.shares_memory(joined.slice(1, 3).nodes.value, joined.nodes.value)
    assert np.shares_memory(joined.tree(2).value, joined.nodes.value)
    assert np.shares_memory(joined.trees()[2].value, joined.nodes.value)
    assert joined.slice(0, 0).trees() == []


def test_a_forest_holds_copies_of_its_trees() -> None:
    one = tree()
    joined = Forest.from_trees([one], 1)
    one.value[:] = 9
    assert_identical(joined.tree(0), tree())


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_no_trees_make_a_forest_of_the_right_types(n_outputs: int) -> None:
    empty = Forest.from_trees([], n_outputs)
    assert (empty.n_trees, empty.n_outputs) == (0, n_outputs)
    assert empty.offsets.tolist() == [0]
    for name, dtype in NODE_ARRAYS.items():
        assert getattr(empty.nodes, name).dtype == dtype
    assert check_forest(empty, 1) is empty
    assert_identical(empty.slice(0, 0), empty)


def test_trees_of_several_outputs_are_joined() -> None:
    joined = Forest.from_trees([leaf(1, 2), leaf(3, 4)], 2)
    assert joined.n_outputs == 2
    assert joined.nodes.value.tolist() == [[1, 2], [3, 4]]


def test_a_valid_forest_is_returned_as_it_is() -> None:
    joined = forest()
    assert check_forest(joined, 2) is joined


# ------------------------------------------------------------------------------------- refusals


def refusal(one: Forest) -> str:
    with pytest.raises(ModelFormatError) as caught:
        check_forest(one, 2)
    return str(caught.value)


def with_nodes(one: Forest, **arrays: Any) -> Forest:
    return replace(one, nodes=replace(one.nodes, **arrays))


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        (np.array([0, 5, 6, 11], np.int32), "bad tree offsets"),
        (np.array([0, 5, 6, 11], float), "bad tree offsets"),
        (np.array([[0, 5, 6, 11]]), "bad tree offsets"),
        (np.zeros(0, np.int64), "bad tree offsets"),
        (np.array(11), "bad tree offsets"),
        (np.array([1, 5, 6, 11]), "tree offsets do not cover the nodes"),
        (np.array([-1, 5, 6, 11]), "tree offsets do not cover the nodes"),
        (np.array([0, 5, 6, 10]), "tree offsets do not cover the nodes"),
        (np.array([0, 5, 6, 12]), "tree offsets do not cover the nodes"),
        (np.array([0]), "tree offsets do not cover the nodes"),
        (np.array([0, 5, 5, 6, 11]), "tree offsets do not ascend"),
        (np.array([0, 6, 5, 11]), "tree offsets do not ascend"),
        (np.array([0, 2**62, 6, 11]), "tree offsets do not ascend"),
        (np.array([0, -(2**63), 6, 11]), "tree offsets do not ascend"),
        (np.array([0, 2**63 - 1, -(2**63), 11]), "tree offsets do not ascend"),
    ],
)
def test_offsets_must_cut_the_nodes_into_trees(offsets: np.ndarray, message: str) -> None:
    assert refusal(replace(forest(), offsets=offsets)) == f"invalid tree: {message}."


@pytest.mark.parametrize(
    "offsets",
    [
        [0, 6, 11],
        [0, 4, 6, 11],
        [0, 1, 6, 11],
        [0, 11],
        [0, 2**63 - 1, -(2**63), -1, 11],  # every difference is > 0, modulo 2^64
    ],
)
def test_trees_cut_at_the_wrong_node_are_refused(offsets: list[int]) -> None:
    refusal(replace(forest(), offsets=np.array(offsets)))


@pytest.mark.parametrize("tree_index", [0, 2])
def test_a_corrupt_entry_of_any_tree_is_seen(tree_index: int) -> None:
    trees = list(TREES)
    trees[tree_index] = changed(tree(), "left", 0, 0)
    assert refusal(Forest.from_trees(trees, 1)) == "invalid tree: left is not breadth-first."


@pytest.mark.parametrize("name", NODE_ARRAYS)
def test_arrays_of_another_length_are_refused(name: str) -> None:
    for array in (getattr(forest().nodes, name)[:-1], np.zeros(0, NODE_ARRAYS[name])):
        refusal(with_nodes(forest(), **{name: array}))


@pytest.mark.parametrize("name", NODE_ARRAYS)
def test_arrays_without_axes_are_refused(name: str) -> None:
    refusal(with_nodes(forest(), **{name: np.zeros((), NODE_ARRAYS[name])}))


@pytest.mark.parametrize("name", NODE_ARRAYS)
def test_arrays_of_another_dtype_are_refused(name: str) -> None:
    shape = getattr(forest().nodes, name).shape
    refusal(with_nodes(forest(), **{name: np.zeros(shape, np.int16)}))


@pytest.mark.parametrize("name", NODE_ARRAYS)
def test_arrays_of_a_forest_without_trees_are_checked_as_well(name: str) -> None:
    empty = Forest.from_trees([], 1)
    array = getattr(empty.nodes, name)
    refusal(with_nodes(empty, **{name: array.astype(np.int16)}))
    refusal(with_nodes(empty, **{name: array.reshape(0) if name == "value" else array[:, None]}))


@pytest.mark.parametrize(
    "sets", [np.zeros((1, 4), np.uint64), np.zeros((0, 3), np.uint64), np.zeros((0, 4), np.int64)]
)
def test_category_sets_are_not_supported_yet(sets: np.ndarray) -> None:
    message = refusal(replace(forest(), category_sets=sets))
    assert message == "invalid tree: category sets are not supported."


def test_nodes_of_the_forest_are_one_tree_of_arrays() -> None:
    assert isinstance(forest().nodes, Tree)
    assert forest().nodes.n_nodes == 11
