"""Equality without mercy: dtype, shape and every bit; -0 is not +0, and NaN equals only itself."""

import struct
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def assert_identical(found: Any, expected: Any, where: str = "result") -> None:
    """Fail, naming the first place that differs, unless both are the same, bit for bit.

    Takes arrays (structured ones field by field), numbers, text, dicts, sequences and dataclasses
    of these.
    """
    assert type(found) is type(expected), f"{where}: {type(found)} is not {type(expected)}"
    if isinstance(expected, np.ndarray):
        _assert_same_array(found, expected, where)
    elif isinstance(expected, Mapping):
        assert list(found) == list(expected), where
        for key in expected:
            assert_identical(found[key], expected[key], f"{where}[{key!r}]")
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), f"{where}: {len(found)} entries, not {len(expected)}"
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_identical(one, other, f"{where}[{index}]")
    elif is_dataclass(expected):
        for field in fields(expected):
            name = field.name
            assert_identical(getattr(found, name), getattr(expected, name), f"{where}.{name}")
    elif isinstance(expected, float):
        assert struct.pack("d", found) == struct.pack("d", expected), (
            f"{where}: {found!r} is not {expected!r}"
        )
    else:
        assert found == expected, f"{where}: {found!r} is not {expected!r}"


def bits(array: np.ndarray) -> np.ndarray:
    """The array as unsigned integers of the same width."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def _assert_same_array(found: np.ndarray, expected: np.ndarray, where: str) -> None:
    assert found.dtype == expected.dtype, f"{where}: {found.dtype} is not {expected.dtype}"
    assert found.shape == expected.shape, f"{where}: {found.shape} is not {expected.shape}"
    if expected.dtype.names is not None:
        for name in expected.dtype.names:
            _assert_same_array(found[name], expected[name], f"{where}.{name}")
        return
    is_text = expected.dtype.kind == "U"
    differs = found != expected if is_text else bits(found) != bits(expected)
    if differs.any():
        at = tuple(int(i) for i in np.argwhere(differs)[0])
        raise AssertionError(
            f"{where}: {np.count_nonzero(differs)} of {differs.size} entries differ; the first is "
            f"{list(at)}: {found[at]!r} is not {expected[at]!r}"
        )
