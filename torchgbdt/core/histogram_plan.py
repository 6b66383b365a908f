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
    nodes : NODE_DTYPE, (n_nodes,).
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
        waiting = deque(_families(level))
        while waiting:
            batch: list[_Place] = []
            while waiting:
                placed = self._place(waiting[0], may_drop=not batch)
                if not placed:
                    break
                batch += placed
                waiting.popleft()
            if batch:
                yield _level_batch(level, batch)
            else:  # one slot, two siblings to build: one after the other
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

    def _place(self, family: list[int], *, may_drop: bool) -> list["_Place"]:
        """Give slots to the nodes of a family that are to be handled; [] if it does not fit."""
        while True:
            parent = self._parent_slot(family)
            members = [i for i in family if parent != NO_SLOT or self._searched[i]]
            cost = 1 if parent != NO_SLOT else len(members)
            if len(self._free) >= cost:
                break
            if not may_drop or not self._drop_one(family):
                return []
        if parent == NO_SLOT:
            return [(position, self._free.pop(), NO_SLOT) for position in members]
        left, right = members
        built = self._free.pop()
        if self._counts[left] <= self._counts[right]:
            return [(left, built, NO_SLOT), (right, parent, built)]
        return [(left, parent, built), (right, built, NO_SLOT)]

    def _parent_slot(self, family: list[int]) -> int:
        return self._parents[family[0] // 2] if len(family) == 2 else NO_SLOT

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


_Place = tuple[int, int, int]
"""A node's position in its level, its slot, and its sibling's slot: NO_SLOT where it is built."""


def _level_batch(level: Level, places: list[_Place]) -> tuple[Int64Array, LevelBatch]:
    """The positions and records of the nodes that were given slots."""
    positions, slots, sibling_slots = np.array(places, np.int64).T
    nodes = level.nodes[positions]
    nodes["slot"], nodes["sibling_slot"] = slots, sibling_slots
    nodes["build"] = sibling_slots == NO_SLOT
    return positions, LevelBatch(nodes, level.sums[positions])


def _families(level: Level) -> list[list[int]]:
    """Positions that are placed together: the root, or two siblings."""
    if level.nodes.size == 1:
        return [[0]]
    return [[first, first + 1] for first in range(0, level.nodes.size, 2)]
