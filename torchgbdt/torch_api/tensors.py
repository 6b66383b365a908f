"""Torch tensors, numpy arrays and columns of data frames as numpy arrays that the core reads.

Tensors on the host and numpy arrays are viewed in place; what lies on another device is copied to
the host once, and ``copies`` says so. Features have rules of their own: see ``features``. Labels
too: see ``labels``.
"""

import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from torchgbdt.core.arrays import AnyArray
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.torch_api.columns import (
    FLOATS,
    Column,
    check_no_nulls,
    check_numbers,
    columns_of,
    dtype_of,
)

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64)
_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
TENSOR_DTYPES = frozenset((*_FLOATS, *_INTEGERS, *_UNSIGNED, torch.bool))

HOST = "cpu"
"""The device whose memory numpy sees."""

_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)

_ALLOWED = "a dense torch tensor, numpy array or data frame of real numbers is expected"

_ADVICE_BY_KIND = {
    "O": "convert it to numbers first, for example with .astype('float64'), missing values as nan",
    "c": "pass real and imaginary parts as separate columns",
    "M": "convert it to numbers first, for example with .astype('datetime64[s]').astype('int64')",
    "m": "convert it to numbers first, for example with .astype('timedelta64[s]').astype('int64')",
    "V": "pass one plain array of numbers, for example by .astype('float32')",
}
_TEXT_ADVICE = "encode text as numbers first, for example as integer codes"


def read_vector(values: Any, name: str, copies: dict[str, str]) -> AnyArray:
    """Weights, margins or row numbers as a numpy array of real numbers; one number becomes (1,).

    Parameters
    ----------
    values : tensor, array, list, number, Series or frame; an index that a Series has is not looked
        at: its rows are taken in their order. IN, never written to.
    name, copies : as in ``read_features``.

    Returns
    -------
    (n_rows,), or (n_rows, n_columns) for a frame of several columns; missing floats are nan.

    Raises
    ------
    InvalidDataError : not a dense array of real numbers, or integers or bools with nulls. Length
        and range are checked by the core.
    """
    if isinstance(values, torch.Tensor):
        return np.atleast_1d(tensor_values(values, name, copies))
    columns = columns_of(values, name)
    if columns is None:
        array = to_numpy(values, name)
    else:
        arrays = [column_to_numpy(column, name) for column in columns]
        array = arrays[0] if len(arrays) == 1 else np.column_stack(arrays or [np.empty((0, 0))])
    return np.atleast_1d(no_long_doubles(array))


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


def tensor_values(tensor: torch.Tensor, name: str, copies: dict[str, str]) -> AnyArray:
    """The numbers of a tensor; bfloat16 is widened to float32, a negative view is negated."""
    array = tensor_to_numpy(tensor, name, copies)
    if tensor.is_neg():
        array = -array
    if tensor.dtype == torch.bfloat16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array


def device_of(values: Any) -> str:
    """The name of the device where values lie, with its index: the host for all but tensors."""
    if isinstance(values, torch.Tensor) and values.device.type != HOST:
        return str(values.device)
    return HOST


def resident_tensor(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """A plain tensor of numbers where it lies, for kernels of its own device.

    Raises
    ------
    InvalidDataError : as ``tensor_to_numpy``.
    """
    _check_plain(tensor, name)
    with _readable(name):
        tensor = tensor.detach().resolve_neg()
        _check_storage(tensor, name)
    return tensor


def tensor_to_numpy(tensor: torch.Tensor, name: str, copies: dict[str, str]) -> AnyArray:
    """A view of a tensor on the host, or a copy of one elsewhere.

    bfloat16 comes as uint16 bits, and a negative view without its minus sign.
    """
    _check_plain(tensor, name)
    with _readable(name):
        tensor = tensor.detach()
        if tensor.is_neg():
            tensor = torch._neg_view(tensor)  # toggles the bit
        if tensor.device.type != HOST:
            copies[name] = str(tensor.device)
            tensor = tensor.to(HOST)
        _check_storage(tensor, name)
        if tensor.dtype == torch.bfloat16:
            bits: AnyArray = tensor.view(torch.int16).numpy().view(np.uint16)
            return bits
        array: AnyArray = tensor.numpy()
    return array


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn torch's error for a tensor that holds no numbers of its own into ours."""
    try:
        yield
    except RuntimeError as error:  # tensors inside torch.func transforms, for example
        raise InvalidDataError(
            f"{name} is a tensor whose numbers cannot be read here ({error}); pass a plain tensor, "
            f"outside torch.func and torch.compile."
        ) from error


def _check_plain(tensor: torch.Tensor, name: str) -> None:
    """Raise InvalidDataError for a tensor that is not dense, not torch's own, or not of numbers."""
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


def to_numpy(values: Any, name: str) -> AnyArray:
    """A numpy array, list or number as a plain numpy array of real numbers, without a copy."""
    array = as_array(values, name)
    if array.dtype.kind not in "biuf":
        raise InvalidDataError(
            f"{name} has dtype {array.dtype}{_first_object(array)}; {_ALLOWED}. Please "
            f"{_ADVICE_BY_KIND.get(array.dtype.kind, _TEXT_ADVICE)}."
        )
    return array


def as_array(values: Any, name: str) -> AnyArray:
    """A numpy array, list or number as a plain numpy array of whatever it holds, without a copy."""
    array = values if isinstance(values, np.ndarray) else _make_array(values, name)
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidDataError(
            f"{name} is a masked array; {_ALLOWED}. Pass {name}.filled(numpy.nan), nan being what "
            f"is missing."
        )
    return np.asarray(array)


def column_to_numpy(column: Column, name: str) -> AnyArray:
    """A column of numbers in the dtype that it has; float nulls become nan, others are refused."""
    if isinstance(dtype_of(column), np.dtype):  # of pandas
        return to_numpy(column.to_numpy(), name)
    check_numbers(column, f"{name} is a column")
    if not isinstance(column.dtype, FLOATS):
        check_no_nulls(column, name)
    return column.to_numpy()


def no_long_doubles(array: AnyArray) -> AnyArray:
    """Targets and weights need no more than float64."""
    return array.astype(np.float64) if array.dtype.itemsize > 8 else array


def _make_array(values: Any, name: str) -> Any:
    if isinstance(values, list | tuple | int | float | np.generic) or hasattr(values, "__array__"):
        try:
            return np.asarray(values)
        except Exception as error:  # foreign __array__ methods may raise anything
            raise InvalidDataError(
                f"{name} is a {type(values).__name__} that numpy cannot turn into an array "
                f"({error}); {_ALLOWED}."
            ) from error
    if hasattr(values, "to_numpy"):
        advice = f"pass {name}.to_numpy(), with text columns encoded as numbers"
    elif hasattr(values, "tocsr") or hasattr(values, "todense"):
        advice = f"pass {name}.toarray()"
    elif isinstance(values, torch.utils.data.DataLoader | torch.utils.data.Dataset):
        advice = "pass its tensors, such as *dataset.tensors, or batches joined by torch.cat"
    elif isinstance(values, str):
        advice = "pass the values, not a name or a path"
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
