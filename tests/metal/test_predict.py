"""``predict`` and ``predict_leaves`` of csrc/metal: raw values of any dtype down any trees."""

import itertools

import numpy as np
import pytest
import torch
from metal.row_buffers import (
    CHECKED,
    LIBRARIES,
    ROW_COUNTS,
    device_matrix,
    library_of,
    strides,
    tensor,
)
from support.exact import assert_identical
from support.forests import chain_tree, forest_of, leaf_tree, random_forest, tree_of
from support.matrices import DTYPES, matrix_of, numbers

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.backends.threshold_keys import KEY_FORMS, float64_keys
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.tree import Forest

INF, NAN = np.inf, np.nan


def node_tensor(nodes) -> torch.Tensor:
    return tensor(np.stack((nodes.feature, nodes.left, nodes.missing_left), 1).astype(np.int32))


def predict_on(
    library: MetalLibrary,
    forest: Forest,
    x: torch.Tensor,
    dtype: str,
    sums: np.ndarray,
    parts: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums and leaves, with the trees shared out over several dispatches."""
    form, n_rows = KEY_FORMS[dtype], x.shape[0]
    nodes, keys = node_tensor(forest.nodes), tensor(form.threshold_keys(forest.nodes.threshold))
    values, offsets = tensor(forest.nodes.value), tensor(forest.offsets.astype(np.int32))
    result, leaves = tensor(sums), torch.full((n_rows, forest.n_trees), -7, dtype=torch.int32)
    grid = {"threads": n_rows, "group_size": min(n_rows, 256)}
    borders = np.linspace(0, forest.n_trees, parts + 1).astype(int).tolist()
    for first, end in itertools.pairwise(borders):
        library.kernel("predict", constants=form.constants())(
            x, nodes, keys, values, offsets, result, strides(x), first, end,
            forest.n_outputs, sums.shape[1], **grid,
        )  # fmt: skip
        library.kernel("predict", "predict_leaves", form.constants())(
            x, nodes, keys, offsets, leaves, strides(x), first, end, forest.n_trees, **grid
        )
    return result.numpy(), leaves.numpy()


def expected(forest: Forest, matrix: HostMatrix, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    result, leaves = sums.copy(), np.zeros((matrix.n_rows, forest.n_trees), np.int32)
    OracleBackend().predict(forest, matrix, result)
    OracleBackend().predict_leaves(forest, matrix, leaves)
    return result, leaves


def pools(values: np.ndarray) -> list[list[float]]:
    """Thresholds that are values, lie just beside one, or beyond all of them."""
    result = []
    for column in values.T:
        numbers = np.unique(column[~np.isnan(column)])
        beside = [*np.nextafter(numbers, INF), *np.nextafter(numbers, -INF)]
        result.append([*numbers.tolist(), *beside, -INF, -1e300, 1e300])
    return result


def tensor_of(values: np.ndarray, dtype: str) -> torch.Tensor:
    """X as the kernel reads it; of float64, the host makes keys."""
    return tensor(float64_keys(values)) if dtype == "float64" else device_matrix(values, dtype)


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_dtype(options, dtype: str) -> None:
    rng = np.random.default_rng(1)
    values = numbers(dtype, rng, (300, 4))
    forest = random_forest(rng, pools(values))
    sums = np.zeros((300, 1), np.float32)
    found = predict_on(library_of(options), forest, tensor_of(values, dtype), dtype, sums)
    assert_identical(found, expected(forest, matrix_of(values, dtype), sums))


@pytest.mark.parametrize("n_rows", ROW_COUNTS)
@pytest.mark.parametrize(("leaf_outputs", "n_outputs"), [(1, 1), (1, 3), (3, 3)])
def test_any_shape_of_outputs(n_rows: int, leaf_outputs: int, n_outputs: int) -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(n_rows, 3)).astype(np.float32)
    forest = random_forest(rng, [[-0.3, 0.4]] * 3, n_outputs=leaf_outputs)
    sums = rng.normal(size=(n_rows, n_outputs)).astype(np.float32)
    library = library_of(LIBRARIES["shuffled-1"])
    found = predict_on(library, forest, tensor(values), "float32", sums, parts=3)
    assert_identical(found, expected(forest, HostMatrix(values), sums))


def test_any_layout_of_x() -> None:
    rng = np.random.default_rng(3)
    values = numbers("float32", rng, (70, 4)).astype(np.float32)
    x, sums = tensor(values), np.zeros((70, 1), np.float32)
    wide = torch.zeros((141, 13))
    wide[1::2, 1::3] = x
    forest = random_forest(rng, pools(values.astype(np.float64)))
    right = expected(forest, HostMatrix(values), sums)
    library = library_of(LIBRARIES["ascending"])
    for view in (x.t().contiguous().t(), wide[1::2, 1::3]):
        assert_identical(predict_on(library, forest, view, "float32", sums), right)


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
def test_each_sum_is_flushed(options) -> None:
    a, b = 1.5 * 2.0**-126, -(2.0**-126)  # their sum is 2^-127: it becomes +0 before the third tree
    forest = forest_of([leaf_tree(np.array([v])) for v in (a, b, 2.0**-126)], 1)
    x, sums = torch.zeros((1, 1)), np.zeros((1, 1), np.float32)
    found, _ = predict_on(library_of(options), forest, x, "float32", sums)
    assert found.tolist() == [[2.0**-126]]


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
def test_subnormal_thresholds_and_signed_zeros(options) -> None:
    tiny = 2.0**-149
    x, sums = torch.tensor([[-tiny], [-0.0], [0.0], [tiny], [2 * tiny]]), np.zeros((5, 1), "f")
    for threshold, n_left in ((-tiny, 1), (0.0, 3), (-0.0, 3), (tiny / 2, 3), (tiny, 4)):
        tree = tree_of(3, [0], [0], [0], [threshold], [False], np.zeros((3, 1), np.float32))
        _, leaves = predict_on(library_of(options), forest_of([tree], 1), x, "float32", sums)
        assert np.count_nonzero(leaves == 1) == n_left


def test_missing_rows_follow_the_flag_whatever_the_threshold() -> None:
    x, sums = torch.tensor([[NAN], [-NAN], [INF], [-INF]]), np.zeros((4, 1), np.float32)
    library = library_of(LIBRARIES["ascending"])
    for missing_left in (True, False):
        for threshold, right in ((INF, [1, 1]), (1e308, [2, 1]), (-INF, [2, 1])):
            values = np.zeros((3, 1), np.float32)
            tree = tree_of(3, [0], [0], [0], [threshold], [missing_left], values)
            _, leaves = predict_on(library, forest_of([tree], 1), x, "float32", sums)
            assert leaves[:, 0].tolist() == [2 - missing_left] * 2 + right


def test_a_chain_of_two_hundred_splits() -> None:
    x = torch.arange(201.0)[:, None]
    sums, library = np.zeros((201, 1), np.float32), library_of(LIBRARIES["shuffled-1"])
    found, leaves = predict_on(library, forest_of([chain_tree(200)], 1), x, "float32", sums)
    assert leaves[:, 0].tolist() == found[:, 0].tolist() == [*range(1, 400, 2), 400]


def test_under_the_checks_of_the_emulator() -> None:
    rng = np.random.default_rng(4)
    values = numbers("int16", rng, (20, 3))
    forest, sums = random_forest(rng, pools(values), 4), np.zeros((20, 1), np.float32)
    found = predict_on(library_of(CHECKED), forest, device_matrix(values, "int16"), "int16", sums)
    assert_identical(found, expected(forest, matrix_of(values, "int16"), sums))
