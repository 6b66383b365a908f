"""Whatever a file holds: it loads as a valid model, or ModelFormatError says what is wrong."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as safetensors_bytes
from serialization.model_files import VALID, array_of, lie, put_together, take_apart, with_array

from torchgbdt.core.errors import ModelFormatError
from torchgbdt.serialization import model_from_bytes


def refused(data: bytes, message: str) -> None:
    with pytest.raises(ModelFormatError, match=message):
        model_from_bytes(data)


@pytest.mark.parametrize("name", sorted(take_apart(VALID)[0]))
def test_parts_put_together_again_are_valid(name: str) -> None:
    model_from_bytes(with_array(VALID, name, array_of(VALID, name)))  # the helpers do no harm


# --- not such a file at all ----------------------------------------------------------------------

NO_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "too few for a header"),
    "short": (b"12345678", "too few for a header"),
    "text": (b"hello, this is no model at all", "does not begin like a safetensors file"),
    "pickle": (b"\x80\x04\x95" + bytes(100), "does not begin like a safetensors file"),
    "zeros": (bytes(1000), "does not begin like a safetensors file"),
    "header longer than the file": ((10**6).to_bytes(8, "little") + b"{}", "was cut off"),
    "header of 2^64 - 1 bytes": (b"\xff" * 8 + b"{}", "was cut off"),
    "header is no JSON": ((16).to_bytes(8, "little") + b"{" * 16, "header is not JSON"),
    "header is a list": ((2).to_bytes(8, "little") + b"[]", "header is not a JSON object"),
    "header is deep": ((99999).to_bytes(8, "little") + b"[" * 99999, "header is not JSON"),
    "header is no text": ((4).to_bytes(8, "little") + b"\xff\xfe\xfd\xfc", "header is not JSON"),
    "empty header": ((2).to_bytes(8, "little") + b"{}", "not written by torchgbdt"),
    "other safetensors": (safetensors_bytes({"w": np.ones(3)}), "not written by torchgbdt"),
    "other metadata": (
        safetensors_bytes({"w": np.ones(3)}, {"format": "pt"}),
        "not written by torchgbdt",
    ),
}


@pytest.mark.parametrize("what", NO_FILES)
def test_other_bytes_are_refused(what: str) -> None:
    refused(*NO_FILES[what])


@pytest.mark.parametrize("length", [8, 9, 100, len(VALID) // 2, len(VALID) - 8, len(VALID) - 1])
def test_truncated_file_is_refused(length: int) -> None:
    refused(VALID[:length], "invalid model file")


@pytest.mark.parametrize("more", [b"\0", b"x" * 100])
def test_file_with_more_at_its_end_is_refused(more: bytes) -> None:
    refused(VALID + more, "its arrays need .* bytes and it has")


# --- metadata ------------------------------------------------------------------------------------

HUGE = 10**400
BAD_METADATA: list[tuple[str, Any, str]] = [
    ("format_version", 2, "written by a newer torchgbdt .format 2; this one reads up to 1.; upg"),
    ("format_version", 0, "format_version is 0"),
    ("format_version", "1", "format_version is '1'"),
    ("format_version", True, "format_version is True"),
    ("format_version", 1.0, "format_version is 1.0"),
    ("format_version", None, "format_version is None"),
    ("digest", "0" * 64, "do not have the digest that it states; it is damaged"),
    ("digest", 5, "digest is not valid"),
    ("digest_schema", -1, "digest_schema is not valid"),
    ("objective", "squared", "objective is not valid"),
    ("objective", ["squared_error"], "objective is not valid"),
    ("link", "logit", "link is not that of its objective"),
    ("link", None, "link is not valid"),
    ("n_features", 0, "n_features is not valid"),
    ("n_features", HUGE, "n_features is not valid"),
    ("n_features", 3.0, "n_features is not valid"),
    ("n_features", 4, "feature_names has a wrong length"),
    ("n_features", 1, "a feature is out of range"),
    ("trees_per_round", 0, "trees_per_round is not valid"),
    ("trees_per_round", 3, "trees_per_round is not that of its objective"),
    ("feature_names", ["a", "b"], "feature_names has a wrong length"),
    ("feature_names", ["a", "b", "a"], "feature_names repeats a name"),
    ("feature_names", ["a", "b", 3], "feature_names is not valid"),
    ("feature_names", "abc", "feature_names is not valid"),
    ("classes", [0, 1], "classes is not valid"),
    ("best_iteration", -1, "best_iteration is not valid"),
    ("best_iteration", 4, "best_iteration is not a round"),
    ("best_iteration", HUGE, "best_iteration is not valid"),
    ("settings", None, "settings is not valid"),
    ("settings", [], "settings is not valid"),
    ("settings", {"a": {}}, "settings is not valid"),
    ("settings", {"a": [1]}, "settings is not valid"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD_METADATA)
def test_bad_metadata_is_refused(name: str, value: Any, message: str) -> None:
    header, metadata, arrays = take_apart(VALID)
    refused(put_together(header, {**metadata, name: value}, arrays), message)


@pytest.mark.parametrize("name", sorted(take_apart(VALID)[1]))
def test_missing_metadata_is_refused(name: str) -> None:
    header, metadata, arrays = take_apart(VALID)
    del metadata[name]
    refused(put_together(header, metadata, arrays), "other entries|format_version is None")


def test_unknown_metadata_is_refused() -> None:
    header, metadata, arrays = take_apart(VALID)
    refused(put_together(header, {**metadata, "more": 1}, arrays), "its metadata has other entries")


@pytest.mark.parametrize(
    ("outer", "message"),
    [
        (None, "not written by torchgbdt"),
        ([], "not written by torchgbdt"),
        ({"torchgbdt": 5}, "not written by torchgbdt"),
        ({"torchgbdt": "{"}, "metadata is not JSON"),
        ({"torchgbdt": "[" * 10**5}, "metadata is not JSON"),
        ({"torchgbdt": '{"a": NaN}'}, "metadata is not JSON"),
        ({"torchgbdt": "1" * 5000}, "metadata is not JSON"),
        ({"torchgbdt": "[]"}, "metadata is not a JSON object"),
        ({"torchgbdt": "{}"}, "format_version is None"),
    ],
)
def test_metadata_of_another_kind_is_refused(outer: Any, message: str) -> None:
    header, metadata, arrays = take_apart(VALID)
    refused(put_together(header, metadata, arrays, __metadata__=outer), message)


def test_newer_format_may_have_other_arrays_and_is_called_newer() -> None:
    header, metadata, arrays = take_apart(VALID)
    metadata = {"format_version": 7, "something": "new"}
    refused(put_together(header, metadata, arrays, more={}), "newer torchgbdt")


# --- the header's account of the arrays ----------------------------------------------------------


LIES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "missing": (lambda h: h.pop("nodes.gain"), "missing or unknown: ..nodes.gain"),
    "unknown": (lambda h: h.update(extra=h["baseline"]), "missing or unknown: ..extra"),
    "no object": (lambda h: h.update(baseline=3), "header of baseline is not an object"),
    "other dtype": (lambda h: h["nodes.value"].update(dtype="I32"), "does not have dtype F32"),
    "no dtype": (lambda h: h["nodes.value"].pop("dtype"), "does not have dtype F32"),
    "huge": (lambda h: h["nodes.gain"].update(shape=[2**60]), "no valid shape"),
    "overflow": (lambda h: h["nodes.value"].update(shape=[2**33, 2**33]), "no valid shape"),
    "overflow to 0": (lambda h: h["category_sets"].update(shape=[2**62, 0]), "no valid shape"),
    "negative": (lambda h: h["nodes.gain"].update(shape=[-1]), "no valid shape"),
    "float": (lambda h: h["nodes.gain"].update(shape=[4.0]), "no valid shape"),
    "no shape": (lambda h: h["nodes.gain"].pop("shape"), "no valid shape"),
    "wrong size": (lambda h: h["nodes.gain"].update(shape=[1]), "its arrays need"),
    "no offsets": (lambda h: h["nodes.gain"].pop("data_offsets"), "safetensors cannot read it"),
    "overlap": (
        lambda h: h["nodes.gain"].update(data_offsets=h["nodes.cover"]["data_offsets"]),
        "safetensors cannot read it",
    ),
    "beyond": (
        lambda h: h["nodes.gain"].update(data_offsets=[0, 2**63]),
        "safetensors cannot read it",
    ),
    "backwards": (
        lambda h: h["nodes.gain"]["data_offsets"].reverse(),
        "safetensors cannot read it",
    ),
}


@pytest.mark.parametrize("what", LIES)
def test_lying_header_is_refused(what: str) -> None:
    change, message = LIES[what]
    refused(lie(change), message)


def test_lying_header_allocates_nothing_large() -> None:
    data = lie(lambda h: h["nodes.gain"].update(shape=[2**40], data_offsets=[0, 2**43]))
    tracemalloc.start()
    refused(data, "no valid shape")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


# --- arrays --------------------------------------------------------------------------------------


def changed(name: str, index: Any, value: Any) -> bytes:
    array = array_of(VALID, name)
    array[index] = value
    return with_array(VALID, name, array)


NODES = {name.removeprefix("nodes."): array_of(VALID, name) for name in take_apart(VALID)[0]}
LEAF = int(np.flatnonzero(NODES["flags"] == 1)[0])
SPLIT = 0  # the root of the first tree

BAD_ARRAYS: dict[str, tuple[bytes, str]] = {
    "NaN threshold": (changed("nodes.threshold", SPLIT, np.nan), "a threshold is NaN"),
    "cycle": (changed("nodes.left", SPLIT, 0), "left is not breadth-first"),
    "child outside": (changed("nodes.right", SPLIT, 10**6), "right is not breadth-first"),
    "negative child": (changed("nodes.left", SPLIT, -5), "left is not breadth-first"),
    "child of a leaf": (changed("nodes.left", LEAF, 1), "a leaf has a left"),
    "feature too large": (changed("nodes.feature", SPLIT, 3), "a feature is out of range"),
    "negative feature": (changed("nodes.feature", SPLIT, -1), "a feature is out of range"),
    "feature of a leaf": (changed("nodes.feature", LEAF, 0), "a leaf has a feature"),
    "negative split_bin": (changed("nodes.split_bin", SPLIT, -1), "a split_bin is negative"),
    "NaN leaf": (changed("nodes.value", LEAF, np.nan), "a leaf value is not finite"),
    "infinite leaf": (changed("nodes.value", LEAF, np.inf), "a leaf value is not finite"),
    "value of a split": (changed("nodes.value", SPLIT, 1), "a split node has a value"),
    "NaN gain": (changed("nodes.gain", SPLIT, np.nan), "a gain is not > 0"),
    "negative gain": (changed("nodes.gain", SPLIT, -1), "a gain is not > 0"),
    "negative cover": (changed("nodes.cover", LEAF, -1), "a cover is not >= 0"),
    "negative count": (changed("nodes.count", LEAF, -1), "a count is negative"),
    "count that does not add up": (changed("nodes.count", SPLIT, 10**6), "do not add up"),
    "unknown flag": (changed("nodes.flags", SPLIT, 128), "flags has an unknown bit"),
    "categorical": (changed("nodes.flags", SPLIT, 4), "categorical splits are not supported"),
    "split turned leaf": (changed("nodes.flags", SPLIT, 1), "do not add up"),
    "category set": (changed("nodes.category_set", SPLIT, 0), "category sets are not supported"),
    "offsets not from 0": (changed("tree_offsets", 0, 1), "do not cover the nodes"),
    "offsets too far": (changed("tree_offsets", -1, 10**9), "do not cover the nodes"),
    "offsets descend": (changed("tree_offsets", 1, 10**9), "do not ascend"),
    "NaN baseline": (changed("baseline", 0, np.nan), "the baseline is not finite"),
    "infinite baseline": (changed("baseline", 0, -np.inf), "the baseline is not finite"),
    "baseline beyond float32": (changed("baseline", 0, 1e39), "the baseline is not finite"),
    "two baselines": (with_array(VALID, "baseline", np.zeros(2)), "it needs 1 baseline"),
    "no baseline": (with_array(VALID, "baseline", np.zeros(0)), "it needs 1 baseline"),
    "flat values": (
        with_array(VALID, "nodes.value", array_of(VALID, "nodes.value")[:, 0]),
        "invalid",
    ),
    "no outputs": (
        with_array(VALID, "nodes.value", np.zeros((len(NODES["gain"]), 0), np.float32)),
        "value has no outputs",
    ),
    "short array": (
        with_array(VALID, "nodes.gain", array_of(VALID, "nodes.gain")[:-1]),
        "gain has 39 entries",
    ),
    "square gains": (
        with_array(VALID, "nodes.gain", np.ones((len(NODES["gain"]), 1))),
        "nodes.gain has no valid shape",
    ),
    "no offsets": (with_array(VALID, "tree_offsets", np.zeros(0, np.int64)), "bad tree offsets"),
    "category masks": (
        with_array(VALID, "category_sets", np.zeros((1, 4), np.uint64)),
        "category sets are not supported",
    ),
    "flipped missing side": (
        changed("nodes.flags", SPLIT, NODES["flags"][SPLIT] ^ 2),
        "it is damaged",
    ),
    "other leaf": (changed("nodes.value", LEAF, 0.125), "it is damaged"),
    "other threshold": (changed("nodes.threshold", SPLIT, 0.125), "it is damaged"),
    "other baseline": (changed("baseline", 0, 0.125), "it is damaged"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("what", BAD_ARRAYS)
def test_bad_array_is_refused(what: str) -> None:
    data, message = BAD_ARRAYS[what]
    refused(data, message)


@pytest.mark.parametrize("n_axes", [0, 2, 2_000, 500_000])
def test_a_shape_of_many_axes_is_refused_before_it_is_multiplied(n_axes: int) -> None:
    # Sizes that are each possible and whose product would have thousands of digits.
    data = lie(lambda entries: entries["baseline"].update(shape=[100] * n_axes))
    refused(data, "baseline has no valid shape")
