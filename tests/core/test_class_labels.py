"""Class labels: every kind of label, its classes, and the code of each row."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.exact import assert_identical

from torchgbdt.core.class_labels import (
    MAX_CLASSES,
    check_class_labels,
    encode_labels,
    find_classes,
)
from torchgbdt.core.communicator import SINGLE_RANK
from torchgbdt.core.errors import InvalidDataError


def classes_of(labels: Any) -> np.ndarray:
    return find_classes(np.asarray(labels), "y", SINGLE_RANK)


def codes_of(labels: Any, classes: Any) -> list[int]:
    found = encode_labels(np.asarray(labels), np.asarray(classes), "y")
    assert found.dtype == np.int32
    return found.tolist()


def refusal(work: Any, *arguments: Any, **more: Any) -> str:
    with pytest.raises(InvalidDataError) as caught:
        work(*arguments, **more)
    return str(caught.value)


TOP = 2**64 - 1

KINDS: dict[str, tuple[np.ndarray, np.ndarray]] = {
    # labels, classes
    "text": (np.array(["b", "a", "b"]), np.array(["a", "b"])),
    "unicode": (
        # Ordered by code point: Z < a < ß < é < 中 < the emoji, which lies beyond 16 bits.
        np.array(["中", "é", "a", "\N{CROISSANT}", "Z", "ß", "a"]),
        np.array(["Z", "a", "ß", "é", "中", "\N{CROISSANT}"]),
    ),
    "text of many lengths": (np.array(["aaaa", "", "aa", "a"]), np.array(["", "a", "aa", "aaaa"])),
    "text of numbers": (np.array(["10", "9", "-1"]), np.array(["-1", "10", "9"])),
    "bool": (np.array([True, False, True]), np.array([False, True])),
    "int": (np.array([3, 1, 2]), np.array([1, 2, 3])),
    "negative": (np.array([5, -7, 0, -7]), np.array([-7, 0, 5])),
    "gaps": (np.array([10**18, 3, -(10**18)]), np.array([-(10**18), 3, 10**18])),
    "int8": (np.array([100, -100], np.int8), np.array([-100, 100])),
    "uint8": (np.array([255, 0], np.uint8), np.array([0, 255])),
    "uint64": (np.array([2**63 - 1, 0], np.uint64), np.array([0, 2**63 - 1])),
    "beyond int64": (
        np.array([TOP, 0, TOP - 1], np.uint64),
        np.array([0, TOP - 1, TOP], np.uint64),
    ),
    "int64 of one float64": (np.array([2**53 + 1, 2**53]), np.array([2**53, 2**53 + 1])),
    "big-endian": (np.array([2, 256], ">i4"), np.array([2, 256])),
    "float": (np.array([2.0, -1.0, 0.0]), np.array([-1.0, 0.0, 2.0])),
    "float32": (np.array([2, 16777216], np.float32), np.array([2.0, 16777216.0])),
    "float16": (np.array([2, -2048], np.float16), np.array([-2048.0, 2.0])),
    "huge float": (np.array([1e300, -1e300]), np.array([-1e300, 1e300])),
    "strided": (np.arange(9)[::-4], np.array([0, 4, 8])),
}


@pytest.mark.parametrize("kind", KINDS)
def test_classes_are_the_distinct_labels_in_ascending_order(kind: str) -> None:
    labels, classes = KINDS[kind]
    check_class_labels(labels, "y")
    found = classes_of(labels)
    assert found.tolist() == classes.tolist()
    assert found.dtype == classes.dtype


@pytest.mark.parametrize("kind", KINDS)
def test_the_code_of_a_label_is_its_place_among_the_classes(kind: str) -> None:
    labels, classes = KINDS[kind]
    expected = [classes.tolist().index(label) for label in labels.tolist()]
    assert codes_of(labels, classes) == expected
    assert classes[expected].tolist() == labels.tolist()


def test_minus_zero_is_zero() -> None:
    for labels in ([-0.0, 1], [1, 0.0, -0.0], [-0.0, 0.0, 1]):
        found = classes_of(np.array(labels))
        assert_identical(found, np.array([0.0, 1.0]))
        assert codes_of(labels, found) == [int(label) for label in labels]


@given(st.lists(st.text(max_size=3), min_size=2, max_size=12))
def test_any_text_finds_itself(texts: list[str]) -> None:
    labels = np.array(texts)  # numpy drops trailing NULs, which no label can have
    if len(set(labels.tolist())) < 2:
        return
    classes = classes_of(labels)
    assert classes.tolist() == sorted(set(labels.tolist()))
    assert classes[codes_of(labels, classes)].tolist() == labels.tolist()


def test_classes_share_no_memory_with_the_labels() -> None:
    for labels in (np.array([1, 2]), np.array([1.0, 2.0]), np.array([False, True])):
        assert not np.shares_memory(classes_of(labels), labels)


# ------------------------------------------------------------------------------------ fractions


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("value", [0.5, -0.25, 1023.5])
def test_fractions_are_refused(dtype: type[np.floating], value: float) -> None:
    labels = np.array([0, 1, value, value], dtype)
    assert refusal(check_class_labels, labels, "y") == (
        f"y has {value} in row 2; class labels must be texts, integers, bools or whole numbers. "
        f"For a real target use objective='squared_error'."
    )


def test_a_fraction_is_named_by_its_input_row() -> None:
    kept = np.array([4, 7, 9])
    message = refusal(check_class_labels, np.array([1, 0.5, 1.5]), "eval_set[0] y", kept)
    assert message.startswith("eval_set[0] y has 0.5 in row 7;")


def test_no_labels_are_no_fractions() -> None:
    check_class_labels(np.zeros(0), "y")


# ---------------------------------------------------------------------------- number of classes


@pytest.mark.parametrize(
    ("labels", "shown"),
    [(["a", "a"], "['a']"), ([3], "[3]"), ([2.0, 2.0], "[2.0]"), ([True], "[True]"), ([], "[]")],
)
def test_one_class_is_refused(labels: list[Any], shown: str) -> None:
    assert refusal(classes_of, labels) == (
        f"y has one class only, {shown}, among the rows that count; a classifier needs at least "
        f"two."
    )


def test_more_classes_than_the_limit_are_refused() -> None:
    assert classes_of(np.arange(MAX_CLASSES)).size == MAX_CLASSES
    assert refusal(classes_of, np.arange(MAX_CLASSES + 1)) == (
        f"y has more than {MAX_CLASSES} classes, the most that are allowed. For a real target use "
        f"objective='squared_error'."
    )


# --------------------------------------------------------------------------------------- codes


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        ([1.0, 3.0, 1.0], [1, 3], [0, 1, 0]),  # whole floats for integers
        ([1, 3, 1], [1.0, 3.0], [0, 1, 0]),
        ([0, 1], [False, True], [0, 1]),
        ([True, False], [0, 1], [1, 0]),
        ([0.0, 1.0], [False, True], [0, 1]),
        (np.array([3, 1], np.int32), [1, 3], [1, 0]),
        (np.array([3, 1], np.uint64), [1, 3], [1, 0]),
        ([2**53, 2**53 + 1], np.array([2**53, 2**53 + 1, TOP], np.uint64), [0, 1]),
        (np.array(["bb", "a"]), np.array(["a", "bb", "cccc"]), [1, 0]),
    ],
)
def test_labels_of_another_width_or_kind_of_number_are_found(
    labels: Any, classes: Any, expected: list[int]
) -> None:
    assert codes_of(labels, classes) == expected


@pytest.mark.parametrize(
    ("labels", "classes", "shown"),
    [
        ([1, 2], [1, 3], "2"),
        ([1, 4], [1, 3], "4"),
        ([1, 0], [1, 3], "0"),
        ([1.0, 2.5], [1, 3], "2.5"),
        ([1, -1], np.array([1, TOP], np.uint64), "-1"),
        (np.array([1, 2**63], np.uint64), [-1, 1], f"{2**63}"),
        # As float64 these would be the same.
        ([1, 2**53 + 1], [1.0, 2.0**53], f"{2**53 + 1}"),
        ([1.0, 2.0**53], [1, 2**53 + 1], f"{2.0**53}"),
        (np.array([1, TOP - 1], np.uint64), np.array([1, TOP], np.uint64), f"{TOP - 1}"),
        (["a", "b"], ["a", "c"], "'b'"),
        (["a", "A"], ["a", "c"], "'A'"),
        (["a", ""], ["a", "c"], "''"),
        ([True, False], [1, 2], "False"),
    ],
)
def test_a_label_that_is_no_class_is_refused(labels: Any, classes: Any, shown: str) -> None:
    known = ", ".join(map(repr, np.asarray(classes).tolist()))
    assert refusal(codes_of, labels, classes) == (
        f"y has the label {shown} in row 1, which is no class of the training data: {known}. "
        f"Leave such rows out."
    )


def test_an_unknown_label_is_named_by_its_input_row() -> None:
    labels, classes = np.array([1, 5, 5]), np.array([1, 2])
    kept = np.array([4, 7, 9])
    message = refusal(encode_labels, labels, classes, "eval_set[1] y", kept)
    assert message.startswith("eval_set[1] y has the label 5 in row 7,")


def test_many_classes_are_not_all_named() -> None:
    message = refusal(codes_of, [9], [1, 2, 3, 4, 5, 6])
    assert "training data: 1, 2, 3, 4, 5, ... (6 in all). Leave" in message


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (["1", "2"], [1, 2], "y holds texts; the classes are integers: 1, 2."),
        (["1", "2"], [1.0, 2.0], "y holds texts; the classes are floats: 1.0, 2.0."),
        ([1, 2], ["1", "2"], "y holds integers; the classes are texts: '1', '2'."),
        ([1.0, 2.0], ["1", "2"], "y holds floats; the classes are texts: '1', '2'."),
        ([True, False], ["False", "True"], "y holds bools; the classes are texts:"),
    ],
)
def test_texts_and_numbers_do_not_mix(labels: Any, classes: Any, message: str) -> None:
    found = refusal(codes_of, labels, classes)
    assert found.startswith(message)
    assert found.endswith(" Pass labels of that kind.")


@pytest.mark.parametrize("classes", [[1, 2], [1.0, 2.0], ["a", "b"], [False, True]])
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_, np.str_])
def test_no_labels_have_no_codes(classes: Any, dtype: type) -> None:
    assert codes_of(np.zeros(0, dtype), classes) == []


def test_texts_too_long_for_labels_are_refused() -> None:
    check_class_labels(np.array(["a" * 1000]), "y")
    message = refusal(check_class_labels, np.array(["b", "a" * 1001]), "y")
    assert (
        message == "y has a text of 1001 characters; class labels have at most 1000. Shorten them."
    )
