"""The cost model of the Metal kernels: arithmetic, fit and units. No time is measured."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from machine import ROOT
from metal_cost.cases import HIGGS, Case
from metal_cost.devices import DEVICES, Device
from metal_cost.plan import (
    COPY,
    LevelShape,
    Planner,
    TreeShape,
    Work,
    halved_shape,
    shape_of,
    touched_lines,
)
from metal_cost.prediction import Prediction, busy_cores, dispatch_seconds
from metal_cost.recording import COUNTERS, Dispatch, RecordedTree, Recorder
from metal_cost.scaling import Cost, Costs, largest_deviation, of_kernels
from metal_cost.tables import TITLE, kernel_table, level_table, ms, times_table
from metal_cost.tuning import best_choice
from support.tolerances import COST_ARITHMETIC, TOUCHED_LINES

from torchgbdt.backends.metal_run import MetalTuning
from torchgbdt.backends.row_chunks import HistogramVariant

DEVICE = Device("abacus", bandwidth=100e9, cores=10, clock=1e9)
SUMMING = Work("build_histograms", 0, groups=20, sizes={"cells": 64e9})
COST = Cost(moved_bytes=7e9, updates=8e9, returning=4e9, plain=3.2e9, device_atomics=0, barriers=0)
PLANNER = Planner(28, HistogramVariant(constant_hessian=True), MetalTuning())


def is_close(found: float, expected: float, tolerance: float = COST_ARITHMETIC) -> bool:
    return abs(found - expected) <= tolerance * abs(expected)


def level(rows: list[int], built: list[int], split: list[int]) -> LevelShape:
    return LevelShape(np.array(rows), np.array(built, np.bool_), np.array(split, np.bool_))


SHAPE = TreeShape(
    [level([40_000], [1], [1]), level([10_000, 30_000], [1, 0], [0, 1]),
     level([29_000, 1_000], [0, 1], [0, 0])],
    n_columns=2,
)  # fmt: skip


def recorded(works: list[Work]) -> list[Dispatch]:
    """Counters that are sums of sizes, as an emulator would count them."""
    return [Dispatch(work.kernel, counted(work)) for work in of_kernels(works)]


def counted(work: Work) -> dict[str, int]:
    result: dict[str, Any] = dict.fromkeys(COUNTERS, 0)
    result["groups"] = work.groups
    if work.kernel == "build_histograms":
        result["threadgroup_updates"] = 56 * work.sizes["rows"]
        result["threadgroup_atomics"] = 56 * work.sizes["rows"] + 32_768 * work.sizes["drains"]
        result["group_lines 0"] = 4 * work.sizes["gathered"]
        result["group_lines 3"] = 768 * work.sizes["chunks"]
    if work.kernel == "scan_splits":
        result["group_lines 0"] = 896 * work.sizes["nodes"]
        result["group_lines 1"] = 1_000  # a table
        result["dispatch_lines 1"] = 2
    return result


def costs_of(shapes: list[TreeShape], n_tiles: int = 4) -> Costs:
    works = [work for shape in shapes for work in PLANNER.tree(shape)]
    return Costs(of_kernels(works), recorded(works), n_tiles)


# --- from costs to seconds ------------------------------------------------------------------------


def test_seconds_of_a_dispatch_worked_out_by_hand() -> None:
    seconds = dispatch_seconds(SUMMING, COST, DEVICE, atomic_rate=4.0)
    assert is_close(seconds.bandwidth, 7e9 / 70e9)  # 70% of 100 GB/s
    # 2e9 clocks for additions and 1e8 for the rest, on 10 cores of 1 GHz.
    assert is_close(seconds.atomics, 0.2 + 0.01)
    assert is_close(seconds.arithmetic, 12 * 64e9 / 128 / 10e9)
    assert seconds.total == seconds.arithmetic
    assert seconds.bound == "arithmetic"


def test_a_device_twice_as_fast_halves_its_part_and_no_other() -> None:
    before = dispatch_seconds(SUMMING, COST, DEVICE, 4.0)
    memory = dispatch_seconds(SUMMING, COST, replace(DEVICE, bandwidth=200e9), 4.0)
    assert memory.bandwidth == before.bandwidth / 2
    assert (memory.atomics, memory.arithmetic) == (before.atomics, before.arithmetic)
    clock = dispatch_seconds(SUMMING, COST, replace(DEVICE, clock=2e9), 4.0)
    assert clock.bandwidth == before.bandwidth
    assert (clock.atomics, clock.arithmetic) == (before.atomics / 2, before.arithmetic / 2)
    additions = replace(COST, plain=0)
    slow, fast = (dispatch_seconds(SUMMING, additions, DEVICE, rate).atomics for rate in (2, 4))
    assert fast == slow / 2


def test_the_last_round_of_groups_leaves_cores_idle() -> None:
    assert [busy_cores(groups, 8) for groups in (3, 8, 9, 16, 0)] == [3, 8, 4.5, 8, 8]


def test_waiting_is_per_tree_and_parts_add_up() -> None:
    works = [SUMMING, Work("route_count", 0, 5, {}), SUMMING, Work("route_count", 0, 5, {})]
    idle = Cost(0, 0, 0, 0, 0, 0)
    one = Prediction(works, [COST, idle] * 2, DEVICE, 4.0, synchronizations=8, n_trees=2)
    assert is_close(one.synchronizing, 8 * 222e-6)
    assert is_close(one.queueing, 2 * 22.7e-6)
    assert one.moved_bytes == 7e9
    assert is_close(one.seconds, 0.6 + 8 * 222e-6 + 2 * 22.7e-6)
    assert one.bound == "arithmetic"
    summing, counting = one.kernels()
    assert (summing.kernel, summing.dispatches, summing.moved_bytes) == ("build_histograms", 1, 7e9)
    assert counting.seconds == 0


def test_milliseconds_have_three_digits() -> None:
    assert [ms(seconds) for seconds in (0.0012345, 0.012345, 0.12345)] == ["1.23", "12.3", "123"]


# --- from trees to dispatches ---------------------------------------------------------------------


def test_the_plan_of_a_tree_counts_groups_as_the_backend_cuts_rows() -> None:
    works = PLANNER.tree(SHAPE)
    found = {(work.kernel, work.level): work for work in works}
    root = found["build_histograms", 0]
    assert root.groups == 3 * 4  # 16,384 rows per chunk, 8 features per tile
    assert (root.sizes["rows"], root.sizes["drains"], root.sizes["gathered"]) == (40_000, 3, 10_000)
    below = found["build_histograms", 1]
    assert (below.sizes["rows"], below.groups) == (10_000, 4)  # the smaller sibling
    assert found["reduce_histograms", 1].sizes == {"chunks": 1, "built": 1, "derived": 1}
    assert found["route_count", 1].sizes["rows"] == 30_000
    assert [work.level for work in works if work.kernel == COPY] == [1]  # 10,000 rows stay
    assert ("route_count", 2) not in found
    assert found["update_predictions", -1].sizes["columns"] == 2 * 40_000 / 128


def test_threadgroup_memory_is_emptied_as_often_as_the_words_need_it() -> None:
    variant = HistogramVariant(constant_hessian=True, returning_atomics=False)
    root = Planner(28, variant, MetalTuning()).tree(SHAPE)[3]
    assert root.sizes["drains"] == 2 * 9 + 4  # 16,384, 16,384 and 7,232 rows, 2,047 at a time


def test_a_finished_tree_says_what_was_searched_and_routed() -> None:
    tree: Any = SimpleNamespace(
        count=np.array([100, 30, 70, 15, 15, 45, 25]),
        left=np.array([1, 3, 5, -1, -1, -1, -1]),
        right=np.array([2, 4, 6, -1, -1, -1, -1]),
        is_leaf=np.array([0, 0, 0, 1, 1, 1, 1], np.bool_),
        feature=np.array([5, 7, 5, -1, -1, -1, -1]),
    )
    shape = shape_of(tree, max_depth=6, min_samples_leaf=10)
    assert [one.rows.tolist() for one in shape.levels] == [[100], [30, 70], [45, 25]]
    assert [one.built.tolist() for one in shape.levels] == [[True], [True, False], [False, True]]
    # The children of the second node are too small to be split: nobody needs their rows.
    assert shape.levels[1].split.tolist() == [False, True]
    assert shape.n_columns == 2
    assert shape.scaled(1_000).levels[1].rows.tolist() == [300, 700]
    assert [one.split.any() for one in shape_of(tree, 2, 10).levels] == [True, False]


def test_halves_have_the_most_rows_to_sum() -> None:
    shape = halved_shape(40_000, 28, max_depth=3)
    assert [one.rows[one.built].sum() for one in shape.levels] == [40_000, 20_000, 20_000]
    assert [one.split.all() for one in shape.levels] == [True, True, False]
    case = hand_made_case()
    assert case.halved().predict(DEVICE, 4.0).seconds > case.predict(DEVICE, 4.0).seconds


def test_touched_lines_are_those_of_rows_anywhere() -> None:
    assert touched_lines(np.array([1_000]), 1_000, 4) == 250
    assert is_close(touched_lines(np.array([1]), 2**20, 4), 1, TOUCHED_LINES)
    nodes = np.random.default_rng(1).integers(0, 8, size=100_000)
    counted = sum(np.unique(np.flatnonzero(nodes == node) // 4).size for node in range(8))
    assert is_close(touched_lines(np.bincount(nodes), 100_000, 4), counted, TOUCHED_LINES)


# --- from counters to costs -----------------------------------------------------------------------


def test_the_fit_finds_what_each_row_chunk_and_drain_adds() -> None:
    costs = costs_of([SHAPE, SHAPE.scaled(100_000), SHAPE.scaled(9_000_000)])
    updates = costs.factors("build_histograms", "threadgroup_updates")
    assert updates.keys() == {"rows"}
    assert is_close(updates["rows"], 56)
    atomics = costs.factors("build_histograms", "threadgroup_atomics")
    assert atomics.keys() == {"rows", "drains"}
    assert is_close(atomics["rows"], 56)
    assert is_close(atomics["drains"], 32_768)
    works = PLANNER.tree(SHAPE.scaled(1_234_567))
    deviations = largest_deviation(costs, works, recorded(works))
    assert max(deviations.values()) < COST_ARITHMETIC


def test_lines_are_shared_by_the_tiles_of_a_chunk_and_tables_are_moved_once() -> None:
    shapes = [SHAPE, SHAPE.scaled(100_000)]
    costs, unshared = costs_of(shapes), costs_of(shapes, n_tiles=1)
    root, scan = PLANNER.tree(SHAPE)[3], PLANNER.tree(SHAPE)[5]
    assert (root.kernel, scan.kernel) == ("build_histograms", "scan_splits")
    partials = 768 * 3
    assert is_close(costs.cost(root).moved_bytes, 128 * (10_000 + partials))
    assert is_close(unshared.cost(root).moved_bytes, 128 * (4 * 10_000 + partials))
    assert is_close(costs.cost(scan).moved_bytes, 128 * (896 + 2))
    assert costs.cost(Work(COPY, 0, 0, {"rows": 10})).moved_bytes == 80


def test_a_record_of_another_tree_is_refused() -> None:
    works = of_kernels(PLANNER.tree(SHAPE))
    with pytest.raises(ValueError, match=r"not the planned tree.*compute_gradients"):
        Costs(works, recorded(PLANNER.tree(SHAPE.scaled(20_000))), 4)
    with pytest.raises(ValueError, match="their number"):
        Costs(works, recorded(works)[:-1], 4)


def test_a_recorder_notes_what_each_call_adds() -> None:
    class Abacus:
        total = 0

        def compile_shader(self, source: str) -> Any:
            def add(number: int) -> None:
                self.total += number

            return SimpleNamespace(add=add)

        def counters(self) -> dict[str, int]:
            return dict.fromkeys(COUNTERS, self.total)

        def traffic(self) -> list[dict[str, tuple[int, int]]]:
            lines = {"group_lines": (self.total, 1), "dispatch_lines": (0, self.total)}
            return [lines]

    recorder = Recorder(Abacus())
    library = recorder.compile_shader("")
    library.add(5)
    library.add(number=2)
    assert [one.kernel for one in recorder.dispatches] == ["add", "add"]
    assert [one.counters["groups"] for one in recorder.dispatches] == [5, 2]
    assert recorder.dispatches[1].counters["group_lines 0"] == 2


# --- the page -------------------------------------------------------------------------------------


def hand_made_case() -> Case:
    shapes = [SHAPE, SHAPE.scaled(100_000)]
    tree = RecordedTree([], synchronizations=8, bytes_to_host=17_000, uploads=0)
    costs, unshared = costs_of(shapes), costs_of(shapes, n_tiles=1)
    return Case(HIGGS, PLANNER.variant, shapes, costs, unshared, {"updates": 0.01}, tree)


def test_tables_have_every_device_and_macboosts_figure_once() -> None:
    case = hand_made_case()
    lines = times_table([case]).splitlines()[2:]
    assert len(lines) == len(DEVICES)
    assert [line.split(" | ")[1] for line in lines if line.endswith("| 28 |")] == [
        "M4 Max, 40 cores"
    ]
    assert "build_histograms" in kernel_table(case, DEVICES[0], 4.0).splitlines()[2]
    root = level_table(case).splitlines()[2]
    assert root == "| 0 | 100% | 32.0 | 100% | 100% | 1.0 | 100% |"


def test_the_best_tuning_is_never_worse_than_the_default() -> None:
    default, best = best_choice(hand_made_case(), DEVICES[0], 4.0)
    assert default.tuning == MetalTuning()
    assert best.seconds <= default.seconds


def test_the_stored_page_says_what_it_is() -> None:
    text = (ROOT / "benchmarks" / "results" / "metal_cost.md").read_text("utf-8")
    assert "prediction, not a measurement" in TITLE
    assert text.startswith(TITLE)
    assert all(device.name in text for device in DEVICES)
