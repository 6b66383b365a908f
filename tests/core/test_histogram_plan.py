"""Histogram slots: every plan computes every histogram, whatever the number of slots."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.exact import assert_identical

from torchgbdt.core.backend import NO_SLOT, NODE_DTYPE, LevelBatch
from torchgbdt.core.histogram_plan import HistogramPlan, Level

GARBAGE = -1


def make_level(
    counts: Sequence[int],
    parent_slots: Sequence[int] = (),
    searched: Sequence[bool] | None = None,
) -> Level:
    """Nodes of these row counts; siblings lie side by side."""
    nodes = np.zeros(len(counts), NODE_DTYPE)
    nodes["count"] = counts
    nodes["node"] = 100 + np.arange(len(counts))
    sums = np.arange(2 * len(counts), dtype=np.int64).reshape(-1, 1, 2)
    flags = np.ones(len(counts), bool) if searched is None else np.array(searched, bool)
    slots = parent_slots or [NO_SLOT] * (len(counts) // 2)
    return Level(nodes, sums, flags, np.array(slots, np.int32))


class Simulation:
    """A backend whose histogram is one number: the node's rows as a set of bits.

    Builds overwrite a slot, subtraction is the integer one; a slot not in use holds garbage.
    """

    def __init__(self, n_slots: int, seed: int) -> None:
        self.plan = HistogramPlan(n_slots)
        self.memory = [GARBAGE] * n_slots
        self.random = random.Random(seed)

    def grow(self, depth: int) -> None:
        """Levels of a random tree over 2^depth bits, each node's children sharing its bits."""
        self.plan.start_tree()
        self.memory = [GARBAGE] * len(self.memory)
        values = [2 ** (2**depth) - 1]
        level = make_level([values[0].bit_count()])
        for _ in range(depth):
            wanted = self.search(level, values)
            parents = np.flatnonzero(wanted)
            slots = self.plan.kept_slots(parents)
            self.check_kept(parents, slots, values)
            values = [part for i in parents for part in self.split(values[i])]
            searched = [self.random.random() < 0.7 for _ in values]
            for left in range(0, len(values), 2):
                searched[left + self.random.randrange(2)] = True
            counts = [value.bit_count() for value in values]
            level = make_level(counts, slots.tolist(), searched)

    def split(self, value: int) -> tuple[int, int]:
        mask = self.random.getrandbits(value.bit_length())
        return value & mask, value & ~mask

    def search(self, level: Level, values: list[int]) -> np.ndarray:
        """Run all batches of a level; return which nodes are to be split."""
        visited: list[int] = []
        wanted = np.zeros(len(values), bool)
        for positions, batch in self.plan.batches(level):
            visited += positions.tolist()
            self.compute(positions, batch, values)
            for i in positions.tolist():
                may_split = level.searched[i] and values[i].bit_count() > 1
                wanted[i] = may_split and self.random.random() < 0.7
            self.plan.keep(positions, batch.nodes, wanted[positions])
            for slot in batch.nodes["slot"][~wanted[positions]].tolist():
                self.memory[slot] = GARBAGE
        assert len(visited) == len(set(visited)), "a node was handled twice"
        assert set(np.flatnonzero(level.searched)) <= set(visited), "a node was left out"
        return wanted

    def compute(self, positions: np.ndarray, batch: LevelBatch, values: list[int]) -> None:
        """Build, subtract, and look whether each slot holds its node's histogram."""
        nodes, built = batch.nodes, {}
        for i, node in zip(positions.tolist(), nodes, strict=True):
            assert 0 <= node["slot"] < len(self.memory)
            if node["build"]:
                assert node["sibling_slot"] == NO_SLOT
                self.memory[node["slot"]] = values[i]
                built[int(node["slot"])] = i
        for i, node in zip(positions.tolist(), nodes, strict=True):
            if not node["build"]:
                assert built[int(node["sibling_slot"])] == i ^ 1, "the sibling is not in the batch"
                self.memory[node["slot"]] -= self.memory[node["sibling_slot"]]
        for i, node in zip(positions.tolist(), nodes, strict=True):
            assert self.memory[node["slot"]] == values[i], "the slot holds something else"
        assert len(set(nodes["slot"].tolist())) == nodes.size, "two nodes share a slot"

    def check_kept(self, parents: np.ndarray, slots: np.ndarray, values: list[int]) -> None:
        kept = [int(slot) for slot in slots if slot != NO_SLOT]
        assert len(kept) == len(set(kept))
        for parent, slot in zip(parents, slots.tolist(), strict=True):
            assert slot == NO_SLOT or self.memory[slot] == values[parent]


