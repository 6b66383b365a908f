"""The buffers of one run with Metal kernels: those of the torch backend, and what kernels add.

Rounded gradients move with the rows: ``fixed_point[w][p]`` belongs to row ``row_order[p]``. Both
exist twice, since routing reads one and writes the other.
"""

from dataclasses import dataclass

import numpy as np
import torch

from torchgbdt.backends.metal_checks import check_buffers
from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.backends.metal_turns import Turns
from torchgbdt.backends.row_chunks import MAX_SLAB_NODES, HistogramVariant
from torchgbdt.backends.split_candidates import (
    CANDIDATE_WORDS,
    MAX_CANDIDATES,
    RESULT_WORDS,
    SUMMARY_WORDS,
)
from torchgbdt.backends.torch_run import TorchRun, run_bytes
from torchgbdt.backends.torch_transfers import Transfers
from torchgbdt.core.arrays import Int32Array, Int64Array
from torchgbdt.core.backend import RunRows, RunSettings
from torchgbdt.core.errors import BackendError
from torchgbdt.core.probabilities import SoftmaxTerms

MAX_GROUPS = 256
"""Threadgroups of kernels that leave a sum per group."""

_FAULTS, _LAST_TURN = 0, 1
_HEADER_WORDS = 4
"""Of what comes to the host: fault bits, and the word of ``metal_turns``; a multiple of 8 bytes."""

_WORD = np.dtype(np.int32).itemsize


@dataclass(frozen=True)
class MetalTuning:
    """What is chosen for speed alone: every choice gives the same model.

    Attributes
    ----------
    slab_nodes : nodes of a level that are searched at once, 2..MAX_SLAB_NODES.
    partial_bytes : of the partial histograms of a slab; a slab of 2 nodes may need more.
    wanted_groups : threadgroups that keep a device busy.
    histogram_rows, routing_rows : rows that are worth a threadgroup.
    returning_atomics : which of two histogram kernels sums rows with a constant Hessian.
    """

    slab_nodes: int = MAX_SLAB_NODES
    partial_bytes: int = 128 << 20
    wanted_groups: int = 1_024
    histogram_rows: int = 16_384
    routing_rows: int = 4_096
    returning_atomics: bool = True


