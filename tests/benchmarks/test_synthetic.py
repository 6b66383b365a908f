"""The rows of the benchmarks: the same bits everywhere, with the spread that their numbers say."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from synthetic import BLOCK_ROWS, make_rows
from workloads import FULL, load_data, make_data, quick_version, save_data

# What seed 1 means, for real targets, two classes and three. Measured once; never to change, or
# results from before and after would be of different data.
HASHES = {
    0: "cc155c36",
    2: "d7a08154",
    3: "6c2133f4",
}


@pytest.mark.parametrize("n_classes", HASHES)
def test_a_seed_means_the_same_rows_on_every_machine(n_classes: int) -> None:
    X, y = make_rows(1, 1000, 7, 2, n_classes, 1.0)
    assert hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()[:8] == HASHES[n_classes]


def test_features_lie_between_minus_one_and_one_in_both_blocks() -> None:
    X, _ = make_rows(1, BLOCK_ROWS + 10, 3, 1, 0, 1.0)
    assert X.min() >= -1 and X.max() < 1
    assert len(np.unique(X[:, 0])) > 0.99 * len(X)
    assert not np.array_equal(X[:10], X[-10:])


def test_target_and_noise_have_the_standard_deviation_that_is_said() -> None:
    sigma = [make_rows(3, 200_000, 12, 2, 0, noise)[1].std() for noise in (0.0, 2.0)]
    assert abs(sigma[0] - 1) < 0.02
    assert abs(sigma[1] ** 2 - 5) < 0.1


@pytest.mark.parametrize("n_classes", [2, 5])
def test_classes_are_about_equally_frequent(n_classes: int) -> None:
    _, y = make_rows(1, 50_000, 30, 2, n_classes, 1.0)
    counts = np.bincount(y.astype(int))
    assert len(counts) == n_classes
    assert counts.max() < 1.3 * counts.min()


def test_saved_rows_are_read_as_they_were(tmp_path: Path) -> None:
    data = make_data(quick_version(FULL["W4"]))
    save_data(data, tmp_path)
    loaded = load_data(tmp_path)
    for name, array in vars(data).items():
        assert np.array_equal(array, getattr(loaded, name))
        assert array.dtype == np.float32 and array.flags.c_contiguous
    assert data.X.shape == (2_500, 20) and data.y_test.shape == (20_000,)


def test_quick_versions_must_be_better_than_a_constant() -> None:
    assert {quick_version(one).must_beat for one in FULL.values()} == {1.0}
    assert max(one.must_beat for one in FULL.values()) < 1


def test_the_flights_are_the_demos() -> None:
    from flights_data import load_flights

    data = make_data(quick_version(FULL["W2"]))
    flights = load_flights(20_000)
    assert np.array_equal(data.X, flights.train.X.numpy(), equal_nan=True)
    assert np.array_equal(data.y_test, flights.test.y.numpy())
