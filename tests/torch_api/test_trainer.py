"""tg.Trainer.fit and tg.train: models, states, history; and what is left when training fails."""

import contextlib
import copy
import gc
import inspect
import pickle
import statistics
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from support.exact import assert_identical
from torch_api.small_data import QUICK, regression

import torchgbdt as tg
from torchgbdt.core.errors import GBDTError, InvalidDataError, StateError

X, Y = regression()
OTHER = regression(seed=1)


class Recorder(tg.callbacks.Callback):
    """Does something at an event, once."""

    def __init__(self, event: str, action: Any) -> None:
        setattr(self, event, action)


def failing(event: str, error: BaseException) -> Recorder:
    def fail(context: Any) -> None:
        raise error

    return Recorder(event, fail)


def test_train_is_a_trainer_and_its_fit() -> None:
    assert tg.train(X, Y, **QUICK).digest() == tg.Trainer(**QUICK).fit(X, Y).digest()


def test_train_passes_every_argument_on(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: dict[str, Any] = {}
    names = inspect.signature(tg.Trainer.fit).parameters.keys() - {"self"}

    def fit(self: tg.Trainer, X: Any, y: Any, **arguments: Any) -> Any:
        passed.update(arguments, X=X, y=y)

    monkeypatch.setattr(tg.Trainer, "fit", fit)
    given: dict[str, Any] = {name: object() for name in names}
    tg.train(**given)
    assert passed == given


@pytest.mark.parametrize("backend", ["oracle", "cpu", "auto"])
def test_backends_train_the_same_model(backend: str) -> None:
    model = tg.train(X, Y, backend=backend, **QUICK)
    assert model.digest() == tg.train(X, Y, backend="oracle", **QUICK).digest()


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_number_of_threads_does_not_change_the_model(n_threads: int) -> None:
    model = tg.train(X, Y, n_threads=n_threads, **QUICK)
    assert model.digest() == tg.train(X, Y, **QUICK).digest()


def test_torch_decides_the_number_of_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        trainer = tg.Trainer(backend="cpu", **QUICK)
        trainer.fit(X, Y)
    finally:
        torch.set_num_threads(before)
    assert trainer.diagnostics()["n_threads"] == 3


def test_before_fit() -> None:
    trainer = tg.Trainer()
    assert trainer.state is tg.TrainerState.CREATED
    assert trainer.model is None
    assert trainer.history == {}
    assert trainer.diagnostics() == {"state": "created", "seconds": {}, "copied_from": {}}


def test_after_fit() -> None:
    trainer = tg.Trainer(**QUICK)
    model = trainer.fit(X, Y)
    assert trainer.state is tg.TrainerState.COMPLETED
    assert trainer.model is model
    assert {"state", "backend", "device", "n_rows", "seconds"} <= trainer.diagnostics().keys()
    assert repr(trainer) == "Trainer(objective='squared_error', n_estimators=3, state='completed')"


def test_states_seen_from_a_callback() -> None:
    seen = []
    watch = Recorder("on_round_end", lambda context: seen.append(trainer.state))
    trainer = tg.Trainer(callbacks=[watch], **QUICK)
    trainer.fit(X, Y)
    assert seen == [tg.TrainerState.ITERATING] * 3


def test_history_grows_while_training() -> None:
    lengths = []
    watch = Recorder(
        "on_round_end", lambda context: lengths.append(len(trainer.history["valid_0"]["rmse"]))
    )
    trainer = tg.Trainer(callbacks=[watch], **QUICK)
    trainer.fit(X, Y, eval_set=[OTHER])
    assert lengths == [1, 2, 3]


@pytest.mark.parametrize(
    ("eval_metric", "expected"),
    [
        (None, {"valid_0": {"rmse"}, "valid_1": {"rmse"}}),
        ("mae", {name: {"mae"} for name in ("train", "valid_0", "valid_1")}),
        (["mae", "rmse"], {name: {"mae", "rmse"} for name in ("train", "valid_0", "valid_1")}),
    ],
)
def test_training_rows_are_evaluated_only_where_a_metric_is_named(
    eval_metric: Any, expected: dict[str, set[str]]
) -> None:
    trainer = tg.Trainer(eval_metric=eval_metric, **QUICK)
    trainer.fit(X, Y, eval_set=[OTHER, (X, Y)])
    assert {name: set(metrics) for name, metrics in trainer.history.items()} == expected


def test_fit_again_is_a_new_session() -> None:
    trainer = tg.Trainer(eval_metric="rmse", **QUICK)
    first = trainer.fit(*OTHER)
    second = trainer.fit(X, Y)
    assert second.digest() == tg.train(X, Y, **QUICK).digest()
    assert trainer.model is second
    assert first.digest() == tg.train(*OTHER, **QUICK).digest()
    assert len(trainer.history["train"]["rmse"]) == 3


def test_base_margin_is_where_training_starts() -> None:
    # A margin that equals y leaves nothing to learn: every leaf is 0, and so is the baseline.
    model = tg.train(X, Y, base_margin=Y, **QUICK)
    assert model.baseline == 0
    assert torch.equal(model.predict_raw(X, base_margin=Y), Y)


def test_evaluation_set_is_a_subset_of_the_training_dataset() -> None:
    data = tg.Dataset(X, Y)
    trainer = tg.Trainer(**QUICK)
    trainer.fit(data.subset(range(150)), eval_set=[data.subset(range(150, 200))])
    other = tg.Trainer(**QUICK)
    other.fit(data.subset(range(150)), eval_set=[(X[150:], Y[150:])])
    assert trainer.history == other.history


EVENTS = ["on_train_begin", "on_round_begin", "on_round_end", "on_train_end"]


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("error", [RuntimeError("mine"), KeyboardInterrupt(), SystemExit()])
def test_failing_callback_leaves_state_failed_and_the_model_untouched(
    event: str, error: BaseException
) -> None:
    trainer = tg.Trainer(**QUICK)
    good = trainer.fit(X, Y)
    trainer._callbacks = (failing(event, error),)
    with pytest.raises(type(error)):
        trainer.fit(*OTHER)
    assert trainer.state is tg.TrainerState.FAILED
    assert trainer.diagnostics()["state"] == "failed"
    assert trainer.model is good


@pytest.mark.parametrize(
    "bad",
    [
        (X[0], Y),  # refused while reading
        (X, Y[1:]),  # refused by the session
        (X, None),
    ],
)
def test_bad_data_leaves_state_failed_and_the_model_untouched(bad: tuple[Any, Any]) -> None:
    trainer = tg.Trainer(eval_metric="rmse", **QUICK)
    good = trainer.fit(X, Y)
    with pytest.raises(InvalidDataError):
        trainer.fit(*bad)
    assert trainer.state is tg.TrainerState.FAILED
    assert trainer.model is good
    assert trainer.history == {}  # not that of the run before
    assert "n_rows" not in trainer.diagnostics()  # nor are its facts


def test_trainer_that_failed_trains_again() -> None:
    trainer = tg.Trainer(**QUICK)
    with pytest.raises(InvalidDataError):
        trainer.fit(X, Y[1:])
    assert trainer.fit(X, Y).digest() == tg.train(X, Y, **QUICK).digest()
    assert trainer.state is tg.TrainerState.COMPLETED


def test_fit_within_fit_is_refused() -> None:
    problems = []

    def fit_again(context: Any) -> None:
        with pytest.raises(StateError, match="training already"):
            trainer.fit(X, Y)
        problems.append(trainer.state)

    trainer = tg.Trainer(callbacks=[Recorder("on_train_end", fit_again)], **QUICK)
    trainer.fit(X, Y)
    assert problems == [tg.TrainerState.ITERATING]
    assert trainer.state is tg.TrainerState.COMPLETED


def test_two_trainers_train_at_the_same_time() -> None:
    models: dict[int, tg.Model] = {}

    def work(index: int) -> None:
        models[index] = tg.train(*regression(2000, seed=index), n_estimators=20)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, model in models.items():
        alone = tg.train(*regression(2000, seed=index), n_estimators=20)
        assert model.digest() == alone.digest()
    assert len(models) == 4


def test_raw_predictions_of_a_callback_are_tensors_of_the_state() -> None:
    seen: dict[str, list[torch.Tensor]] = {"train": [], "valid_0": []}

    def read(context: Any) -> None:
        for name, values in seen.items():
            values.append(context.raw_predictions(name))

    model = tg.train(X, Y, eval_set=[OTHER], callbacks=[Recorder("on_round_end", read)], **QUICK)
    for name, data in (("train", X), ("valid_0", OTHER[0])):
        for stage, expected in zip(seen[name], model.staged_predict_raw(data), strict=True):
            assert_identical(stage.numpy(), expected.numpy())


def test_history_equals_the_metric_of_the_predictions() -> None:
    # Without a baseline, raw predictions are the sums that losses are computed from; and losses
    # above 2^-30 of the largest are not rounded, so the metric is the exact mean, rounded once.
    trainer = tg.Trainer(eval_metric="mae", baseline=0.0, **QUICK)
    model = trainer.fit(X, Y)
    stages = model.staged_predict_raw(X)
    for value, raw in zip(trainer.history["train"]["mae"], stages, strict=True):
        assert value == statistics.mean((raw - Y).abs().tolist())


@pytest.mark.parametrize("fails", [False, True])
def test_trainer_keeps_nothing_of_the_data(fails: bool) -> None:
    data = X.numpy().copy()  # an array is held itself; of a tensor only its memory would be
    still_there = weakref.ref(data)
    trainer = tg.Trainer(**QUICK)
    with contextlib.suppress(InvalidDataError):
        trainer.fit(data, Y[1:] if fails else Y, eval_set=[(data, Y)])
    del data
    gc.collect()
    assert still_there() is None


def test_all_errors_are_gbdt_errors() -> None:
    with pytest.raises(GBDTError):
        tg.Trainer(n_estimators=-1)


def test_one_row() -> None:
    model = tg.train(torch.tensor([[1.0, 2.0]]), [3.0], **QUICK)
    assert model.predict(torch.tensor([[5.0, 6.0]])).tolist() == [3.0]


def test_constant_and_missing_columns() -> None:
    columns = np.stack([np.full(50, 7.0), np.full(50, np.nan)], axis=1)
    model = tg.train(columns, np.arange(50), **QUICK)
    assert model.predict(columns).tolist() == [24.5] * 50  # the mean of 0..49


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_a_trainer_can_be_copied_and_pickled(copied: Any) -> None:
    trainer = tg.Trainer(**QUICK)
    model = trainer.fit(X, Y)
    other = copied(trainer)
    assert other.model.digest() == model.digest()
    assert other.state is tg.TrainerState.COMPLETED
    assert other.fit(X, Y).digest() == model.digest()


def test_an_interrupt_while_the_model_is_handed_over_leaves_the_one_before() -> None:
    class Interrupted(tg.Trainer):
        armed = False

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "_model" and self.armed:
                self.armed = False
                raise KeyboardInterrupt

    trainer = Interrupted(**QUICK)
    good = trainer.fit(X, Y)
    trainer.armed = True
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(*OTHER)
    assert trainer.state is tg.TrainerState.FAILED
    assert trainer.model is good
    assert trainer.fit(X, Y).digest() == good.digest()


@pytest.mark.parametrize("name", ["n_estimators", "device", "callbacks"])
def test_settings_of_a_trainer_cannot_be_set_afterwards(name: str) -> None:
    with pytest.raises(AttributeError, match=f"{name} cannot be set. Make a new Trainer"):
        setattr(tg.Trainer(), name, 5)


def test_settings_can_be_read() -> None:
    trainer = tg.Trainer(n_estimators=2, max_depth=3)
    assert trainer.settings == {**tg.Trainer().settings, "n_estimators": 2, "max_depth": 3}
    X, y = regression()
    model = trainer.fit(X, y)
    assert model.settings["max_depth"] == 3
    model.settings["max_depth"] = 9
    trainer.settings["max_depth"] = 9
    assert model.settings["max_depth"] == trainer.settings["max_depth"] == 3


def test_a_continued_model_keeps_its_feature_names() -> None:
    X, y = regression(n_features=2)
    named = tg.Trainer(**QUICK).fit(tg.Dataset(X, y, feature_names=["a", "b"]))
    assert tg.Trainer(**QUICK).fit(X, y, init_model=named).feature_names == ("a", "b")
    plain = tg.Trainer(**QUICK).fit(X, y)
    data = tg.Dataset(X, y, feature_names=["a", "b"])
    assert tg.Trainer(**QUICK).fit(data, init_model=plain).feature_names == ("a", "b")