class MetalRun(TorchRun):
    """The buffers of one run.

    Attributes
    ----------
    library : the kernels, with the turns of this run.
    columns : uint8, (n_features, n_rows), of each data set: its bins again.
    features : int32, (n_features, 2); first cell and number of value bins.
    fixed_point : int32, (n_words, n_rows), in row order. row_order : int32, (n_rows,).
    sides : uint8, (n_rows,); which way each place of row order goes.
    overflowed_nodes : nodes whose splits were found on the host, over all trees so far.
    """

    def __init__(
        self,
        datasets: list[RunRows],
        settings: RunSettings,
        transfers: Transfers,
        library: MetalLibrary,
        tuning: MetalTuning,
    ) -> None:
        super().__init__(datasets, settings, transfers)
        self._mailbox = torch.zeros(
            _mailbox_words(settings, tuning), dtype=torch.int32, device=transfers.device
        )
        turns = Turns(self._mailbox[_LAST_TURN : _LAST_TURN + 1])
        self.library = library.with_turns(turns)
        self.tuning = tuning
        self.transfers = transfers
        self.variant = HistogramVariant(
            settings.constant_hessian, tuning.returning_atomics or not settings.constant_hessian
        )
        self.n_features = settings.thresholds.n_features
        n_rows, device = datasets[0].n_rows, transfers.device
        self.columns = [
            rows.bins.tensor[:, : self.n_features].t().contiguous() for rows in self.rows
        ]
        for rows, columns in zip(self.rows, self.columns, strict=True):
            check_buffers(rows, columns, transfers)
        thresholds = settings.thresholds
        features = (thresholds.bin_offsets[:-1], thresholds.n_value_bins)
        self.features = transfers.to_device(np.stack(features, axis=1).astype(np.int32))
        self.baseline_parts = self.features  # of any dtype where no kernel reads it
        if self.baseline is not None:
            self.baseline_parts = torch.stack(self.baseline, dim=1)

        def empty(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
            return torch.empty(shape, dtype=dtype, device=device)

        self.routed_order = self.row_order.clone()  # rows at all times, even if a kernel is lost
        self.routed_fixed_point = torch.empty_like(self.fixed_point)
        self.sides = empty(n_rows, dtype=torch.uint8)
        self.terms = empty(2, n_rows, dtype=torch.float32)
        self.loss_buffer = empty(max(rows.given.n_rows for rows in self.rows), dtype=torch.float32)
        self._rooms: dict[str, torch.Tensor] = {}
        self._nonce = 0
        self.overflowed_nodes = 0

    # --- between kernels ---------------------------------------------------------------------

    def next_nonce(self) -> int:
        """A number that no other search of this run had."""
        self._nonce = self._nonce % (2**31 - 1) + 1
        return self._nonce

    def room(self, name: str, size: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        """Uninitialised memory of at least ``size`` numbers, kept for the next one who asks."""
        found = self._rooms.get(name)
        if found is None or found.shape[0] < size:
            self._rooms[name] = found = torch.empty(size, dtype=dtype, device=self.features.device)
        return found

    def slab_nodes(self) -> int:
        """Nodes whose partial histograms fit into memory, and whose words into arguments."""
        chunk_bytes = _WORD * self.variant.chunk_words(self.n_features, self.settings.tree_outputs)
        affordable = self.tuning.partial_bytes // chunk_bytes
        return max(2, min(self.tuning.slab_nodes, affordable))

    def swap_rows(self) -> None:
        """What was routed becomes what is read."""
        self.row_order, self.routed_order = self.routed_order, self.row_order
        self.fixed_point, self.routed_fixed_point = self.routed_fixed_point, self.fixed_point

    def use_terms(self) -> None:
        """The softmax terms have been computed."""
        self.softmax_terms = SoftmaxTerms(self.terms[0], self.terms[1])

    # --- what comes to the host --------------------------------------------------------------

    @property
    def faults(self) -> torch.Tensor:
        """int32, (1,), see csrc/metal/faults.h."""
        return self._mailbox[_FAULTS : _FAULTS + 1]

    @property
    def results(self) -> torch.Tensor:
        """int32, where kernels leave what ``read_results`` is to return."""
        return self._mailbox[_HEADER_WORDS:]

    @property
    def sums(self) -> torch.Tensor:
        """int64, the same memory."""
        return self.results.view(torch.int64)

    def cleared_results(self, n_words: int) -> torch.Tensor:
        """``results`` that begin with zeros, which a kernel writes."""
        write = self.library.kernel("write_words")
        write(self.results, [0] * n_words, 0, threads=n_words, group_size=n_words)
        return self.results

    def read_results(self, n_words: int) -> Int32Array:
        """The first words of the results, in one copy, once all kernels so far have run.

        Raises
        ------
        BackendError : one of them found a contradiction, or did not run in its turn.
        """
        words: Int32Array = self.transfers.to_host(self._mailbox[: _HEADER_WORDS + n_words])
        self._check_header(words)
        return words[_HEADER_WORDS:]

    def read_sums(self, n_sums: int) -> Int64Array:
        """The first of ``sums``; as ``read_results``."""
        return self.read_results(2 * n_sums).view(np.int64)

    def check_kernels(self) -> None:
        """``read_results`` of nothing: for results that came to the host by another way."""
        self.read_results(0)

    def _check_header(self, words: Int32Array) -> None:
        self.library.turns.check(int(words[_LAST_TURN]))
        if words[_FAULTS] != 0:
            raise BackendError(
                "the device routed other numbers of rows than its histograms counted; its results "
                "cannot be trusted. Train again; if it happens again, use backend='torch' or "
                "'cpu', and please report it."
            )

    # --- memory ------------------------------------------------------------------------------

    def n_bytes(self) -> int:
        """Bytes of all tensors of the run."""
        more = [*self.columns, *self._rooms.values()]
        return super().n_bytes() + sum(one.nbytes for one in more)


def n_sums(settings: RunSettings) -> int:
    """int64 numbers of a threadgroup of round_gradients, the kernel that leaves most."""
    return 2 * settings.tree_outputs + 1


def _mailbox_words(settings: RunSettings, tuning: MetalTuning) -> int:
    """A header, and the largest results that any kernel leaves."""
    return _HEADER_WORDS + max(tuning.slab_nodes * RESULT_WORDS, 2 * MAX_GROUPS * n_sums(settings))


def metal_bytes(datasets: list[RunRows], settings: RunSettings, tuning: MetalTuning) -> int:
    """How many bytes a run's buffers will take on the device, or some more.

    What grows with the rows and columns is counted. What grows with the nodes of a level is counted
    for as many as there may be; trees that stay smaller need up to half of it less.
    """
    total = run_bytes(datasets, settings) + _WORD * _mailbox_words(settings, tuning)
    outputs, n_features = settings.tree_outputs, settings.thresholds.n_features
    n_words = outputs if settings.constant_hessian else 2 * outputs
    total += datasets[0].n_rows * (_WORD * (n_words + 4) + 1)
    total += sum(data.n_rows * n_features for data in datasets)
    per_feature = _WORD * (SUMMARY_WORDS + MAX_CANDIDATES * CANDIDATE_WORDS)
    slab = min(tuning.slab_nodes, settings.n_slots)
    variant = HistogramVariant(settings.constant_hessian)
    partials = _WORD * variant.chunk_words(n_features, outputs)
    chunks = slab + datasets[0].n_rows // tuning.histogram_rows
    return total + slab * n_features * per_feature + min(chunks * partials, tuning.partial_bytes)
