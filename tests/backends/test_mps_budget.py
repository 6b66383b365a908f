"""What a run of the mps backend asks of the device, counted; the promise is in backends/mps.py.

Counted are kernel dispatches, copies to the host and uploads; torch's own operations are listed by
a dispatch mode, which sees all of them, views and allocations included.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from backends.test_torch_transfers import BROKEN_ON_MPS, HOST_COPIES
from support.backends import emulated_library
from support.faults import watch
from support.random_rows import classes_of
from support.runs import Rows, Scenario, train
from torch.utils._python_dispatch import TorchDispatchMode

from torchgbdt.backends import torch_transfers
from torchgbdt.backends.metal_run import MAX_GROUPS, MetalTuning
from torchgbdt.backends.mps import MPSBackend
from torchgbdt.core.feature_source import HostMatrix

HEADER_BYTES, NODE_BYTES, CANDIDATE_BYTES, MAX_CANDIDATES = 16, 16, 32, 8
"""Of what comes to the host per slab: at most HEADER + nodes * (NODE + CANDIDATE * MAX)."""

IN_A_LEVEL = {
    *("empty", "slice", "view", "as_strided"),  # no work of the device
    *("_to_copy", "copy_"),  # results to the host; rows that stay where they are, on the device
    *("detach", "alias"),
}


@dataclass
class Counts:
    launches: int
    synchronizations: int
    uploads: int
    bytes_to_host: int

    @classmethod
    def of(cls, backend: MPSBackend) -> "Counts":
        facts = backend.diagnostics()
        return cls(*(facts[name] for name in vars(cls(0, 0, 0, 0))))

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(*(a - vars(other)[name] for name, a in vars(self).items()))


@dataclass
class Level:
    """What one level has cost: routing into it, and its search."""

    n_nodes: int
    n_slabs: int
    routing: Counts
    search: Counts


@dataclass
class Watched:
    """A backend whose levels are counted, and operations within them listed."""

    backend: MPSBackend
    slab_nodes: int
    levels: list[Level] = field(default_factory=list)
    in_level: bool = False
    batch_sizes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._routing = Counts(0, 0, 0, 0)
        search_level = self.backend.search_level

        def noting_nodes(batch: Any, *rest: Any) -> Any:
            self.batch_sizes.append(batch.nodes.size)
            return search_level(batch, *rest)

        self.backend.search_level = noting_nodes  # type: ignore[method-assign]
        watch(self.backend, self._around)

    def _around(self, name: str, call: Callable[[], Any]) -> Any:
        if name not in ("search_level", "route_rows") or self.in_level:
            return call()
        before = Counts.of(self.backend)
        self.in_level = True
        result = call()
        self.in_level = False
        cost = Counts.of(self.backend) - before
        if name == "route_rows":
            self._routing = cost
        else:
            n_nodes = self.batch_sizes[-1]
            n_slabs = -(-n_nodes // self.slab_nodes)
            self.levels.append(Level(n_nodes, n_slabs, self._routing, cost))
            self._routing = Counts(0, 0, 0, 0)
        return result


def watched(**tuning: int) -> Watched:
    backend = MPSBackend(emulated_library(), "cpu", tuning=MetalTuning(**tuning))
    return Watched(backend, tuning.get("slab_nodes", 256))


def rows_of(objective: str, n_rows: int, weighted: bool) -> Rows:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(n_rows, 5)).astype(np.float32), rng.normal(size=n_rows)
    X[::9, 1] = np.nan
    if objective != "squared_error":
        y = classes_of(y, 2 if objective == "logistic" else 3)
    return Rows(X, y, rng.random(n_rows) + 0.5 if weighted else None)


def scenario(objective: str, n_rows: int, weighted: bool = False, **settings: Any) -> Scenario:
    rows = rows_of(objective, n_rows, weighted)
    changed = {"objective": objective, "n_estimators": 2, "max_bins": 16, **settings}
    return Scenario(rows, {"min_samples_leaf": 1, **changed}, [rows[: n_rows // 3]])


@pytest.mark.parametrize("slab_nodes", [256, 16])
@pytest.mark.parametrize(
    ("objective", "weighted"),
    [("squared_error", False), ("squared_error", True), ("softmax", False)],
    ids=["constant Hessian", "general Hessian", "several trees"],
)
def test_a_level_costs_what_is_promised(objective: str, weighted: bool, slab_nodes: int) -> None:
    found = watched(slab_nodes=slab_nodes)
    train(found.backend, scenario(objective, 700, weighted, max_depth=8, n_estimators=1))
    assert max(level.n_nodes for level in found.levels) > 2 * 16
    assert len(found.levels) == 8 * (3 if objective == "softmax" else 1)
    for level in found.levels:
        search, routing, n_slabs = level.search, level.routing, level.n_slabs
        assert search.synchronizations == n_slabs
        assert routing.synchronizations == 0
        assert search.uploads == routing.uploads == 0
        assert search.launches + routing.launches <= 8 * n_slabs
        per_node = NODE_BYTES + CANDIDATE_BYTES * MAX_CANDIDATES
        limit = n_slabs * HEADER_BYTES + level.n_nodes * per_node
        assert 0 < search.bytes_to_host <= limit
        assert routing.bytes_to_host == 0


@pytest.mark.parametrize("max_depth", [1, 2, 5])
def test_shallow_trees(max_depth: int) -> None:
    found = watched()
    train(found.backend, scenario("logistic", 300, max_depth=max_depth))
    assert len(found.levels) == 2 * max_depth
    for level in found.levels:
        assert level.search.synchronizations == level.n_slabs == 1
        assert level.search.launches + level.routing.launches <= 6


# ------------------------------------------------------------------------- operations and copies

N_ROWS = 20_000


class Operations(TorchDispatchMode):
    """Every torch operation: names, within levels and elsewhere, and what must not be."""

    def __init__(self, backend: Watched) -> None:
        super().__init__()
        self.backend = backend
        self.names: set[str] = set()
        self.in_levels: set[str] = set()
        self.forbidden: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        (self.in_levels if self.backend.in_level else self.names).add(name)
        if name == "sort" and not kwargs.get("stable"):
            self.forbidden.add("a sort that is not stable")
        if kwargs.get("non_blocking") or (name == "copy_" and args[2:] == (True,)):
            self.forbidden.add("a copy that does not wait")
        result = func(*args, **kwargs)
        outputs = result if isinstance(result, tuple | list) else [result]
        if any(isinstance(one, torch.Tensor) and one.dtype == torch.float64 for one in outputs):
            self.forbidden.add(f"float64 from {name}")
        return result


@contextmanager
def copies(monkeypatch: pytest.MonkeyPatch, backend: MPSBackend) -> Iterator[list[int]]:
    """Elements of each copy to the host after ``prepare``."""
    sizes: list[int] = []
    to_host, prepare = torch_transfers.to_host, backend.prepare

    def noted(tensor: torch.Tensor) -> Any:
        sizes.append(tensor.numel())
        return to_host(tensor)

    def prepared(*args: Any) -> None:
        prepare(*args)
        sizes.clear()

    monkeypatch.setattr(torch_transfers, "to_host", noted)
    backend.prepare = prepared  # type: ignore[method-assign]
    yield sizes


class ReadsNothing:
    def __getattr__(self, name: str) -> Callable[[Any], None]:
        return lambda context: None


@pytest.mark.parametrize("objective", ["squared_error", "logistic", "softmax"])
def test_operations_and_copies_of_a_run(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With validation data and all metrics, auc among them."""
    found = watched()
    one = scenario(objective, N_ROWS, objective == "logistic", max_depth=3, n_estimators=1)
    with copies(monkeypatch, found.backend) as sizes, Operations(found) as operations:
        train(found.backend, one, [ReadsNothing()])
    assert operations.forbidden == set()
    assert operations.in_levels <= IN_A_LEVEL
    every_name = operations.names | operations.in_levels
    assert every_name & (HOST_COPIES | BROKEN_ON_MPS) == set()
    assert len(sizes) > 6
    n_groups = -(-N_ROWS // 256)
    assert max(sizes) <= max(4 + 2 * 3 * min(n_groups, MAX_GROUPS), 4 + 68 * 4) < N_ROWS // 20


def test_predictions_and_bins_use_no_operation_that_is_broken() -> None:
    found = watched()
    one = scenario("softmax", 300, max_depth=3, n_estimators=1)
    model = train(found.backend, one).model
    backend = MPSBackend(emulated_library(), "cpu")
    X = HostMatrix(one.train.X)
    with Operations(found) as operations:
        backend.predict(model.forest, X, np.zeros((300, 3), np.float32))
        backend.predict_leaves(model.forest, X, np.zeros((300, model.forest.n_trees), np.int32))
    assert operations.forbidden == set()
    assert operations.names & (HOST_COPIES | BROKEN_ON_MPS) == set()
