"""Models: what they hold, how they are cut, and what does not fit together."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from core.hand_made import changed, leaf, model, tree
from support.exact import assert_identical

from torchgbdt.core.errors import InvalidParameterError, ModelFormatError
from torchgbdt.core.model import Model, check_model
from torchgbdt.core.tree import Forest

LARGEST = float(np.finfo(np.float32).max)


def two_outputs(**changes: Any) -> Model:
    """Two rounds of two trees each."""
    forest = Forest.from_trees([leaf(1), leaf(2), leaf(3), leaf(4)], 1)
    return model(**{"forest": forest, "baseline": np.zeros(2), "trees_per_round": 2, **changes})


def test_counts_of_rounds_trees_and_outputs() -> None:
    assert (model().n_rounds, model().n_trees, model().n_outputs) == (3, 3, 1)
    assert (two_outputs().n_rounds, two_outputs().n_trees, two_outputs().n_outputs) == (2, 4, 2)


def test_a_model_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        model().baseline = np.zeros(1)


def test_the_trees_of_a_round() -> None:
    assert_identical(model().round_forest(1), Forest.from_trees([leaf(0.5)], 1))
    assert two_outputs().round_forest(1).nodes.value.tolist() == [[3], [4]]


# ------------------------------------------------------------------------------------- truncate


@pytest.mark.parametrize("n_rounds", [0, 1, 2, 3, np.int64(2)])
def test_truncate_keeps_the_first_rounds(n_rounds: int) -> None:
    trees = [tree(), leaf(0.5), tree()][:n_rounds]
    cut = model(best_iteration=None).truncate(n_rounds)
    assert cut.digest() == model(forest=Forest.from_trees(trees, 1)).digest()
    assert cut.n_rounds == n_rounds
    check_model(cut)


def test_truncate_cuts_between_rounds_and_not_between_trees() -> None:
    assert two_outputs().truncate(1).forest.nodes.value.tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("best", "n_rounds", "expected"), [(1, 3, 1), (1, 2, 1), (1, 1, None), (None, 1, None)]
)
def test_truncate_keeps_the_best_round_only_if_it_is_left(
    best: int | None, n_rounds: int, expected: int | None
) -> None:
    assert model(best_iteration=best).truncate(n_rounds).best_iteration == expected


def test_truncate_leaves_the_model_as_it_was() -> None:
    one = model(feature_names=("a", "b"), settings={"gamma": 0.5})
    cut = one.truncate(1)
    assert (one.n_rounds, cut.n_rounds) == (3, 1)
    assert (cut.feature_names, cut.settings) == (("a", "b"), {"gamma": 0.5})


@pytest.mark.parametrize(
    ("n_rounds", "message"),
    [
        (-1, "n_rounds must lie in 0..3, the model's rounds; found -1."),
        (4, "n_rounds must lie in 0..3, the model's rounds; found 4."),
        (True, "n_rounds must be an integer; found True."),
        (1.0, "n_rounds must be an integer; found 1.0."),
        ("1", "n_rounds must be an integer; found '1'."),
        (None, "n_rounds must be an integer; found None."),
    ],
)
def test_truncate_refuses_rounds_that_are_not_there(n_rounds: Any, message: str) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        model().truncate(n_rounds)
    assert str(caught.value) == message


# ----------------------------------------------------------------------------------- importance


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # The tree is there twice: x0 gains 1.25 over 6 rows, x1 gains 3.5 over 10; x2 is unused.
        ("gain", [2.5, 7.0, 0.0]),
        ("split", [2.0, 2.0, 0.0]),
        ("cover", [12.0, 20.0, 0.0]),
    ],
)
def test_importance_by_hand(kind: str, expected: list[float]) -> None:
    assert_identical(model(n_features=3).feature_importance(kind), np.array(expected))


def test_a_model_without_splits_has_no_importance() -> None:
    empty = model(forest=Forest.from_trees([], 1))
    for one in (empty, model(forest=Forest.from_trees([leaf(1)], 1))):
        assert one.feature_importance("gain").tolist() == [0, 0]


def test_importance_names_the_kinds_there_are() -> None:
    with pytest.raises(InvalidParameterError) as caught:
        model().feature_importance("weight")
    assert str(caught.value) == ("kind must be one of 'gain', 'split', 'cover'; found 'weight'.")


# --------------------------------------------------------------------------------- check_model


@pytest.mark.parametrize(
    "one",
    [
        model(),
        two_outputs(),
        model(feature_names=("a", "b"), best_iteration=2),
        model(baseline=np.array([-LARGEST])),
        model(forest=Forest.from_trees([], 1)),
        model(forest=Forest.from_trees([leaf(1, 2)], 2), baseline=np.zeros(2)),
        model(classes=np.array([0, 1])),
        two_outputs(classes=np.array(["a", "b"])),
    ],
)
def test_a_valid_model_is_returned_as_it_is(one: Model) -> None:
    assert check_model(one) is one


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_features": 0}, "it has no features"),
        ({"baseline": np.zeros(0)}, "the baseline has no outputs"),
        ({"baseline": np.zeros((1, 1))}, "the baseline has no outputs"),
        ({"baseline": np.zeros(())}, "the baseline has no outputs"),
        ({"baseline": np.zeros(1, np.float32)}, "the baseline is not float64"),
        ({"baseline": np.array([np.nan])}, "the baseline is not finite"),
        ({"baseline": np.array([np.inf])}, "the baseline is not finite"),
        ({"baseline": np.array([1e39])}, "the baseline is not finite"),
        ({"trees_per_round": 0}, "trees_per_round does not fit"),
        ({"trees_per_round": 2}, "trees_per_round does not fit"),
        ({"trees_per_round": -1}, "trees_per_round does not fit"),
        ({"baseline": np.zeros(2)}, "leaf values do not match the outputs"),
        ({"baseline": np.zeros(2), "trees_per_round": 2}, "the last round is incomplete"),
        ({"classes": np.array([1])}, "there are not two classes"),
        ({"classes": np.zeros(0)}, "there are not two classes"),
        ({"classes": np.array([[0, 1]])}, "there are not two classes"),
        ({"classes": np.array([0, 1, 2])}, "one output needs two classes"),
        (
            {"classes": np.array([0, 1, 2]), "baseline": np.zeros(2), "trees_per_round": 2},
            "the outputs do not fit the classes",
        ),
        ({"feature_names": ("a",)}, "feature_names has a wrong length"),
        ({"feature_names": ("a", "b", "c")}, "feature_names has a wrong length"),
        ({"feature_names": ("a", "a")}, "feature_names repeats a name"),
        ({"best_iteration": -1}, "best_iteration is not a round"),
        ({"best_iteration": 3}, "best_iteration is not a round"),
        (
            {"best_iteration": 0, "forest": Forest.from_trees([], 1)},
            "best_iteration is not a round",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelFormatError) as caught:
        check_model(model(**changes))
    assert str(caught.value) == f"invalid model: {message}."


def test_a_model_with_an_invalid_tree_is_refused() -> None:
    broken = Forest.from_trees([changed(tree(), "gain", 0, -1.0)], 1)
    with pytest.raises(ModelFormatError, match=r"^invalid tree: a gain is not > 0\.$"):
        check_model(replace(model(), forest=broken))


def test_a_feature_beyond_those_of_the_model_is_refused() -> None:
    with pytest.raises(ModelFormatError, match="a feature is out of range"):
        check_model(model(n_features=1))
