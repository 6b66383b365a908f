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
    """Hands out histogram slots for one tree at a time."""

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
        self._parents = level.parent_slots.copy()
        waiting = deque(_families(level))
        while waiting:
            batch: list[int] = []
            while waiting:
                placed = self._place(level, waiting[0], may_drop=not batch)
                if not placed:
                    break
                batch += placed
                waiting.popleft()
            if batch:
                positions = np.array(batch, np.int64)
                yield positions, LevelBatch(level.nodes[positions], level.sums[positions])
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

    def _place(self, level: Level, family: list[int], *, may_drop: bool) -> list[int]:
        """Give slots to a family and return the nodes to handle; [] if it does not fit."""
        while True:
            parent = self._parent_slot(family)
            members = [i for i in family if parent != NO_SLOT or level.searched[i]]
            cost = 1 if parent != NO_SLOT else len(members)
            if len(self._free) >= cost:
                break
            if not may_drop or not self._drop_one(family):
                return []
        nodes = level.nodes
        if parent == NO_SLOT:
            for position in members:
                self._assign_built(nodes, position)
            return members
        left, right = members
        left_is_smaller = nodes["count"][left] <= nodes["count"][right]
        smaller, larger = (left, right) if left_is_smaller else (right, left)
        self._assign_built(nodes, smaller)
        nodes["slot"][larger] = parent
        nodes["sibling_slot"][larger] = nodes["slot"][smaller]
        nodes["build"][larger] = False
        return members

    def _assign_built(self, nodes: RecordArray, position: int) -> None:
        nodes["slot"][position] = self._free.pop()
        nodes["sibling_slot"][position] = NO_SLOT
        nodes["build"][position] = True

    def _parent_slot(self, family: list[int]) -> int:
        return int(self._parents[family[0] // 2]) if len(family) == 2 else NO_SLOT

    def _drop_one(self, family: list[int]) -> bool:
        """Free a kept histogram: one for the next level, else the last parent; False if none."""
        if self._kept:
            _, slot = self._kept.popitem()
            self._free.append(slot)
            return True
        parents = np.flatnonzero(self._parents[family[0] // 2 :] != NO_SLOT)
        if parents.size == 0:
            return False
        last = int(parents[-1]) + family[0] // 2
        self._free.append(int(self._parents[last]))
        self._parents[last] = NO_SLOT
        return True


def _families(level: Level) -> list[list[int]]:
    """Positions that are placed together: the root, or two siblings."""
    if level.nodes.size == 1:
        return [[0]]
    return [[first, first + 1] for first in range(0, level.nodes.size, 2)]
