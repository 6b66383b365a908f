"""early_stopping: on an evaluation set, or on rows that are held out."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn_api.small_tables import classification, digest, regression, weights

import torchgbdt as tg
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError

X, Y = regression()
_, Y3 = classification(3)
W = weights()
OTHER = regression(seed=1)
SETTINGS: dict[str, Any] = {"n_estimators": 200, "max_depth": 3, "learning_rate": 0.5}


def stopping(kind: Any = tg.GBDTRegressor, **parameters: Any) -> Any:
    return kind(early_stopping=True, n_iter_no_change=3, **{**SETTINGS, **parameters})


class Split(tg.callbacks.Callback):
    """Counts the rows that are trained on and held out."""

    rows: tuple[int, int] = (0, 0)

    def on_train_begin(self, context: Any) -> None:
        train, valid = (context.raw_predictions(name) for name in ("train", "valid_0"))
        self.rows = (len(train), len(valid))


def split_of(estimator: Any, *data: Any, **arguments: Any) -> tuple[int, int]:
    split = Split()
    estimator.set_params(callbacks=[split], n_estimators=1).fit(*data, **arguments)
    return split.rows


def test_last_evaluation_set_is_monitored() -> None:
    # The first one is trained on, so its error falls to the end.
    estimator = stopping().fit(X, Y, eval_set=[(X, Y), OTHER])
    stopper = tg.callbacks.EarlyStopping(patience=3, min_delta=1e-7)
    model = tg.train(X, Y, eval_set=[(X, Y), OTHER], callbacks=[stopper], **SETTINGS)
    assert digest(estimator) == model.digest()
    assert estimator.best_iteration_ == model.best_iteration
    assert estimator.n_iter_ == estimator.best_iteration_ + 1 < 200


def test_history_goes_on_to_the_round_that_stopped() -> None:
    estimator = stopping().fit(X, Y, eval_set=[OTHER])
    values = estimator.history_["valid_0"]["rmse"]
    assert len(values) == estimator.n_iter_ + 3
    assert min(values) == values[estimator.best_iteration_]


def test_first_metric_is_monitored() -> None:
    by_mae = stopping(eval_metric=["mae", "rmse"]).fit(X, Y, eval_set=[OTHER])
    values = by_mae.history_["valid_0"]["mae"]
    assert min(values) == values[by_mae.best_iteration_]


def test_tol_is_what_an_improvement_must_exceed() -> None:
    assert stopping(tol=1e9).fit(X, Y, eval_set=[OTHER]).n_iter_ == 1


def test_without_early_stopping_nothing_is_held_out() -> None:
    plain = tg.GBDTRegressor(**{**SETTINGS, "n_estimators": 5}).fit(X, Y, eval_set=[OTHER])
    assert plain.n_iter_ == 5
    assert plain.best_iteration_ is None
    assert digest(plain) == tg.train(X, Y, **{**SETTINGS, "n_estimators": 5}).digest()


@pytest.mark.parametrize(
    ("fraction", "rows"), [(0.1, (216, 24)), (0.25, (180, 60)), (1, (239, 1)), (50, (190, 50))]
)
def test_share_or_number_of_rows_is_held_out(fraction: Any, rows: tuple[int, int]) -> None:
    assert split_of(stopping(validation_fraction=fraction), X, Y) == rows


def test_random_state_decides_which_rows() -> None:
    digests = {digest(stopping(random_state=seed).fit(X, Y)) for seed in (0, 0, 1, 2**64 - 1)}
    assert len(digests) == 3


def test_only_rows_that_count_are_dealt_out() -> None:
    kept = W > 0
    n_kept = int(kept.sum())
    n_valid = -(-n_kept // 10)
    assert split_of(stopping(), X, Y, W) == (n_kept - n_valid, n_valid)
    for kind, y in ((tg.GBDTRegressor, Y), (tg.GBDTClassifier, Y3)):
        without = stopping(kind).fit(X[kept], y[kept], W[kept])
        assert digest(stopping(kind).fit(X, y, W)) == digest(without)


def test_weights_and_margins_go_with_their_rows() -> None:
    # Targets are margin + 1 in the rows that weigh something and far away in the others: with a
    # wrong weight or margin anywhere, the mean error would not be 1 before training.
    margin = np.arange(240) % 16 / 8
    y = np.where(W > 0, margin + 1, 1e6)
    estimator = stopping(n_estimators=1, learning_rate=1e-9, eval_metric="mae")
    estimator.fit(X, y, np.where(W > 0, 1.0, 1e-30), base_margin=margin)
    assert estimator.history_ == {"train": {"mae": [1.0]}, "valid_0": {"mae": [1.0]}}


def test_held_out_rows_keep_the_shares_of_classes() -> None:
    y = np.repeat(["a", "b", "c"], [200, 30, 10])
    estimator = stopping(tg.GBDTClassifier, validation_fraction=24, baseline=None)
    seen = {}

    class Spy(tg.Trainer):
        def fit(self, X: Any, y: Any, **arguments: Any) -> Any:
            seen["y"] = arguments["eval_set"][0][1]
            return super().fit(X, y, **arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torchgbdt.sklearn_api.estimator.Trainer", Spy)
        estimator.fit(X, y)
    assert np.unique(seen["y"], return_counts=True)[1].tolist() == [20, 3, 1]


def test_tensors_are_split_like_arrays() -> None:
    arrays = (X, Y, W)
    tensors = [torch.from_numpy(array) for array in arrays]
    assert digest(stopping().fit(*tensors)) == digest(stopping().fit(*arrays))


def test_class_weights_hold_for_held_out_rows_too() -> None:
    factors = np.array([1.0, 5.0, 1.0])
    weighted = stopping(tg.GBDTClassifier, class_weight={1: 5.0}).fit(X, Y3)
    by_hand = stopping(tg.GBDTClassifier).fit(X, Y3, factors[Y3])
    assert weighted.history_ == by_hand.history_
    assert digest(weighted) == digest(by_hand)


def test_warm_start_holds_out_the_same_rows() -> None:
    slow = {"learning_rate": 0.1, "random_state": np.random.RandomState(0)}
    warm = stopping(warm_start=True, n_estimators=3, **slow).fit(X, Y)
    assert warm.n_iter_ == 3
    warm.set_params(n_estimators=6).fit(X, Y)
    whole = stopping(n_estimators=6, learning_rate=0.1, random_state=warm._seed).fit(X, Y)
    assert digest(warm) == digest(whole)
    assert warm.history_ == whole.history_


def test_warm_start_after_a_stop_keeps_the_best_round() -> None:
    stopped = stopping(warm_start=True).fit(X, Y, eval_set=[OTHER])
    first, history = digest(stopped), stopped.history_
    assert len(history["valid_0"]["rmse"]) == stopped.n_iter_ + 3
    # The rounds that were cut off are grown again, and are no better than before.
    stopped.fit(X, Y, eval_set=[OTHER])
    assert digest(stopped) == first
    assert stopped.history_ == history


@pytest.mark.parametrize("name", ["eval_sample_weight", "eval_base_margin"])
def test_values_of_an_evaluation_set_that_is_not_there(name: str) -> None:
    with pytest.raises(InvalidDataError, match=f"{name} belongs to eval_set, which is None"):
        stopping().fit(X, Y, **{name: [Y]})


def test_empty_evaluation_set() -> None:
    with pytest.raises(InvalidParameterError, match="EarlyStopping needs data"):
        stopping().fit(X, Y, eval_set=[])


def test_more_rows_than_there_are() -> None:
    for fraction, n_valid in ((240, 240), (1000, 1000), (0.999, 240)):
        message = f"validation_fraction={fraction} holds {n_valid} of 240 rows out of training"
        with pytest.raises(InvalidDataError, match=message):
            stopping(validation_fraction=fraction).fit(X, Y)
