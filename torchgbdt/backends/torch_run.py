"""The buffers of one run on a torch device, all of them resident there.

Per-row numbers of several outputs lie output by output, so that each is one piece of memory;
formulas, which have rows first, see them transposed.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from torchgbdt.backends.torch_matrix import WORD_FEATURES, DeviceBins
from torchgbdt.backends.torch_operations import TORCH
from torchgbdt.backends.torch_transfers import Transfers
from torchgbdt.core.arrays import GRADIENT_DTYPE, AnyArray, Float32Array, Int64Array
from torchgbdt.core.backend import RunRows, RunSettings
from torchgbdt.core.errors import BackendError, StateError
from torchgbdt.core.extremes import GradientExtremes
from torchgbdt.core.objectives import ObjectiveKind
from torchgbdt.core.probabilities import SoftmaxTerms
from torchgbdt.core.raw_predictions import add_baseline, baseline_parts

Baseline = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class DeviceRows:
    """One data set of a run on the device.

    Attributes
    ----------
    given : the rows as ``prepare`` got them.
    labels : float32, (n_rows,). weights : the same, or None.
    margins : float32, (n_outputs, n_rows), or None.
    predictions : float32, (n_outputs, n_rows); sums of leaf values.
    """

    given: RunRows
    bins: DeviceBins
    labels: torch.Tensor
    weights: torch.Tensor | None
    margins: torch.Tensor | None
    predictions: torch.Tensor

    @classmethod
    def of(cls, given: RunRows, settings: RunSettings, transfers: Transfers) -> "DeviceRows":
        """Copy everything to the device that does not lie there."""
        objective, n_rows = settings.objective, given.n_rows
        if given.margins is not None and objective.centers_labels:
            raise BackendError(f"objective {objective.name!r} takes margins within its labels.")
        bins = DeviceBins.on(given.bins, transfers)
        bins.check(settings.thresholds, transfers)
        per_output = (n_rows, objective.n_outputs)
        labels = _checked(given.labels, (n_rows,), "labels")
        weights, margins, start = (
            None if one is None else transfers.to_device(_checked(one, shape, name).T)
            for one, shape, name in (
                (given.weights, (n_rows,), "weights"),
                (given.margins, per_output, "margins"),
                (given.start, per_output, "start"),
            )
        )
        if start is None:
            start = torch.zeros(per_output[::-1], dtype=torch.float32, device=transfers.device)
        return cls(given, bins, transfers.to_device(labels), weights, margins, start)

    def seen_predictions(self, baseline: Baseline | None) -> torch.Tensor:
        """What the objective reads, float32, (n_rows, n_outputs): raw predictions, or sums."""
        if baseline is None:
            return self.predictions.t()
        margins = None if self.margins is None else self.margins.t()
        seen: torch.Tensor = add_baseline(baseline, self.predictions.t(), margins, TORCH)
        return seen

    def seen_output(self, baseline: Baseline | None, output: int) -> torch.Tensor:
        """The same of one output, float32, (n_rows,)."""
        sums = self.predictions[output]
        if baseline is None:
            return sums
        margins = None if self.margins is None else self.margins[output]
        parts = (baseline[0][output], baseline[1][output])
        seen: torch.Tensor = add_baseline(parts, sums, margins, TORCH)
        return seen


class TorchRun:
    """The buffers of one run.

    Attributes
    ----------
    rows : the data sets; the training rows first.
    baseline : float32, (n_outputs,) twice, the parts of the baseline; None where labels are
        centred.
    gradients : float32, (tree_outputs, n_rows). hessians : the same; None where all are 1.
    fixed_point : int32, (n_words, n_rows), in the order of the data: g0 h0 g1 h1 .., or g0 g1 ..
        where Hessians are constant.
    histograms : int64, (n_slots, 1 + n_words, total_bins): counts, then the words.
    row_order : int32, (n_rows,).
    softmax_terms : of the present predictions; None where they must be computed, or never are.
    losses : float32, (n_rows,), of the data set that was asked for last; None where not finite.
    extremes_at_hand : of the gradients; None before there are any.
    scales : int64, (tree_outputs, 2), on the host.
    raised_hessians : positive Hessians that rounded to 0 and were made 1, over all trees so far.
    """

    def __init__(
        self, datasets: list[RunRows], settings: RunSettings, transfers: Transfers
    ) -> None:
        if settings.constant_hessian and datasets[0].weights is not None:
            raise BackendError("weighted rows do not have a constant Hessian.")
        n_rows, outputs = datasets[0].n_rows, settings.tree_outputs
        if n_rows >= 2**31:
            raise BackendError(f"{n_rows} rows on one device; at most 2^31 - 1 fit its row order.")
        self.settings = settings
        self.rows = [DeviceRows.of(data, settings, transfers) for data in datasets]
        self.baseline = None
        if not settings.objective.centers_labels:
            high, low = baseline_parts(settings.baseline)
            self.baseline = (transfers.to_device(high), transfers.to_device(low))
        n_words = outputs if settings.constant_hessian else 2 * outputs
        device = transfers.device

        def empty(*shape: int, dtype: torch.dtype) -> torch.Tensor:
            return torch.empty(shape, dtype=dtype, device=device)

        self.gradients = empty(outputs, n_rows, dtype=torch.float32)
        self.hessians = None if settings.constant_hessian else torch.empty_like(self.gradients)
        self.fixed_point = empty(n_words, n_rows, dtype=torch.int32)
        total_bins = settings.thresholds.total_bins
        self.histograms = empty(settings.n_slots, 1 + n_words, total_bins, dtype=torch.int64)
        self.row_order = torch.arange(n_rows, dtype=torch.int32, device=device)
        self.softmax_terms: SoftmaxTerms | None = None
        self.losses: torch.Tensor | None = None
        self.extremes_at_hand: GradientExtremes | None = None
        self.scales: Int64Array = np.zeros((outputs, 2), np.int64)
        self.raised_hessians = 0

    def use_scales(self, scales: Int64Array) -> None:
        """Take the scales at which gradients are rounded, if there are some and these fit them."""
        if self.extremes_at_hand is None:
            raise StateError("there are no gradients to round; call compute_gradients first.")
        self.extremes_at_hand.check_scales(scales)
        self.scales = scales

    def shared_terms(self) -> SoftmaxTerms | None:
        """What the gradients of all outputs share, computed once per change of predictions."""
        objective = self.settings.objective
        if self.softmax_terms is None and objective.kind == ObjectiveKind.SOFTMAX:
            seen = self.rows[0].seen_predictions(self.baseline)
            self.softmax_terms = objective.shared_terms(seen, TORCH)
        return self.softmax_terms

    def n_bytes(self) -> int:
        """Bytes of all tensors of the run."""
        tensors: list[Any] = [*vars(self).values(), *(self.baseline or ())]
        for rows in self.rows:
            tensors += [getattr(rows, one.name) for one in fields(rows)] + [rows.bins.tensor]
        return sum(one.nbytes for one in tensors if isinstance(one, torch.Tensor))


def run_bytes(datasets: list[RunRows], settings: RunSettings) -> int:
    """About how many bytes a run's buffers will take on the device."""
    outputs = settings.tree_outputs
    words = outputs if settings.constant_hessian else 2 * outputs
    total = histograms_bytes(settings)
    total += datasets[0].n_rows * 4 * (2 * words + 1 + outputs)
    for data in datasets:
        per_output = 4 * settings.objective.n_outputs * (1 if data.margins is None else 2)
        per_row = 4 + per_output + (0 if data.weights is None else 4)
        total += bin_bytes(data) + data.n_rows * per_row
    return total


def histograms_bytes(settings: RunSettings) -> int:
    """Bytes of all histograms of a run, one tensor."""
    words = settings.tree_outputs if settings.constant_hessian else 2 * settings.tree_outputs
    return settings.n_slots * (1 + words) * settings.thresholds.total_bins * 8


def bin_bytes(data: RunRows) -> int:
    """Bytes of the padded bins of a data set, one tensor."""
    return data.n_rows * -(-data.bins.shape[1] // WORD_FEATURES) * WORD_FEATURES


def _checked(given: AnyArray, shape: tuple[int, ...], name: str) -> Float32Array:
    """The array; BackendError unless it has this shape."""
    if given.shape != shape:
        raise BackendError(f"{name} must have shape {shape}; found {given.shape}.")
    return given.astype(GRADIENT_DTYPE, copy=False)
