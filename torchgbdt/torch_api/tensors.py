"""From what users pass to what the core reads: X in place, everything else as numpy vectors.

    torch tensor --detach, to the host, bits of bfloat16--> numpy view \
    numpy array, list of lists -------------------------> numpy view  > checks -> FeatureSource

Tensors on the host and numpy arrays enter without a copy. Kernels read them in place, except for
the few that they cannot read (see ``BlockwiseMatrix``). What lies on another device is copied to
the host once, and ``copies`` says so.
"""

import reprlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchgbdt.core.arrays import AnyArray, Float64Array
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.feature_source import FeatureSource, HostMatrix, check_exact_integers

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64)
_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
TENSOR_DTYPES = frozenset((*_FLOATS, *_INTEGERS, *_UNSIGNED, torch.bool))

_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)

_ALLOWED = "a dense torch tensor or numpy array of real numbers is expected"

_ADVICE_BY_KIND = {
    "O": "convert it to numbers first, for example with .astype('float64'), missing values as nan",
    "c": "pass real and imaginary parts as separate columns",
    "M": "convert it to numbers first, for example with .astype('datetime64[s]').astype('int64')",
    "m": "convert it to numbers first, for example with .astype('timedelta64[s]').astype('int64')",
    "V": "pass one plain array of numbers, for example by .astype('float32')",
}
_TEXT_ADVICE = "encode text as numbers first, for example as integer codes"


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
    """X, and how results go back to where it lives.

    Attributes
    ----------
    device : of the user's tensor; None if X was a numpy array or a list.
    is_float64 : results are float64: numpy input of any dtype, or a float64 tensor.
    """

    matrix: FeatureSource
    device: torch.device | None
    is_float64: bool

    def like_input(self, result: AnyArray) -> Any:
        """A result as a tensor on X's device, or as it is for numpy input."""
        return result if self.device is None else torch.from_numpy(result).to(self.device)


def read_features(X: Any, name: str, copies: dict[str, str], *, may_be_empty: bool) -> Features:
    """X as a matrix that the core can read.

    Parameters
    ----------
    X : what the user passed. IN, never written to.
    name : how messages call it.
    copies : argument name -> where a full copy of it was taken from. IN-OUT.
    may_be_empty : whether X may have no rows.

    Raises
    ------
    InvalidDataError : not a dense 2-D matrix of real numbers, no rows or columns, or integers that
        have no float64 of their own.
    """
    if isinstance(X, torch.Tensor):
        values = _tensor_to_numpy(X, name, copies)
        host = HostMatrix(values, is_bfloat16=X.dtype == torch.bfloat16)
        device, is_float64, is_negated = X.device, X.dtype == torch.float64, X.is_neg()
    else:
        host, device, is_float64, is_negated = HostMatrix(_to_numpy(X, name)), None, True, False
    _check_matrix(host, name, may_be_empty)
    in_place = host.values.dtype.isnative and host.values.flags.aligned and not is_negated
    matrix = host if in_place else BlockwiseMatrix(host, is_negated)
    return Features(matrix, device, is_float64)


def read_vector(values: Any, name: str, copies: dict[str, str]) -> AnyArray:
    """Labels, weights or margins as a numpy array of real numbers; one number becomes (1,).

    Parameters
    ----------
    values, name, copies : as in ``read_features``.

    Raises
    ------
    InvalidDataError : not a dense array of real numbers. Length and range are checked by the core.
    """
    if isinstance(values, torch.Tensor):
        array = _tensor_to_numpy(values, name, copies)
        if values.is_neg():
            array = -array
        if values.dtype == torch.bfloat16:
            array = (array.astype(np.uint32) << 16).view(np.float32)
    else:
        array = _to_numpy(values, name)
        if array.dtype.itemsize > 8:  # a long double: targets need no more than float64
            array = array.astype(np.float64)
    return np.atleast_1d(array)


def read_rows(rows: Any, name: str, n_rows: int) -> AnyArray:
    """Row numbers, or a mask of rows, as a numpy array; an empty list is no rows.

    A range that leaves 0..n_rows - 1 comes as its two ends: enough for the core to refuse it, and
    no memory is spent on the rest.
    """
    if isinstance(rows, range):
        ends = [rows[0], rows[-1]] if rows else []
        if all(0 <= end < n_rows for end in ends):
            return np.arange(rows.start, rows.stop, rows.step, dtype=np.int64)
        limits = np.iinfo(np.int64)
        return np.clip(np.array(ends, np.object_), limits.min, limits.max).astype(np.int64)
    array = read_vector(rows, name, {})
    return array if array.size else array.astype(np.int64)


