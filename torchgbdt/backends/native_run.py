"""The buffers of one native run: what the kernels of csrc/cpu read and write, owned by numpy."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from torchgbdt.backends.stored_rows import ROW_ID_DTYPE, Grouping, StoredRows
from torchgbdt.core.arrays import (
    BIN_DTYPE,
    FIXED_DTYPE,
    GRADIENT_DTYPE,
    SUM_DTYPE,
    BinArray,
    Float32Array,
    Int32Array,
    Int64Array,
    RecordArray,
)
from torchgbdt.core.backend import RunRows, RunSettings
from torchgbdt.core.errors import BackendError, StateError
from torchgbdt.core.extremes import GradientExtremes
from torchgbdt.core.fixed_point import round_hessians
from torchgbdt.core.objectives import ObjectiveKind
from torchgbdt.core.raw_predictions import baseline_parts


@dataclass(frozen=True)
class Losses:
    """Finite losses of one data set.

    Attributes
    ----------
    largest : of ``values``.
    bits : that one loss may have in fixed point; see ``fixed_point.loss_bits``.
    """

    values: Float32Array
    largest: float
    bits: int


class NativeRun:
    """The buffers of one run; layouts in csrc/README.md.

    Attributes
    ----------
    rows : the data sets as they are stored; the training rows first.
    hessians : float32, (n_rows, tree_outputs); None where all are 1.
    fixed_point : int32, (n_rows, n_words), what a row adds to a histogram cell.
    histograms : int64, (n_slots, total_bins, 1 + n_words).
    row_order : uint32, (n_rows,).
    routed : the same; what the row order becomes when rows are routed.
    routed_nodes : nodes whose rows were routed since all were the root's, how, and how many went
        left; from this it is known how far the rows have come through the tree.
    sides : uint8, (n_rows,), which way each goes meanwhile.
    baseline : float32, (n_outputs, 2), what raw predictions are made of besides sums and margins;
        None where labels are centred.
    softmax_terms : float32, (2, n_rows), of the training rows; None for other objectives.
    terms_are_current : whether they are those of the present predictions.
    loss_buffer : float32, as many as the largest data set has rows.
    raised_hessians : positive Hessians that rounded to 0 and were made 1, over all trees so far.
    """

    def __init__(
        self, datasets: list[RunRows], settings: RunSettings, grouping: Grouping, n_threads: int
    ) -> None:
        self.settings = settings
        if settings.constant_hessian and datasets[0].weights is not None:
            raise BackendError("weighted rows do not have a constant Hessian.")
        n_columns = settings.objective.n_outputs
        n_value_bins = settings.thresholds.n_value_bins
        self.rows = [
            StoredRows(_checked_rows(data, settings), n_columns, n_value_bins, n_threads)
            for data in datasets
        ]
        thresholds, outputs = settings.thresholds, settings.tree_outputs
        bins = self.rows[0].bins
        n_rows = bins.shape[0]
        n_words = outputs if settings.constant_hessian else 2 * outputs
        self.feature_bins = (thresholds.n_value_bins, thresholds.bin_offsets)
        self.gradients: Float32Array = np.zeros((n_rows, outputs), GRADIENT_DTYPE)
        self.hessians = None if settings.constant_hessian else np.zeros_like(self.gradients)
        self.fixed_point: Int32Array = np.zeros((n_rows, n_words), FIXED_DTYPE)
        self.row_order = np.arange(n_rows, dtype=ROW_ID_DTYPE)
        self.routed = np.empty_like(self.row_order)
        self.routed_nodes: list[tuple[RecordArray, RecordArray, Int64Array]] = []
        self.sides: BinArray = np.empty(n_rows, BIN_DTYPE)
        shape = (settings.n_slots, thresholds.total_bins, 1 + n_words)
        self.histograms: Int64Array = np.empty(shape, SUM_DTYPE)  # untouched pages cost nothing
        self.baseline = None if settings.objective.centers_labels else _baseline(settings)
        is_softmax = settings.objective.kind == ObjectiveKind.SOFTMAX
        self.softmax_terms = np.empty((2, n_rows), GRADIENT_DTYPE) if is_softmax else None
        self.terms_are_current = False
        self.scales: Int64Array = np.zeros((outputs, 2), np.int64)
        self.loss_buffer: Float32Array = np.empty(
            max(data.n_rows for data in datasets), GRADIENT_DTYPE
        )
        self.losses: Losses | None = None
        self.raised_hessians = 0
        self._extremes: GradientExtremes | None = None
        self._grouping = grouping if grouping.is_worth(bins) else None
        self._trees_until_grouping = 1

    def group_rows(self) -> None:
        """Before a round: group the training rows by the nodes of the last tree, if it is time.

        The row order is still that of the last tree: the rows of each node that was searched lie
        together. It must hold all rows.
        """
        if self._grouping is None or self._trees_until_grouping > 0:
            return
        self.rows[0].group(self.row_order)
        self.terms_are_current = False
        self._trees_until_grouping = self._grouping.trees

    def predictions_changed(self) -> None:
        """A tree has been added to the predictions."""
        self.terms_are_current = False
        self._trees_until_grouping -= 1

    def keep_extremes(self, extremes: list[tuple[float, float, float, bool]]) -> GradientExtremes:
        """The kernel's (max |g|, max h, min h, finite) of each output as the core wants them."""
        largest = np.array([[largest_g, largest_h] for largest_g, largest_h, _, _ in extremes])
        smallest_h = min(smallest for _, _, smallest, _ in extremes)
        self._extremes = GradientExtremes(largest, smallest_h, all(one[3] for one in extremes))
        return self._extremes

    def check_scales(self, scales: Int64Array) -> None:
        """Raise unless every gradient at hand fits its fixed-point word at these scales."""
        if self._extremes is None:
            raise StateError("there are no gradients to round; call compute_gradients first.")
        self._extremes.check_scales(scales)

    def hessian_units(self) -> Int32Array:
        """What each row adds to Hessians that are constant; int32, (tree_outputs,)."""
        one = np.ones(1, GRADIENT_DTYPE)
        return np.concatenate([round_hessians(one, scale) for scale in self.scales[:, 1].tolist()])

    def n_bytes(self) -> int:
        """Bytes of the bins and of all buffers above, as they are now."""
        buffers = [value for value in vars(self).values() if isinstance(value, np.ndarray)]
        return sum(buffer.nbytes for buffer in buffers) + sum(rows.n_bytes() for rows in self.rows)

    def diagnostics(self) -> dict[str, Any]:
        """Counters of the run, and the bytes of its large buffers.

        "peak_memory_bytes" are those of the arrays that the run keeps, which are most at its end.
        What a call takes for as long as it lasts is not among them: partial histograms, mostly; nor
        are arrays that ``prepare`` was given and that still lie where they were, but for the bins.
        """
        return {
            "constant_hessian": self.hessians is None,
            "raised_hessians": self.raised_hessians,
            "peak_memory_bytes": self.n_bytes(),
            "bytes": {
                "bins": sum(rows.bin_bytes() for rows in self.rows),
                "histograms": self.histograms.nbytes,
                "fixed_point": self.fixed_point.nbytes,
            },
        }


