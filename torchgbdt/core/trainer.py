"""The training session: a state machine that owns every temporary resource of one ``fit``.

    CREATED -> VALIDATED -> QUANTIZED -> BACKEND_READY -> ITERATING -> MODEL_FINALIZED -> COMPLETED
    any state before COMPLETED -> FAILED

A model leaves the session only in COMPLETED. Whatever is raised on the way, Ctrl-C included, ends
in FAILED with everything released, and is raised on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from torchgbdt.core.arrays import Float32Array, Float64Array
from torchgbdt.core.backend import ComputeBackend, RunRows, RunSettings
from torchgbdt.core.clock import PhaseClock
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.errors import StateError
from torchgbdt.core.growth import TreeGrower, TreeLimits
from torchgbdt.core.histogram_plan import HistogramPlan, histogram_bytes
from torchgbdt.core.metrics import MeanLoss, make_metrics
from torchgbdt.core.model import TRAINED_WITH_MARGIN, Model, check_model
from torchgbdt.core.objectives import find_objective
from torchgbdt.core.observer import (
    History,
    ObserverGroup,
    TrainingContext,
    TrainingObserver,
    dataset_names,
    named_dataset,
)
from torchgbdt.core.quantized_data import QuantizedData, total_weights
from torchgbdt.core.ranking import weight_scale
from torchgbdt.core.raw_predictions import raw_float32
from torchgbdt.core.rounds import Booster, EvaluatedSet, Evaluation
from torchgbdt.core.run_data import TrainingData
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.core.states import TRANSITIONS, TrainerState
from torchgbdt.core.tree import Forest, Tree

S = TrainerState


def _as_it_is(predictions: Float32Array) -> Float32Array:
    return predictions


class TrainingSession:
    """One ``fit``: takes checked settings and data, gives a model, keeps nothing.

    Parameters
    ----------
    backend : owned for the length of the run.
    observers : callbacks, called in this order.
    """

    def __init__(
        self,
        settings: TrainerSettings,
        backend: ComputeBackend,
        observers: Sequence[TrainingObserver] = (),
        communicator: Communicator = SINGLE_RANK,
        present: Callable[[Float32Array], Any] = _as_it_is,
    ) -> None:
        self.state = TrainerState.CREATED
        self.clock = PhaseClock()
        self.history: History = {}
        self._settings = settings
        objective = find_objective(settings.objective)
        self._metrics = make_metrics(settings.eval_metric, objective)
        self._backend = backend
        self._observers = ObserverGroup(observers)
        self._communicator = communicator
        self._present = present
        self._held: dict[str, Any] = {}
        self._facts: dict[str, Any] = {}

    def run(self, data: TrainingData) -> Model:
        """Train; the model is returned once the session is COMPLETED.

        Raises
        ------
        StateError : the session has run before.
        GBDTError : bad data, a failing backend. Anything raised leaves the session FAILED.
        """
        if self.state is not TrainerState.CREATED:
            raise StateError(f"this session is {self.state.value}; start a new one to train again.")
        try:
            return self._run(data)
        except BaseException as error:
            self._fail(error)
            raise

    def diagnostics(self) -> dict[str, Any]:
        """State, seconds per phase, and what the backend reported when the run ended."""
        return {"state": self.state.value, **self._facts, "seconds": dict(self.clock.seconds)}

    def _run(self, data: TrainingData) -> Model:
        checked = data.check(self._settings, self._communicator)
        self._enter(S.VALIDATED, input=checked)
        with self.clock.phase("binning"):
            quantized = self._held["input"].quantize(
                self._settings, self._backend, self._communicator
            )
        initial = data.init_model
        self._enter(S.QUANTIZED, data=quantized)
        with self.clock.phase("prepare"):
            run = self._prepare(quantized, initial)
        self._enter(S.BACKEND_READY, run=run)
        self._enter(S.ITERATING, trees=[] if initial is None else initial.forest.trees())
        context = self._iterate(run, quantized)
        model = self._finalize(run, context)
        self._report()
        self._enter(S.MODEL_FINALIZED, model=model)
        self._backend.release()
        self._enter(S.COMPLETED)
        return model

    def _report(self) -> None:
        """Take down what the backend counted, while it still has its run."""
        self._facts |= self._backend.diagnostics()

    def _prepare(self, data: QuantizedData, initial: Model | None) -> "_Run":
        """Find the baseline, hand all rows to the backend, and set up the growth of trees."""
        settings, objective, communicator = self._settings, data.objective, self._communicator
        if initial is None:
            baseline = data.fit_baseline(settings.baseline, communicator)
        else:
            baseline = initial.baseline
        rows = data.run_rows(baseline, communicator)
        tree_outputs = objective.n_outputs // objective.trees_per_round
        thresholds = data.train.thresholds
        n_slots = _n_slots(settings, thresholds.total_bins, tree_outputs, rows[0].total_rows)
        any_weights = data.any_weights(communicator)
        constant_hessian = objective.constant_hessian and not any_weights
        self._backend.prepare(
            rows[0],
            rows[1:],
            RunSettings(thresholds, objective, baseline, tree_outputs, constant_hessian, n_slots),
        )
        grower = TreeGrower(
            self._backend,
            communicator,
            HistogramPlan(n_slots),
            TreeLimits(settings.max_depth, settings.learning_rate),
            thresholds,
            self.clock,
        )
        booster = Booster(
            self._backend, communicator, grower, settings, objective.trees_per_round, self.clock
        )
        self._facts |= {
            "n_rows": rows[0].total_rows,
            "n_features": thresholds.n_features,
            "histogram_slots": n_slots,
        }
        return _Run(booster, self._evaluation(data, rows), baseline, initial)

    def _evaluation(self, data: QuantizedData, rows: list[RunRows]) -> Evaluation:
        """Validation sets always; the training set only if the user named a metric."""
        weights = total_weights(data, self._communicator)
        names = dataset_names(len(weights) - 1)
        evaluated = {
            name: self._evaluated_set(data, index, weights[index], rows[index].total_rows)
            for index, name in enumerate(names)
            if index > 0 or self._settings.eval_metric is not None
        }
        return Evaluation(self._backend, self._communicator, self._metrics, evaluated)

    def _evaluated_set(
        self, data: QuantizedData, index: int, weight: Fraction, total_rows: int
    ) -> EvaluatedSet:
        variance = Fraction(0)
        if any(isinstance(one, MeanLoss) and one.needs_variance for one in self._metrics):
            variance = data.label_variance(index, self._communicator)
        largest = data.largest_weight(index, self._communicator)
        return EvaluatedSet(index, weight, variance, weight_scale(largest, total_rows))

    def _iterate(self, run: "_Run", data: QuantizedData) -> TrainingContext:
        """All boosting rounds, with the callbacks around them."""
        self.history = run.evaluation.history
        margins = data.margins

        def read_predictions(name: str) -> Any:
            index = named_dataset(name, len(margins) - 1)
            sums = self._backend.read_predictions(index)
            return self._present(raw_float32(run.baseline, sums, margins[index]))

        context = TrainingContext(
            self._settings.n_estimators,
            self.history,
            {metric.name: metric.higher_is_better for metric in self._metrics},
            read_predictions,
            run.first_round,
            self._first_values(run),
        )
        self._observers.on_train_begin(context)
        for index in range(self._settings.n_estimators):
            context.round = run.first_round + index
            self._observers.on_round_begin(context)
            self._held["trees"] += run.booster.boost(context.round)
            with self.clock.phase("evaluate"):
                run.evaluation.record()
            self._observers.on_round_end(context)
            if self._communicator.any_true(context.stop_requested):
                break
        self._observers.on_train_end(context)
        return context

    def _first_values(self, run: "_Run") -> Mapping[str, Mapping[str, float]]:
        """How good the model is that is continued; nothing where there is none."""
        if run.first_round == 0:
            return {}
        with self.clock.phase("evaluate"):
            return run.evaluation.measure()

    def _finalize(self, run: "_Run", context: TrainingContext) -> Model:
        """The model of the rounds that are kept, every array checked."""
        data: QuantizedData = self._held["data"]
        objective, best = data.objective, context.best_iteration
        trees: list[Tree] = self._held["trees"]
        kept = trees if best is None else trees[: (best + 1) * objective.trees_per_round]
        train, initial = data.train, run.initial
        names, has_margin = train.feature_names, data.margins[0] is not None
        if initial is not None:  # an array is taken by position, as in predict
            names = initial.feature_names if names is None else names
            has_margin |= bool(initial.settings.get(TRAINED_WITH_MARGIN))
        return check_model(
            Model(
                forest=Forest.from_trees(kept, objective.n_outputs // objective.trees_per_round),
                baseline=run.baseline,
                trees_per_round=objective.trees_per_round,
                n_features=train.n_features,
                objective=objective.name,
                link=objective.link,
                feature_names=names,
                classes=data.classes,
                best_iteration=best,
                settings={
                    **asdict(self._settings),
                    "max_bins": train.settings.max_bins,
                    **({TRAINED_WITH_MARGIN: True} if has_margin else {}),
                },
            )
        )

    def _enter(self, state: TrainerState, **gained: Any) -> None:
        """Go to the next state; what does not exist there is dropped."""
        if state not in TRANSITIONS[self.state].follows:
            raise StateError(f"{self.state.value} cannot be followed by {state.value}.")
        held = {**self._held, **gained}
        missing = TRANSITIONS[state].exists - held.keys()
        if missing:
            raise StateError(f"{state.value} needs {sorted(missing)}, which do not exist.")
        self._held = {name: held[name] for name in TRANSITIONS[state].exists}
        self.state = state

    def _fail(self, error: BaseException) -> None:
        """Release everything; a second error on the way is noted on the first."""
        if self.state is S.COMPLETED:
            return  # interrupted on the way out: nothing is held but the model
        self._enter(S.FAILED)
        for step in (self._report, self._backend.release):
            try:
                step()
            except BaseException as second:
                error.add_note(f"giving up the run failed as well: {second!r}")


@dataclass(frozen=True)
class _Run:
    """What ITERATING works with: a prepared backend, wrapped.

    Attributes
    ----------
    initial : the model that is continued, or None.
    """

    booster: Booster
    evaluation: Evaluation
    baseline: Float64Array
    initial: Model | None

    @property
    def first_round(self) -> int:
        """Rounds that were there before."""
        return 0 if self.initial is None else self.initial.n_rounds


def _n_slots(settings: TrainerSettings, total_bins: int, tree_outputs: int, total_rows: int) -> int:
    """Histograms held at once: as many as the budget allows, at least one, never more than used.

    A level of the last searched depth d holds at most 2^d nodes, and no more than there are rows
    to make nodes of.
    """
    budget = int(min(settings.histogram_budget_mb, 2.0**40) * 2**20)
    affordable: int = budget // histogram_bytes(total_bins, tree_outputs)
    deepest = 40 if settings.max_depth is None else min(settings.max_depth - 1, 40)
    usable = min(int(2**deepest), 2 * (total_rows // settings.min_samples_leaf) + 1)
    return max(1, min(affordable, usable))