def _tensor_to_numpy(tensor: torch.Tensor, name: str, copies: dict[str, str]) -> AnyArray:
    """A view of a tensor on the host, or a copy of one elsewhere.

    bfloat16 comes as uint16 bits, and a negative view without its minus sign.
    """
    _check_dense(tensor, name)
    if type(tensor) not in _PLAIN_TENSORS:
        raise InvalidDataError(
            f"{name} is a {type(tensor).__name__}, a subclass of torch.Tensor that may hold its "
            f"numbers elsewhere; {_ALLOWED}. Convert {name} to a plain torch.Tensor first."
        )
    if tensor.dtype not in TENSOR_DTYPES:
        advice = _ADVICE_BY_KIND["c"] if tensor.is_complex() else "convert it with .to()"
        raise InvalidDataError(
            f"{name} has dtype {tensor.dtype}; {_ALLOWED}, of dtype float16, bfloat16, float32, "
            f"float64, (u)int8..64 or bool. Please {advice}."
        )
    try:
        tensor = tensor.detach()
        if tensor.is_neg():
            tensor = torch._neg_view(tensor)  # toggles the bit
        if tensor.device.type != "cpu":
            copies[name] = str(tensor.device)
            tensor = tensor.to("cpu")
        _check_storage(tensor, name)
        if tensor.dtype == torch.bfloat16:
            bits: AnyArray = tensor.view(torch.int16).numpy().view(np.uint16)
            return bits
        array: AnyArray = tensor.numpy()
    except RuntimeError as error:  # tensors inside torch.func transforms, for example
        raise InvalidDataError(
            f"{name} is a tensor whose numbers cannot be read here ({error}); pass a plain tensor, "
            f"outside torch.func and torch.compile."
        ) from error
    return array


def _check_dense(tensor: torch.Tensor, name: str) -> None:
    found, advice = "", ""
    if tensor.is_nested:
        found, advice = "nested", "pad it with nan, for example by torch.nested.to_padded_tensor"
    elif tensor.layout != torch.strided:
        found, advice = f"of layout {tensor.layout}", f"pass {name}.to_dense()"
    elif tensor.is_quantized:
        found, advice = "quantized", f"pass {name}.dequantize()"
    elif tensor.device.type == "meta":
        found, advice = "on the meta device and holds no numbers", "pass one with data"
    if found:
        raise InvalidDataError(f"{name} is a tensor {found}; {_ALLOWED}. Please {advice}.")


def _check_storage(tensor: torch.Tensor, name: str) -> None:
    """Refuse a tensor whose memory was freed or shrunk under it: reading it would crash."""
    if tensor.numel() == 0:
        return
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in steps)
    needed, held = (last + 1) * tensor.element_size(), tensor.untyped_storage().nbytes()
    if held < needed:
        raise InvalidDataError(
            f"{name} needs {needed} bytes of memory, but its storage was resized to {held}; pass a "
            f"tensor that holds its data."
        )


def _to_numpy(values: Any, name: str) -> AnyArray:
    """A numpy array, list or number as a plain numpy array of real numbers, without a copy."""
    array = values if isinstance(values, np.ndarray) else _as_array(values, name)
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidDataError(
            f"{name} is a masked array; {_ALLOWED}. Pass {name}.filled(numpy.nan), nan being what "
            f"is missing."
        )
    array = np.asarray(array)
    kind = array.dtype.kind
    if kind not in "biuf":
        raise InvalidDataError(
            f"{name} has dtype {array.dtype}{_first_object(array)}; {_ALLOWED}. Please "
            f"{_ADVICE_BY_KIND.get(kind, _TEXT_ADVICE)}."
        )
    return array


def _as_array(values: Any, name: str) -> Any:
    if hasattr(values, "to_numpy"):
        advice = f"pass {name}.to_numpy(), with text columns encoded as numbers"
    elif hasattr(values, "tocsr") or hasattr(values, "todense"):
        advice = f"it is sparse; pass {name}.toarray()"
    elif isinstance(values, list | tuple | int | float | np.generic) or hasattr(
        values, "__array__"
    ):
        try:
            return np.asarray(values)
        except Exception as error:  # foreign __array__ methods may raise anything
            raise InvalidDataError(
                f"{name} is a {type(values).__name__} that numpy cannot turn into an array "
                f"({error}); {_ALLOWED}."
            ) from error
    else:
        advice = "convert it first"
    raise InvalidDataError(
        f"{name} is a {type(values).__module__}.{type(values).__qualname__}; {_ALLOWED}. "
        f"Please {advice}."
    )


def _first_object(array: AnyArray) -> str:
    if array.dtype.kind != "O" or array.size == 0:
        return ""
    return f" (first value: {reprlib.repr(array.flat[0])})"


def _check_matrix(matrix: HostMatrix, name: str, may_be_empty: bool) -> None:
    values = matrix.values
    if values.ndim != 2:
        advice = (
            f"Use {name}[:, None] for one feature, {name}[None] for one row."
            if values.ndim == 1
            else f"Reshape {name} to two axes."
        )
        raise InvalidDataError(
            f"{name} has shape {tuple(values.shape)}; (n_rows, n_features) is expected. {advice}"
        )
    if matrix.n_features == 0 or (matrix.n_rows == 0 and not may_be_empty):
        what = "columns" if matrix.n_features == 0 else "rows"
        raise InvalidDataError(
            f"{name} has shape {tuple(values.shape)}, so no {what}; at least one is expected."
        )
    if values.dtype.itemsize > 8:
        raise InvalidDataError(
            f"{name} has dtype {values.dtype}, wider than float64; pass {name}.astype('float64')."
        )
    check_exact_integers(matrix, name)
