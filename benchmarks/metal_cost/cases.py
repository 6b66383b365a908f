"""The workloads that are predicted: records of small runs joined with shapes of larger ones."""

from dataclasses import dataclass, replace
from functools import cache

import synthetic
from contenders.settings import Settings
from synthetic import Float32Array
from workloads import FULL, SEED, Workload

from metal_cost.devices import Device
from metal_cost.plan import Planner, TreeShape, Work, halved_shape, shape_of
from metal_cost.prediction import Prediction
from metal_cost.recording import RecordedTree, record, train
from metal_cost.scaling import Costs, largest_deviation
from torchgbdt.backends.metal_run import MetalTuning
from torchgbdt.backends.native import NativeBackend
from torchgbdt.backends.row_chunks import HistogramVariant
from torchgbdt.core.settings import TrainerSettings

W1 = FULL["W1"]
HIGGS = replace(
    W1, name="HIGGS", title="10.5M x 28, depth 6, logistic", objective="logistic", n_classes=2,
    n_rows=10_500_000,
)  # fmt: skip
"""Synthetic rows of the shape of HIGGS, whose 28 features are continuous as well."""
LARGE = replace(W1, name="W1x10.5", title="10.5M x 28, depth 6, squared error", n_rows=10_500_000)
WORKLOADS = (W1, HIGGS, LARGE)

# Rows of the records, and rows per chunk: several chunks, and more rows than threadgroup memory
# holds at once, so that no two sizes grow together.
RECORDED = ((4_096, 512), (8_192, 5_000))
CHECKED = (6_000, 2_100)
TOLERANCE = 0.02
"""Of totals of a tree that no coefficient was fitted to."""

SHAPE_ROWS = 200_000
SHAPE_TREES = (4, 14, 24)
"""First, middle and last: later trees split at more features."""


@dataclass(frozen=True)
class Case:
    """One workload with one histogram kernel, ready for any device and tuning.

    Attributes
    ----------
    costs : tiles of a chunk share lines. unshared : each moves its own.
    deviations : of predicted counters from those of a record that they were not fitted to.
    recorded : the tree of that record.
    """

    workload: Workload
    variant: HistogramVariant
    shapes: list[TreeShape]
    costs: Costs
    unshared: Costs
    deviations: dict[str, float]
    recorded: RecordedTree

    def halved(self) -> "Case":
        """With trees that split rows in halves, and at every feature."""
        size = self.workload
        return replace(self, shapes=[halved_shape(size.n_rows, size.n_features, size.max_depth)])

    def default_tuning(self) -> MetalTuning:
        """What the backend would choose, with this case's kernel."""
        return MetalTuning(returning_atomics=self.variant.returning_atomics)

    def works(self, tuning: MetalTuning) -> list[Work]:
        """Dispatches of as many trees as there are shapes."""
        planner = Planner(self.workload.n_features, self.variant, tuning)
        scaled = [shape.scaled(self.workload.n_rows) for shape in self.shapes]
        return [work for shape in scaled for work in planner.tree(shape)]

    def predict(
        self,
        device: Device,
        atomic_rate: float,
        tuning: MetalTuning | None = None,
        shared: bool = True,
    ) -> Prediction:
        """Seconds per tree, the mean over the shapes."""
        works = self.works(tuning or self.default_tuning())
        of_works = self.costs if shared else self.unshared
        costs = [of_works.cost(work) for work in works]
        n_trees, waits = len(self.shapes), self.recorded.synchronizations + self.recorded.uploads
        return Prediction(works, costs, device, atomic_rate, waits, n_trees)


def make_case(workload: Workload, returning_atomics: bool = True) -> Case:
    """Record, fit and check.

    Raises
    ------
    ValueError : the fitted counters do not hold for a tree that they were not fitted to.
    """
    constant = workload.objective == "squared_error"
    variant = HistogramVariant(constant, returning_atomics)
    objective = (workload.objective, workload.n_classes)
    fitted = [_recorded(objective, variant, *sizes) for sizes in RECORDED]
    works = [work for one, _ in fitted for work in one]
    dispatches = [dispatch for _, tree in fitted for dispatch in tree.dispatches]
    costs = Costs(works, dispatches, variant.n_tiles(workload.n_features))
    checked_works, checked = _recorded(objective, variant, *CHECKED)
    deviations = largest_deviation(costs, checked_works, checked.dispatches)
    if max(deviations.values()) > TOLERANCE:
        raise ValueError(f"the fitted counters do not hold for another size: {deviations}")
    unshared = Costs(works, dispatches, 1)
    return Case(workload, variant, _shapes(objective), costs, unshared, deviations, checked)


def _rows(objective: tuple[str, int], n_rows: int) -> tuple[Float32Array, Float32Array]:
    n_classes = objective[1]
    return synthetic.make_rows(SEED, n_rows, W1.n_features, W1.n_groups, n_classes, W1.noise)


def _settings(objective: tuple[str, int], n_trees: int) -> TrainerSettings:
    given = Settings.of(W1, n_threads=2)
    return TrainerSettings(
        objective=objective[0],
        n_estimators=n_trees,
        max_depth=given.max_depth,
        learning_rate=given.learning_rate,
        reg_lambda=given.reg_lambda,
        max_bins=given.max_bins,
        min_samples_leaf=given.min_samples_leaf,
        min_child_weight=given.min_child_weight,
    )


@cache
def _recorded(
    objective: tuple[str, int], variant: HistogramVariant, n_rows: int, histogram_rows: int
) -> tuple[list[Work], RecordedTree]:
    """A tree on the emulator, and its plan."""
    settings = _settings(objective, n_trees=2)
    tuning = MetalTuning(
        histogram_rows=histogram_rows,
        routing_rows=histogram_rows // 3,
        wanted_groups=4_096,
        returning_atomics=variant.returning_atomics,
    )
    trees, model = record(settings, *_rows(objective, n_rows), tuning)
    shape = shape_of(model.forest.tree(0), W1.max_depth, settings.min_samples_leaf)
    return Planner(W1.n_features, variant, tuning).tree(shape), trees[0]


@cache
def _shapes(objective: tuple[str, int]) -> list[TreeShape]:
    """Trees of more rows than can be emulated, by the CPU: all backends grow the same ones."""
    settings = _settings(objective, SHAPE_TREES[-1] + 1)
    forest = train(NativeBackend(2), settings, *_rows(objective, SHAPE_ROWS)).forest
    trees = [forest.tree(index) for index in SHAPE_TREES]
    return [shape_of(tree, W1.max_depth, settings.min_samples_leaf) for tree in trees]
