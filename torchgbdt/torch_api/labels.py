"""y as one numpy array: numbers as they came, or texts.

    tensor, array, list, Series, frame of one column --> bool, (u)int, float or text (numpy kind U)

Whether texts are allowed depends on the objective, and is for the core to judge.
"""

import contextlib
import reprlib
from typing import Any

import narwhals as nw
import numpy as np
import torch

from torchgbdt.core.arrays import MAX_EXACT_INTEGER, AnyArray
from torchgbdt.core.class_labels import MAX_LABEL_LENGTH
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.torch_api.columns import Column, check_no_nulls, columns_of, dtype_of
from torchgbdt.torch_api.tensors import (
    as_array,
    column_to_numpy,
    no_long_doubles,
    tensor_values,
    to_numpy,
)

_LABELS = (nw.String, nw.Categorical, nw.Enum, nw.Object)
_NULL_TYPES = ("NAType", "NaTType")  # of pandas, which is not imported here
_KINDS: dict[str, tuple[type, ...]] = {
    "bool": (bool, np.bool_),
    "int": (int, np.integer),
    "float": (float, np.floating),
    "str": (str,),
}
_ONE_KIND = "labels are all bools, all integers, all floats or all texts"


def read_labels(y: Any, name: str, copies: dict[str, str]) -> AnyArray:
    """Labels as a numpy array of numbers or of texts.

    Parameters
    ----------
    y : tensor, array, list, Series or frame of one column; what an index says is not looked at.
        IN, never written to.
    name : how messages call it.
    copies : argument name -> where a full copy of it was taken from. IN-OUT.

    Returns
    -------
    bool, (u)int8..64, float16..64 or text (kind U), with the axes that y had; missing floats are
    nan. Other labels may not be missing, not even in rows of weight 0.

    Raises
    ------
    InvalidDataError : other kinds of values or several of them, or a missing label that is no
        float. Length and finiteness are checked by the core.
    """
    if isinstance(y, torch.Tensor):
        return np.atleast_1d(tensor_values(y, name, copies))
    columns = columns_of(y, name)
    if columns is None:
        array = _of_objects(y) if isinstance(y, list | tuple) else as_array(y, name)
    elif len(columns) == 1:
        array = _column_labels(columns[0], name)
    else:
        raise InvalidDataError(
            f"{name} is a frame of {len(columns)} columns; one is expected. Select it."
        )
    return np.atleast_1d(_plain(array, name))


def _of_objects(y: Any) -> AnyArray:
    """A list as an array of its objects where numpy would make others of them.

    It makes texts of numbers among texts, and floats of integers beyond 64 bits or among floats:
    these are left to it where every integer has a float64 of its own.
    """
    objects = np.array(y, np.object_)
    values = objects.ravel().tolist()
    kinds = {_kind(kind) for kind in set(map(type, values))}
    if kinds == {"float"} or (
        kinds == {"int", "float"}
        and all(abs(v) <= MAX_EXACT_INTEGER for v in values if _kind(type(v)) == "int")
    ):
        return objects.astype(np.float64)
    return objects


def _column_labels(column: Column, name: str) -> AnyArray:
    """The labels of a column; texts and whatever a frame holds as objects come as objects."""
    if isinstance(dtype_of(column), np.dtype):  # of pandas
        return np.asarray(column.to_numpy())
    if not isinstance(column.dtype, _LABELS):
        return column_to_numpy(column, name)
    check_no_nulls(column, name)  # first: narwhals may take a null category for another one
    labels = np.empty(len(column), np.object_)  # an array of texts would lose trailing NULs
    labels[:] = column.to_list()
    return labels


def _plain(array: AnyArray, name: str) -> AnyArray:
    if array.dtype.kind == "S":
        raise InvalidDataError(
            f"{name} holds bytes; {_ONE_KIND}. Decode it, for example by numpy.char.decode."
        )
    if array.dtype.kind == "T":  # numpy's texts of variable width
        array = array.astype(np.object_)
    if array.dtype.kind == "O":
        array = _from_objects(array, name)
    return array if array.dtype.kind == "U" else no_long_doubles(to_numpy(array, name))


def _from_objects(array: AnyArray, name: str) -> AnyArray:
    """Python objects of one kind as an array of that kind."""
    values = array.ravel().tolist()
    row_of_kind: dict[str, int] = {}
    for row_type in dict.fromkeys(map(type, values)):
        kind = _kind(row_type)
        row_of_kind.setdefault(kind, next(i for i, v in enumerate(values) if type(v) is row_type))
    is_mixed = len(row_of_kind) > 1
    missing = [row for row, value in enumerate(values) if _is_missing(value, is_mixed)]
    if missing:
        raise InvalidDataError(
            f"{name} is missing in row {missing[0]}. Drop such rows, or impute them."
        )
    if is_mixed:
        (kind, row), (other, other_row) = list(row_of_kind.items())[:2]
        raise InvalidDataError(
            f"{name} holds values of type {kind} and of type {other}: {reprlib.repr(values[row])} "
            f"in row {row} and {reprlib.repr(values[other_row])} in row {other_row}; {_ONE_KIND}. "
            f"Convert it."
        )
    kind = next(iter(row_of_kind), "float")
    if kind not in _KINDS:
        advice = "Decode it" if kind == "bytes" else "Convert it"
        raise InvalidDataError(
            f"{name} holds values of type {kind}, such as {reprlib.repr(values[0])}; {_ONE_KIND}. "
            f"{advice}."
        )
    if kind == "str":
        return _texts(values, name).reshape(array.shape)
    return (_integers(values, name) if kind == "int" else np.array(values)).reshape(array.shape)


def _texts(values: list[str], name: str) -> AnyArray:
    if any(value.endswith("\0") for value in values):
        raise InvalidDataError(
            f"{name} has a text that ends in a NUL character, which numpy drops. Strip it."
        )
    longest = max(map(len, values))
    if longest > MAX_LABEL_LENGTH:  # numpy would give all of them its room
        raise InvalidDataError(
            f"{name} has a text of {longest} characters; class labels have at most "
            f"{MAX_LABEL_LENGTH}. Shorten them."
        )
    return np.array([str.__str__(value) for value in values])  # members of an enum by their value


def _integers(values: list[int], name: str) -> AnyArray:
    for dtype in (np.int64, np.uint64):  # numpy itself would make floats of some
        with contextlib.suppress(OverflowError):
            return np.array(values, dtype)
    raise InvalidDataError(f"{name} has integers beyond 64 bits. Convert it to texts.")


def _kind(kind: type) -> str:
    return next((name for name, types in _KINDS.items() if issubclass(kind, types)), kind.__name__)


def _is_missing(value: Any, is_mixed: bool) -> bool:
    """None, pandas.NA, NaT; nan among other values than floats."""
    if value is None or type(value).__name__ in _NULL_TYPES:
        return True
    return is_mixed and isinstance(value, float) and value != value
