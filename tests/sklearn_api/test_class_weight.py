"""class_weight is a sample_weight by class: the same digest."""

from typing import Any

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight
from sklearn_api.small_tables import QUICK, classification, digest, weights

import torchgbdt as tg
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError

X, Y = classification(3)
Y = np.where(X[:, 0] > 1, 0, Y)  # classes of different sizes
W = weights()
TEXTS = np.array(["a", "b", "c"])[Y]


def fitted(class_weight: Any = None, y: np.ndarray = Y, w: np.ndarray | None = None) -> str:
    return digest(tg.GBDTClassifier(class_weight=class_weight, **QUICK).fit(X, y, w))


@pytest.mark.parametrize("w", [None, W], ids=["unweighted", "weighted"])
def test_dict_multiplies_the_weights_in_float64(w: np.ndarray | None) -> None:
    factors = np.array([0.1, 3.0, 1.0])[Y]
    expected = fitted(w=factors if w is None else factors * w)
    assert fitted({0: 0.1, 1: 3.0}, w=w) == expected != fitted(w=w)


def test_product_is_rounded_once() -> None:
    w = W.astype(np.float32)
    expected = fitted(w=(np.array([0.1, 1, 1])[Y] * w).astype(np.float32))
    assert fitted({0: 0.1}, w=w) == expected
    assert expected != fitted(w=np.array([0.1, 1, 1], np.float32)[Y] * w)


@pytest.mark.parametrize("key", ["a", np.str_("a")])
def test_keys_are_labels(key: Any) -> None:
    assert fitted({key: 2.0}, TEXTS) == fitted(None, TEXTS, np.array([2.0, 1.0, 1.0])[Y])
    assert fitted({np.int8(0): 2.0}) == fitted({0.0: 2}) == fitted(w=np.array([2.0, 1.0, 1.0])[Y])


def test_balanced_is_that_of_scikit_learn() -> None:
    assert fitted("balanced") == fitted(w=compute_sample_weight("balanced", Y)) != fitted()


@pytest.mark.parametrize("w", [W, W * (Y != 1)], ids=["rows", "a whole class"])
def test_balanced_counts_only_rows_that_count(w: np.ndarray) -> None:
    kept = w > 0
    without = tg.GBDTClassifier(class_weight="balanced", **QUICK).fit(X[kept], Y[kept], w[kept])
    assert fitted("balanced", w=w) == digest(without)


def test_class_of_weight_zero_is_left_out() -> None:
    estimator = tg.GBDTClassifier(class_weight={1: 0}, **QUICK).fit(X, Y)
    assert estimator.classes_.tolist() == [0, 2]
    assert digest(estimator) == digest(tg.GBDTClassifier(**QUICK).fit(X[Y != 1], Y[Y != 1]))


def test_evaluation_sets_keep_their_weights() -> None:
    weighted = tg.GBDTClassifier(class_weight={1: 5.0}, **QUICK).fit(X, Y, eval_set=[(X, Y)])
    factors = np.array([1.0, 5.0, 1.0])[Y]
    plain = tg.GBDTClassifier(**QUICK).fit(X, Y, factors, eval_set=[(X, Y)])
    assert weighted.history_ == plain.history_


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        (
            "equal",
            "class_weight must be None, 'balanced' or a dict from classes to weights; found "
            "'equal'.",
        ),
        (
            [1.0, 2.0],
            "class_weight must be None, 'balanced' or a dict from classes to weights; found "
            "[1.0, 2.0].",
        ),
        (
            {0: 2.0, 7: 1.0},
            "class_weight names the class 7, which no row with a positive weight has, and leaves "
            "out 1; there are [0, 1, 2]. Write labels as they are in y.",
        ),
        *(
            (
                {0: value},
                f"class_weight[0] must be a finite number >= 0; found {value!r}.",
            )
            for value in (-1.0, float("nan"), float("inf"), "2", True, None)
        ),
    ],
)
def test_bad_class_weight(class_weight: Any, message: str) -> None:
    with pytest.raises(InvalidParameterError) as error:
        fitted(class_weight)
    assert str(error.value) == message


def test_a_class_that_a_fold_lacks_may_have_a_weight() -> None:
    two = np.where(Y == 2, 0, Y)
    assert fitted({0: 2.0, 1: 1.0, 2: 5.0}, two) == fitted({0: 2.0}, two)


def test_weights_that_leave_one_class() -> None:
    with pytest.raises(InvalidDataError, match="y has one class only"):
        fitted({0: 0, 1: 0})


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1e-3, 1: 1e3}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_digest_over_backends_and_threads(class_weight: Any, n_classes: int) -> None:
    _, y = classification(n_classes)
    runs = [("oracle", 1), *(("cpu", n_threads) for n_threads in (1, 2, 3, 7))]
    digests = {
        digest(
            tg.GBDTClassifier(
                class_weight=class_weight, backend=backend, n_threads=n_threads, **QUICK
            ).fit(X, y, W)
        )
        for backend, n_threads in runs
    }
    assert len(digests) == 1
