"""Laws of one run: histograms of a family add up, and what is reported follows from the model."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import recompute
from support.backends import BackendUnderTest
from support.exact import assert_identical
from support.reference import outcome_of
from support.runs import EVAL_METRICS, Outcome, Rows, Scenario, train
from support.scenarios import SCENARIOS, scenario
from support.scenarios_of_classes import CLASS_SCENARIOS

from torchgbdt.core.backend import ComputeBackend, LevelBatch
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.observer import TrainingContext

pytestmark = pytest.mark.core_laws

NAMES = [
    "plain", "missing values", "zero weights", "huge range of weights", "subnormal weights",
    "leaves of one row", "chain", "offset", "outliers", "subnormals", "vanishing", "margins",
    "given baseline", "one row", "continued", *CLASS_SCENARIOS,
]  # fmt: skip
NAMES = [name for name in NAMES if "many rows" not in name]
every_name = pytest.mark.parametrize("name", NAMES)


class Witness:
    """A callback that keeps raw predictions after each round, and the sums at the end."""

    def __init__(self, backend: ComputeBackend, n_valids: int) -> None:
        self._backend = backend
        self._names = ["train", *(f"valid_{i}" for i in range(n_valids))]
        self.predictions: list[list[np.ndarray]] = []
        self.sums: list[np.ndarray] = []

    def on_train_begin(self, context: TrainingContext) -> None: ...
    def on_round_begin(self, context: TrainingContext) -> None: ...

    def on_round_end(self, context: TrainingContext) -> None:
        self.predictions.append([context.raw_predictions(name) for name in self._names])

    def on_train_end(self, context: TrainingContext) -> None:
        self.sums = [self._backend.read_predictions(i) for i in range(len(self._names))]


def witnessed(under_test: BackendUnderTest, one: Scenario) -> tuple[Witness, Any]:
    backend = under_test.make()
    witness = Witness(backend, len(one.valids))
    return witness, train(backend, one, [witness])


def data_sets(one: Scenario) -> list[Rows]:
    return [recompute.counting(rows) for rows in (one.train, *one.valids)]


def rounds_of(one: Scenario, outcome: Outcome) -> range:
    """The model's rounds after each round of this run."""
    first = 0 if one.init_model is None else one.init_model.n_rounds
    return range(first + 1, outcome.model.n_rounds + 1)


class Recomputed:
    """Predictions and history of a scenario's model; equal models are computed once."""

    def __init__(self, one: Scenario, outcome: Outcome) -> None:
        model, rounds = outcome.model, rounds_of(one, outcome)
        self.predictions = [
            [np.array(recompute.raw_predictions(model, r, n), np.float32) for r in data_sets(one)]
            for n in rounds
        ]
        names = ["train", *(f"valid_{i}" for i in range(len(one.valids)))]
        self.history = {
            name: {
                metric: [recompute.metric(metric, model, rows, n) for n in rounds]
                for metric in EVAL_METRICS[one.objective]
            }
            for name, rows in zip(names, data_sets(one), strict=True)
        }


RECOMPUTED: dict[tuple[str, str], Recomputed] = {}


def recomputed(name: str, outcome: Outcome) -> Recomputed:
    key = name, outcome.model.digest()
    if key not in RECOMPUTED:
        RECOMPUTED[key] = Recomputed(scenario(name), outcome)
    return RECOMPUTED[key]


@every_name
def test_predictions_after_each_round_and_history_follow_from_the_model(
    under_test: BackendUnderTest, name: str
) -> None:
    witness, outcome = witnessed(under_test, scenario(name))
    expected = recomputed(name, outcome)
    assert_identical(witness.predictions, expected.predictions)
    assert_identical(outcome.history, expected.history)


@pytest.mark.parametrize(
    ("name", "n_outputs"),
    [("given baseline", 1), ("logistic, given baseline", 1), ("3 classes, given baseline", 3)],
)
def test_a_given_baseline_is_that_of_every_output(
    under_test: BackendUnderTest, name: str, n_outputs: int
) -> None:
    given = scenario(name).settings["baseline"]
    assert outcome_of(under_test, name).model.baseline.tolist() == [given] * n_outputs


