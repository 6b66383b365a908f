"""``compute_losses`` and ``sum_losses`` of csrc/metal: losses of rows, and their exact sum."""

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
    tensor,
    whole_groups,
)
from support.exact import assert_identical

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.core.metrics import (
    LogisticError,
    LogisticLoss,
    MeanAbsoluteError,
    MeanLoss,
    RootMeanSquaredError,
    SoftmaxError,
    SoftmaxLoss,
    weighted_losses,
)

METRICS: dict[str, MeanLoss] = {
    "squared_error": RootMeanSquaredError(),
    "absolute_error": MeanAbsoluteError(),
    "logistic_loss": LogisticLoss(),
    "logistic_error": LogisticError(),
    "softmax_loss": SoftmaxLoss(),
    "softmax_error": SoftmaxError(),
}


def rows_of(metric: str, n_rows: int, weighted: bool) -> Rows:
    """Rows of the metric's objective, with margins where there are weights."""
    objective = METRICS[metric].objective.name
    return Rows(objective, n_rows, weighted, weighted and objective != "squared_error")


def losses_on(
    library: MetalLibrary, metric: str, rows: Rows, at_most: int = 256
) -> tuple[np.ndarray, int]:
    """Losses, and the word of the largest."""
    losses, extremes = torch.full((rows.n_rows,), -7.0), torch.zeros(2, dtype=torch.int32)
    constants = {
        "METRIC": int(METRICS[metric].kind),
        "HAS_WEIGHTS": int(rows.weights is not None),
        "HAS_MARGINS": int(rows.margins is not None),
    }
    library.kernel("compute_losses", constants=constants)(
        tensor(rows.predictions),
        tensor(rows.labels),
        or_any(rows.weights),
        or_any(rows.margins),
        rows.baseline_buffer(),
        losses,
        extremes,
        rows.n_rows,
        rows.n_outputs,
        NONCE,
        threads=whole_groups(rows.n_rows, at_most),
        group_size=GROUP,
    )
    largest, nonce = extremes.tolist()
    assert nonce == NONCE
    return losses.numpy(), largest


def expected_losses(metric: str, rows: Rows) -> np.ndarray:
    with np.errstate(all="ignore"):
        losses = METRICS[metric].row_losses(rows.seen(), rows.labels)
        return weighted_losses(losses, rows.weights)


def sum_on(library: MetalLibrary, losses: np.ndarray, scale: int, at_most: int = 256) -> int:
    threads = whole_groups(losses.size, at_most)
    partials = torch.full((threads // GROUP + 1,), -7, dtype=torch.int64)
    arguments = (tensor(losses), partials, losses.size, scale, NONCE)
    library.kernel("sum_losses")(*arguments, threads=threads, group_size=GROUP)
    assert partials[-1] == NONCE
    return int(partials[:-1].sum())


def expected_sum(losses: np.ndarray, scale: int) -> int:
    return int(np.rint(np.ldexp(losses.astype(np.float64), scale)).astype(np.int64).sum())


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize("n_rows", ROW_COUNTS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("metric", METRICS)
def test_losses(options, n_rows: int, weighted: bool, metric: str) -> None:
    rows = rows_of(metric, n_rows, weighted)
    losses, largest = losses_on(library_of(options), metric, rows)
    expected = expected_losses(metric, rows)
    assert_identical(losses, expected)
    assert float_of_word(largest) == expected.max()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("place", [0, 200, 999])
def test_what_is_not_finite_is_seen(metric: str, place: int) -> None:
    rows = rows_of(metric, 1000, False)
    rows.predictions[-1, place] = np.nan
    losses, largest = losses_on(library_of(LIBRARIES["shuffled-1"]), metric, rows, at_most=3)
    assert largest > 0x7F800000
    assert np.isnan(losses[place])
    assert_identical(np.isfinite(losses), np.isfinite(expected_losses(metric, rows)))


def test_a_label_that_is_no_class_gives_nan() -> None:
    rows = rows_of("softmax_loss", 3, False)
    rows.labels[1] = 7
    losses, largest = losses_on(library_of(LIBRARIES["ascending"]), "softmax_loss", rows)
    assert np.isnan(losses).tolist() == [False, True, False] and largest > 0x7F800000


def test_of_equal_predictions_the_first_class_is_predicted() -> None:
    rows = rows_of("softmax_error", 5, False)
    rows.predictions[:], rows.baseline[:] = 1.0, 0.0
    rows.labels = np.arange(5, dtype=np.float32)
    losses, _ = losses_on(library_of(LIBRARIES["ascending"]), "softmax_error", rows)
    assert losses.tolist() == [0, 1, 1, 1, 1]


AWKWARD = [0.0, 0.5, 1.5, 2.5, 0.49999997, 2.0**-126, 8388607.5, 8388608.0, 8388609.0, 1.0, 3.0]


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize("scale", [-126, -30, -1, 0, 1, 38, 120])
def test_sums_at_any_scale(options, scale: int) -> None:
    rng = np.random.default_rng(1)
    exponents = rng.integers(-30, 50, 2000)
    fixed = np.concatenate((AWKWARD, np.ldexp(rng.random(2000), exponents)))
    losses = np.ldexp(fixed, np.minimum(-scale, 77)).astype(np.float32)
    losses[losses < 2.0**-126] = 0
    library = library_of(options)
    assert sum_on(library, losses, scale) == expected_sum(losses, scale)
    assert sum_on(library, losses[:1], scale) == expected_sum(losses[:1], scale)


@pytest.mark.parametrize("n_rows", ROW_COUNTS)
def test_sums_of_any_number_of_rows(n_rows: int) -> None:
    losses = np.random.default_rng(n_rows).exponential(size=n_rows).astype(np.float32)
    library = library_of(LIBRARIES["shuffled-1"])
    assert sum_on(library, losses, 40, at_most=1) == expected_sum(losses, 40)


def test_a_loss_may_reach_two_to_the_62() -> None:
    library = library_of(LIBRARIES["shuffled-2-flushed"])
    assert sum_on(library, np.float32([2.0**62]), 0) == 2**62
    largest = np.float32(2.0**62) - np.float32(2.0**38)
    assert sum_on(library, np.array([largest]), 0) == 2**62 - 2**38
    assert sum_on(library, np.float32([2.0**-58]), 120) == 2**62


def test_under_the_checks_of_the_emulator() -> None:
    rows = rows_of("softmax_loss", 300, True)
    losses, _ = losses_on(library_of(CHECKED), "softmax_loss", rows)
    assert_identical(losses, expected_losses("softmax_loss", rows))
    losses = np.minimum(losses, 1e6)
    assert sum_on(library_of(CHECKED), losses, 20) == expected_sum(losses, 20)
