"""Models of every released file format load, and predict the bits that they predicted then.

A test that fails here is never mended by writing the files anew; see the README beside each model.
"""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from support.exact import assert_identical

import torchgbdt as tg
from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.raw_predictions import raw_float64
from torchgbdt.serialization import load_model, model_to_bytes

FOLDER = Path(__file__).parent
GOLDEN = sorted(file.parent.name for file in FOLDER.glob("*/model.safetensors"))
NEWEST_FORMAT = ["logistic_format_1", "softmax_format_1", "squared_error_format_1"]


def arrays(name: str) -> tuple[np.ndarray, ...]:
    files = ("inputs", "expected", "expected_float32", "expected_leaves")
    return tuple(np.load(FOLDER / name / f"{file}.npy") for file in files)


def test_there_are_golden_models() -> None:
    assert set(NEWEST_FORMAT) <= set(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_predictions_are_the_expected_bits(name: str) -> None:
    model = tg.load(FOLDER / name / "model.safetensors")
    inputs, expected, expected_float32, leaves = arrays(name)
    assert_identical(model.predict_raw(inputs), expected)
    assert_identical(model.predict_raw(torch.from_numpy(inputs).float()).numpy(), expected_float32)
    assert_identical(model.predict_leaf(inputs), leaves)


@pytest.mark.parametrize("name", [name for name in GOLDEN if "squared_error" not in name])
def test_classes_and_probabilities_are_the_expected_bits(name: str) -> None:
    model = tg.load(FOLDER / name / "model.safetensors")
    inputs, *_ = arrays(name)
    classes, wide, single = (
        np.load(FOLDER / name / f"expected_{what}.npy")
        for what in ("classes", "probabilities", "probabilities_float32")
    )
    assert model.predict(inputs).tolist() == classes.tolist()
    assert set(classes.tolist()) == set(model.classes.tolist())
    assert_identical(model.predict_proba(inputs), wide)
    assert_identical(model.predict_proba(torch.from_numpy(inputs).float()).numpy(), single)


@pytest.mark.parametrize("name", GOLDEN)
def test_the_oracle_predicts_the_expected_bits(name: str) -> None:
    model = load_model(FOLDER / name / "model.safetensors")
    inputs, expected, _, _ = arrays(name)
    sums = np.zeros((len(inputs), model.n_outputs), np.float32)
    OracleBackend().predict(model.forest, HostMatrix(inputs), sums)
    raw = raw_float64(model.baseline, sums, None)
    assert_identical(raw[:, 0] if model.n_outputs == 1 else raw, expected)


@pytest.mark.parametrize("name", GOLDEN)
def test_digest_is_the_one_written_down(name: str) -> None:
    readme = (FOLDER / name / "README.md").read_text("utf-8")
    digest = re.search(r"Digest: `(\w{64})`", readme)
    assert digest is not None
    assert tg.load(FOLDER / name / "model.safetensors").digest() == digest[1]


@pytest.mark.parametrize("name", NEWEST_FORMAT)
def test_saving_again_gives_the_same_bytes(name: str) -> None:
    file = FOLDER / name / "model.safetensors"
    assert model_to_bytes(load_model(file)) == file.read_bytes()


@pytest.mark.parametrize("name", GOLDEN)
def test_inputs_reach_both_sides_missing_values_and_many_leaves(name: str) -> None:
    inputs, _, _, leaves = arrays(name)
    assert np.isnan(inputs).any()
    assert np.isinf(inputs).any()
    assert all(np.unique(column).size > 1 for column in leaves.T)
