"""``tg.Trainer`` and ``tg.train``: settings and callbacks in, models out.

    arguments of fit -> TrainingData -> TrainingSession (the state machine) -> Model

Nothing here computes: this is where torch meets the core.
"""

import os
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Unpack

import torch

from torchgbdt.backends.registry import make_backend
from torchgbdt.core.arrays import Float32Array
from torchgbdt.core.errors import StateError
from torchgbdt.core.observer import History, TrainingObserver
from torchgbdt.core.states import TrainerState
from torchgbdt.core.trainer import TrainingSession
from torchgbdt.torch_api.callbacks import check_callbacks, close_all
from torchgbdt.torch_api.fit_arguments import FitArguments, read_fit_arguments
from torchgbdt.torch_api.float_environment import ieee_arithmetic
from torchgbdt.torch_api.model import Model
from torchgbdt.torch_api.settings import SettingsArguments, make_settings


class Trainer:
    """Trains models with one set of settings; ``fit`` may be called again and again.

    Parameters
    ----------
    callbacks : objects with ``on_train_begin``, ``on_round_begin``, ``on_round_end`` and
        ``on_train_end``, called in this order; see ``tg.callbacks``.
    settings :
        objective="squared_error", n_estimators=100, learning_rate=0.1, max_depth=6 (None: no
        limit), max_leaves=None, max_bins=256, min_samples_leaf=20, min_child_weight=1e-3,
        reg_lambda=1.0, gamma=0.0, subsample=1.0, colsample_bytree=1.0, baseline=None (fitted),
        eval_metric=None (training rows are evaluated only if one is named), random_state=0,
        device="auto" (where X lies), backend="auto", n_threads=None (as many as torch uses),
        histogram_budget_mb=512. Of max_leaves, subsample and colsample_bytree only the defaults
        are built.

    Raises
    ------
    InvalidParameterError : an unknown setting or a bad value.
    BackendUnavailableError : the backend or device cannot run here.

    Notes
    -----
    With device="auto" a tensor is read and trained on where it lies, by the backend of that device:
    "cpu" on the host, "mps" on an Apple GPU, "torch" on others. The host reads y, weights, margins
    and what thresholds are fitted on, once; after that nothing that has a number per row leaves the
    device. What lies elsewhere is copied to where training runs; see ``diagnostics``.
    """

    def __init__(
        self, *, callbacks: Sequence[TrainingObserver] = (), **settings: Unpack[SettingsArguments]
    ) -> None:
        self._settings = make_settings(settings)
        self._callbacks = check_callbacks(callbacks)
        self._in_fit: dict[int, threading.Lock] = {}  # by process: a fork copies held locks
        self._session: TrainingSession | None = None
        self._state = TrainerState.CREATED
        self._history: History = {}
        self._diagnostics: dict[str, Any] = {"seconds": {}}
        self._copies: dict[str, str] = {}
        self._model: Model | None = None

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        eval_set: Any = None,
        eval_sample_weight: Any = None,
        base_margin: Any = None,
        eval_base_margin: Any = None,
        init_model: Model | None = None,
    ) -> Model:
        """Train a model.

        Parameters
        ----------
        X : torch tensor, numpy array or data frame (pandas, polars, arrow), (n_rows, n_features),
            nan and null are missing; or a ``tg.Dataset``, which holds y and sample_weight itself.
            It, and evaluation sets, may lie on any device.
        y : (n_rows,) or (n_rows, 1): real targets; or for objective="logistic" and "softmax" class
            labels: integers, bools, whole floats, or texts.
        sample_weight : >= 0, (n_rows,); rows of weight 0 are left out.
        eval_set : list of (X, y) pairs, or of subsets of the training Dataset; "valid_0", ... in
            the history.
        eval_sample_weight : list with one entry per evaluation set, None where it has none.
        base_margin : raw predictions to start from, (n_rows,), or (n_rows, n_classes) for softmax,
            in place of a fitted baseline.
        eval_base_margin : list of the same for each evaluation set; needed with ``base_margin``.
        init_model : a model to go on from: its baseline, classes and trees are kept and
            ``n_estimators`` rounds are added. 50 + 50 rounds on the same data are the model of 100.

        Raises
        ------
        InvalidDataError : data that cannot be trained on.
        InvalidParameterError : a setting that does not fit the data, or init_model.
        BackendUnavailableError : the backend or device cannot run here.
        StateError : this trainer is training already.

        Whatever is raised, Ctrl-C included: ``state`` is FAILED, and ``model`` is what it was.
        """
        given = FitArguments(
            X,
            y,
            sample_weight,
            eval_set,
            eval_sample_weight,
            base_margin,
            eval_base_margin,
            init_model,
        )
        in_fit = self._in_fit.setdefault(os.getpid(), threading.Lock())
        if in_fit.locked():
            raise StateError("this trainer is training already; use a second Trainer meanwhile.")
        # Only `with` on a lock is safe from an interrupt between taking it and giving it back.
        with in_fit:
            return self._fit(given)

    def _fit(self, given: FitArguments) -> Model:
        self._state, self._history, self._copies = TrainerState.CREATED, {}, {}
        self._diagnostics = {"seconds": {}}
        previous = self._model
        try:
            with close_all(self._callbacks), ieee_arithmetic():
                model = self._run(given)
            self._keep_report()
            self._model = model
            return model
        except BaseException:
            self._keep_report()
            self._state, self._model = TrainerState.FAILED, previous
            raise

    def _run(self, given: FitArguments) -> Model:
        settings = self._settings
        read = read_fit_arguments(given, settings.device)
        self._copies, device = read.copies, read.device
        n_threads = settings.n_threads or torch.get_num_threads()
        backend = make_backend(settings.backend, device, n_threads)
        self._session = TrainingSession(
            settings, backend, self._callbacks, present=lambda raw: _on_device(raw, device)
        )
        return Model(self._session.run(read.data))

    def _keep_report(self) -> None:
        """Keep what the session reported, and let go of the session with its backend."""
        session = self._session
        if session is not None:
            self._state, self._history = session.state, session.history
            self._diagnostics = session.diagnostics()
            self._session = None

    @property
    def state(self) -> TrainerState:
        """Where the last ``fit`` stands; CREATED before the first."""
        return self._state if self._session is None else self._session.state

    @property
    def history(self) -> History:
        """Metrics of the last ``fit``: {"train": {"rmse": [one per round]}, "valid_0": ...}."""
        return self._history if self._session is None else self._session.history

    @property
    def model(self) -> Model | None:
        """The last model that training completed; None before. A failed fit does not touch it."""
        return self._model

    def diagnostics(self) -> dict[str, Any]:
        """State, backend, device, counters and seconds per phase of the last ``fit``.

        "copied_from" says which arguments were copied in full, and from which device: X where
        training runs elsewhere; y, weights and margins where they did not lie on the host. It is
        empty where all was read in place.
        """
        session = self._session
        facts = self._diagnostics if session is None else session.diagnostics()
        return {**facts, "state": self.state.value, "copied_from": dict(self._copies)}

    @property
    def settings(self) -> dict[str, Any]:
        """All settings, by name; a copy."""
        return asdict(self._settings)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse settings: they are checked at construction, and this would change nothing."""
        if name == "callbacks" or name in SettingsArguments.__annotations__:
            raise AttributeError(
                f"a Trainer keeps its settings; {name} cannot be set. Make a new Trainer."
            )
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: everything but a run in progress."""
        return {**vars(self), "_in_fit": {}, "_session": None}

    def __repr__(self) -> str:
        objective, n_estimators = self._settings.objective, self._settings.n_estimators
        return (
            f"Trainer(objective={objective!r}, n_estimators={n_estimators}, "
            f"state={self.state.value!r})"
        )


def train(
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    eval_set: Any = None,
    eval_sample_weight: Any = None,
    base_margin: Any = None,
    eval_base_margin: Any = None,
    init_model: Model | None = None,
    callbacks: Sequence[TrainingObserver] = (),
    **settings: Unpack[SettingsArguments],
) -> Model:
    """Train a model in one call: ``Trainer(callbacks=..., **settings).fit(X, y, ...)``.

    Parameters
    ----------
    X, y, sample_weight, eval_set, eval_sample_weight, base_margin, eval_base_margin, init_model :
        as in ``Trainer.fit``.
    callbacks, settings : as in ``Trainer``.
    """
    return Trainer(callbacks=callbacks, **settings).fit(
        X,
        y,
        sample_weight=sample_weight,
        eval_set=eval_set,
        eval_sample_weight=eval_sample_weight,
        base_margin=base_margin,
        eval_base_margin=eval_base_margin,
        init_model=init_model,
    )


def _on_device(raw_predictions: Float32Array, device: str) -> torch.Tensor:
    """In the shape of ``Model.predict_raw``: (n_rows,) for one output."""
    one_output = raw_predictions.shape[1] == 1
    return torch.from_numpy(raw_predictions[:, 0] if one_output else raw_predictions).to(device)
