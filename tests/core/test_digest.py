"""Digests: equal for the same model, different for anything that decides a prediction."""

import hashlib
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from core.hand_made import MISSING_LEFT, leaf, model, tree

from torchgbdt.core.model import Model
from torchgbdt.core.tree import NODE_ARRAYS, Forest, Tree


def with_nodes(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Model:
    """The model with one array of its nodes changed; nothing checks it."""
    nodes = model().forest.nodes
    changed = replace(nodes, **{name: change(getattr(nodes, name).copy())})
    return model(forest=replace(model().forest, nodes=changed))


def at(index: Any, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array[index] = value
        return array

    return change


def one_unit_up(index: Any) -> Callable[[np.ndarray], np.ndarray]:
    """The next larger float, to show that every bit counts."""

    def change(array: np.ndarray) -> np.ndarray:
        array[index] = np.nextafter(array[index], array.dtype.type(1e9))
        return array

    return change


STRUCTURE: dict[str, Model] = {
    "link": model(link="logit"),
    "baseline": model(baseline=np.nextafter(np.array([0.1]), 1)),
    "outputs": model(baseline=np.array([0.1, 0.1])),
    "trees per round": model(trees_per_round=3),
    "classes": model(classes=np.array([0, 1])),
    "one tree fewer": model(forest=model().forest.slice(0, 2)),
    "order of trees": model(forest=Forest.from_trees([leaf(0.5), tree(), tree()], 1)),
    "feature": with_nodes("feature", at(0, 0)),
    "left": with_nodes("left", at(0, 2)),
    "right": with_nodes("right", at(0, 1)),
    "side of missing rows": with_nodes("flags", at(2, MISSING_LEFT)),
    "leaf value": with_nodes("value", one_unit_up((1, 0))),
    "category set of a node": with_nodes("category_set", at(0, 0)),
    "category sets": model(
        forest=replace(model().forest, category_sets=np.array([[1, 0, 0, 0]], np.uint64))
    ),
    "last leaf value": with_nodes("value", one_unit_up((-1, 0))),
}

THRESHOLDS: dict[str, Model] = {
    "threshold": with_nodes("threshold", one_unit_up(0)),
    "infinite threshold": with_nodes("threshold", at(2, 1e308)),
    "last threshold": with_nodes("threshold", at(8, 1e308)),
}

NOTHING: dict[str, Model] = {
    "split_bin": with_nodes("split_bin", lambda a: a + 1),
    "gain": with_nodes("gain", lambda a: a * 2),
    "cover": with_nodes("cover", lambda a: a * 2),
    "count": with_nodes("count", lambda a: a * 2),
    "feature names": model(feature_names=("a", "b")),
    "settings": model(settings={"learning_rate": 0.5}),
    "best iteration": model(best_iteration=1),
    "objective": model(objective="another with this link"),
    "unused features": model(n_features=7),
    "zero threshold of a leaf": with_nodes("threshold", at(1, -0.0)),
    "zero leaf value": with_nodes("value", at((0, 0), np.float32(-0.0))),
}


@pytest.mark.parametrize("name", STRUCTURE)
def test_structure_changes_both_digests(name: str) -> None:
    assert STRUCTURE[name].digest() != model().digest()
    assert STRUCTURE[name].structure_digest() != model().structure_digest()


@pytest.mark.parametrize("name", THRESHOLDS)
def test_thresholds_change_the_digest_but_not_the_structure_digest(name: str) -> None:
    assert THRESHOLDS[name].digest() != model().digest()
    assert THRESHOLDS[name].structure_digest() == model().structure_digest()


@pytest.mark.parametrize("name", NOTHING)
def test_what_decides_no_prediction_changes_no_digest(name: str) -> None:
    assert NOTHING[name].digest() == model().digest()
    assert NOTHING[name].structure_digest() == model().structure_digest()


def test_every_change_gives_a_digest_of_its_own() -> None:
    models = [model(), *STRUCTURE.values(), *THRESHOLDS.values()]
    assert len({one.digest() for one in models}) == len(models)


def test_every_node_array_is_either_in_the_digest_or_known_not_to_be() -> None:
    inside = {"feature", "left", "right", "flags", "value", "threshold", "category_set"}
    outside = {"split_bin", "gain", "cover", "count"}
    assert inside | outside == set(NODE_ARRAYS)


def test_digest_and_structure_digest_differ() -> None:
    assert model().digest() != model().structure_digest()


@pytest.mark.parametrize("threshold", [0.0, -0.0])
def test_minus_zero_is_plus_zero(threshold: float) -> None:
    found = with_nodes("threshold", at(0, threshold))
    assert found.digest() == with_nodes("threshold", at(0, 0.0)).digest()
    zero = [model(baseline=np.array([value])) for value in (0.0, -0.0)]
    assert zero[0].digest() == zero[1].digest()


# -------------------------------------------------------------------------------------- classes


@pytest.mark.parametrize(
    "labels",
    [[0, 1], [1, 0], [0, 1, 2], ["0", "1"], [False, True], [0.0, 1.0], ["a", "b"], ["a'", "b"]],
)
def test_class_labels_count_with_their_type_and_order(labels: list[Any]) -> None:
    others = [None, np.array([0, 1]), np.array(["0", "1"]), np.array(["a", "b"])]
    own = np.array(labels)
    for other in others:
        same = other is not None and other.tolist() == labels and other.dtype == own.dtype
        assert (model(classes=own).digest() == model(classes=other).digest()) is same


def test_one_of_each_type_differs_from_every_other() -> None:
    ones: list[Any] = [[0, 1], ["0", "1"], [False, True], [0.0, 1.0], ["False", "True"]]
    ones += [["0.0", "1.0"], ["int 0", "int 1"], ["", "0"]]
    models = [model(), *(model(classes=np.array(one)) for one in ones)]
    assert len({one.digest() for one in models}) == len(models)
    assert len({one.structure_digest() for one in models}) == len(models)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64])
