"""The growth loop: what it asks a backend for, when it stops, and the tree it writes down."""

from typing import Any

import numpy as np
import pytest
from core.recording import RecordingBackend
from support.exact import assert_identical
from support.ranks import run_ranks
from support.runs import grow_tree, prepare

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.clock import PhaseClock
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.errors import BackendError, InvalidParameterError
from torchgbdt.core.growth import RootTotals, TreeGrower, TreeLimits, leaf_values
from torchgbdt.core.histogram_plan import HistogramPlan
from torchgbdt.core.splits import SplitRules
from torchgbdt.core.tree import Tree

# Eight rows, one per bin; the gradients are evenly spaced, so that each split halves its node.
GRADIENTS = np.array([-7, -5, -3, -1, 1, 3, 5, 7], np.float32)


def grow(
    backend: OracleBackend,
    bins: np.ndarray,
    gradients: np.ndarray,
    n_value_bins: list[int],
    n_slots: int = 8,
    **settings: Any,
) -> Tree:
    """One tree on these gradients; Hessians are 1, lambda 0 and learning rate 1 unless told."""
    thresholds = prepare(backend, bins, n_value_bins, n_slots=n_slots)

    def given(output: int) -> Any:
        return backend.load_gradients(gradients[:, None], np.ones_like(gradients)[:, None])

    backend.compute_gradients = given  # type: ignore[method-assign]
    settings = {"reg_lambda": 0.0, "learning_rate": 1.0, **settings}
    return grow_tree(backend, thresholds, n_slots, **settings)


def grow_eight(backend: OracleBackend, **settings: Any) -> Tree:
    return grow(backend, np.arange(8)[:, None], GRADIENTS, [8], **settings)


# ----------------------------------------------------------------------------------- the tree


def test_a_full_tree_is_written_breadth_first() -> None:
    tree = grow_eight(OracleBackend())
    assert tree.n_nodes == 15
    assert tree.depth == 3
    assert tree.left.tolist() == [1, 3, 5, 7, 9, 11, 13, *[-1] * 8]
    assert tree.split_bin.tolist() == [3, 1, 5, 0, 2, 4, 6, *[0] * 8]
    assert tree.threshold.tolist() == [3.5, 1.5, 5.5, 0.5, 2.5, 4.5, 6.5, *[0] * 8]
    assert tree.count.tolist() == [8, 4, 4, 2, 2, 2, 2, *[1] * 8]
    assert tree.cover.tolist() == tree.count.tolist()
    assert tree.value[:, 0].tolist() == [0] * 7 + (-GRADIENTS).tolist()


@pytest.mark.parametrize("n_slots", [1, 2, 3, 5])
def test_the_number_of_histograms_held_changes_no_tree(n_slots: int) -> None:
    assert_identical(
        grow_eight(OracleBackend(), n_slots=n_slots), grow_eight(OracleBackend(), n_slots=8)
    )


@pytest.mark.parametrize(("max_depth", "n_nodes"), [(1, 3), (2, 7), (3, 15), (4, 15), (None, 15)])
def test_max_depth_bounds_the_levels_of_splits(max_depth: int | None, n_nodes: int) -> None:
    assert grow_eight(OracleBackend(), max_depth=max_depth).n_nodes == n_nodes


def test_a_lopsided_tree_is_written_breadth_first() -> None:
    # Gains halve the way down: the left child of the root splits, and its right child.
    gradients = np.array([-9, 1, 3, 5, 5, 5], np.float32)
    tree = grow(OracleBackend(), np.arange(6)[:, None], gradients, [6])
    # 0: -9 | rest; 2: 1 3 | 5 5 5; 3: 1 | 3. The fives are alike: their node is a leaf.
    assert tree.split_bin[~tree.is_leaf].tolist() == [0, 2, 1]
    assert tree.left.tolist() == [1, -1, 3, 5, -1, -1, -1]
    assert tree.count.tolist() == [6, 1, 5, 2, 3, 1, 1]
    assert tree.value[:, 0].tolist() == [0, 9, 0, 0, -5, -1, -3]


def test_missing_rows_and_infinite_thresholds_are_written_down() -> None:
    # Bin 2 means missing: only there gradients differ, so values are split from missing ones.
    gradients = np.array([1, 1, -3, -3], np.float32)
    tree = grow(OracleBackend(), np.array([[0], [1], [2], [2]]), gradients, [2])
    assert tree.threshold[0] == np.inf
    assert tree.split_bin[0] == 1
    assert not tree.missing_left[0]
    left = grow(OracleBackend(), np.array([[0], [1], [2], [2]]), gradients[[0, 2, 0, 0]], [2])
    assert left.missing_left[0]
    assert left.threshold[0] == 0.5


