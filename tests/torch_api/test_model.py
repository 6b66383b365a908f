"""The public model: predictions of the kind of their input, facts, and immutability."""

import copy
import pickle
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.exact import assert_identical
from support.tolerances import OFFSET_ADDED
from torch_api.small_data import QUICK, regression

import torchgbdt as tg
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError, StateError

X, Y = regression()
MODEL = tg.train(X, Y + 5, **QUICK)

PREDICTED: dict[str, tuple[Any, type, Any]] = {
    "float32 tensor": (X, torch.Tensor, torch.float32),
    "float64 tensor": (X.double(), torch.Tensor, torch.float64),
    "float16 tensor": (X.half(), torch.Tensor, torch.float32),
    "bfloat16 tensor": (X.bfloat16(), torch.Tensor, torch.float32),
    "int64 tensor": (X.nan_to_num().long(), torch.Tensor, torch.float32),
    "bool tensor": (X > 0, torch.Tensor, torch.float32),
    "float32 array": (X.numpy(), np.ndarray, np.float64),
    "int8 array": (X.nan_to_num().numpy().astype(np.int8), np.ndarray, np.float64),
    "list": (X.tolist(), np.ndarray, np.float64),
}


@pytest.mark.parametrize("method", ["predict", "predict_raw"])
@pytest.mark.parametrize("form", PREDICTED)
def test_prediction_has_the_kind_of_its_input(form: str, method: str) -> None:
    data, kind, dtype = PREDICTED[form]
    result = getattr(MODEL, method)(data)
    assert type(result) is kind
    assert result.dtype == dtype
    assert result.shape == (len(X),)


def test_prediction_is_the_baseline_plus_the_leaves() -> None:
    core = MODEL._core
    leaves = MODEL.predict_leaf(X).numpy()
    total = np.zeros(len(X), np.float32)
    for tree in range(MODEL.n_trees):
        total = total + core.forest.tree(tree).value[leaves[:, tree], 0]
    baseline = MODEL.baseline
    high = np.float32(baseline)
    low = np.float32(baseline - float(high))
    assert_identical(MODEL.predict_raw(X).numpy(), high + (low + total))
    assert_identical(MODEL.predict_raw(X.double()).numpy(), baseline + total.astype(np.float64))


def test_predict_of_squared_error_is_the_raw_prediction() -> None:
    assert torch.equal(MODEL.predict(X), MODEL.predict_raw(X))


def test_predictions_require_no_grad() -> None:
    assert not MODEL.predict(X.clone().requires_grad_()).requires_grad


def test_leaves_are_int32_per_tree() -> None:
    leaves = MODEL.predict_leaf(X)
    assert leaves.dtype == torch.int32
    assert leaves.shape == (len(X), MODEL.n_trees)
    assert_identical(MODEL.predict_leaf(X.numpy()), leaves.numpy())
    for tree in range(MODEL.n_trees):
        assert MODEL._core.forest.tree(tree).is_leaf[leaves[:, tree].numpy()].all()


def test_stages_are_the_truncated_models() -> None:
    stages = list(MODEL.staged_predict_raw(X))
    assert len(stages) == MODEL.n_rounds
    for index, stage in enumerate(stages):
        assert torch.equal(stage, MODEL.truncate(index + 1).predict_raw(X))


def test_stages_are_results_of_their_own() -> None:
    stages = MODEL.staged_predict_raw(X)
    first = next(stages)
    kept = first.clone()
    first.zero_()
    assert torch.equal(next(stages), list(MODEL.staged_predict_raw(X))[1])
    assert torch.equal(next(MODEL.staged_predict_raw(X)), kept)


def test_staged_prediction_checks_its_arguments_at_once() -> None:
    with pytest.raises(InvalidDataError):
        MODEL.staged_predict_raw(X[:, :2])


def test_a_stage_costs_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    trees = []
    from torchgbdt.backends.oracle import OracleBackend

    class Counting(OracleBackend):
        def predict(self, forest: Any, source: Any, sums: Any) -> None:
            trees.append(forest.n_trees)
            super().predict(forest, source, sums)

    monkeypatch.setattr("torchgbdt.torch_api.model.make_backend", lambda *_: Counting())
    list(MODEL.staged_predict_raw(X))
    assert trees == [1] * MODEL.n_rounds


def test_base_margin_is_added_to_the_trees() -> None:
    margin = np.linspace(-3, 3, len(X))
    model = tg.train(X, Y, base_margin=margin, **QUICK)
    plain = model.predict_raw(X.double(), base_margin=np.zeros(len(X)))
    found = model.predict_raw(X.double(), base_margin=margin)
    # float32(margin + sum) in float64: the baseline is 0
    expected = (torch.from_numpy(margin).float() + plain.float()).double()
    assert torch.equal(found, expected)
    assert torch.equal(model.predict(X.double(), base_margin=margin), found)
    assert torch.equal(list(model.staged_predict_raw(X.double(), base_margin=margin))[-1], found)


def test_a_model_that_was_trained_with_a_margin_warns_without_one(tmp_path: Path) -> None:
    model = tg.train(X, Y, base_margin=np.ones(len(X)), **QUICK)
    model.save(tmp_path / "m")
    for one in (model, tg.load(tmp_path / "m"), tg.train(X, Y, init_model=model, **QUICK)):
        for method in (one.predict, one.predict_raw, one.staged_predict):
            with pytest.warns(UserWarning, match="was trained with base_margin"):
                method(X)
    assert "base_margin" not in MODEL.settings


