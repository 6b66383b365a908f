"""What array libraries do each in its own way, so that a formula is written once for all of them.

Formulas use operators, comparisons and indexing, which are the same everywhere, and ``ops`` for the
rest. The numpy instance is here; that of torch is in torchgbdt/backends/torch_operations.py. Some
devices have float32 and integers only, and numbers below 2^-126 may count as 0 there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""An array of whichever library ``ops`` belongs to; docstrings say dtype and shape."""


@dataclass(frozen=True)
class ArrayOps:
    """The operations of one array library.

    Attributes
    ----------
    where : (condition, a, b) -> a where the condition holds, else b. One of the two may be a
        number, which takes the dtype of the other; shapes broadcast.
    bits : float32 -> the same bits as int32.
    from_bits : int32 -> the same bits as float32.
    to_float32 : any numbers -> the nearest float32, infinite beyond it.
    to_float64 : any numbers -> the same as float64; for devices that have it.
    to_int32, to_int64 : whole float32 numbers, or integers -> the same as integers.
    round_half_even : float32 -> the nearest whole float32, of two the even one.
    zeros_like : as many zeros, of the same dtype.
    empty : (shape, array) -> an array of this shape that is still to be written, of the dtype of
        the given one, and where that lies.
    first_largest : (n_rows, n_columns) -> int64, (n_rows,), the first column with the largest
        number, or the first NaN.
    """

    where: Callable[[Array, Array, Array], Array]
    bits: Callable[[Array], Array]
    from_bits: Callable[[Array], Array]
    to_float32: Callable[[Array], Array]
    to_float64: Callable[[Array], Array]
    to_int32: Callable[[Array], Array]
    to_int64: Callable[[Array], Array]
    round_half_even: Callable[[Array], Array]
    zeros_like: Callable[[Array], Array]
    empty: Callable[[tuple[int, ...], Array], Array]
    first_largest: Callable[[Array], Array]


def _where(condition: Array, a: Array, b: Array) -> Array:
    if isinstance(a, int | float):
        a = b.dtype.type(a)
    elif isinstance(b, int | float):
        b = a.dtype.type(b)
    return np.where(condition, a, b)


def _to_float32(values: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return np.asarray(values).astype(np.float32, copy=False)


NUMPY = ArrayOps(
    where=_where,
    bits=lambda array: array.view(np.int32),
    from_bits=lambda array: array.view(np.float32),
    to_float32=_to_float32,
    to_float64=lambda array: array.astype(np.float64),
    to_int32=lambda array: array.astype(np.int32),
    to_int64=lambda array: array.astype(np.int64),
    round_half_even=np.rint,
    zeros_like=np.zeros_like,
    empty=lambda shape, array: np.empty(shape, array.dtype),
    first_largest=lambda array: np.argmax(array, axis=1),
)
