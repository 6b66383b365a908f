"""Laws: what may be done to the data without changing the model, by digest."""

from dataclasses import replace

import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.exact import assert_identical
from support.matrices import DTYPES, layouts, matrix_of
from support.random_rows import smooth
from support.runs import Rows, Scenario, make_session, train, training_data
from support.scenarios import SCENARIOS, scenario

from torchgbdt.core.communicator import SINGLE_RANK
from torchgbdt.core.dataset import Dataset
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.settings import BinningSettings

pytestmark = pytest.mark.core_laws

NAMES = [
    "plain", "missing values", "fractional weights", "leaves of one row", "margins", "ties",
    "logistic", "logistic, missing values", "logistic, fractional weights", "logistic, margins",
    "logistic, ties", "logistic, one row of a class",
    "3 classes", "3 classes, missing values", "3 classes, margins", "3 classes, ties",
    "3 classes, huge range of weights", "4 classes, symmetric",
]  # fmt: skip
every_name = pytest.mark.parametrize("name", NAMES)


def digest(under_test: BackendUnderTest, one: Scenario) -> str:
    return train(under_test.make(), one).model.digest()


def with_X(one: Scenario, X: np.ndarray) -> Scenario:
    return one.with_train(replace(one.train, X=X))


@pytest.mark.parametrize("layout", layouts(np.zeros((2, 2))))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_layout_of_X(under_test: BackendUnderTest, layout: str, dtype: type) -> None:
    one = scenario("missing values")
    X = one.train.X.astype(dtype)
    expected = digest(under_test, with_X(one, X.astype(np.float64)))
    assert digest(under_test, with_X(one, layouts(X)[layout])) == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_of_X(under_test: BackendUnderTest, dtype: str) -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 2 if dtype == "bool" else 100, (150, 3)).astype(np.float64)
    y = values @ [1.0, -0.5, 0.25] + rng.normal(size=150)
    expected = digest(under_test, Scenario(Rows(values, y)))
    session = make_session(under_test.make(), Scenario(Rows(values, y)))
    data = TrainingData(RawData(matrix_of(values, dtype), y))
    assert session.run(data).digest() == expected


@pytest.mark.parametrize("name", ["margins", "logistic, margins", "3 classes, margins"])
@pytest.mark.parametrize("what", ["y", "weights", "margins"])
def test_float32_vectors_and_their_float64_copies(
    under_test: BackendUnderTest, what: str, name: str
) -> None:
    one = scenario(name)
    vector = getattr(one.train, what).astype(np.float32)
    digests = {
        digest(under_test, one.with_train(replace(one.train, **{what: vector.astype(dtype)})))
        for dtype in (np.float32, np.float64)
    }
    assert len(digests) == 1


@pytest.mark.parametrize("name", ["margins", "logistic, margins", "3 classes, margins"])
def test_strided_vectors(under_test: BackendUnderTest, name: str) -> None:
    one = scenario(name)
    strided = {
        part: np.repeat(getattr(one.train, part), 2, axis=0)[::2]
        for part in ("y", "weights", "margins")
    }
    found = digest(under_test, one.with_train(replace(one.train, **strided)))
    assert found == digest(under_test, one)


@every_name
def test_order_of_rows(under_test: BackendUnderTest, name: str) -> None:
    one = scenario(name)
    order = np.random.default_rng(2).permutation(one.train.n_rows)
    found = train(under_test.make(), one.with_train(one.train[order]))
    expected = train(under_test.make(), one)
    assert found.model.digest() == expected.model.digest()
    assert_identical(found.history, expected.history)


