"""EarlyStopping: when it stops, what it keeps, and what it refuses to monitor."""

from typing import Any

import pytest
from torch_api.small_data import QUICK, regression

import torchgbdt as tg
from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.observer import TrainingContext
from torchgbdt.torch_api.callbacks import EarlyStopping

INF, NAN = float("inf"), float("nan")


def play(
    stopper: EarlyStopping, values: list[float], *, higher_is_better: bool = False
) -> tuple[int, int | None]:
    """Feed a metric round by round; returns rounds run and the round that is kept."""
    metrics: list[float] = []
    history = {"valid_0": {"score": metrics}}
    context = TrainingContext(len(values), history, {"score": higher_is_better}, lambda name: None)
    stopper.on_train_begin(context)
    for index, value in enumerate(values):
        context.round = index
        stopper.on_round_begin(context)
        metrics.append(value)
        stopper.on_round_end(context)
        if context.stop_requested:
            break
    stopper.on_train_end(context)
    return len(metrics), context.best_iteration


@pytest.mark.parametrize(
    ("values", "patience", "rounds", "best"),
    [
        ([5, 4, 3, 2, 1], 2, 5, 4),  # always better: never stops, the last is best
        ([5, 4, 6, 7, 1], 2, 4, 1),  # rounds 2 and 3 are not better than round 1
        ([5, 4, 6, 3, 7, 8], 2, 6, 3),  # round 3 comes just in time
        ([5, 4, 4, 4], 2, 4, 1),  # a tie is no improvement: the earlier one is kept
        ([1, 2, 3], 9, 3, 0),  # patience does not run out: the best is kept all the same
        ([1, 2], 1, 2, 0),
        ([INF, INF, 3, 4, 5], 2, 5, 2),
        ([INF, INF, INF, INF], 2, 3, 0),
        ([NAN, 3, NAN, NAN], 2, 4, 1),  # nan is worse than any number
        ([NAN, NAN, NAN], 2, 3, 0),
        ([NAN, INF, INF], 2, 3, 0),  # nan counts as infinite
        ([-INF, -INF, 0], 2, 3, 0),
    ],
)
def test_stops_and_keeps(values: list[float], patience: int, rounds: int, best: int) -> None:
    assert play(EarlyStopping(patience), values) == (rounds, best)


@pytest.mark.parametrize(
    ("values", "rounds", "best"),
    [
        ([0.1, 0.3, 0.2, 0.2], 4, 1),
        ([0.1, 0.1, 0.1], 3, 0),
        ([NAN, 0.1, NAN, 0.0], 4, 1),
        ([-INF, 0.1, 0.0, INF], 4, 3),
    ],
)
def test_higher_is_better_turns_the_order_around(
    values: list[float], rounds: int, best: int
) -> None:
    assert play(EarlyStopping(2), values, higher_is_better=True) == (rounds, best)


@pytest.mark.parametrize(
    ("values", "best"),
    [
        ([10.0, 9.5, 9.0], 0),  # 9 is better by exactly 1, which is not more than 1
        ([10.0, 9.5, 8.9, 8.5], 2),
        ([INF, 5.0], 1),
    ],
)
def test_improvement_must_exceed_min_delta(values: list[float], best: int) -> None:
    assert play(EarlyStopping(9, min_delta=1), values)[1] == best


def test_best_round_and_value_can_be_read() -> None:
    stopper = EarlyStopping(2)
    play(stopper, [3, 1, 2])
    assert (stopper.best_round, stopper.best_value) == (1, 1)


def test_instance_forgets_the_run_before() -> None:
    stopper = EarlyStopping(2)
    play(stopper, [1, 2, 3])
    assert play(stopper, [9, 8, 7, 8, 9]) == (5, 2)


def test_last_of_two_decides_what_is_kept() -> None:
    X, y = regression()
    by_rmse, by_train = EarlyStopping(1, metric="rmse"), EarlyStopping(50, dataset="train")
    settings = {**QUICK, "n_estimators": 30, "eval_metric": ["mae", "rmse"]}
    trainer = tg.Trainer(callbacks=[by_rmse, by_train], **settings)
    model = trainer.fit(X, y, eval_set=[regression(seed=1)])
    assert by_rmse.best_round != by_train.best_round
    assert model.best_iteration == by_train.best_round