@settings(max_examples=150)
@given(st.integers(1, 12), st.integers(0, 2**32), st.integers(1, 6))
def test_every_searched_node_gets_its_histogram_once(n_slots: int, seed: int, depth: int) -> None:
    simulation = Simulation(n_slots, seed)
    for _ in range(3):  # trees of one run share the plan
        simulation.grow(depth)


@settings(max_examples=60)
@given(st.integers(1, 8), st.integers(0, 2**32))
def test_slots_are_never_lost(n_slots: int, seed: int) -> None:
    simulation = Simulation(n_slots, seed)
    simulation.grow(4)
    simulation.plan.start_tree()
    for _ in range(3):
        # Nothing is kept, so each level finds all slots free and fits into one batch.
        level = make_level([1] * (2 * n_slots), searched=[True, False] * n_slots)
        sizes = []
        for positions, batch in simulation.plan.batches(level):
            sizes.append(positions.size)
            simulation.plan.keep(positions, batch.nodes, np.zeros(positions.size, bool))
        assert sizes == [n_slots]


def batches(
    plan: HistogramPlan, level: Level, wanted: bool = True
) -> list[tuple[list[int], LevelBatch]]:
    """All batches; every histogram is kept, or none."""
    result = []
    for positions, batch in plan.batches(level):
        plan.keep(positions, batch.nodes, np.full(positions.size, wanted))
        result.append((positions.tolist(), batch))
    return result


def kept_root(n_slots: int) -> tuple[HistogramPlan, int]:
    """A plan after the root's level, and the root's slot."""
    plan = HistogramPlan(n_slots)
    batches(plan, make_level([10]))
    return plan, int(plan.kept_slots(np.array([0]))[0])


# ----------------------------------------------------------------------------------- by hand


def test_the_root_is_built() -> None:
    ((positions, batch),) = batches(HistogramPlan(1), make_level([10]))
    assert positions == [0]
    assert batch.nodes["build"].tolist() == [True]
    assert batch.nodes["slot"].tolist() == [0]
    assert batch.nodes["sibling_slot"].tolist() == [NO_SLOT]


def test_an_empty_level_has_no_batches() -> None:
    assert batches(HistogramPlan(3), make_level([])) == []


@pytest.mark.parametrize(
    ("counts", "build"),
    [([3, 7], [True, False]), ([7, 3], [False, True]), ([5, 5], [True, False])],
    ids=["left is smaller", "right is smaller", "tie: left"],
)
def test_the_smaller_sibling_is_built_and_the_other_takes_the_parents_slot(
    counts: list[int], build: list[bool]
) -> None:
    plan, parent_slot = kept_root(2)
    ((positions, batch),) = batches(plan, make_level(counts, [parent_slot]))
    assert positions == [0, 1]
    assert batch.nodes["build"].tolist() == build
    small, large = (0, 1) if build[0] else (1, 0)
    assert batch.nodes["slot"][large] == parent_slot
    assert batch.nodes["slot"][small] == 1 - parent_slot
    assert batch.nodes["sibling_slot"][large] == batch.nodes["slot"][small]


def test_both_siblings_are_handled_if_only_one_is_searched_and_the_parent_is_kept() -> None:
    # The smaller one is not searched, but the larger one is found by subtracting it.
    plan, parent_slot = kept_root(2)
    ((positions, batch),) = batches(plan, make_level([3, 7], [parent_slot], [False, True]))
    assert positions == [0, 1]
    assert batch.nodes["build"].tolist() == [True, False]