@pytest.mark.parametrize(
    ("settings", "gradients"),
    [
        ({"min_samples_leaf": 5}, GRADIENTS),  # 8 rows make no two children of 5
        ({"gamma": 1e9}, GRADIENTS),
        ({"min_child_weight": 4.5}, GRADIENTS),
        ({}, np.ones(8, np.float32)),  # equal gradients gain nothing
        ({}, np.zeros(8, np.float32)),
    ],
)
def test_a_root_that_cannot_split_is_a_leaf(settings: dict[str, Any], gradients: Any) -> None:
    tree = grow(OracleBackend(), np.arange(8)[:, None], gradients, [8], **settings)
    assert tree.n_nodes == 1
    assert_identical(tree.value, np.array([[0 - gradients.mean()]], np.float32))  # 0, not -0
    assert (tree.count.tolist(), tree.cover.tolist()) == ([8], [8])


# ---------------------------------------------------------------------------- calls and records


def tree_calls(backend: RecordingBackend) -> list[str]:
    """The calls of the growth loop, without those around it."""
    around = {"prepare", "sample_rows", "round_gradients", "update_predictions"}
    return [name for name in backend.names if name not in around]


SEARCH = ["build_histograms", "subtract_histograms", "find_splits"]


def test_each_level_is_built_subtracted_searched_and_routed() -> None:
    backend = RecordingBackend()
    grow_eight(backend, max_depth=3)
    assert tree_calls(backend) == [*SEARCH, "route_rows", *SEARCH, "route_rows", *SEARCH]


def test_rows_are_not_routed_below_the_last_level() -> None:
    backend = RecordingBackend()
    grow_eight(backend, max_depth=2)
    assert tree_calls(backend) == [*SEARCH, "route_rows", *SEARCH]


def test_rows_of_nodes_whose_children_cannot_split_are_not_routed() -> None:
    # The children of the second level have two rows each: none has two children of two rows.
    backend = RecordingBackend()
    grow_eight(backend, min_samples_leaf=2)
    assert tree_calls(backend) == [*SEARCH, "route_rows", *SEARCH]


def test_a_root_too_small_to_split_is_not_searched() -> None:
    backend = RecordingBackend()
    grow_eight(backend, min_samples_leaf=5)
    assert tree_calls(backend) == []


def test_node_records_describe_the_stretches_of_row_order() -> None:
    backend = RecordingBackend()
    grow_eight(backend)
    last = backend.arguments("find_splits")[-1][0].nodes
    assert last["node"].tolist() == [3, 4, 5, 6]
    assert last["begin"].tolist() == [0, 2, 4, 6]
    assert last["n_rows"].tolist() == last["count"].tolist() == [2, 2, 2, 2]
    routed = backend.arguments("route_rows")[-1][0]
    assert routed["node"].tolist() == [1, 2]


def test_sums_of_a_batch_are_those_of_its_nodes() -> None:
    backend = RecordingBackend()
    grow_eight(backend, max_depth=2)
    (scales,) = backend.arguments("round_gradients")[0]
    _, batch = (batch for (batch, _) in backend.arguments("find_splits"))
    g, h = scales[0].tolist()
    # Left -7 - 5 - 3 - 1 = -16, right 16; four Hessians of 1 each.
    assert batch.sums.tolist() == [[[-16 * 2**g, 4 * 2**h]], [[16 * 2**g, 4 * 2**h]]]


def test_only_the_smaller_sibling_is_built() -> None:
    backend = RecordingBackend()
    gradients = np.array([-9, 1, 3, 5, 5, 5], np.float32)
    grow(backend, np.arange(6)[:, None], gradients, [6])
    built = [batch.nodes["build"].tolist() for (batch,) in backend.arguments("build_histograms")]
    # Level 2 holds a node of one row beside one of five, level 3 two rows beside three.
    assert built == [[True], [True, False], [True, False]]


def test_a_node_too_small_to_split_is_not_built_for_itself() -> None:
    # With one slot nothing is subtracted: node 1, of one row, is left out; 2, 3 and 4 are built.
    backend = RecordingBackend()
    gradients = np.array([-9, 1, 3, 5, 5, 5], np.float32)
    grow(backend, np.arange(6)[:, None], gradients, [6], n_slots=1)
    built = [batch.nodes["node"].tolist() for (batch,) in backend.arguments("build_histograms")]
    assert built == [[0], [2], [3], [4]]