def test_stopped_model_is_the_model_trained_with_that_many_rounds() -> None:
    X, y = regression(400)
    settings: dict[str, Any] = {"max_depth": 6, "learning_rate": 0.3, "min_samples_leaf": 1}
    trainer = tg.Trainer(n_estimators=500, callbacks=[EarlyStopping(5)], **settings)
    model = trainer.fit(X, y, eval_set=[regression(100, seed=1)])
    values = trainer.history["valid_0"]["rmse"]
    best = values.index(min(values))
    assert model.best_iteration == best
    assert model.n_rounds == best + 1
    assert len(values) == best + 1 + 5
    assert model.digest() == tg.train(X, y, n_estimators=best + 1, **settings).digest()


def test_last_evaluation_set_is_monitored() -> None:
    X, y = regression()
    stopper = EarlyStopping()
    trainer = tg.Trainer(callbacks=[stopper], **QUICK)
    trainer.fit(X, y, eval_set=[regression(seed=1), regression(seed=2)])
    assert stopper.best_value == min(trainer.history["valid_1"]["rmse"])


@pytest.mark.parametrize("dataset", ["train", "valid_0"])
@pytest.mark.parametrize("metric", ["rmse", "mae"])
def test_dataset_and_metric_may_be_named(dataset: str, metric: str) -> None:
    X, y = regression()
    stopper = EarlyStopping(metric=metric, dataset=dataset)
    trainer = tg.Trainer(callbacks=[stopper], eval_metric=["rmse", "mae"], **QUICK)
    trainer.fit(X, y, eval_set=[regression(seed=1), regression(seed=2)])
    assert stopper.best_value == min(trainer.history[dataset][metric])


@pytest.mark.parametrize(
    ("stopper", "message"),
    [
        (EarlyStopping(), r"needs data that is not trained on; pass eval_set=\[\(X, y\)\] to fit"),
        (EarlyStopping(dataset="valid_1"), r"dataset='valid_1'.*it has \[\]"),
        (EarlyStopping(dataset="train"), "'train' is evaluated where eval_metric is named"),
    ],
)
def test_nothing_to_monitor_is_refused(stopper: EarlyStopping, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        tg.train(*regression(), callbacks=[stopper], **QUICK)


def test_metric_that_is_not_evaluated_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"metric='mae'.*it has \['rmse'\]"):
        tg.train(
            *regression(),
            eval_set=[regression()],
            callbacks=[EarlyStopping(metric="mae")],
            **QUICK,
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("patience", 0),
        ("patience", 2.5),
        ("patience", True),
        ("metric", 3),
        ("dataset", ["valid_0"]),
        ("min_delta", -0.1),
        ("min_delta", NAN),
        ("min_delta", "0"),
    ],
)
def test_refused_arguments(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameterError, match=name):
        EarlyStopping(**{name: value})


@pytest.mark.parametrize(
    ("values", "rounds", "best"),
    [
        ([5, 4, 4], 2, 1),  # never better than the 3 that the continued model had
        ([4, 2, 4, 4], 4, 3),
        ([3, 3], 2, 1),  # a tie keeps the model that there was
        ([NAN, 2], 2, 3),
    ],
)
def test_a_continued_model_stays_as_it_was_unless_it_gets_better(
    values: list[float], rounds: int, best: int
) -> None:
    metrics: list[float] = []
    context = TrainingContext(
        len(values),
        {"valid_0": {"score": metrics}},
        {"score": False},
        lambda name: None,
        first_round=2,
        first_values={"valid_0": {"score": 3.0}},
    )
    stopper = EarlyStopping(2)
    stopper.on_train_begin(context)
    assert (stopper.best_round, stopper.best_value) == (1, 3.0)
    for index, value in enumerate(values):
        context.round = 2 + index
        metrics.append(value)
        stopper.on_round_end(context)
        if context.stop_requested:
            break
    assert (len(metrics), context.best_iteration) == (rounds, best)


def test_going_on_with_the_best_model_never_makes_it_worse() -> None:
    X, y = regression(300)
    X_valid, y_valid = regression(100, seed=1)

    def go_on(model: tg.Model | None) -> tuple[tg.Model, float]:
        stop = EarlyStopping(3)
        trainer = tg.Trainer(n_estimators=60, callbacks=[stop], min_samples_leaf=2)
        model = trainer.fit(X, y, eval_set=[(X_valid, y_valid)], init_model=model)
        return model, stop.best_value

    model, value = go_on(None)
    for _ in range(3):
        better, new_value = go_on(model)
        assert new_value <= value
        assert (new_value < value) == (better.digest() != model.digest())
        model, value = better, new_value
