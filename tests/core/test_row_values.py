"""Labels, weights and margins at the door: what is accepted, what is refused and why."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.exact import assert_identical

from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.row_values import (
    check_labels,
    check_margins,
    check_weights,
    regression_targets,
)

Check = Callable[..., np.ndarray]


def check_targets(
    values: np.ndarray, n_rows: int, name: str = "y", dropped: np.ndarray | None = None
) -> np.ndarray:
    """The way of real targets: the door, then the objective."""
    return regression_targets(check_labels(values, n_rows, name, dropped), name, dropped)


def check_one_margin(*arguments: Any, **more: Any) -> np.ndarray:
    """Margins of one output, which are a column."""
    found = check_margins(*arguments, **more)
    assert found.shape == (found.shape[0], 1)
    return found[:, 0]


CHECKS: dict[str, Check] = {
    "y": check_targets,
    "sample_weight": check_weights,
    "base_margin": check_one_margin,
}
SMALLEST = 2.0**-126
LARGEST = float(np.finfo(np.float32).max)
TINY = float(np.nextafter(np.float32(SMALLEST), np.float32(0)))
MANY = (8 << 20) // 4 + 10  # more rows of float32 than are looked at at a time

every_check = pytest.mark.parametrize("name", CHECKS)


def refusal(check: Check, values: np.ndarray, n_rows: int | None = None, **more: Any) -> str:
    with pytest.raises(InvalidDataError) as caught:
        check(values, values.shape[0] if n_rows is None else n_rows, **more)
    return str(caught.value)


def at_row(n_rows: int, row: int, value: float, dtype: type = np.float64) -> np.ndarray:
    values = np.ones(n_rows, dtype)
    values[row] = value
    return values


# ------------------------------------------------------------------------- shapes and dtypes


@every_check
@pytest.mark.parametrize("shape", [(2,), (4,), (0,), (3, 2), (1, 3), (3, 1, 1), ()])
def test_another_shape_is_refused(name: str, shape: tuple[int, ...]) -> None:
    assert refusal(CHECKS[name], np.ones(shape), 3) == (
        f"{name} has shape {shape}; X has 3 rows, so (3,) is expected."
    )


@pytest.mark.parametrize("name", ["y", "base_margin"])
def test_a_single_column_is_a_vector(name: str) -> None:
    column = np.array([[1.0], [2.0], [3.0]])
    assert CHECKS[name](column, 3).tolist() == [1, 2, 3]
    assert "has shape (2,);" in refusal(CHECKS[name], column[:2], 3)


@every_check
@pytest.mark.parametrize(
    "values",
    [np.array(["1", "2"]), np.array([1, 2j]), np.array([1, None]), np.array([b"1", b"2"])],
    ids=["text", "complex", "object", "bytes"],
)
def test_what_holds_no_real_numbers_is_refused(name: str, values: np.ndarray) -> None:
    allowed = "real numbers, bools or texts" if name == "y" else "real numbers"
    if values.dtype.kind == "U" and name == "y":
        expected = (
            "y holds texts, such as ['1']; a regression needs real numbers. To predict classes use "
            "objective='logistic' or 'softmax'."
        )
    else:
        expected = f"{name} has dtype {values.dtype}; it must hold {allowed}. Encode it first."
    assert refusal(CHECKS[name], values) == expected


@every_check
def test_messages_name_the_argument_as_they_are_told(name: str) -> None:
    message = refusal(CHECKS[name], np.ones(2), 3, name="eval_set[1] thing")
    assert message.startswith("eval_set[1] thing has shape (2,);")


@every_check
@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.uint64, np.float16, np.float32, np.float64]
)
def test_every_real_dtype_is_accepted(name: str, dtype: type[np.generic]) -> None:
    found = CHECKS[name](np.array([0, 1, 1], dtype), 3)
    assert found.tolist() == [0, 1, 1]
    expected = np.float64 if name == "y" and dtype is not np.float32 else np.float32
    assert found.dtype == expected


@every_check
def test_strided_and_reversed_vectors_are_read_as_they_are(name: str) -> None:
    wide = np.arange(12.0)
    assert CHECKS[name](wide[::-4], 3).tolist() == [11, 7, 3]


@every_check
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_read_only_input_is_not_written_to(name: str, dtype: type[np.generic]) -> None:
    values = np.array([1, TINY, 2], dtype)
    values.flags.writeable = False
    assert CHECKS[name](values, 3).tolist() == [1, 0, 2]
    assert values[1] == TINY


# ----------------------------------------------------------------------------------- flushing


@every_check
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_below_the_smallest_normal_are_plus_zero(name: str, dtype: type[np.generic]) -> None:
    values = np.array([1, SMALLEST, TINY, -0.0, 0.0], dtype)
    assert_identical(CHECKS[name](values, 5).astype(np.float64), np.array([1, SMALLEST, 0, 0, 0.0]))


@pytest.mark.parametrize("name", ["y", "base_margin"])
def test_negative_values_are_flushed_alike(name: str) -> None:
    values = np.array([-SMALLEST, -TINY, -1e-300, -1.0])
    assert_identical(CHECKS[name](values, 4).astype(np.float64), np.array([-SMALLEST, 0, 0, -1.0]))


def test_float64_labels_keep_their_bits() -> None:
    values = np.array([0.1, 1e9 + 1e-6, -LARGEST])
    assert_identical(check_targets(values, 3), values)


def test_weights_and_margins_are_rounded_to_float32_once() -> None:
    for name in ("sample_weight", "base_margin"):
        assert_identical(CHECKS[name](np.array([0.1]), 1), np.array([0.1], np.float32))


def test_no_rows_are_no_labels_and_no_margins() -> None:
    assert check_targets(np.zeros(0), 0).shape == (0,)
    assert check_margins(np.zeros(0), 0).shape == (0, 1)
    assert check_margins(np.zeros((0, 3)), 0, n_outputs=3).shape == (0, 3)


# ------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_labels_must_be_finite(value: float, dtype: type) -> None:
    assert refusal(check_labels, at_row(5, 3, value, dtype)) == (
        f"y has {value} in row 3; every label must be finite. Drop such rows, or impute them."
    )


@pytest.mark.parametrize("value", [np.nextafter(LARGEST, np.inf), -1e39, 1.7e308])
def test_labels_must_lie_within_float32(value: float) -> None:
    assert refusal(check_targets, at_row(5, 3, value)) == (
        f"y has a value of magnitude {abs(value):g}; targets must lie within float32 (3.4e+38). "
        f"Scale y."
    )


@pytest.mark.parametrize("value", [LARGEST, -LARGEST])
def test_labels_at_the_border_of_float32_are_accepted(value: float) -> None:
    assert check_targets(np.array([value]), 1).tolist() == [value]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0, -TINY, -1e-300])
def test_weights_must_be_finite_and_not_negative(value: float) -> None:
    assert refusal(check_weights, at_row(5, 3, value)) == (
        f"sample_weight has {value} in row 3; weights must be finite and >= 0. "
        f"Use 0 to leave a row out."
    )


@pytest.mark.parametrize("value", [LARGEST * (1 + 2.0**-24), 1e39, 1e308])
def test_weights_beyond_float32_are_refused(value: float) -> None:
    assert refusal(check_weights, at_row(5, 3, value)) == (
        f"sample_weight has {value:g}; weights must lie within float32 (3.4e+38). Scale them."
    )


@pytest.mark.parametrize("value", [LARGEST, LARGEST * (1 + 2.0**-26)])
def test_weights_that_round_to_the_largest_float32_are_accepted(value: float) -> None:
    assert check_weights(np.array([value]), 1).tolist() == [LARGEST]


@pytest.mark.parametrize("value", [0.0, -0.0, TINY, 1e-300])
def test_weights_must_not_all_count_as_zero(value: float) -> None:
    assert refusal(check_weights, np.full(3, value)) == (
        "sample_weight is zero in every row; at least one row must count."
    )


def test_weights_of_one_rank_may_all_be_zero_and_even_absent() -> None:
    share = {"may_be_all_zero": True}
    assert check_weights(np.array([0, TINY]), 2, **share).tolist() == [0, 0]
    assert check_weights(np.zeros(0), 0, **share).shape == (0,)
    assert "weights must be finite" in refusal(check_weights, np.array([0, -1.0]), **share)


def test_a_single_weight_above_zero_is_enough() -> None:
    assert check_weights(np.array([0.0, SMALLEST, TINY]), 3).tolist() == [0, SMALLEST, 0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39, -1e39])
def test_margins_must_be_finite_in_float32(value: float) -> None:
    assert refusal(check_margins, at_row(5, 3, value)) == (
        f"base_margin has {value} in row 3; margins must be finite in float32."
    )


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (check_labels, np.nan, f"y has nan in row {MANY - 1}; "),
        (check_targets, 1e39, "y has a value of magnitude 1e+39; "),
        (check_weights, -2.0, f"sample_weight has -2.0 in row {MANY - 1}; "),
        (check_weights, 1e39, "sample_weight has 1e+39; "),
    ],
)
def test_the_last_of_many_rows_is_looked_at(check: Check, value: float, message: str) -> None:
    assert refusal(check, at_row(MANY, MANY - 1, value)).startswith(message)


@pytest.mark.parametrize("check", [check_targets, check_weights])
def test_the_last_of_many_rows_is_flushed(check: Check) -> None:
    assert check(at_row(MANY, MANY - 1, TINY), MANY)[-1] == 0


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("beyond", [2**53 + 1, 2**62])
def test_integer_labels_without_a_float64_of_their_own_are_refused(
    dtype: type[np.generic], beyond: int
) -> None:
    assert "integers from 2^53 on" in refusal(check_targets, np.array([1, beyond], dtype))
    assert check_targets(np.array([2**53 - 1], dtype), 1).tolist() == [2**53 - 1]


@pytest.mark.parametrize("check", [check_targets, check_one_margin])
def test_dropped_rows_become_zero_unseen(check: Callable[..., Any]) -> None:
    dropped = np.array([False, True, True])
    found = check(np.array([1.0, np.nan, np.inf]), 3, dropped=dropped)
    assert found.tolist() == [1, 0, 0]
    with pytest.raises(InvalidDataError, match="in row 1"):
        check(np.array([1.0, np.nan, np.inf]), 3, dropped=np.array([True, False, True]))


def test_dropped_rows_are_those_of_their_own_block() -> None:
    values = at_row(MANY, MANY - 1, np.nan)
    assert check_targets(values, MANY, dropped=np.arange(MANY) == MANY - 1)[-1] == 0
