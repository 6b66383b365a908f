"""``update_predictions`` of csrc/metal: a tree down the bins of all rows."""

import numpy as np
import pytest
import torch
from metal.row_buffers import CHECKED, LIBRARIES, ROW_COUNTS, library_of, tensor
from support.exact import assert_identical
from support.forests import leaf_tree, random_tree, tree_of

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.core.fixed_point import flush_subnormals
from torchgbdt.core.tree import Tree


def update(
    library: MetalLibrary,
    bins: np.ndarray,
    n_value_bins: np.ndarray,
    tree: Tree,
    predictions: np.ndarray,
    output: int,
) -> np.ndarray:
    """New predictions, (n_outputs, n_rows)."""
    nodes = np.stack((tree.feature, tree.left, tree.missing_left), axis=1)
    codes = np.stack((tree.split_bin, n_value_bins[tree.feature]), axis=1)
    result, n_rows = tensor(predictions), bins.shape[0]
    library.kernel("update_predictions")(
        tensor(bins.T),
        tensor(nodes.astype(np.int32)),
        tensor(codes.astype(np.int32)),
        tensor(tree.value),
        result,
        n_rows,
        output,
        tree.value.shape[1],
        threads=n_rows,
        group_size=min(n_rows, 256),
    )
    return result.numpy()


def leaf_of(tree: Tree, codes: np.ndarray, n_value_bins: np.ndarray) -> int:
    """The definition, row by row."""
    node = 0
    while not tree.is_leaf[node]:
        feature = tree.feature[node]
        is_missing = codes[feature] == n_value_bins[feature]
        left = tree.missing_left[node] if is_missing else codes[feature] <= tree.split_bin[node]
        node = tree.left[node] if left else tree.right[node]
    return int(node)


def expected(bins, n_value_bins, tree: Tree, predictions, output: int) -> np.ndarray:
    result = predictions.copy()
    values = np.array([tree.value[leaf_of(tree, codes, n_value_bins)] for codes in bins])
    rows = slice(None) if tree.value.shape[1] > 1 else slice(output, output + 1)
    result[rows] = flush_subnormals(result[rows] + values.T)
    return result


def some_bins(rng: np.random.Generator, n_rows: int, n_value_bins: np.ndarray) -> np.ndarray:
    return np.stack([rng.integers(0, n + 1, n_rows) for n in n_value_bins], 1).astype(np.uint8)


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize("n_rows", ROW_COUNTS)
@pytest.mark.parametrize(("leaf_outputs", "output"), [(1, 0), (1, 2), (3, 0)])
def test_any_tree(options, n_rows: int, leaf_outputs: int, output: int) -> None:
    rng = np.random.default_rng(n_rows)
    n_value_bins = np.array([3, 1, 255, 40], np.int32)
    bins = some_bins(rng, n_rows, n_value_bins)
    tree = random_tree(rng, [range(n) for n in n_value_bins], leaf_outputs, n_splits=25)
    predictions = rng.normal(size=(3, n_rows)).astype(np.float32)
    library = library_of(options)
    found = update(library, bins, n_value_bins, tree, predictions, output)
    assert_identical(found, expected(bins, n_value_bins, tree, predictions, output))


def test_a_missing_code_goes_where_the_flag_says_whatever_the_bin() -> None:
    bins, n_value_bins = np.array([[0], [1], [2]], np.uint8), np.array([2], np.int32)
    values = np.array([[0], [10], [20]], np.float32)
    library = library_of(LIBRARIES["ascending"])
    for missing_left in (True, False):
        for split_bin in (0, 1, 255):
            tree = tree_of(3, [0], [0], [split_bin], [0.0], [missing_left], values)
            found = update(library, bins, n_value_bins, tree, np.zeros((1, 3), np.float32), 0)
            right = [10, 10 if split_bin else 20, 10 if missing_left else 20]
            assert found.tolist() == [right]


def test_a_feature_without_values_has_the_missing_code_only() -> None:
    bins, n_value_bins = np.zeros((2, 1), np.uint8), np.array([0], np.int32)
    values = np.array([[0], [10], [20]], np.float32)
    tree = tree_of(3, [0], [0], [0], [0.0], [False], values)
    library = library_of(LIBRARIES["ascending"])
    found = update(library, bins, n_value_bins, tree, np.zeros((1, 2), np.float32), 0)
    assert found.tolist() == [[20, 20]]


@pytest.mark.parametrize("options", LIBRARIES.values(), ids=LIBRARIES)
def test_sums_are_flushed(options) -> None:
    bins, n_value_bins = np.zeros((1, 1), np.uint8), np.array([1], np.int32)
    sums = np.array([[1.5 * 2.0**-126]], np.float32)
    tree = leaf_tree(np.array([-(2.0**-126)]))
    found = update(library_of(options), bins, n_value_bins, tree, sums, 0)
    assert_identical(found, np.zeros((1, 1), np.float32))


def test_under_the_checks_of_the_emulator() -> None:
    rng = np.random.default_rng(5)
    n_value_bins = np.array([3, 7], np.int32)
    bins = some_bins(rng, 40, n_value_bins)
    tree = random_tree(rng, [range(3), range(7)])
    predictions = np.zeros((1, 40), np.float32)
    found = update(library_of(CHECKED), bins, n_value_bins, tree, predictions, 0)
    assert_identical(found, expected(bins, n_value_bins, tree, predictions, 0))


@pytest.mark.parametrize("n_words", [1, 1024])
def test_write_words_writes_its_words_and_no_others(n_words: int) -> None:
    buffer = torch.zeros(n_words + 5, dtype=torch.int32)
    words = [(-1) ** i * i for i in range(n_words)]
    write = library_of(LIBRARIES["shuffled-1"]).kernel("write_words")
    write(buffer, words, 3, threads=n_words, group_size=min(n_words, 256))
    assert buffer.tolist() == [0, 0, 0, *words, 0, 0]
