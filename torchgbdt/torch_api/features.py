"""X as the core reads it, in place: from tensors, arrays and data frames.

    tensor on the device of the run --------------------> the tensor  \
    torch tensor --detach, to the host, bits of bfloat16--> numpy view \
    numpy array, list of lists -------------------------> numpy view  > checks -> FeatureSource
    data frame -----------------------------------------> its columns /

Tensors, numpy arrays and columns of numbers enter without a copy where the run takes place. Kernels
read them in place, except for the few that they cannot read (see ``BlockwiseMatrix``,
``FrameMatrix``). What lies on another device is copied once, and ``copies`` says so.
"""

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import torch

from torchgbdt.backends.torch_matrix import TensorMatrix
from torchgbdt.backends.torch_operations import TORCH
from torchgbdt.backends.torch_transfers import to_device, to_host
from torchgbdt.core.array_ops import NUMPY, Array, ArrayOps
from torchgbdt.core.arrays import AnyArray, Float64Array
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.feature_source import FeatureSource, HostMatrix, check_exact_integers
from torchgbdt.core.row_values import check_margins, float32_margins
from torchgbdt.torch_api.columns import kind_of, recognize
from torchgbdt.torch_api.feature_names import check_same_columns, column_names
from torchgbdt.torch_api.frames import read_frame
from torchgbdt.torch_api.tensors import (
    HOST,
    device_of,
    read_vector,
    resident_tensor,
    tensor_to_numpy,
    to_numpy,
)

_WITHOUT_FLOAT64 = ("mps",)
"""Kinds of devices."""


@dataclass(frozen=True)
class BlockwiseMatrix:
    """A FeatureSource that kernels cannot read in place; a block at a time becomes float64.

    It holds arrays in foreign byte order, arrays that are not aligned in memory, and the negative
    views that torch makes of conjugated complex tensors: their minus sign is a bit that only torch
    sees.
    """

    host: HostMatrix
    is_negated: bool

    @property
    def n_rows(self) -> int:
        """Rows of X."""
        return self.host.n_rows

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self.host.n_features

    def column(self, feature: int, start: int, stop: int) -> Float64Array:
        """Rows start..stop of one feature as float64."""
        return self._signed(self.host.column(feature, start, stop))

    def sample(self, rows: AnyArray, features: slice) -> Float64Array:
        """Chosen rows of a few features as float64, (n_chosen, n_features)."""
        return self._signed(self.host.sample(rows, features))

    def _signed(self, block: Float64Array) -> Float64Array:
        return np.negative(block, out=block) if self.is_negated else block


@dataclass(frozen=True)
class Features:
    """X, and how results come to lie where it lives.

    Attributes
    ----------
    matrix : a TensorMatrix if X is read on a device; results are then computed there.
    device : of the user's tensor; None if X was a numpy array, a list or a data frame.
    is_float64 : results are float64: anything but a tensor of another dtype.
    names : of a frame's columns, where they are texts.
    """

    matrix: FeatureSource
    device: torch.device | None
    is_float64: bool
    names: tuple[str, ...] | None = None

    @property
    def resident(self) -> torch.Tensor | None:
        """X as it is read on a device, or None."""
        return self.matrix.tensor if isinstance(self.matrix, TensorMatrix) else None

    @property
    def ops(self) -> ArrayOps:
        """Operations of the arrays that results are computed in."""
        return NUMPY if self.resident is None else TORCH

    def place(self, array: AnyArray) -> Array:
        """An array as formulas take it: a copy on the device, or the array itself."""
        return array if self.resident is None else to_device(array, self.resident.device)

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> Array:
        """Zeros for a result, float32 or int32."""
        if self.resident is None:
            return np.zeros(shape, dtype)
        kind = torch.float32 if dtype == np.float32 else torch.int32
        return torch.zeros(shape, dtype=kind, device=self.resident.device)

    def read_margins(self, margins: Any, name: str, n_outputs: int) -> Array:
        """Margins for X's rows, checked, float32 (n_rows, n_outputs), where results are computed.

        Margins on the device of X stay there.
        """
        n_rows, resident = self.matrix.n_rows, self.resident
        device = None if resident is None else resident.device
        if isinstance(margins, torch.Tensor) and margins.device == device:
            tensor = resident_tensor(margins, name)
            tensor = tensor.reshape(1) if tensor.ndim == 0 else tensor
            return float32_margins(tensor, n_rows, name, n_outputs, ops=TORCH)
        checked = check_margins(read_vector(margins, name, {}), n_rows, name, None, n_outputs)
        return self.place(checked)

    def pick(self, labels: AnyArray, codes: Array) -> Any:
        """The labels of some codes, (n_rows,), as ``like_input`` gives them; texts on the host.

        Parameters
        ----------
        labels : (n_classes,); bool, (u)int64, float32, float64 or text. IN.
        codes : int64, (n_rows,), where results are computed. IN.
        """
        if self.resident is None:
            chosen = labels[codes]
            return chosen if labels.dtype.kind == "U" else self.like_input(chosen)
        if labels.dtype.kind == "U":
            return labels[to_host(codes)]
        device = self.resident.device
        if labels.dtype == np.float64 and device.type in _WITHOUT_FLOAT64:
            raise InvalidDataError(
                f"X lies on device {str(device)!r}, which has no float64, and the class labels "
                f"{labels[:3].tolist()} are no float32 numbers; predict from X.cpu()."
            )
        if labels.dtype != np.uint64:
            return self.place(labels).index_select(0, codes)
        bits = self.place(labels.view(np.int64)).index_select(0, codes)
        return bits.view(torch.uint64)

    def like_input(self, result: Array) -> Any:
        """A result as a tensor on X's device, or as it is for any other input."""
        if isinstance(result, torch.Tensor) or self.device is None:
            return result
        return torch.from_numpy(result).to(self.device)