def test_one_rank_exchanges_nothing_and_two_exchange_each_batch() -> None:
    def work(communicator: Communicator) -> tuple[Tree, list[str]]:
        backend = RecordingBackend()
        thresholds = prepare(backend, np.arange(4)[:, None] + 4 * communicator.rank, [8])
        own = GRADIENTS[4 * communicator.rank :][:4, None]
        backend.compute_gradients = lambda output: backend.load_gradients(own, np.ones_like(own))
        tree = grow_tree(
            backend, thresholds, communicator=communicator, reg_lambda=0.0, learning_rate=1.0
        )
        return tree, tree_calls(backend)

    exchanged = ["build_histograms", "exchange_histograms", "subtract_histograms", "find_splits"]
    for tree, calls in run_ranks(2, work):
        assert_identical(tree, grow_eight(OracleBackend()))
        assert calls == [*exchanged, "route_rows", *exchanged, "route_rows", *exchanged]


@pytest.mark.parametrize("wrong", [-1, 1])
def test_routing_that_contradicts_the_histograms_is_a_backend_error(wrong: int) -> None:
    backend = RecordingBackend(route_rows=lambda arguments, oracle: oracle() + wrong)
    with pytest.raises(BackendError) as caught:
        grow_eight(backend)
    assert str(caught.value).startswith(
        "backend 'recording' routed other numbers of rows than its histograms counted;"
    )


def test_phases_are_timed() -> None:
    backend, clock = OracleBackend(), PhaseClock()
    thresholds = prepare(backend, np.arange(8)[:, None], [8])
    backend.load_gradients(GRADIENTS[:, None], np.ones((8, 1), np.float32))
    sums = backend.round_gradients(np.array([[27, 28]]))
    grower = TreeGrower(
        backend, SINGLE_RANK, HistogramPlan(4), TreeLimits(None, 1.0), thresholds, clock
    )
    rules = SplitRules(0.0, 0.0, 1, np.ones(1, np.int64), np.array([[27, 28]]))
    grower.grow(RootTotals(8, 8, sums), rules)
    assert set(clock.seconds) == {"search_level", "route_rows"}


# ---------------------------------------------------------------------------------- leaf values


def values(sums: list[list[int]], scale: tuple[int, int], reg_lambda: float, rate: float) -> Any:
    rules = SplitRules(reg_lambda, 0.0, 1, np.ones(1, np.int64), np.array([scale]))
    return leaf_values(np.array(sums, np.int64)[:, None], rules, rate)


def test_leaf_values_by_hand() -> None:
    # G = 12/4 = 3, H = 4/2 = 2, lambda 1: -3/3 = -1; G = -4/4, H = 6/2: 1/4; G = 0: +0.
    found = values([[12, 4], [-4, 6], [0, 6]], (2, 1), 1.0, 0.5)
    assert_identical(found, np.array([[-0.5], [0.125], [0.0]], np.float32))


def test_each_output_of_a_leaf_has_its_own_scales() -> None:
    # G = 12/4 = 3, H = 4/2 = 2, lambda 1: -3/3; G = -4/2 = -2, H = 3/1 = 3: 2/4.
    scales = np.array([(2, 1), (1, 0)])
    rules = SplitRules(1.0, 0.0, 1, np.ones(2, np.int64), scales)
    found = leaf_values(np.array([[[12, 4], [-4, 3]]], np.int64), rules, 0.5)
    assert_identical(found, np.array([[-0.5, 0.25]], np.float32))


def test_a_leaf_value_is_rounded_to_float32_once() -> None:
    # 0.1 * (-1/5) in float64, then float32; float32(0.1) * float32(-1/5) is another number.
    found = values([[1, 5]], (0, 0), 0.0, 0.1)
    assert_identical(found, np.array([[0.1 * (-1 / 5)]]).astype(np.float32))
    assert found[0, 0] != np.float32(0.1) * np.float32(-1 / 5)


def test_tiny_leaf_values_are_plus_zero() -> None:
    assert_identical(values([[1, 1], [-1, 1]], (120, 0), 1e3, 1.0), np.zeros((2, 1), np.float32))


def test_a_leaf_value_beyond_float32_names_the_settings_to_change() -> None:
    backend = OracleBackend()
    thresholds = prepare(backend, np.arange(2)[:, None], [2])
    large = np.array([[1e30], [-1e30]], np.float32)
    backend.compute_gradients = lambda output: backend.load_gradients(large, np.ones_like(large))
    with pytest.raises(InvalidParameterError) as caught:
        grow_tree(backend, thresholds, learning_rate=1e20, reg_lambda=0.5)
    assert str(caught.value) == (
        "a leaf value exceeds float32 at learning_rate=1e+20, reg_lambda=0.5; lower the first, "
        "raise the second, or scale y."
    )