@pytest.mark.parametrize(("searched", "expected"), [([True, False], [0]), ([False, True], [1])])
def test_without_the_parent_only_searched_nodes_are_built(
    searched: list[bool], expected: list[int]
) -> None:
    ((positions, batch),) = batches(HistogramPlan(4), make_level([3, 7], searched=searched))
    assert positions == expected
    assert batch.nodes["build"].tolist() == [True]


def test_one_slot_builds_one_node_after_the_other() -> None:
    plan, parent_slot = kept_root(1)
    found = batches(plan, make_level([3, 7], [parent_slot]))
    assert [positions for positions, _ in found] == [[0], [1]]
    assert all(batch.nodes["build"].all() for _, batch in found)
    # The second one took the slot of the first: only its histogram is left.
    assert plan.kept_slots(np.array([0, 1])).tolist() == [NO_SLOT, 0]


def test_with_enough_slots_a_level_is_one_batch_and_everything_is_kept() -> None:
    plan, parent_slot = kept_root(8)
    level = make_level([3, 7], [parent_slot])
    for size in (2, 4, 8):
        ((positions, batch),) = batches(plan, level)
        assert len(positions) == size
        assert np.count_nonzero(batch.nodes["build"]) == size // 2
        slots = plan.kept_slots(np.arange(size))
        assert (slots != NO_SLOT).all()
        level = make_level([3, 7] * size, slots.tolist())


def test_a_kept_histogram_is_not_dropped_while_a_later_batch_would_do() -> None:
    plan = HistogramPlan(4)
    sizes = []
    for positions, batch in plan.batches(make_level([1] * 8)):
        sizes.append(positions.size)
        plan.keep(positions, batch.nodes, positions == 0)
    # The first batch leaves one slot kept and three free: one family, and then the last one.
    assert sizes == [4, 2, 2]
    assert plan.kept_slots(np.array([0])).tolist() != [NO_SLOT]


def test_of_kept_parents_the_last_one_is_dropped_first() -> None:
    plan = HistogramPlan(4)
    batches(plan, make_level([5] * 4))
    parents = plan.kept_slots(np.arange(4)).tolist()
    found = batches(plan, make_level([2, 3] * 4, parents), wanted=False)
    # No slot is free, so the last parent goes. Three families are subtracted, one is built.
    built = {
        p: b
        for positions, batch in found
        for p, b in zip(positions, batch.nodes["build"], strict=True)
    }
    assert [built[p] for p in range(8)] == [True, False] * 3 + [True, True]


def test_a_batch_holds_the_records_and_sums_of_its_positions() -> None:
    level = make_level([4, 6, 1, 2], searched=[True, True, False, True])
    seen: list[int] = []
    for positions, batch in batches(HistogramPlan(2), level):
        assert_identical(batch.sums, level.sums[positions])
        assert batch.nodes["node"].tolist() == [100 + position for position in positions]
        assert batch.nodes["count"].tolist() == level.nodes["count"][positions].tolist()
        seen += positions
    assert seen == [0, 1, 3]


def test_slots_of_nodes_that_are_not_kept_are_free_again() -> None:
    plan = HistogramPlan(2)
    level = make_level([1] * 6)
    assert [p for p, _ in batches(plan, level, wanted=False)] == [[0, 1], [2, 3], [4, 5]]
    assert plan.kept_slots(np.arange(6)).tolist() == [NO_SLOT] * 6


def test_a_node_that_was_not_handled_has_no_slot() -> None:
    plan, _ = kept_root(3)
    assert plan.kept_slots(np.array([0, 1, 7])).tolist()[1:] == [NO_SLOT, NO_SLOT]
    assert plan.kept_slots(np.zeros(0, np.int64)).dtype == np.int32


def test_a_new_tree_finds_all_slots_free() -> None:
    plan = HistogramPlan(3)
    for _ in range(2):
        plan.start_tree()
        iterator = plan.batches(make_level([5, 5, 5, 5], searched=[True, True, True, False]))
        positions, _ = next(iterator)  # the tree ends here, nothing is given back
        assert positions.tolist() == [0, 1, 2]


def test_the_callers_level_keeps_its_parents() -> None:
    plan, parent_slot = kept_root(1)
    level = make_level([3, 7], [parent_slot])
    batches(plan, level)
    assert level.parent_slots.tolist() == [parent_slot]
