"""Classes of labels that lie on several ranks: the same on each, whoever holds which of them."""

from typing import Any

import numpy as np
import pytest
from support.ranks import run_ranks

from torchgbdt.core.class_labels import find_classes
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.errors import InvalidDataError

TOP = 2**64 - 1


def classes_of(labels: Any) -> np.ndarray:
    return find_classes(np.asarray(labels), "y", SINGLE_RANK)


def classes_of_ranks(*parts: Any) -> list[np.ndarray]:
    return run_ranks(len(parts), lambda c: find_classes(np.asarray(parts[c.rank]), "y", c))


def refusals(*parts: Any) -> list[str]:
    """What each rank is told."""

    def work(communicator: Communicator) -> str:
        with pytest.raises(InvalidDataError) as caught:
            find_classes(np.asarray(parts[communicator.rank]), "y", communicator)
        return str(caught.value)

    return run_ranks(len(parts), work)


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([[3, 1], [2, 1]], [1, 2, 3]),
        ([[1], [2]], [1, 2]),  # neither has two
        ([["a"], ["ccc", "a"]], ["a", "ccc"]),
        ([[1.0, -0.0], [0.0]], [0.0, 1.0]),
        ([[False], [True, True]], [False, True]),
        ([np.array([1, 7], np.int32), np.array([-3, 7])], [-3, 1, 7]),
        ([np.array([1, 7], np.uint8), np.array([-3, 7])], [-3, 1, 7]),
    ],
)
def test_the_classes_of_ranks_are_those_of_all_labels(
    parts: list[Any], expected: list[Any]
) -> None:
    everything = classes_of(np.concatenate([np.asarray(part) for part in parts]))
    assert everything.tolist() == expected
    for ranks in (parts, [parts[1], parts[0]], [*parts, parts[0]]):
        for found in classes_of_ranks(*ranks):
            assert_same(found, everything)


@pytest.mark.parametrize("labels", [[3, 1], ["b", "a"], [2.0, 1.0], [True, False]])
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.str_])
def test_a_rank_without_rows_learns_the_classes_of_the_others(labels: Any, dtype: type) -> None:
    empty = np.zeros(0, dtype)
    for parts in ([labels, empty], [empty, labels], [empty, labels, empty]):
        for found in classes_of_ranks(*parts):
            assert_same(found, classes_of(labels))


def test_integers_beyond_int64_on_one_rank_stay_integers_on_all() -> None:
    # numpy would join uint64 and int64 to float64, where the last three are one number.
    large = np.array([2**53, 2**53 + 1, TOP - 1, TOP], np.uint64)
    for found in classes_of_ranks([1, 2**53 + 1], large):
        assert_same(found, np.array([1, 2**53, 2**53 + 1, TOP - 1, TOP], np.uint64))


def test_integers_that_no_dtype_holds_together_are_refused_on_every_rank() -> None:
    message = (
        "y holds integers below 0 on one rank and beyond 2^63 - 1 on another; use labels that fit "
        "into int64."
    )
    assert refusals([-1, 1], np.array([1, TOP], np.uint64)) == [message] * 2


@pytest.mark.parametrize(
    ("parts", "kinds"),
    [
        ([["1"], [1]], "integers on one rank and texts on another"),
        ([[1.0], [1, 2]], "floats on one rank and integers on another"),
        ([[True], [1, 2]], "bools on one rank and integers on another"),
        ([["a", "b"], [0.0]], "floats on one rank and texts on another"),
    ],
)
def test_kinds_that_differ_among_ranks_are_refused_on_every_rank(
    parts: list[Any], kinds: str
) -> None:
    assert refusals(*parts) == [f"y holds {kinds}; use one kind of label."] * 2


def test_one_class_on_all_ranks_is_refused_on_every_rank() -> None:
    messages = refusals(np.zeros(0, np.int64), [7], [7, 7])
    assert len(set(messages)) == 1
    assert messages[0].startswith("y has one class only, [7],")
