"""Class labels in model files: every type comes back, and nothing else is taken for labels."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serialization.model_files import put_together, small_model, take_apart
from support.exact import assert_identical

from torchgbdt.core.class_labels import MAX_CLASSES
from torchgbdt.core.errors import ModelFormatError
from torchgbdt.core.model import Model
from torchgbdt.serialization import model_from_bytes, model_to_bytes

LARGEST = 2**64 - 1


def classifier(classes: np.ndarray, objective: str = "softmax") -> Model:
    """Two rounds; one output for logistic, one per class for softmax."""
    n_outputs = 1 if objective == "logistic" else classes.size
    return small_model(
        n_trees=2 * n_outputs,
        classes=classes,
        objective=objective,
        link=objective,
        baseline=np.linspace(-1, 1, n_outputs),
        trees_per_round=n_outputs,
        best_iteration=1,
    )


@pytest.mark.parametrize(
    "classes",
    [
        np.array([False, True]),
        np.array([-7, 0, 3, 2**62]),
        np.array([1, LARGEST], np.uint64),
        np.array([-2.0, 0.0, 1e300]),
        np.array(["", "a", "größe", "z" * 50]),
    ],
    ids=lambda classes: classes.dtype.name,
)
def test_labels_of_every_type_come_back(classes: np.ndarray) -> None:
    model = classifier(classes)
    data = model_to_bytes(model)
    back = model_from_bytes(data)
    assert back.classes is not None and back.classes.dtype == classes.dtype
    assert_identical(back.classes.tolist(), classes.tolist())
    assert back.digest() == model.digest()
    assert model_to_bytes(back) == data


@given(st.lists(st.text(), min_size=2, max_size=2, unique_by=lambda text: text.rstrip("\0")))
def test_texts_are_any_texts(labels: list[str]) -> None:
    classes = np.unique(np.array(labels))
    back = model_from_bytes(model_to_bytes(classifier(classes, "logistic")))
    assert back.classes is not None and back.classes.tolist() == classes.tolist()


def test_predictions_of_a_regression_and_of_classes_are_told_apart() -> None:
    assert model_from_bytes(model_to_bytes(small_model())).classes is None


def refusal(data: bytes) -> str:
    with pytest.raises(ModelFormatError) as caught:
        model_from_bytes(data)
    return str(caught.value)


def with_metadata(model: Model, **changes: Any) -> bytes:
    header, metadata, arrays = take_apart(model_to_bytes(model))
    return put_together(header, {**metadata, **changes}, arrays)


@pytest.mark.parametrize(
    "classes",
    [
        [0, 1],
        {"values": [0, 1]},
        {"dtype": "int64", "values": [0, 1], "more": 1},
        {"dtype": "int64", "values": {"0": 0, "1": 1}},
        {"dtype": "int64", "values": [0]},
        {"dtype": "int64", "values": [1, 0]},
        {"dtype": "int64", "values": [0, 0]},
        {"dtype": "int64", "values": [0, 1.0]},
        {"dtype": "int64", "values": [False, True]},
        {"dtype": "int64", "values": [0, 2**63]},
        {"dtype": "uint64", "values": [-1, 2]},
        {"dtype": "uint64", "values": [0, 2**64]},
        {"dtype": "bool", "values": [0, 1]},
        {"dtype": "float64", "values": [0, 1]},
        {"dtype": "str", "values": ["a", 1]},
        {"dtype": "str", "values": ["a", "b\0"]},
        {"dtype": "str", "values": ["a", "b" * 1001]},  # numpy would give all labels its room
        {"dtype": "object", "values": ["a", "b"]},
        {"dtype": ["str"], "values": ["a", "b"]},
        {"dtype": "int64", "values": list(range(MAX_CLASSES + 1))},
    ],
)
def test_what_training_never_finds_is_no_list_of_classes(classes: Any) -> None:
    data = with_metadata(classifier(np.array([0, 1]), "logistic"), classes=classes)
    assert refusal(data) == "invalid model file: its classes is not valid."


def test_classes_and_objective_belong_together() -> None:
    labels = {"dtype": "int64", "values": [0, 1]}
    assert "no classes" in refusal(with_metadata(small_model(), classes=labels))
    of_two = classifier(np.array([0, 1]), "logistic")
    assert "its objective has classes" in refusal(with_metadata(of_two, classes=None))
    of_three = {"dtype": "int64", "values": [0, 1, 2]}
    assert "number of classes" in refusal(with_metadata(of_two, classes=of_three))
    softmax = classifier(np.array([0, 1]))
    assert "trees_per_round" in refusal(with_metadata(softmax, classes=of_three))


def test_another_label_is_another_model() -> None:
    labels = {"dtype": "int64", "values": [0, 2]}
    data = with_metadata(classifier(np.array([0, 1]), "logistic"), classes=labels)
    assert "damaged" in refusal(data)
