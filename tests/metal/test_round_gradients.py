"""``round_gradients`` of csrc/metal: fixed point, the first row order, and exact totals."""

import numpy as np
import pytest
import torch
from metal.row_buffers import (
    CHECKED,
    GROUP,
    LIBRARIES,
    NONCE,
    ROW_COUNTS,
    library_of,
    tensor,
    whole_groups,
)
from support.exact import assert_identical

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.core import fixed_point

EXTREMES = [0.0, 2.0**-126, -(2.0**-126), 0.5, -0.5, 1.5, 2.5, -2.5, 2.0**30, -(2.0**30)]


def round_on(
    library: MetalLibrary, gradients: np.ndarray, hessians: np.ndarray | None, scales: np.ndarray,
    at_most: int = 256,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:  # fmt: skip
    """Row order, words, totals (tree_outputs, 2) and the number of raised Hessians."""
    tree_outputs, n_rows = gradients.shape
    n_words = tree_outputs * (1 if hessians is None else 2)
    threads = whole_groups(n_rows, at_most)
    n_sums, n_groups = 2 * tree_outputs + 1, threads // GROUP
    row_order = torch.full((n_rows,), -1, dtype=torch.int32)
    words = torch.full((n_words, n_rows), -7, dtype=torch.int32)
    partials = torch.full((n_groups * n_sums + 1,), -7, dtype=torch.int64)
    g = tensor(gradients)
    library.kernel("round_gradients", constants={"CONSTANT_HESSIAN": int(hessians is None)})(
        g,
        g if hessians is None else tensor(hessians),
        row_order,
        words,
        partials,
        n_rows,
        tree_outputs,
        scales.ravel().tolist(),
        NONCE,
        threads=threads,
        group_size=GROUP,
    )
    assert partials[-1] == NONCE
    sums = partials[:-1].view(n_groups, n_sums).sum(0).numpy()
    return row_order.numpy(), words.numpy(), sums[:-1].reshape(-1, 2), int(sums[-1])


def expected(
    gradients: np.ndarray, hessians: np.ndarray | None, scales: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    words, totals, n_raised = [], [], 0
    for output, (gradient_scale, hessian_scale) in enumerate(scales.tolist()):
        h = np.ones(gradients.shape[1], "f") if hessians is None else hessians[output]
        fixed_g = fixed_point.round_gradients(gradients[output], gradient_scale)
        fixed_h = fixed_point.round_hessians(h, hessian_scale)
        words += [fixed_g] if hessians is None else [fixed_g, fixed_h]
        totals.append([fixed_g.sum(dtype=np.int64), fixed_h.sum(dtype=np.int64)])
        n_raised += int(fixed_point.are_raised(h, hessian_scale).sum())
    rows = np.arange(gradients.shape[1], dtype=np.int32)
    return rows, np.stack(words), np.array(totals), n_raised


def scales_of(gradients: np.ndarray, hessians: np.ndarray | None) -> np.ndarray:
    h = np.ones_like(gradients) if hessians is None else hessians
    return np.array(
        [
            [fixed_point.scale_exponent(float(np.abs(one).max()), 30),
             fixed_point.scale_exponent(float(other.max()), 29)]
            for one, other in zip(gradients, h, strict=True)
        ]
    )  # fmt: skip


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize("n_rows", ROW_COUNTS)
@pytest.mark.parametrize("constant", [True, False])
def test_one_output(options, n_rows: int, constant: bool) -> None:
    rng = np.random.default_rng(n_rows)
    gradients = rng.normal(size=(1, n_rows)).astype(np.float32)
    hessians = None if constant else rng.exponential(size=(1, n_rows)).astype(np.float32)
    scales = scales_of(gradients, hessians)
    found = round_on(library_of(options), gradients, hessians, scales)
    assert_identical(found, expected(gradients, hessians, scales))


@pytest.mark.parametrize("at_most", [1, 3, 256])
def test_three_outputs_and_any_number_of_groups(at_most: int) -> None:
    rng = np.random.default_rng(1)
    gradients = rng.normal(size=(3, 1500)).astype(np.float32) * np.float32([[1], [1e-30], [1e30]])
    hessians = np.abs(gradients[::-1])
    scales = scales_of(gradients, hessians)
    library = library_of(LIBRARIES["shuffled-1"])
    found = round_on(library, gradients, hessians, scales, at_most)
    assert_identical(found, expected(gradients, hessians, scales))


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
def test_ties_extremes_and_hessians_that_are_raised(options) -> None:
    gradients = np.array([EXTREMES * 30], np.float32)
    hessians = np.abs(gradients) / 2
    hessians[hessians < 2.0**-126] = 0
    hessians[0, 3] = 2.0**-126
    for scales in ([[0, 0]], [[-1, -30]]):
        found = round_on(library_of(options), gradients, hessians, np.array(scales))
        assert found[3] > 0
        assert_identical(found, expected(gradients, hessians, np.array(scales)))


@pytest.mark.parametrize("scale", [-98, 120])
def test_the_ends_of_the_scales(scale: int) -> None:
    gradients = np.ldexp(np.float32([[2.0**29, -1.5, 0.75, 0.0]]), -scale).astype(np.float32)
    library = library_of(LIBRARIES["shuffled-2-flushed"])
    scales = np.array([[scale, min(scale, 30)]])
    found = round_on(library, gradients, None, scales)
    assert_identical(found, expected(gradients, None, scales))


def test_totals_do_not_fit_into_32_bits() -> None:
    gradients = np.full((1, 70_000), -1.0, np.float32)
    gradients[0, ::2] = 1 - 2.0**-24
    library = library_of(LIBRARIES["ascending"])
    scales = np.array([[30, 29]])
    found = round_on(library, gradients, np.ones_like(gradients), scales, at_most=2)
    assert_identical(found, expected(gradients, np.ones_like(gradients), scales))
    assert found[2][0, 1] == 70_000 << 29


def test_under_the_checks_of_the_emulator() -> None:
    rng = np.random.default_rng(2)
    gradients = rng.normal(size=(2, 300)).astype(np.float32)
    scales = scales_of(gradients, np.abs(gradients))
    found = round_on(library_of(CHECKED), gradients, np.abs(gradients), scales)
    assert_identical(found, expected(gradients, np.abs(gradients), scales))
