"""Labels of every kind at the door, targets made of them, and margins of several outputs."""

from typing import Any

import numpy as np
import pytest
from support.exact import assert_identical

from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.row_values import check_labels, check_margins, regression_targets

TINY = 2.0**-130

KINDS: dict[str, np.ndarray] = {
    "text": np.array(["b", "", "中"]),
    "bool": np.array([True, False, True]),
    "int8": np.array([-1, 0, 5], np.int8),
    "int64": np.array([-(2**62), 0, 2**62 + 1]),
    "uint64": np.array([0, 2**64 - 1, 7], np.uint64),
    "float16": np.array([0.5, -1, 2], np.float16),
    "float32": np.array([TINY, -0.0, 3e38], np.float32),
    "float64": np.array([TINY, -0.0, 1e300]),
    "big-endian": np.array([1.5, 2, -3], ">f8"),
}

every_kind = pytest.mark.parametrize("kind", KINDS)


def refusal(work: Any, *arguments: Any, **more: Any) -> str:
    with pytest.raises(InvalidDataError) as caught:
        work(*arguments, **more)
    return str(caught.value)


# --------------------------------------------------------------------------------------- labels


@every_kind
def test_labels_keep_their_dtype_and_every_value(kind: str) -> None:
    labels = KINDS[kind]
    found = check_labels(labels, 3)
    assert found.dtype == labels.dtype
    assert found.tobytes() == labels.tobytes()


@every_kind
def test_labels_are_a_copy_of_what_the_user_may_go_on_to_change(kind: str) -> None:
    wide = np.repeat(KINDS[kind], 2)
    for labels in (
        wide[:3],
        wide[::2],
        wide[::-2],
        wide.reshape(6, 1)[:3],
        wide.reshape(3, 2)[:, :1],
    ):
        found = check_labels(labels, 3)
        assert found.shape == (3,)
        assert not np.shares_memory(found, wide)
        assert found.flags.writeable
        assert found.tolist() == labels.reshape(3).tolist()


@every_kind
@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 2), (1, 3), (3, 1, 1)])
def test_labels_of_another_shape_are_refused(kind: str, shape: tuple[int, ...]) -> None:
    labels = np.zeros(shape, KINDS[kind].dtype)
    assert refusal(check_labels, labels, 3) == (
        f"y has shape {shape}; X has 3 rows, so (3,) is expected."
    )


@pytest.mark.parametrize(
    "dtype", ["c16", "O", "S3", "M8[s]", "m8[s]", [("a", "f8"), ("b", "f8")], "V4"]
)
def test_labels_that_are_neither_numbers_nor_texts_are_refused(dtype: Any) -> None:
    labels = np.zeros(3, dtype)
    assert refusal(check_labels, labels, 3) == (
        f"y has dtype {labels.dtype}; it must hold real numbers, bools or texts. Encode it first."
    )


def test_labels_of_rows_that_do_not_count_stay_as_they_are() -> None:
    labels = np.array([np.nan, 1, np.inf])
    assert_identical(check_labels(labels, 3, dropped=np.array([True, False, True])), labels)


# -------------------------------------------------------------------------------------- targets


@pytest.mark.parametrize("kind", ["bool", "int8", "float16", "float32", "big-endian"])
def test_targets_are_float32_where_the_labels_are_else_float64(kind: str) -> None:
    labels = KINDS[kind]
    found = regression_targets(labels)
    expected = labels.astype(np.float32 if kind == "float32" else np.float64)
    assert_identical(found, np.where(np.abs(expected) < 2.0**-126, 0, expected))


def test_targets_leave_the_labels_as_they_were() -> None:
    for dtype in (np.float32, np.float64):
        labels = np.array([TINY, 5, 7], dtype)
        found = regression_targets(labels, dropped=np.array([False, True, False]))
        assert found.tolist() == [0, 0, 7]
        assert labels.tolist() == [TINY, 5, 7]


@pytest.mark.parametrize("value", [2**53, 2**64 - 1])
def test_integers_that_do_not_count_may_be_large(value: int) -> None:
    labels = np.array([value, 3], np.uint64)
    assert regression_targets(labels, dropped=np.array([True, False])).tolist() == [0, 3]
    assert "integers from 2^53 on" in refusal(regression_targets, labels)


def test_targets_are_named_as_they_are_told() -> None:
    for labels in (np.array(["a"]), np.array([1e39]), np.array([2**60])):
        assert refusal(regression_targets, labels, "eval_set[2] y").startswith("eval_set[2] y h")


# -------------------------------------------------------------------------------------- margins


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float16, np.float64, ">f4"])
def test_margins_are_float32_with_a_column_per_output(dtype: Any) -> None:
    margins = np.array([[0, 1, 1], [1, 0, 0]], dtype)
    found = check_margins(margins, 2, n_outputs=3)
    assert_identical(found, margins.astype(np.float32))


def test_margins_are_a_flushed_copy() -> None:
    margins = np.array([[1, TINY], [-TINY, -0.0]], np.float32)
    for given in (margins, np.asfortranarray(margins), margins[::-1][::-1]):
        found = check_margins(given, 2, n_outputs=2)
        assert_identical(found, np.array([[1, 0], [0, 0]], np.float32))
        assert not np.shares_memory(found, given)
    assert margins[0, 1] == np.float32(TINY)


@pytest.mark.parametrize("shape", [(4, 3), (3, 2), (3, 4), (4,), (3,), (2, 2, 3), ()])
def test_margins_of_three_outputs_have_three_columns(shape: tuple[int, ...]) -> None:
    message = refusal(check_margins, np.ones(shape), 3, n_outputs=3)
    assert message.startswith(f"base_margin has shape {shape}; X has 3 rows, so (3")
    if len(shape) in (1, 2):
        assert message.endswith("so (3, 3) is expected: one margin per raw prediction.")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
@pytest.mark.parametrize("column", [0, 2])
def test_margins_of_every_column_must_be_finite(value: float, column: int) -> None:
    margins = np.ones((4, 3))
    margins[2, column] = value
    message = f"base_margin has {value} in row 2; margins must be finite in float32."
    assert refusal(check_margins, margins, 4, n_outputs=3) == message
    dropped = np.arange(4) == 2
    found = check_margins(margins, 4, dropped=dropped, n_outputs=3)
    assert found.tolist() == [[1] * 3, [1] * 3, [0] * 3, [1] * 3]


@pytest.mark.parametrize("dtype", ["c16", "O", "U1"])
def test_margins_of_several_outputs_must_be_real_numbers(dtype: str) -> None:
    margins = np.zeros((2, 2), dtype)
    assert refusal(check_margins, margins, 2, n_outputs=2) == (
        f"base_margin has dtype {margins.dtype}; it must hold real numbers. Encode it first."
    )