@pytest.mark.parametrize("name", SCENARIOS)
def test_raw_values_predict_what_bins_predicted(under_test: BackendUnderTest, name: str) -> None:
    one = scenario(name)
    witness, outcome = witnessed(under_test, one)
    for rows, binned in zip((one.train, *one.valids), witness.sums, strict=True):
        kept = slice(None) if rows.weights is None else rows.weights >= 2.0**-126
        sums = np.zeros((rows.n_rows, outcome.model.n_outputs), np.float32)
        under_test.make().predict(outcome.model.forest, HostMatrix(rows.X), sums)
        assert_identical(sums[kept], binned)


@pytest.mark.parametrize("budget", [512.0, 0.01], ids=["many slots", "few slots"])
@pytest.mark.parametrize(
    "name",
    ["plain", "missing values", "fractional weights", "chain", "logistic", "3 classes, margins"],
)
def test_histograms_of_siblings_add_up_to_the_parent(
    under_test: BackendUnderTest, name: str, budget: float
) -> None:
    backend = under_test.make()
    seen: dict[int, list[np.ndarray]] = {}
    search_level, sample_rows = backend.search_level, backend.sample_rows

    def forget(tree: int) -> int:
        seen.clear()
        return sample_rows(tree)

    def remember(batch: LevelBatch, rules: Any, communicator: Any, keep: bool) -> Any:
        splits = search_level(batch, rules, communicator, True)
        found = backend.read_histograms(batch)
        for i, node in enumerate(batch.nodes["node"].tolist()):
            seen[node] = [found.counts[i], found.gradients[i], found.hessians[i]]
        return splits

    backend.search_level = remember  # type: ignore[method-assign]
    backend.sample_rows = forget  # type: ignore[method-assign]
    one = scenario(name).changed(n_estimators=1, histogram_budget_mb=budget)
    model = train(backend, one).model
    tree = model.forest.tree(model.n_trees - 1)
    families = [(n, tree.left[n], tree.right[n]) for n in np.flatnonzero(~tree.is_leaf)]
    complete = [family for family in families if all(int(node) in seen for node in family)]
    assert complete
    for parent, left, right in complete:
        for whole, *parts in zip(seen[parent], seen[left], seen[right], strict=True):
            assert np.array_equal(whole, parts[0] + parts[1])


class StopAfter:
    """A callback that stops after some rounds and keeps fewer."""

    def __init__(self, last_round: int, best_round: int | None) -> None:
        self._last, self._best = last_round, best_round

    def on_train_begin(self, context: TrainingContext) -> None: ...
    def on_round_begin(self, context: TrainingContext) -> None: ...
    def on_train_end(self, context: TrainingContext) -> None: ...

    def on_round_end(self, context: TrainingContext) -> None:
        if context.round == self._last:
            context.request_stop()
            if self._best is not None:
                context.keep_best(self._best)


@pytest.mark.parametrize("name", ["plain", "logistic", "3 classes"])
@pytest.mark.parametrize(("last", "best", "n_rounds"), [(4, 2, 3), (4, None, 5), (0, 0, 1)])
def test_an_early_stopped_model_is_a_model_of_that_many_rounds(
    under_test: BackendUnderTest, last: int, best: int | None, n_rounds: int, name: str
) -> None:
    one = scenario(name).changed(n_estimators=9)
    stopped = train(under_test.make(), one, [StopAfter(last, best)])
    whole = train(under_test.make(), one)
    short = train(under_test.make(), one.changed(n_estimators=n_rounds))
    assert stopped.model.digest() == short.model.digest()
    assert whole.model.truncate(n_rounds).digest() == short.model.digest()
    assert stopped.model.best_iteration == best
    # The history keeps what was measured, also after the best round.
    for metric, measured in stopped.history["train"].items():
        assert len(measured) == last + 1
        assert_identical(measured, whole.history["train"][metric][: last + 1])


@pytest.mark.parametrize("name", ["plain", "logistic", "3 classes"])
def test_data_sets_may_be_evaluated_without_changing_the_model(
    under_test: BackendUnderTest, name: str
) -> None:
    one = scenario(name)
    quiet = replace(one, valids=()).changed(eval_metric=None)
    found = train(under_test.make(), quiet)
    assert found.history == {}
    assert found.model.digest() == train(under_test.make(), one).model.digest()
