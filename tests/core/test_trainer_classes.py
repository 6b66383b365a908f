"""Sessions on classes: what the model, the history, the callbacks and the backend get of them."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from core.recording import RecordingBackend
from core.sessions import N_ROWS, At, data_for, labels_for, n_outputs, raw_for, run, session_for
from support.exact import assert_identical
from support.ranks import run_ranks

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.observer import TrainingContext
from torchgbdt.core.raw_predictions import raw_float32
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.states import TrainerState

of_classes = pytest.mark.parametrize("objective", ["logistic", "softmax"])

# ---------------------------------------------------------------------------------------- model


@pytest.mark.parametrize(
    ("objective", "classes"), [("logistic", ["no", "yes"]), ("softmax", [10, 20, 40])]
)
def test_the_model_knows_its_classes_in_code_order(objective: str, classes: list[Any]) -> None:
    model = run(data_for(objective), objective)
    assert model.classes.tolist() == classes
    assert (model.objective, model.link) == (objective, objective)
    assert model.n_outputs == model.trees_per_round == n_outputs(objective)
    assert (model.n_rounds, model.n_trees) == (3, 3 * n_outputs(objective))
    assert model.forest.n_outputs == 1


def test_labels_need_not_be_codes_nor_in_order() -> None:
    codes = np.array([10, 20, 40]).searchsorted(labels_for("softmax"))
    expected = run(TrainingData(raw_for("softmax", labels=codes)), "softmax")
    for names in (np.array(["c", "d", "e"]), np.array([-5.0, 0.0, 7.0])):
        found = run(TrainingData(raw_for("softmax", labels=names[codes])), "softmax")
        assert_identical(found.forest, expected.forest)
        assert found.classes.tolist() == names.tolist()
        assert found.digest() != expected.digest()


def test_labels_that_the_user_changes_during_training_are_not_looked_at() -> None:
    labels = labels_for("softmax")
    spoil = At("on_train_begin", lambda context: labels.fill(10))
    found = run(TrainingData(raw_for("softmax", labels=labels)), "softmax", spoil)
    assert found.digest() == run(data_for("softmax"), "softmax").digest()


@pytest.mark.parametrize(
    ("objective", "digest"),
    [
        (
            "squared_error",
            "13e53578ec5b18ffcb3564cdcf73822422487422057df4aff5588ad8d72450d9",
        ),
        ("logistic", "e1f3d4605b2682a5f395472772773942016ec3efca6293012eb90593b4dc8f6d"),
        ("softmax", "ffd40cf5d99dcaee1725c51233ce70fdcadfa6812df7247b335930db6ac69717"),
    ],
)
def test_trained_models_are_pinned(objective: str, digest: str) -> None:
    # Baselines, gradients, splits and leaf values have the same bits on every machine and in every
    # version. What changes them on purpose says so in the README, and then changes these.
    model = run(data_for(objective), objective, n_estimators=5)
    assert all(tree.depth == 2 for tree in model.forest.trees())
    assert model.digest() == digest


def one_bin(y: Any, weights: Any = None) -> TrainingData:
    """Nothing to split: each tree is a leaf."""
    return TrainingData(RawData(HostMatrix(np.ones((len(y), 1))), np.asarray(y), weights))


def test_leaves_of_logistic_by_hand() -> None:
    # Started at 0: g = 1/2 for the first class, -1/2 for the second, and h = 1/4.
    # Three rows of the second: -G/H = (3/2 - 1/2) / 1 = 1.
    settings = {"baseline": 0.0, "reg_lambda": 0.0, "learning_rate": 1.0, "n_estimators": 1}
    model = run(one_bin(["a", "b", "b", "b"]), "logistic", **settings)
    assert model.forest.nodes.value.tolist() == [[1.0]]
    # Weights 3 and 1: G = 3/2 - 1/2, H = 3/4 + 1/4.
    model = run(one_bin([True, False], np.array([1.0, 3.0])), "logistic", **settings)
    assert model.forest.nodes.value.tolist() == [[-1.0]]


def test_leaves_of_softmax_by_hand() -> None:
    # Four classes started at 0: p = 1/4; g = -3/4 for the row's own class, else 1/4; h = 3/8.
    # Of eight rows n_k = 4, 2, 1 and 1 have class k: G = 8/4 - n_k, H = 8 * 3/8 = 3.
    y = [7] * 4 + [8] * 2 + [9, 10]
    settings = {"baseline": 0.0, "reg_lambda": 0.0, "learning_rate": 1.0, "n_estimators": 1}
    model = run(one_bin(y), "softmax", **settings)
    expected = [[2 / 3], [0.0], [-1 / 3], [-1 / 3]]
    assert_identical(model.forest.nodes.value, np.array(expected, np.float32))
    assert model.trees_per_round == 4


@of_classes
def test_an_unfit_number_of_classes_fails_the_session(objective: str) -> None:
    labels = np.array([1, 1, 1]) if objective == "softmax" else np.array([1, 2, 3])
    backend = RecordingBackend()
    session = session_for(objective, backend=backend)
    with pytest.raises(InvalidDataError, match=r"^y has (one class only|3 classes)"):
        session.run(TrainingData(raw_for(objective, 3, labels=labels)))
    assert session.state is TrainerState.FAILED
    assert "prepare" not in backend.names


# -------------------------------------------------------------------------------------- history


@pytest.mark.parametrize(
    ("objective", "eval_metric", "expected"),
    [
        ("logistic", None, {"valid_0": ["logloss"]}),
        ("softmax", None, {"valid_0": ["logloss"]}),
        ("logistic", ["auc", "error"], {one: ["auc", "error"] for one in ("train", "valid_0")}),
        ("softmax", "error", {one: ["error"] for one in ("train", "valid_0")}),
        ("squared_error", ["r2"], {one: ["r2"] for one in ("train", "valid_0")}),
    ],
)
def test_history_has_the_metrics_of_the_objective(
    objective: str, eval_metric: Any, expected: dict[str, list[str]]
) -> None:
    session = session_for(objective, eval_metric=eval_metric)
    session.run(data_for(objective, 1))
    assert {name: list(metrics) for name, metrics in session.history.items()} == expected
    values = [value for one in session.history.values() for two in one.values() for value in two]
    assert len(values) == 3 * sum(map(len, expected.values()))
    assert np.isfinite(values).all()


def test_history_of_logistic_by_hand() -> None:
    # Started at 0 with weights 3 and 1: G = 3/2 - 1/2, H = 3/4 + 1/4, so a leaf is -1/2 times a
    # learning rate that moves nothing visible: exp(-|x|) = 1, each loss is ln 2, and the likelier
    # class of a tie is the first, which has 3/4 of the weight.
    settings = {"baseline": 0.0, "learning_rate": 1e-30, "eval_metric": ["logloss", "error", "auc"]}
    session = session_for("logistic", **settings)
    session.run(one_bin([0, 1], np.array([3.0, 1.0])))
    ln2 = float(np.float32(np.log(2)))
    train = session.history["train"]
    assert train == {"logloss": [ln2] * 3, "error": [0.25] * 3, "auc": [0.5] * 3}


def test_an_eval_set_that_lacks_a_class_has_no_area() -> None:
    one = TrainingData(raw_for("logistic"), [raw_for("logistic", 2, labels=np.array(["no"] * 2))])
    session = session_for("logistic", eval_metric="auc")
    session.run(one)
    assert np.isnan(session.history["valid_0"]["auc"]).all()
    assert np.isfinite(session.history["train"]["auc"]).all()


# ---------------------------------------------------------------------- the backend and callbacks


@of_classes
def test_the_backend_sees_codes_raw_predictions_and_margins(objective: str) -> None:
    k = n_outputs(objective)
    backend = RecordingBackend()
    own, other = np.ones((24, k)), np.full((11, k), 2.0)
    session = session_for(objective, backend=backend)
    session.run(data_for(objective, 1, margins=own, valid_margins=[other]))
    ((train, (valid,), settings),) = backend.arguments("prepare")
    classes = np.unique(labels_for(objective))
    for rows, margins, n_rows in ((train, own, 24), (valid, other, 11)):
        codes = classes.searchsorted(labels_for(objective, n_rows))
        assert_identical(rows.labels, codes.astype(np.float32))
        assert_identical(rows.margins, margins.astype(np.float32))
        assert rows.start is None
    assert_identical(settings.baseline, np.zeros(k))  # margins replace it
    assert settings.objective.n_outputs == k
    assert settings.tree_outputs == 1
    assert not settings.constant_hessian


@of_classes
def test_the_trees_of_a_round_are_for_one_output_each(objective: str) -> None:
    k = n_outputs(objective)
    backend = RecordingBackend()
    run(data_for(objective), objective, backend=backend)
    outputs = [output for (output,) in backend.arguments("compute_gradients")]
    assert outputs == [*range(k)] * 3
    assert [output for _, output in backend.arguments("update_predictions")] == outputs
    assert [tree for (tree,) in backend.arguments("sample_rows")] == [*range(3 * k)]


@of_classes
def test_callbacks_read_raw_predictions_with_a_column_per_output(objective: str) -> None:
    seen: list[np.ndarray] = []
    read = At("on_round_end", lambda context: seen.append(context.raw_predictions("valid_0")))
    model = run(data_for(objective, 1), objective, read)
    for round_index, found in enumerate(seen):
        sums = np.zeros((11, n_outputs(objective)), np.float32)
        OracleBackend().predict(
            model.truncate(round_index + 1).forest, raw_for(objective, 11).source, sums
        )
        assert_identical(found, raw_float32(model.baseline, sums, None))


@of_classes
def test_the_model_is_cut_back_between_rounds(objective: str) -> None:
    keep = At("on_train_end", lambda context: context.keep_best(1))
    found = run(data_for(objective), objective, keep)
    assert (found.best_iteration, found.n_trees) == (1, 2 * n_outputs(objective))
    assert found.digest() == run(data_for(objective), objective, n_estimators=2).digest()


def test_the_context_says_which_metrics_are_better_when_larger() -> None:
    seen: list[TrainingContext] = []
    run(
        data_for("logistic"),
        "logistic",
        At("on_train_begin", seen.append),
        eval_metric=["auc", "error"],
    )
    assert seen[0].higher_is_better == {"auc": True, "error": False}


# ---------------------------------------------------------------------------------------- ranks


@of_classes
def test_ranks_that_see_different_classes_train_the_model_of_all_rows(objective: str) -> None:
    y = labels_for(objective)
    order = np.argsort(y, kind="stable")
    X, y = raw_for(objective).source.values[order], y[order]
    metrics = ["logloss", "error", *(["auc"] if objective == "logistic" else [])]

    def outcome(rows: slice, communicator: Communicator = SINGLE_RANK) -> Any:
        session = session_for(objective, communicator=communicator, eval_metric=metrics)
        model = session.run(TrainingData(RawData(HostMatrix(X[rows]), y[rows])))
        return model.digest(), session.history, model.classes.tolist()

    # the first rank has no rows, each of the others has one class
    borders = [0, 0, *(np.flatnonzero(y[1:] != y[:-1]) + 1).tolist(), N_ROWS]
    shards = [slice(*pair) for pair in pairwise(borders)]
    found = run_ranks(len(shards), lambda c: outcome(shards[c.rank], c))
    assert found == [outcome(slice(None))] * len(shards)