def _baseline(settings: RunSettings) -> Float32Array:
    """Each output's baseline as its two parts; float32, (n_outputs, 2)."""
    n_outputs = settings.objective.n_outputs
    if settings.baseline.shape != (n_outputs,):
        raise BackendError(
            f"the baseline must be one number for each of {n_outputs} outputs; found shape "
            f"{settings.baseline.shape}."
        )
    return np.stack(baseline_parts(settings.baseline), axis=1)


def _checked_rows(data: RunRows, settings: RunSettings) -> RunRows:
    """The rows with contiguous arrays, or BackendError where this backend cannot take them."""
    objective = settings.objective
    if data.margins is not None and objective.centers_labels:
        raise BackendError(f"objective {objective.name!r} takes margins within its labels.")
    per_output = (data.n_rows, objective.n_outputs)
    return replace(
        data,
        bins=np.ascontiguousarray(data.bins),
        labels=_checked(data.labels, (data.n_rows,), "labels"),
        weights=_checked(data.weights, (data.n_rows,), "weights"),
        margins=_checked(data.margins, per_output, "margins"),
        start=_checked(data.start, per_output, "start"),
    )


_Given = TypeVar("_Given", Float32Array, Float32Array | None)


def _checked(given: _Given, shape: tuple[int, ...], name: str) -> _Given:
    """The array, C-ordered; BackendError unless it has this shape."""
    if given is None:
        return given
    if given.shape != shape:
        raise BackendError(f"{name} must have shape {shape}; found {given.shape}.")
    return np.ascontiguousarray(given)
