"""Saved and loaded, a model is the same in every bit, and so is its file."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serialization.model_files import VALID, array_of, small_model, take_apart
from support.exact import assert_identical

import torchgbdt as tg
from torchgbdt.core.errors import InvalidParameterError, ModelFormatError
from torchgbdt.core.model import Model
from torchgbdt.serialization import (
    MAX_HEADER_BYTES,
    load_model,
    model_from_bytes,
    model_to_bytes,
    save_model,
)


def assert_same(one: Model, other: Model) -> None:
    assert one.digest() == other.digest()
    assert_identical(one.forest.offsets, other.forest.offsets)
    assert_identical(one.forest.nodes, other.forest.nodes)
    assert_identical(one.baseline, other.baseline)
    for name in ("n_features", "feature_names", "best_iteration", "objective", "link", "settings"):
        assert getattr(one, name) == getattr(other, name)


@given(st.integers(0, 2**32 - 1), st.integers(0, 6))
def test_every_bit_comes_back(seed: int, n_trees: int) -> None:
    model = small_model(seed, n_trees)
    assert_same(model_from_bytes(model_to_bytes(model)), model)


@given(st.integers(0, 2**32 - 1), st.integers(0, 6))
def test_file_of_a_loaded_model_is_the_same_file(seed: int, n_trees: int) -> None:
    data = model_to_bytes(small_model(seed, n_trees))
    assert model_to_bytes(model_from_bytes(data)) == data


def test_truncated_model_comes_back() -> None:
    model = small_model().truncate(2)  # its arrays are slices
    assert_same(model_from_bytes(model_to_bytes(model)), model)


@given(st.lists(st.text(min_size=1), min_size=3, max_size=3, unique=True))
def test_feature_names_are_any_texts(names: list[str]) -> None:
    model = small_model(feature_names=tuple(names))
    assert model_from_bytes(model_to_bytes(model)).feature_names == tuple(names)


def test_bytes_do_not_depend_on_the_process() -> None:
    script = (
        "import sys; from serialization.model_files import VALID; sys.stdout.buffer.write(VALID)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=60)
    assert run.stdout == VALID


def test_where_a_model_was_trained_does_not_change_its_file(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(100, 3))
    files = []
    for backend, n_threads, budget in (("oracle", 1, 512), ("cpu", 2, 0.001)):
        model = tg.train(
            X,
            X[:, 0],
            n_estimators=2,
            backend=backend,
            n_threads=n_threads,
            histogram_budget_mb=budget,
        )
        model.save(tmp_path / backend)
        files.append((tmp_path / backend).read_bytes())
    assert files[0] == files[1]


def test_order_of_settings_does_not_change_the_file() -> None:
    settings = {"b": 1, "a": 2}
    one, other = (dict(items) for items in (settings.items(), reversed(settings.items())))
    assert model_to_bytes(small_model(settings=one)) == model_to_bytes(small_model(settings=other))


def test_settings_that_shape_the_model_are_kept() -> None:
    settings = {"learning_rate": 0.1, "max_depth": None, "eval_metric": ("rmse", "mae"), "n": 2**70}
    model = small_model(settings={**settings, "device": "cpu", "n_threads": 3})
    assert model_from_bytes(model_to_bytes(model)).settings == settings


def test_arrays_are_little_endian_and_aligned() -> None:
    header, _, _ = take_apart(VALID)
    assert int.from_bytes(VALID[:8], "little") % 8 == 0
    for entry in header.values():
        assert entry["data_offsets"][0] % (int(entry["dtype"].strip("FIU")) // 8) == 0
    values = array_of(VALID, "nodes.value")  # read as "<f4"
    assert_identical(values, small_model().forest.nodes.value)


def test_arrays_in_foreign_byte_order_give_the_same_file() -> None:
    # stands for saving on a big-endian machine, where native arrays are foreign to the format
    model = small_model()
    swapped = replace(model.forest.nodes, value=model.forest.nodes.value.astype(">f4"))
    foreign = replace(
        model,
        forest=replace(model.forest, nodes=swapped),
        baseline=model.baseline.astype(">f8"),
    )
    assert model_to_bytes(foreign) == VALID


def test_any_safetensors_reader_can_open_the_file(tmp_path: Path) -> None:
    from safetensors import safe_open

    (tmp_path / "m").write_bytes(VALID)
    with safe_open(tmp_path / "m", framework="np") as file:
        metadata = json.loads(file.metadata()["torchgbdt"])
        assert_identical(file.get_tensor("baseline"), np.array([1e9 + 0.1]))
    assert metadata["format_version"] == 1
    assert metadata["digest"] == small_model().digest()


@pytest.mark.parametrize("kind", [str, Path])
def test_path_may_be_text_or_path(kind: Any, tmp_path: Path) -> None:
    path = kind(tmp_path / "m.safetensors")
    save_model(small_model(), path)
    assert_same(load_model(path), small_model())


@pytest.mark.parametrize("path", [3, None, 0.5, b"m"])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(InvalidParameterError, match="path must be a text or a Path"):
        load_model(path)
    with pytest.raises(InvalidParameterError, match="path must be a text or a Path"):
        save_model(small_model(), path)


def test_names_that_no_reader_would_accept_are_refused() -> None:
    names = ("a" * MAX_HEADER_BYTES, "b", "c")
    with pytest.raises(ModelFormatError, match="shorten them"):
        model_to_bytes(small_model(feature_names=names))
