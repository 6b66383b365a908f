"""Numbers as ``torch.mps.compile_shader`` hands them to a kernel: packed bytes."""

import struct
from array import array
from typing import Any

MAX_BYTES = 4096
"""What Metal takes by value, per argument."""

# fp16 and bf16 are packed by hand; the others wrap as a C++ cast does.
_INTEGER_CASTS = {"int32": ("I", 32), "int16": ("H", 16), "int8": ("B", 8), "uint8": ("B", 8)}
_CASTS = {*_INTEGER_CASTS, "fp16", "bf16"}


def cast_of(arg_casts: str | dict[int, str] | None, index: int) -> str | None:
    """What ``arg_casts`` says of argument ``index``."""
    if arg_casts is None:
        return None
    if isinstance(arg_casts, str):
        cast: str | None = arg_casts
    elif isinstance(arg_casts, dict):
        cast = arg_casts.get(index)
    else:
        raise RuntimeError(f"Unsupported caster type: {type(arg_casts).__name__}")
    if cast is not None and cast not in _CASTS:
        raise RuntimeError(f"Unsupported cast instruction {cast}")
    return cast


def pack(value: Any, cast: str | None) -> bytes:
    """Bytes of a number or a list of numbers.

    int and bool take 8 bytes and float takes 4, unless cast; the first number of a list decides
    for all.
    """
    if isinstance(value, list | tuple):
        data = _pack_list(value, cast)
    elif isinstance(value, int):  # bool, too
        data = _pack_integer(value, cast)
    elif isinstance(value, float):
        data = _pack_float(value, cast)
    else:
        raise RuntimeError(f"Unsupported argument type {type(value).__name__}")
    if len(data) > MAX_BYTES:
        raise RuntimeError(f"{len(data)} bytes by value: Metal takes {MAX_BYTES}")
    return data


def _pack_list(values: list[Any] | tuple[Any, ...], cast: str | None) -> bytes:
    if len(values) == 0:
        raise RuntimeError("Unsupported argument type: an empty list has no type")
    first = values[0]
    if isinstance(first, int):
        if not all(isinstance(value, int) for value in values):
            raise RuntimeError("Unable to cast Python instance to C++ type: a list of integers")
        if cast == "int32":
            try:
                return array("i", values).tobytes()
            except OverflowError:
                pass  # wraps, below
        return b"".join(_pack_integer(value, cast) for value in values)
    if isinstance(first, float):
        if not all(isinstance(value, int | float) for value in values):
            raise RuntimeError("Unable to cast Python instance to C++ type: a list of floats")
        return b"".join(_pack_float(float(value), cast) for value in values)
    raise RuntimeError(f"Unsupported argument type: a list of {type(first).__name__}")


def _pack_integer(value: int, cast: str | None) -> bytes:
    if not -(2**63) <= value < 2**63:
        raise RuntimeError("Overflow when unpacking long")
    if cast is None:
        return struct.pack("<q", value)
    if cast in _INTEGER_CASTS:
        code, bits = _INTEGER_CASTS[cast]
        return struct.pack(f"<{code}", value & ((1 << bits) - 1))
    return _pack_float(float(value), cast)


def _pack_float(value: float, cast: str | None) -> bytes:
    if cast in _INTEGER_CASTS:
        return _pack_integer(int(value), cast)  # towards 0
    if cast == "fp16":
        return struct.pack("<e", value)
    single = _float32(value)
    return _bfloat16(single) if cast == "bf16" else single


def _float32(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:  # a C++ cast gives infinity
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def _bfloat16(single: bytes) -> bytes:
    """The upper half of a float32, rounded to nearest, ties to even; NaN stays NaN."""
    (bits,) = struct.unpack("<I", single)
    if bits & 0x7FFFFFFF > 0x7F800000:
        return struct.pack("<H", 0x7FC0)
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