def read_features(
    X: Any,
    name: str,
    copies: dict[str, str],
    *,
    may_be_empty: bool,
    trained_on: tuple[str, ...] | None = None,
    device: str = HOST,
) -> Features:
    """X as a matrix that the core can read.

    Parameters
    ----------
    X : what the user passed. IN, never written to.
    name : how messages call it.
    copies : argument name -> where a full copy of it was taken from. IN-OUT.
    may_be_empty : whether X may have no rows.
    trained_on : names that a frame must have, in that order; None where any will do.
    device : where X will be read.

    Raises
    ------
    InvalidDataError : not a dense 2-D matrix of real numbers, no rows or columns, integers that
        have no float64 of their own, or a frame with other columns than ``trained_on``.
    """
    if isinstance(X, torch.Tensor) and device != HOST and device == device_of(X):
        resident = TensorMatrix(resident_tensor(X, name))
        _check_shape(X.shape, name, may_be_empty)
        resident.check_exact_integers(name)
        return Features(resident, X.device, X.dtype == torch.float64)
    if device != HOST:
        copies[name] = HOST  # unless it comes from elsewhere, which is noted below
    if isinstance(X, torch.Tensor):
        values = tensor_to_numpy(X, name, copies)
        host = HostMatrix(values, is_bfloat16=X.dtype == torch.bfloat16)
        is_float64 = X.dtype == torch.float64
        return Features(_checked(host, name, may_be_empty, X.is_neg()), X.device, is_float64)
    frame = recognize(X, name)
    if frame is None:
        _refuse_arrow_stream(X, name)
        host = HostMatrix(to_numpy(X, name))
        return Features(_checked(host, name, may_be_empty, False), None, True)
    if isinstance(frame, nw.Series):
        raise InvalidDataError(
            f"{name} is a {kind_of(X)}, one column of {len(frame)} rows; (n_rows, n_features) is "
            f"expected. Pass a frame, for example {name}.to_frame()."
        )
    _check_shape(frame.shape, name, may_be_empty)
    names = column_names(frame.columns, name)
    check_same_columns(names, trained_on, name)
    return Features(read_frame(frame, name), None, True, names)


def _checked(
    matrix: HostMatrix, name: str, may_be_empty: bool, is_negated: bool
) -> HostMatrix | BlockwiseMatrix:
    """The matrix, in the form in which kernels can read it."""
    values = matrix.values
    _check_shape(values.shape, name, may_be_empty)
    if values.dtype.itemsize > 8:
        raise InvalidDataError(
            f"{name} has dtype {values.dtype}, wider than float64; pass {name}.astype('float64')."
        )
    check_exact_integers(matrix, name)
    in_place = values.dtype.isnative and values.flags.aligned and not is_negated
    return matrix if in_place else BlockwiseMatrix(matrix, is_negated)


def _check_shape(shape: tuple[int, ...], name: str, may_be_empty: bool) -> None:
    if len(shape) != 2:
        advice = (
            f"Use {name}[:, None] for one feature, {name}[None] for one row."
            if len(shape) == 1
            else f"Reshape {name} to two axes."
        )
        raise InvalidDataError(
            f"{name} has shape {tuple(shape)}; (n_rows, n_features) is expected. {advice}"
        )
    n_rows, n_features = shape
    if n_features == 0 or (n_rows == 0 and not may_be_empty):
        what = "columns" if n_features == 0 else "rows"
        raise InvalidDataError(
            f"{name} has shape {tuple(shape)}, so no {what}; at least one is expected."
        )


def _refuse_arrow_stream(X: Any, name: str) -> None:
    """Record batches, for example: as arrays they would lose names and be copied."""
    if hasattr(X, "__arrow_c_stream__"):
        raise InvalidDataError(
            f"{name} is a {kind_of(X)}, which is no data frame that can be read here; pass "
            f"pyarrow.table({name})."
        )
