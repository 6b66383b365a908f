"""The same numbers in every dtype and memory layout that X may come in."""

import numpy as np

from torchgbdt.core.feature_source import HostMatrix

INTEGER_DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOAT_DTYPES = ("float16", "bfloat16", "float32", "float64")
DTYPES = (*INTEGER_DTYPES, *FLOAT_DTYPES)


def matrix_of(values: np.ndarray, dtype: str) -> HostMatrix:
    """Float64 values that the dtype holds exactly, as a matrix of it."""
    if dtype == "bfloat16":
        upper = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return HostMatrix(upper, is_bfloat16=True)
    return HostMatrix(values.astype(dtype))


def numbers(dtype: str, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Float64 numbers that the dtype holds exactly: its extremes, and for floats its specials."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.float64)
    if dtype in INTEGER_DTYPES:
        info = np.iinfo(dtype)
        low, high = max(info.min, -(2**53)), min(info.max, 2**53)
        pool = [low, low + 1, high - 1, high, 0, *rng.integers(low, high, 20).tolist()]
        return np.array(pool, np.float64)[rng.integers(0, len(pool), shape)]
    plain = {"bfloat16": "float32"}.get(dtype, dtype)
    info = np.finfo(plain)
    cut = 2.0**-7 if dtype == "bfloat16" else 1.0
    specials = [np.nan, np.inf, -np.inf, 0.0, -0.0, info.smallest_normal, -info.smallest_normal]
    subnormals = [] if dtype == "bfloat16" else [info.smallest_subnormal, -info.smallest_subnormal]
    whole = rng.integers(-127, 128, 20) * cut
    pool = np.array([*specials, *subnormals, *whole.tolist()], np.float64)
    return pool[rng.integers(0, pool.size, shape)]


def layouts(values: np.ndarray) -> dict[str, np.ndarray]:
    """Views with the same numbers, each laid out in memory in its own way."""
    n_rows, n_features = values.shape
    wide = np.zeros((2 * n_rows, 3 * n_features), values.dtype)
    wide[::2, ::3] = values
    shifted = np.zeros((n_rows + 5, n_features + 2), values.dtype)
    shifted[3:-2, 1:-1] = values
    packed = np.zeros(n_rows, [("pad", np.uint8), ("x", values.dtype, (n_features,))])
    packed["x"] = values
    read_only = values.copy()
    read_only.setflags(write=False)
    return {
        "C order": np.ascontiguousarray(values),
        "F order": np.asfortranarray(values),
        "strided": wide[::2, ::3],
        "sliced": shifted[3:-2, 1:-1],
        "rows reversed": np.ascontiguousarray(values[::-1])[::-1],
        "columns reversed": np.ascontiguousarray(values[:, ::-1])[:, ::-1],
        "packed records": packed["x"],
        "read-only": read_only,
    }
