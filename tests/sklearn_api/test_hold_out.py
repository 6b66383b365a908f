"""Rows held out of training: how many of each class, and which, wherever this runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn_api.small_tables import classification, digest, regression

import torchgbdt as tg
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.random import Purpose, random_keys
from torchgbdt.sklearn_api.hold_out import choose_rows

labels = st.lists(st.integers(0, 4), min_size=2, max_size=80)


def test_rows_with_the_smallest_keys_are_held_out() -> None:
    keys = random_keys(7, Purpose.VALIDATION_SPLIT, 0, np.arange(10))
    expected = np.isin(np.arange(10), np.argsort(keys)[:3])
    assert choose_rows(10, 3, 7, None).tolist() == expected.tolist()


def test_the_rows_are_pinned() -> None:
    # Another choice for the same random_state would be another model.
    assert np.flatnonzero(choose_rows(20, 0.25, 0, None)).tolist() == [6, 7, 11, 15, 17]
    codes = np.array([0, 1] * 10)
    assert np.flatnonzero(choose_rows(20, 0.25, 0, codes)).tolist() == [6, 7, 10, 17, 18]


def test_shares_are_dealt_by_largest_remainders() -> None:
    # 6 of 20 rows; quotas 6 * (11, 6, 3) / 20 = 3.3, 1.8, 0.9: 3, 1, 0, and the two left over go
    # to the classes with the remainders 0.9 and 0.8.
    codes = np.repeat([0, 1, 2], [11, 6, 3])
    assert np.bincount(codes[choose_rows(20, 6, 0, codes)]).tolist() == [3, 2, 1]


def test_of_equal_remainders_the_smaller_code_comes_first() -> None:
    codes = np.repeat([0, 1], [5, 5])
    assert np.bincount(codes[choose_rows(10, 3, 0, codes)], minlength=2).tolist() == [2, 1]


@given(codes=labels, fraction=st.floats(0.01, 0.99), seed=st.integers(0, 2**64 - 1))
def test_every_class_keeps_a_row_and_its_share(
    codes: list[int], fraction: float, seed: int
) -> None:
    _, codes_of_rows, counts = np.unique(codes, return_inverse=True, return_counts=True)
    wanted = int(np.ceil(len(codes) * fraction))
    if not 0 < wanted < len(codes):
        return
    if counts.max() == 1:
        with pytest.raises(InvalidDataError, match="every class has one row only"):
            choose_rows(len(codes), fraction, seed, codes_of_rows)
        return
    held_out = choose_rows(len(codes), fraction, seed, codes_of_rows)
    found = np.bincount(codes_of_rows[held_out], minlength=counts.size)
    assert (found < counts).all()
    assert (np.abs(found - wanted * counts / len(codes)) < 1).all()
    assert found.sum() == wanted or (found >= counts - 1).any()


@pytest.mark.parametrize(("n_rows", "fraction"), [(1, 0.5), (5, 5), (2, 0.9), (3, 7)])
def test_both_parts_need_a_row(n_rows: int, fraction: float) -> None:
    with pytest.raises(InvalidDataError, match="at least one row must be on either side"):
        choose_rows(n_rows, fraction, 0, None)


def test_the_only_row_of_a_class_is_trained_on() -> None:
    X, y = classification(2)
    y = np.where(np.arange(y.size) == 17, 9, y)
    model = tg.GBDTClassifier(n_estimators=2, early_stopping=True).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 9]


def test_the_model_is_that_of_these_rows_and_the_others() -> None:
    X, y = regression()
    held_out = choose_rows(y.size, 0.1, 3, None)
    early = {"n_estimators": 50, "learning_rate": 0.5, "random_state": 3, "max_depth": 3}
    found = tg.GBDTRegressor(**early, early_stopping=True).fit(X, y)
    stop = tg.callbacks.EarlyStopping(patience=10, min_delta=1e-7)
    eval_set = [(X[held_out], y[held_out])]
    expected = tg.train(X[~held_out], y[~held_out], eval_set=eval_set, callbacks=[stop], **early)
    assert digest(found) == expected.digest()
