"""Keys of thresholds: the largest number of X's dtype that is not above; keys of float64."""

import numpy as np
import pytest

from torchgbdt.backends.threshold_keys import KEY_FORMS, float64_keys

INF = np.inf

AWKWARD = [0.0, -0.0, 1.0, -1.0, 1 + 2.0**-40, -1 - 2.0**-40, 0.1, -0.1, 1e-300, -1e-300, 5e-324]
AWKWARD += [
    2.0**-149,
    -(2.0**-149),
    2.0**-150,
    2.0**-126,
    3e-40,
    65504.0,
    65519.0,
    65520.0,
    -65520.0,
]
AWKWARD += [3.4028234663852886e38, 3.5e38, -3.5e38, 1e308, -1e308, INF, -INF, 127.5, -128.5, 255.0]
AWKWARD += [2.0**31 - 0.5, -(2.0**31) - 1, 2.0**32, 2.0**53, -(2.0**53), 1e19, -1e19]


def all_numbers(dtype: str) -> np.ndarray:
    """Every number of a 16-bit float dtype but NaN, ascending, as float64; one zero."""
    bits = np.arange(2**16, dtype=np.uint32)
    bits = bits[(bits & 0x7FFF) <= (0x7C00 if dtype == "float16" else 0x7F80)]
    if dtype == "float16":
        values = bits.astype(np.uint16).view(np.float16).astype(np.float64)
    else:
        values = (bits << 16).view(np.float32).astype(np.float64)
    return np.unique(values + 0.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_keys_count_the_numbers_from_zero(dtype: str) -> None:
    values = all_numbers(dtype)
    rng = np.random.default_rng(0)
    exponents = rng.integers(-160, 140, 5000)
    thresholds = np.concatenate((AWKWARD, values, np.ldexp(rng.normal(size=5000), exponents)))
    zero = np.searchsorted(values, 0.0)
    expected = np.searchsorted(values, thresholds, side="right") - 1 - zero
    keys = KEY_FORMS[dtype].threshold_keys(thresholds)
    assert keys.dtype == np.int32 and np.array_equal(keys, expected)


def float32_of_key(keys: np.ndarray) -> np.ndarray:
    bits = np.abs(keys.astype(np.int64)).astype(np.uint32)
    return (bits | np.where(keys < 0, 1 << 31, 0).astype(np.uint32)).view(np.float32)


def test_float32_keys_are_those_of_the_largest_number_not_above() -> None:
    rng = np.random.default_rng(1)
    exponents = rng.integers(-160, 140, 20_000)
    thresholds = np.concatenate((AWKWARD, np.ldexp(rng.normal(size=20_000), exponents)))
    keys = KEY_FORMS["float32"].threshold_keys(thresholds)
    assert keys.dtype == np.int32
    assert (float32_of_key(keys).astype(np.float64) <= thresholds).all()
    below_infinity = keys < 0x7F800000
    following = float32_of_key(keys[below_infinity] + 1).astype(np.float64)
    assert (following > thresholds[below_infinity]).all()


def test_float64_keys_are_ordered_like_the_numbers() -> None:
    values = np.array([-INF, -1e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1e308, INF, np.nan])
    keys = float64_keys(values)
    assert keys.dtype == np.int64
    assert np.sign(np.diff(keys)).tolist() == [1, 1, 1, 1, 0, 1, 1, 1, 1, 1]
    assert keys[5] == 0 and keys[-1] == 2**63 - 1 and keys[0] == -keys[-2]


def test_every_float64_nan_is_missing() -> None:
    bits = np.array([0x7FF8000000000000, -(2**52) + 1, 0x7FF0000000000001, -1], np.int64)
    assert (float64_keys(bits.view(np.float64)) == 2**63 - 1).all()


def test_float64_thresholds_are_their_own_numbers() -> None:
    thresholds = np.array(AWKWARD)
    assert np.array_equal(KEY_FORMS["float64"].threshold_keys(thresholds), float64_keys(thresholds))


@pytest.mark.parametrize("dtype", [form for form in KEY_FORMS if "int" in form])
def test_integers_compare_with_any_threshold(dtype: str) -> None:
    info = np.iinfo(dtype)
    low, high = max(info.min, -(2**53)), min(info.max, 2**53)
    values = np.array([low, low + 1, (low + high) // 2, 0, 1, high - 1, high])
    thresholds = np.array([*AWKWARD, low - 1, low - 0.5, low, high, high + 0.5, high + 1.0])
    form = KEY_FORMS[dtype]
    keys = form.threshold_keys(thresholds)
    assert keys.dtype == (np.int32 if form.key == "int" else np.int64)
    expected = values.astype(np.float64)[:, None] <= thresholds
    assert np.array_equal(values[:, None] <= keys, expected)


def test_bools_compare_as_zero_and_one() -> None:
    keys = KEY_FORMS["bool"].threshold_keys(np.array([-INF, -0.5, 0.0, 0.5, 1.0, INF]))
    assert [[int(value <= key) for key in keys] for value in (0, 1)] == [
        [0, 0, 1, 1, 1, 1],
        [0, 0, 0, 0, 1, 1],
    ]


def test_keys_have_room_for_every_value_and_one_below() -> None:
    # or a threshold below all values, as loaded models may have, could not be said
    for form in KEY_FORMS.values():
        if form.dtype.startswith(("int", "uint")) and "64" not in form.dtype:
            key = np.iinfo(np.int32 if form.key == "int" else np.int64)
            assert key.min < np.iinfo(form.dtype).min and np.iinfo(form.dtype).max <= key.max
