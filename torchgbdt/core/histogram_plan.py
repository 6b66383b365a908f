"""Which nodes of a level are summed from rows, which are subtracted, and where histograms are kept.

Memory holds ``n_slots`` histograms. Siblings are handled together:

    parent kept     build the smaller child in a free slot; parent - smaller -> the larger child,
                    which takes over the parent's slot                        (one slot)
    parent dropped  build each child                                          (one slot each)

When no slot is free, histograms kept for later are dropped; their children are built instead. Sums
are integers, so every plan gives the same model; only the time differs.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from torchgbdt.core.arrays import BoolArray, Int32Array, Int64Array, RecordArray
from torchgbdt.core.backend import NO_SLOT, LevelBatch


@dataclass(frozen=True)
class Level:
    """The active nodes of one depth: the root alone, or sibling pairs (2i, 2i + 1).

    Attributes
    ----------
    nodes : NODE_DTYPE, (n_nodes,); the plan fills in slots and how histograms are made.
    sums : int64, (n_nodes, tree_outputs, 2).
    searched : bool, (n_nodes,); False where a node is too small to split and is here only because
        its sibling is not.
    parent_slots : int32, (n_nodes // 2,); where the parents' histograms are, or NO_SLOT.
    """

    nodes: RecordArray
    sums: Int64Array
    searched: BoolArray
    parent_slots: Int32Array


class HistogramPlan:
    """Hands out histogram slots for one tree at a time.

    Levels are small as a rule: loops over plain numbers take less time than numpy calls would.
    """

    def __init__(self, n_slots: int) -> None:
        self._n_slots = n_slots
        self.start_tree()

    def start_tree(self) -> None:
        """Take all slots back."""
        self._free = list(range(self._n_slots))
        self._kept: dict[int, int] = {}

    def batches(self, level: Level) -> Iterator[tuple[Int64Array, LevelBatch]]:
        """Cut a level into batches that fit; yields positions in the level, and their batch.

        The caller must call ``keep`` for each batch before it asks for the next one.
        """
        self._kept = {}
        self._parents = level.parent_slots.tolist()
        self._counts = level.nodes["count"].tolist()
        self._searched = level.searched.tolist()
        waiting = deque(_families(level.nodes.size))
        while waiting:
            positions, *slots = self._place(waiting)
            if positions:
                yield _level_batch(level, positions, *slots)
            elif not self._drop_one(waiting[0]):  # one slot, two siblings: one after the other
                waiting.extendleft([position] for position in reversed(waiting.popleft()))

    def keep(self, positions: Int64Array, nodes: RecordArray, wanted: BoolArray) -> None:
        """After a batch's search: keep the histograms of nodes whose children may be searched."""
        for position, slot, want in zip(
            positions.tolist(), nodes["slot"].tolist(), wanted.tolist(), strict=True
        ):
            if want:
                self._kept[position] = slot
            else:
                self._free.append(slot)

    def kept_slots(self, positions: Int64Array) -> Int32Array:
        """Slots of the kept histograms of these nodes of the level just done, or NO_SLOT."""
        slots = [self._kept.get(position, NO_SLOT) for position in positions.tolist()]
        return np.array(slots, np.int32)

    def _place(self, waiting: deque[list[int]]) -> tuple[list[int], list[int], list[int]]:
        """Give slots to the first families, as many as fit, and take these off the queue.

        Returns positions, slots and siblings' slots of their nodes that are to be handled.
        """
        positions: list[int] = []
        slots: list[int] = []
        sibling_slots: list[int] = []  # NO_SLOT where a node is built
        free, parents, counts = self._free, self._parents, self._counts
        while waiting:
            family = waiting[0]
            parent = parents[family[0] // 2] if len(family) == 2 else NO_SLOT
            if parent == NO_SLOT:
                members = [position for position in family if self._searched[position]]
                if len(free) < len(members):
                    break
                positions += members
                slots += [free.pop() for _ in members]
                sibling_slots += [NO_SLOT] * len(members)
            else:
                if not free:
                    break
                left, right = family
                built = free.pop()
                left_is_built = counts[left] <= counts[right]
                positions += family
                slots += (built, parent) if left_is_built else (parent, built)
                sibling_slots += (NO_SLOT, built) if left_is_built else (built, NO_SLOT)
            waiting.popleft()
        return positions, slots, sibling_slots

    def _drop_one(self, family: list[int]) -> bool:
        """Free a kept histogram: one for the next level, else the last parent; False if none."""
        if self._kept:
            _, slot = self._kept.popitem()
            self._free.append(slot)
            return True
        for parent in range(len(self._parents) - 1, family[0] // 2 - 1, -1):
            if self._parents[parent] != NO_SLOT:
                self._free.append(self._parents[parent])
                self._parents[parent] = NO_SLOT
                return True
        return False


def _level_batch(
    level: Level, positions: list[int], slots: list[int], sibling_slots: list[int]
) -> tuple[Int64Array, LevelBatch]:
    """The positions and records of the nodes that were given slots."""
    chosen = np.array(positions, np.int64)
    nodes, sums = level.nodes, level.sums
    if chosen.size < nodes.size:  # as a rule: all of the level
        nodes, sums = nodes.take(chosen), sums.take(chosen, 0)
    nodes["slot"] = np.array(slots, np.int32)
    nodes["sibling_slot"] = siblings = np.array(sibling_slots, np.int32)
    np.equal(siblings, NO_SLOT, out=nodes["build"])
    return chosen, LevelBatch(nodes, sums)


def _families(n_nodes: int) -> list[list[int]]:
    """Positions that are placed together: the root, or two siblings."""
    if n_nodes == 1:
        return [[0]]
    return [[first, first + 1] for first in range(0, n_nodes, 2)]


def histogram_bytes(total_bins: int, tree_outputs: int) -> int:
    """Bytes of one node's histogram: an int64 count, and gradient and Hessian per output."""
    return total_bins * 8 * (1 + 2 * tree_outputs)