@pytest.mark.parametrize("weight", [0.0, -0.0, 2.0**-140], ids=["0", "-0", "subnormal"])
@every_name
def test_rows_of_weight_zero(under_test: BackendUnderTest, name: str, weight: float) -> None:
    one, rng = scenario(name), np.random.default_rng(3)
    rows = one.train
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights.copy()
    kept = rng.random(rows.n_rows) < 0.7
    weights[~kept] = weight
    X, y = rows.X.copy(), rows.y.copy()
    X[~kept], y[~kept] = 1e6, -1e6  # would change thresholds, scales and the baseline
    weighted = Rows(X, y, weights, rows.margins)
    found = train(under_test.make(), one.with_train(weighted))
    expected = train(under_test.make(), one.with_train(weighted[kept]))
    assert found.model.digest() == expected.model.digest()
    assert_identical(found.history, expected.history)


@every_name
def test_weights_of_one(under_test: BackendUnderTest, name: str) -> None:
    one = scenario(name)
    unweighted = replace(one.train, weights=None)
    ones = replace(one.train, weights=np.ones(one.train.n_rows))
    assert digest(under_test, one.with_train(unweighted)) == digest(
        under_test, one.with_train(ones)
    )


@every_name
def test_duplicated_columns_are_never_chosen(under_test: BackendUnderTest, name: str) -> None:
    one = scenario(name)
    valids = [replace(valid, X=np.hstack((valid.X, valid.X))) for valid in one.valids]
    wide = Scenario(
        replace(one.train, X=np.hstack((one.train.X, one.train.X))), one.settings, valids
    )
    found, expected = (train(under_test.make(), s).model for s in (wide, one))
    assert found.n_features == 2 * expected.n_features
    assert found.digest() == expected.digest()


def test_unused_rows_between_shards_of_memory(under_test: BackendUnderTest) -> None:
    X, y = smooth(np.random.default_rng(4), 120)
    wide = np.full((240, 9), np.nan)
    wide[1::2, 8:0:-2] = X
    assert digest(under_test, Scenario(Rows(wide[1::2, 8:0:-2], y))) == digest(
        under_test, Scenario(Rows(X, y))
    )


@pytest.mark.parametrize("name", SCENARIOS)
def test_training_again_on_the_same_backend(under_test: BackendUnderTest, name: str) -> None:
    backend = under_test.make()
    train(backend, scenario("plain"))
    again = train(backend, scenario(name)).model.digest()
    assert again == digest(under_test, scenario(name))


def binned(under_test: BackendUnderTest, one: Scenario) -> Dataset:
    """The training data as a Dataset that is binned before the session begins."""
    data = training_data(one).train.check()
    settings = BinningSettings(one.settings.get("max_bins", 256))
    return data.quantize(settings, under_test.make(), SINGLE_RANK)


def digest_of(under_test: BackendUnderTest, data: Dataset, one: Scenario) -> str:
    return make_session(under_test.make(), one).run(TrainingData(data)).digest()


@pytest.mark.parametrize(
    "name",
    [
        "plain", "missing values", "zero weights", "logistic, zero weights",
        "3 classes, zero weights", "3 classes, labels: text",
    ],
)  # fmt: skip
def test_a_data_set_binned_before(under_test: BackendUnderTest, name: str) -> None:
    one = scenario(name)
    assert digest_of(under_test, binned(under_test, one), one) == digest(under_test, one)


@pytest.mark.parametrize(
    "name", ["ties", "zero weights", "logistic, zero weights", "3 classes, zero weights"]
)
def test_a_subset_of_all_rows_in_another_order(under_test: BackendUnderTest, name: str) -> None:
    one = scenario(name)
    data = binned(under_test, one)
    order = np.random.default_rng(5).permutation(one.train.n_rows)
    assert digest_of(under_test, data.subset(order), one) == digest_of(under_test, data, one)


@pytest.mark.parametrize("name", ["ties", "logistic, ties", "3 classes, ties"])
def test_a_subset_with_all_values_is_training_on_those_rows(
    under_test: BackendUnderTest, name: str
) -> None:
    one = scenario(name)  # few distinct values: any large subset has the same thresholds
    rows = np.sort(np.random.default_rng(6).integers(0, one.train.n_rows, 100))
    subset = binned(under_test, one).subset(rows)
    assert digest_of(under_test, subset, one) == digest(under_test, one.with_train(one.train[rows]))
