"""What each dispatch costs, as sums of its sizes: fitted to records, tried on others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from metal_cost.devices import LINE_BYTES
from metal_cost.plan import COPY, Work
from metal_cost.recording import Dispatch

TABLES = {
    *(("reduce_histograms", 1), ("scan_splits", 1), ("route_count", 2), ("route_scatter", 3)),
    *(("update_predictions", 1), ("update_predictions", 2), ("update_predictions", 3)),
    ("compute_gradients", 4),
}
"""Arguments that all groups read and that fit into a cache: moved once per dispatch. Of all
others, a line is moved once per group."""

SIZES = {
    "compute_gradients": ("rows",),
    "round_gradients": ("rows",),
    "build_histograms": ("rows", "chunks"),
    "reduce_histograms": ("chunks", "built", "derived"),
    "scan_splits": ("nodes",),
    "select_candidates": ("nodes",),
    "route_count": ("rows", "chunks"),
    "route_scatter": ("rows", "chunks"),
    "write_words": ("dispatches",),
    "update_predictions": ("rows",),
}
"""What the counters of each kernel grow with."""

OWN_SIZES = {
    **{(kernel, f"dispatch_lines {i}"): ("dispatches",) for kernel, i in TABLES},
    ("build_histograms", "group_lines 0"): ("gathered",),
    ("route_count", "group_lines 0"): ("gathered",),
    ("update_predictions", "group_lines 0"): ("columns",),
    ("route_scatter", "dispatch_lines 3"): ("chunks",),
    ("compute_gradients", "device_atomics"): ("dispatches", "groups"),
    ("update_predictions", "device_atomics"): ("dispatches", "rows"),
    ("build_histograms", "barriers"): ("drains",),
    ("build_histograms", "threadgroup_atomics"): ("rows", "drains"),
    ("build_histograms", "threadgroup_updates"): ("rows",),
    ("build_histograms", "returning_threadgroup_atomics"): ("rows",),
}
"""Those of single counters."""

SHARED_BY_TILES = {("build_histograms", 0), ("build_histograms", 1), ("build_histograms", 2)}
"""Arguments of which the groups of one chunk, which run side by side, read the same lines."""

MAX_ARGUMENTS = 31


@dataclass(frozen=True)
class Cost:
    """Of one dispatch.

    Attributes
    ----------
    moved_bytes : between memory and GPU, in whole lines.
    updates : additions and other changes of threadgroup memory, per lane; returning: of these,
        those whose result is used. plain : its other atomic loads and stores.
    device_atomics : likewise, of device memory, loads and stores included.
    barriers : counted once per thread.
    """

    moved_bytes: float
    updates: float
    returning: float
    plain: float
    device_atomics: float
    barriers: float


class Costs:
    """Counters of every kernel as linear functions of the sizes of its work.

    Parameters
    ----------
    works, dispatches : of recorded trees, one dispatch for each work.
    n_tiles : groups that share the lines of a chunk; 1 for as if they did not.
    """

    def __init__(self, works: Sequence[Work], dispatches: Sequence[Dispatch], n_tiles: int) -> None:
        works = of_kernels(works)
        check_groups(works, dispatches)
        self._n_tiles = n_tiles
        self._factors: dict[tuple[str, str], dict[str, float]] = {}
        for kernel in {work.kernel for work in works}:
            rows = [
                (work, dispatch)
                for work, dispatch in zip(works, dispatches, strict=True)
                if work.kernel == kernel
            ]
            for counter in rows[0][1].counters:
                self._fit(kernel, counter, rows)

    def _fit(self, kernel: str, counter: str, rows: list[tuple[Work, Dispatch]]) -> None:
        names = OWN_SIZES.get((kernel, counter), SIZES[kernel])
        sizes = np.array([[work.size(name) for name in names] for work, _ in rows], np.float64)
        counted = np.array([dispatch.counters[counter] for _, dispatch in rows], np.float64)
        factors = np.linalg.lstsq(sizes, counted, rcond=None)[0]
        self._factors[kernel, counter] = dict(zip(names, factors.tolist(), strict=True))

    def factors(self, kernel: str, counter: str) -> dict[str, float]:
        """How much one more of each size adds to a counter."""
        return self._factors[kernel, counter]

    def cost(self, work: Work) -> Cost:
        """What a dispatch will cost."""
        if work.kernel == COPY:  # of torch: four bytes read and four written per row
            return Cost(8 * work.sizes["rows"], 0, 0, 0, 0, 0)

        def counted(counter: str) -> float:
            factors = self._factors[work.kernel, counter]
            return sum(factor * work.size(name) for name, factor in factors.items())

        return self._cost(work.kernel, counted)

    def recorded_cost(self, dispatch: Dispatch) -> Cost:
        """What a recorded dispatch did cost."""
        return self._cost(dispatch.kernel, lambda counter: float(dispatch.counters[counter]))

    def _cost(self, kernel: str, counted: Callable[[str], float]) -> Cost:
        lines = 0.0
        for i in range(MAX_ARGUMENTS):
            kind = "dispatch_lines" if (kernel, i) in TABLES else "group_lines"
            if (kernel, f"{kind} {i}") in self._factors:
                share = self._n_tiles if (kernel, i) in SHARED_BY_TILES else 1
                lines += counted(f"{kind} {i}") / share
        updates = counted("threadgroup_updates")
        return Cost(
            moved_bytes=LINE_BYTES * lines,
            updates=updates,
            returning=counted("returning_threadgroup_atomics"),
            plain=counted("threadgroup_atomics") - updates,
            device_atomics=counted("device_atomics"),
            barriers=counted("barriers"),
        )


def of_kernels(works: Sequence[Work]) -> list[Work]:
    """Those that a recorder sees: not what torch does by itself."""
    return [work for work in works if work.kernel != COPY]


def check_groups(works: Sequence[Work], dispatches: Sequence[Dispatch]) -> None:
    """Raise ValueError unless the dispatches are the planned ones, with as many threadgroups."""
    planned = [(work.kernel, work.groups) for work in works if work.kernel != "write_words"]
    found = [
        (dispatch.kernel, dispatch.counters["groups"])
        for dispatch in dispatches
        if dispatch.kernel != "write_words"
    ]
    if planned != found:
        pairs = zip(planned, found, strict=False)
        first = next((pair for pair in pairs if pair[0] != pair[1]), "their number")
        raise ValueError(f"the record is not the planned tree; the first difference: {first}")


def largest_deviation(
    costs: Costs, works: Sequence[Work], dispatches: Sequence[Dispatch]
) -> dict[str, float]:
    """How far predicted totals of a tree are from recorded ones, as a share; by kind of cost."""
    predicted = [costs.cost(work) for work in of_kernels(works)]
    recorded = [costs.recorded_cost(dispatch) for dispatch in dispatches]
    result = {}
    for name in ("moved_bytes", "updates", "returning", "plain", "barriers"):
        total = sum(getattr(cost, name) for cost in recorded)
        expected = sum(getattr(cost, name) for cost in predicted)
        result[name] = abs(expected / total - 1) if total else 0.0
    return result
