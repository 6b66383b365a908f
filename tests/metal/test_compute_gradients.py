"""``compute_gradients`` and ``compute_softmax_terms`` of csrc/metal, and the extremes they join."""

import numpy as np
import pytest
import torch
from metal.objective_rows import Rows, or_any
from metal.row_buffers import (
    CHECKED,
    GROUP,
    LIBRARIES,
    NONCE,
    ROW_COUNTS,
    float_of_word,
    library_of,
    smallest_of_word,
    tensor,
    whole_groups,
)
from support.exact import assert_identical

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.core.objectives import ObjectiveKind
from torchgbdt.core.probabilities import softmax_terms

INF, NAN = np.inf, np.nan


def terms_on(library: MetalLibrary, rows: Rows) -> torch.Tensor:
    terms = torch.full((2, rows.n_rows), NAN)
    constants = {"HAS_MARGINS": int(rows.margins is not None)}
    library.kernel("compute_softmax_terms", constants=constants)(
        tensor(rows.predictions),
        or_any(rows.margins),
        rows.baseline_buffer(),
        terms,
        rows.n_rows,
        rows.n_outputs,
        threads=rows.n_rows,
        group_size=min(rows.n_rows, 256),
    )
    return terms


def gradients_on(
    library: MetalLibrary, rows: Rows, output: int = 0, constant: bool = False, at_most: int = 256
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Gradients, Hessians and the words of the extremes."""
    kind = rows.objective.kind
    gradients, hessians = torch.full((2, rows.n_rows), NAN)
    extremes = torch.zeros(4, dtype=torch.int32)
    constants = {
        "OBJECTIVE": int(kind),
        "HAS_WEIGHTS": int(rows.weights is not None),
        "HAS_MARGINS": int(rows.margins is not None),
        "CONSTANT_HESSIAN": int(constant),
    }
    library.kernel("compute_gradients", constants=constants)(
        tensor(rows.predictions),
        tensor(rows.labels),
        or_any(rows.weights),
        or_any(rows.margins),
        rows.baseline_buffer(),
        terms_on(library, rows) if kind == ObjectiveKind.SOFTMAX else torch.zeros(1),
        gradients,
        torch.zeros(1) if constant else hessians,
        extremes,
        rows.n_rows,
        output,
        NONCE,
        threads=whole_groups(rows.n_rows, at_most),
        group_size=GROUP,
    )
    return gradients.numpy(), hessians.numpy(), extremes.tolist()


def check_extremes(words: list[int], gradients: np.ndarray, hessians: np.ndarray) -> None:
    assert words[3] == NONCE
    assert float_of_word(words[0]) == np.abs(gradients).max()
    assert float_of_word(words[1]) == hessians.max()
    assert smallest_of_word(words[2]) == hessians.min()


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize("n_rows", ROW_COUNTS)
@pytest.mark.parametrize(
    ("objective", "weighted", "margins"),
    [
        ("squared_error", True, False),
        ("logistic", False, False),
        ("logistic", True, True),
        ("softmax", False, False),
        ("softmax", True, True),
    ],
)
def test_gradients(options, n_rows: int, objective: str, weighted: bool, margins: bool) -> None:
    rows = Rows(objective, n_rows, weighted, margins)
    for output in range(rows.n_outputs):
        gradients, hessians, words = gradients_on(library_of(options), rows, output)
        expected = rows.expected(output)
        assert_identical((gradients, hessians), expected)
        check_extremes(words, *expected)


@pytest.mark.parametrize("at_most", [1, 3, 256])
def test_a_constant_hessian_is_measured_and_not_written(at_most: int) -> None:
    rows = Rows("squared_error", 1000, False, False)
    library = library_of(LIBRARIES["shuffled-1"])
    gradients, hessians, words = gradients_on(library, rows, constant=True, at_most=at_most)
    assert_identical(gradients, rows.expected(0)[0])
    assert np.isnan(hessians).all()
    check_extremes(words, gradients, np.ones(1))


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize("margins", [False, True])
def test_softmax_terms(options, margins: bool) -> None:
    rows = Rows("softmax", 300, False, margins)
    rows.predictions[:, :20] = rows.predictions[:1, :20]  # all classes alike
    rows.baseline[:] = 0.0
    with np.errstate(all="ignore"):
        expected = softmax_terms(rows.seen())
    terms = terms_on(library_of(options), rows).numpy()
    assert_identical((terms[0], terms[1]), (expected.largest, expected.rest))


@pytest.mark.parametrize("wrong", [NAN, INF, -INF])
@pytest.mark.parametrize("place", [0, 131, 299])
def test_what_is_not_finite_is_seen(wrong: float, place: int) -> None:
    rows = Rows("squared_error", 300, True, False)
    rows.predictions[0, place] = wrong
    _, _, words = gradients_on(library_of(LIBRARIES["shuffled-1"]), rows)
    assert words[0] >= 0x7F800000 and words[1] < 0x7F800000


def test_gradients_beyond_float32_are_seen() -> None:
    rows = Rows("squared_error", 3, False, False)
    rows.predictions[0], rows.labels[:] = [3e38, 0, 1], [-3e38, 0, 0]
    assert gradients_on(library_of(LIBRARIES["ascending"]), rows)[2][0] == 0x7F800000


def test_the_smallest_hessian_may_be_negative() -> None:
    rows = Rows("squared_error", 3, True, False)
    rows.weights = np.array([2.0, -0.5, 1.0], np.float32)
    _, _, words = gradients_on(library_of(LIBRARIES["ascending"]), rows)
    assert smallest_of_word(words[2]) == -0.5


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_results_are_flushed(options, weighted: bool) -> None:
    rows = Rows("squared_error", 3, weighted, False)
    rows.predictions[0], rows.labels[:] = [1.5 * 2.0**-126, 0.5, 2.0**-126], [2.0**-126, 0.5, 0.0]
    if weighted:
        rows.predictions[0, 1:] = 1
        rows.weights = np.array([1.0, 2.0**-126, 2.0**-126], np.float32)
    gradients, hessians, words = gradients_on(library_of(options), rows)
    assert gradients.tolist() == [0.0, 0.0, 2.0**-126]
    check_extremes(words, gradients, hessians)


@pytest.mark.parametrize("objective", ["squared_error", "logistic", "softmax"])
def test_under_the_checks_of_the_emulator(objective: str) -> None:
    rows = Rows(objective, 300, True, objective != "squared_error")
    gradients, hessians, words = gradients_on(library_of(CHECKED), rows)
    assert_identical((gradients, hessians), rows.expected(0))
    check_extremes(words, gradients, hessians)