@pytest.mark.parametrize(
    ("margin", "message"),
    [
        (np.ones(3), r"base_margin has shape \(3,\); X has 200 rows"),
        (np.full(200, np.nan), "base_margin has nan in row 0"),
        ("abc", "base_margin is a builtins.str"),
    ],
)
def test_refused_margins(margin: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        MODEL.predict(X, base_margin=margin)


@pytest.mark.parametrize("form", [torch.ones(0, 4), np.ones((0, 4))], ids=["tensor", "array"])
def test_no_rows_give_an_empty_result(form: Any) -> None:
    assert MODEL.predict(form).shape == (0,)
    assert MODEL.predict_leaf(form).shape == (0, MODEL.n_trees)
    assert [stage.shape for stage in MODEL.staged_predict_raw(form)] == [(0,)] * MODEL.n_rounds


@pytest.mark.parametrize("method", ["predict", "predict_raw", "predict_leaf", "staged_predict_raw"])
def test_other_number_of_columns_is_refused(method: str) -> None:
    with pytest.raises(InvalidDataError, match="X has 3 columns; the model was trained on 4"):
        getattr(MODEL, method)(X[:, :3])


def test_refusal_names_the_columns_where_they_have_names() -> None:
    model = tg.train(tg.Dataset(X, Y, feature_names=["a", "b", "c", "d"]), **QUICK)
    with pytest.raises(InvalidDataError, match="trained on 4: a, b, c, d"):
        model.predict(X[:, :3])


@pytest.mark.parametrize("data", [X[0], "abc", None, X.to_sparse()])
def test_data_that_is_no_matrix_is_refused(data: Any) -> None:
    with pytest.raises(InvalidDataError, match="X "):
        MODEL.predict(data)


def test_prediction_of_a_dataset_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="Dataset"):
        MODEL.predict(tg.Dataset(X))


def test_regression_has_no_probabilities() -> None:
    with pytest.raises(StateError, match=r"needs a classifier.*'squared_error'. Use predict"):
        MODEL.predict_proba(X)


def test_facts() -> None:
    assert (MODEL.n_rounds, MODEL.n_trees, MODEL.n_features) == (3, 3, 4)
    assert MODEL.feature_names is None
    assert MODEL.classes is None
    assert MODEL.best_iteration is None
    assert MODEL.objective == "squared_error"
    assert repr(MODEL) == "Model(objective='squared_error', n_rounds=3, n_features=4)"


def test_baseline_is_the_mean_as_a_float() -> None:
    assert type(MODEL.baseline) is float
    assert statistics.mean((Y + 5).tolist()) == MODEL.baseline  # both round an exact sum once


def test_given_baseline_is_kept() -> None:
    assert tg.train(X, Y, baseline=1.25, **QUICK).baseline == 1.25


def test_feature_names_come_from_the_dataset() -> None:
    data = tg.Dataset(X, Y, feature_names=["a", "b", "c", "d"])
    assert tg.train(data, **QUICK).feature_names == ("a", "b", "c", "d")


@pytest.mark.parametrize("kind", ["gain", "split", "cover"])
def test_importance_is_a_float64_array(kind: str) -> None:
    importance = MODEL.feature_importance(kind)
    assert importance.dtype == np.float64
    assert importance.shape == (4,)
    assert importance.sum() > 0


def test_default_importance_is_gain() -> None:
    assert_identical(MODEL.feature_importance(), MODEL.feature_importance(kind="gain"))


def test_unknown_importance_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="kind must be one of 'gain', 'split', 'cover'"):
        MODEL.feature_importance("weight")


@pytest.mark.parametrize("n_rounds", [-1, 4, 1.0, True, None])
def test_refused_truncation(n_rounds: Any) -> None:
    with pytest.raises(InvalidParameterError, match="n_rounds"):
        MODEL.truncate(n_rounds)


def test_truncation_is_the_model_trained_with_fewer_rounds() -> None:
    fewer = tg.train(X, Y + 5, **{**QUICK, "n_estimators": 2})
    assert MODEL.truncate(2).digest() == fewer.digest()
    assert MODEL.n_rounds == 3


def test_model_without_trees_predicts_the_baseline() -> None:
    empty = MODEL.truncate(0)
    assert (empty.n_rounds, empty.n_trees) == (0, 0)
    assert torch.equal(
        empty.predict(X.double()), torch.full((len(X),), MODEL.baseline, dtype=torch.float64)
    )
    assert list(empty.staged_predict_raw(X)) == []
    assert empty.feature_importance().tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("name", ["baseline", "n_rounds", "_core", "anything"])
def test_model_is_immutable(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(MODEL, name, 1)
    with pytest.raises(AttributeError):
        delattr(MODEL, name)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_copies_are_the_same_model(copied: Any) -> None:
    other = copied(MODEL)
    assert other.digest() == MODEL.digest()
    assert torch.equal(other.predict(X), MODEL.predict(X))


def test_structure_digest_ignores_the_scale_of_features() -> None:
    levels = (X.nan_to_num() * 4).round()
    one, other = tg.train(levels, Y, **QUICK), tg.train(levels * 3 + 1, Y, **QUICK)
    assert one.structure_digest() == other.structure_digest()
    assert one.digest() != other.digest()


def test_large_offset_costs_float64_predictions_nothing() -> None:
    y = Y.double() + 1e9
    leaves_of_one_row = {"max_depth": None, "min_samples_leaf": 1, "reg_lambda": 0.0}
    model = tg.train(X, y, n_estimators=3, learning_rate=1.0, **leaves_of_one_row)
    error = (model.predict(X.double()) - y).abs().max()
    assert error <= OFFSET_ADDED * (y - y.mean()).abs().max()  # float32 is 64 apart at 1e9


@pytest.mark.parametrize("kind", [None, 0, np.zeros(2), ["gain"]], ids=repr)
def test_importance_of_what_is_no_name_is_refused(kind: Any) -> None:
    with pytest.raises(InvalidParameterError, match="kind must be one of"):
        MODEL.feature_importance(kind)