def test_the_width_of_class_labels_does_not_count(dtype: type[np.generic]) -> None:
    expected = model(classes=np.array([0, 1, 7])).digest()
    assert model(classes=np.array([0, 1, 7], dtype)).digest() == expected


# ----------------------------------------------------------------------------------- byte order


def test_memory_layout_does_not_count() -> None:
    trees = [leaf(1, 2), leaf(3, 4)]
    c_order = Forest.from_trees(trees, 2)
    nodes: Tree = replace(
        c_order.nodes,
        value=np.asfortranarray(c_order.nodes.value),
        threshold=np.zeros(4)[::2],
    )
    assert not nodes.value.flags.c_contiguous
    two = np.zeros(2)
    found = model(forest=replace(c_order, nodes=nodes), baseline=two).digest()
    assert found == model(forest=c_order, baseline=two).digest()


def test_a_slice_has_the_digest_of_a_forest_of_its_trees() -> None:
    sliced = model(forest=model().forest.slice(1, 3))
    assert sliced.digest() == model(forest=Forest.from_trees([leaf(0.5), tree()], 1)).digest()


def expected_parts(
    thresholds: bool, link: bytes = b"identity", classes: tuple[bytes, ...] = (b"no classes",)
) -> list[bytes]:
    """The canonical bytes of the hand-made model, spelled out; all little-endian."""
    n_nodes = 11
    features = [1, -1, 0, -1, -1, -1, 1, -1, 0, -1, -1]
    left = [1, -1, 3, -1, -1, -1, 1, -1, 3, -1, -1]
    right = [2, -1, 4, -1, -1, -1, 2, -1, 4, -1, -1]
    values = [0, -1.5, 0, 0.25, 2, 0.5, 0, -1.5, 0, 0.25, 2]
    cuts = [0.5, 0, np.inf, 0, 0, 0, 0.5, 0, np.inf, 0, 0]
    parts = [
        b"torchgbdt digest 1",
        link,
        struct.pack("<3q", 1, 1, 1),  # outputs, trees per round, values per leaf
        struct.pack("<d", 0.1),  # baseline
        *classes,
        struct.pack("<4q", 0, 5, 6, 11),  # where trees begin
        struct.pack(f"<{n_nodes}i", *features),
        struct.pack(f"<{n_nodes}i", *left),
        struct.pack(f"<{n_nodes}i", *right),
        bytes([2, 1, 0, 1, 1, 1, 2, 1, 0, 1, 1]),  # flags
        struct.pack(f"<{n_nodes}i", *[-1] * n_nodes),  # no category sets
        b"",
        struct.pack(f"<{n_nodes}f", *values),
    ]
    return [*parts, struct.pack(f"<{n_nodes}d", *cuts)] if thresholds else parts


@pytest.mark.parametrize("thresholds", [True, False])
def test_digest_is_the_hash_of_the_documented_bytes(thresholds: bool) -> None:
    sha = hashlib.sha256()
    for part in expected_parts(thresholds):
        sha.update(struct.pack("<q", len(part)) + part)
    found = model().digest() if thresholds else model().structure_digest()
    assert found == sha.hexdigest()


@pytest.mark.parametrize(
    ("labels", "parts"),
    [
        (np.array([-3, 2**62]), (b"int -3", b"int 4611686018427387904")),
        (np.array([0, 2**64 - 1], np.uint64), (b"int 0", b"int 18446744073709551615")),
        (np.array([-1.0, 1e300]), (b"float -1.0", b"float 1e+300")),
        (np.array([False, True]), (b"bool False", b"bool True")),
        (np.array(["", "it's"]), (b"str ''", b'str "it\'s"')),
        # A character that the next Unicode may print counts as it does today.
        (np.array(["\u4e2d", "\U000e0fff"]), (b"str '\\u4e2d'", b"str '\\U000e0fff'")),
    ],
    ids=["int", "uint64", "float", "bool", "text", "unicode"],
)
def test_class_labels_are_hashed_with_their_type_in_ascii(
    labels: np.ndarray, parts: tuple[bytes, ...]
) -> None:
    sha = hashlib.sha256()
    for part in expected_parts(True, b"logistic", parts):
        sha.update(struct.pack("<q", len(part)) + part)
    assert model(link="logistic", classes=labels).digest() == sha.hexdigest()


def test_digests_of_the_hand_made_model_are_pinned() -> None:
    # Digests are compared over years. A change of the schema needs a new version number, and then,
    # with the reason, new values here.
    assert model().digest() == ("6cdaef9d0267205b8e2c0e37e15cd1ddc773167e6855b38e589e09439c482aa1")
    assert model().structure_digest() == (
        "441fd459f1c6945bb16f5985b9c4400f13b7fd53307be95b2a5ec2448aca3833"
    )


def test_digests_of_hand_made_classifiers_are_pinned() -> None:
    logistic = model(objective="logistic", link="logistic", classes=np.array(["no", "yes"]))
    assert logistic.digest() == "25516548d0a9ba0ef6d9eb91c04333b278ac54b4800adc7a26799233516cc43f"
    softmax = model(
        objective="softmax",
        link="softmax",
        classes=np.array([10, 20, 40]),
        forest=Forest.from_trees([tree(), leaf(0.5), leaf(-0.25)], 1),
        trees_per_round=3,
        baseline=np.array([-1.0, -0.5, 0.25]),
    )
    assert softmax.digest() == "2867f0bfd9c99e69799f42fc7b9c240ecc476453ada7f89e6c1aad4bcbfc4faa"
