"""The Metal kernels that go over all rows: gradients, rounding, updates and losses.

Each function is the method of the backend of its name. What comes back is a few words, and sums of
at most ``MAX_GROUPS`` threadgroups, which the host adds up.
"""

import numpy as np
import torch

from torchgbdt.backends.metal_library import MAX_WORDS, Kernel
from torchgbdt.backends.metal_run import MAX_GROUPS, MetalRun, n_sums
from torchgbdt.backends.row_chunks import GROUP_THREADS
from torchgbdt.backends.torch_operations import INFINITY_BITS
from torchgbdt.core.arrays import Int64Array
from torchgbdt.core.errors import BackendError
from torchgbdt.core.extremes import GradientExtremes
from torchgbdt.core.metrics import MeanLoss
from torchgbdt.core.objectives import ObjectiveKind
from torchgbdt.core.tree import Tree

_MAX_GRADIENT_GROUPS = 4_096


def _kernel(run: MetalRun, file: str, **constants: int) -> Kernel:
    return run.library.kernel(file, constants=constants)


def _whole_groups(n_rows: int, at_most: int) -> dict[str, int]:
    """A grid of whole threadgroups that share out the rows."""
    n_groups = min(-(-n_rows // GROUP_THREADS), at_most)
    return {"threads": n_groups * GROUP_THREADS, "group_size": GROUP_THREADS}


def compute_gradients(run: MetalRun, output: int) -> GradientExtremes:
    """See ``ComputeBackend.compute_gradients``."""
    train, objective = run.rows[0], run.settings.objective
    n_rows = train.given.n_rows
    if n_rows == 0:
        return GradientExtremes(np.zeros((1, 2)), 0.0, True)
    _update_softmax_terms(run)
    _kernel(
        run,
        "compute_gradients",
        OBJECTIVE=int(objective.kind),
        HAS_WEIGHTS=int(train.weights is not None),
        HAS_MARGINS=int(train.margins is not None),
        CONSTANT_HESSIAN=int(run.hessians is None),
    )(
        train.predictions,
        train.labels,
        train.labels if train.weights is None else train.weights,
        train.labels if train.margins is None else train.margins,
        run.baseline_parts,
        run.terms,
        run.gradients,
        run.gradients if run.hessians is None else run.hessians,
        run.cleared_results(3),
        n_rows,
        output,
        **_whole_groups(n_rows, _MAX_GRADIENT_GROUPS),
    )
    largest_g, largest_h, smallness = run.read_results(3)
    finite = bool(max(largest_g, largest_h) < INFINITY_BITS)
    largest = np.array([[largest_g, largest_h]], np.int32).view(np.float32)
    return GradientExtremes(largest.astype(np.float64), _smallest(int(smallness)), finite)


def _smallest(smallness: int) -> float:
    """The number of a smallness_word, see csrc/metal/extremes.h."""
    ordered = ~smallness & 0xFFFFFFFF
    bits = ordered ^ 0x80000000 if ordered & 0x80000000 else ~ordered & 0xFFFFFFFF
    return float(np.array([bits], np.uint32).view(np.float32)[0])


def _update_softmax_terms(run: MetalRun) -> None:
    """Compute what the gradients of all outputs share, once per change of predictions."""
    train, objective = run.rows[0], run.settings.objective
    if objective.kind != ObjectiveKind.SOFTMAX or run.softmax_terms is not None:
        return
    n_rows, has_margins = train.given.n_rows, train.margins is not None
    _kernel(run, "compute_softmax_terms", HAS_MARGINS=int(has_margins))(
        train.predictions,
        train.margins if has_margins else train.labels,
        run.baseline_parts,
        run.terms,
        n_rows,
        objective.n_outputs,
        threads=n_rows,
        group_size=GROUP_THREADS,
    )
    run.use_terms()


def round_gradients(run: MetalRun, scales: Int64Array) -> Int64Array:
    """See ``ComputeBackend.round_gradients``; row order becomes that of the data."""
    outputs, n_rows = run.settings.tree_outputs, run.row_order.shape[0]
    run.use_scales(scales)
    if n_rows == 0:
        return np.zeros((outputs, 2), np.int64)
    grid = _whole_groups(n_rows, MAX_GROUPS)
    _kernel(run, "round_gradients", CONSTANT_HESSIAN=int(run.hessians is None))(
        run.gradients,
        run.gradients if run.hessians is None else run.hessians,
        run.row_order,
        run.fixed_point,
        run.sums,
        n_rows,
        outputs,
        scales.ravel().tolist(),
        **grid,
    )
    n_groups, n_totals = grid["threads"] // GROUP_THREADS, n_sums(run.settings)
    sums = run.read_sums(n_groups * n_totals)
    totals: Int64Array = sums.reshape(n_groups, n_totals).sum(axis=0)
    run.raised_hessians += int(totals[-1])
    return totals[:-1].reshape(outputs, 2)


def update_predictions(run: MetalRun, tree: Tree, output: int) -> None:
    """See ``ComputeBackend.update_predictions``."""
    run.softmax_terms = None
    nodes, codes, values = _tree_on_device(run, tree)
    for data, columns in zip(run.rows, run.columns, strict=True):
        n_rows = data.given.n_rows
        if n_rows:
            _kernel(run, "update_predictions")(
                columns,
                nodes,
                codes,
                values,
                data.predictions,
                n_rows,
                output,
                tree.value.shape[1],
                threads=n_rows,
                group_size=GROUP_THREADS,
            )


def _tree_on_device(run: MetalRun, tree: Tree) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What update_predictions reads of a tree: nodes, codes and values, in one piece."""
    feature = np.where(tree.is_leaf, -1, tree.feature)
    missing_codes = run.settings.thresholds.n_value_bins[tree.feature]
    parts = (
        np.stack((feature, tree.left, tree.missing_left), axis=1),
        np.stack((tree.split_bin, missing_codes), axis=1),
        np.ascontiguousarray(tree.value).view(np.int32),
    )
    words = np.concatenate([part.astype(np.int32).ravel() for part in parts])
    if words.size <= MAX_WORDS:  # by value; a larger tree is uploaded, between levels
        moved = run.room("tree", MAX_WORDS)[: words.size]
        grid = {"threads": words.size, "group_size": GROUP_THREADS}
        _kernel(run, "write_words")(moved, words.tolist(), 0, **grid)
    else:
        moved = run.transfers.to_device(words)
    n_nodes, n_codes = parts[0].size, parts[1].size
    values = moved[n_nodes + n_codes :].view(torch.float32)
    return moved[:n_nodes], moved[n_nodes : n_nodes + n_codes], values


def compute_losses(run: MetalRun, metric: MeanLoss, dataset: int) -> tuple[float, bool]:
    """See ``ComputeBackend.compute_losses``."""
    data, objective = run.rows[dataset], run.settings.objective
    if not isinstance(objective, metric.objective):
        raise BackendError(
            f"metric {metric.name!r} does not read the predictions of objective {objective.name!r}."
        )
    n_rows = data.given.n_rows
    losses = run.loss_buffer[:n_rows]
    run.losses = losses
    if n_rows == 0:
        return 0.0, True
    _kernel(
        run,
        "compute_losses",
        METRIC=int(metric.kind),
        HAS_WEIGHTS=int(data.weights is not None),
        HAS_MARGINS=int(data.margins is not None),
    )(
        data.predictions,
        data.labels,
        data.labels if data.weights is None else data.weights,
        data.labels if data.margins is None else data.margins,
        run.baseline_parts,
        losses,
        run.cleared_results(1),
        n_rows,
        objective.n_outputs,
        **_whole_groups(n_rows, _MAX_GRADIENT_GROUPS),
    )
    (largest,) = run.read_results(1)
    if largest >= INFINITY_BITS:
        run.losses = None
        return 0.0, False
    return float(largest.view(np.float32)), True


def sum_losses(run: MetalRun, losses: torch.Tensor, scale: int) -> int:
    """See ``ComputeBackend.sum_losses``; losses : float32, (n_rows,), finite. IN."""
    n_rows = losses.shape[0]
    if n_rows == 0:
        return 0
    grid = _whole_groups(n_rows, MAX_GROUPS)
    _kernel(run, "sum_losses")(losses, run.sums, n_rows, scale, **grid)
    return int(run.read_sums(grid["threads"] // GROUP_THREADS).sum())
