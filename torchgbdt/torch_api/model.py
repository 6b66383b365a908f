"""The public, immutable model: tensors or numpy arrays in, predictions of the same kind out."""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from torchgbdt import serialization
from torchgbdt.backends.registry import AUTO, make_backend
from torchgbdt.core import model as core
from torchgbdt.core.arrays import AnyArray, Float64Array
from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.errors import InvalidDataError, StateError
from torchgbdt.torch_api.feature_names import check_same_names
from torchgbdt.torch_api.features import Features, read_features
from torchgbdt.torch_api.float_environment import ieee_arithmetic
from torchgbdt.torch_api.predictions import (
    SummedRows,
    class_probabilities,
    means_or_classes,
    raw_predictions,
)
from torchgbdt.torch_api.tensors import HOST, device_of

_Answer: TypeAlias = Callable[[core.Model, SummedRows], Any]
"""What is made of the sums of leaf values; one of those in ``predictions``."""


class Model:
    """A trained model. Made by ``Trainer.fit``, ``tg.train`` and ``tg.load``; nothing changes it.

    Predictions of a torch tensor are tensors on its device, computed there, float64 for a float64
    tensor and float32 otherwise; those of numpy arrays, frames and lists are float64 arrays. Where
    the model has one output they have shape (n_rows,), otherwise (n_rows, n_outputs). No rows give
    an empty result. X is anything ``fit`` takes, and is read in place; nan is missing.

    Every method that takes X raises InvalidDataError where X has another number of columns than the
    training data, or other ``feature_names`` where they are given, or cannot be read as numbers.
    The columns of a frame must have the names of the model, in their order. Arrays, and frames for
    a model without names, are matched by position.
    """

    __slots__ = ("_core",)
    _core: core.Model

    def __init__(self, model: core.Model) -> None:
        object.__setattr__(self, "_core", model)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Model is immutable; {name} cannot be set.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Model is immutable; {name} cannot be deleted.")

    def __reduce__(self) -> tuple[Any, ...]:
        with ieee_arithmetic():
            return _from_bytes, (serialization.model_to_bytes(self._core),)

    def __repr__(self) -> str:
        return (
            f"Model(objective={self.objective!r}, n_rounds={self.n_rounds}, "
            f"n_features={self.n_features})"
        )

    # --- predictions -------------------------------------------------------------------------

    def predict(
        self, X: Any, *, base_margin: Any = None, feature_names: Sequence[str] | None = None
    ) -> Any:
        """Predict the mean of each row's target, or its class.

        Parameters
        ----------
        X : tensor, array or frame, (n_rows, n_features). IN.
        base_margin : raw predictions that the trees are added to, (n_rows,), or (n_rows,
            n_outputs) for softmax; on X's device they stay there. IN. A model that was trained with
            one warns without it.
        feature_names : names of X's columns, to be compared with the model's.

        Returns
        -------
        Means; or of each row the likeliest class as in ``classes``, the first one of a tie. Classes
        are a tensor where X is one and they are numbers, otherwise a numpy array.
        """
        return self._ask(means_or_classes, X, base_margin, feature_names)

    def predict_proba(
        self, X: Any, *, base_margin: Any = None, feature_names: Sequence[str] | None = None
    ) -> Any:
        """Class probabilities, (n_rows, n_classes), in the order of ``classes``.

        They are made of float32 raw predictions with a portable ``exp``, so they are the same bits
        on every machine; float64 results are divided in float64. Arguments as in ``predict``.

        Raises
        ------
        StateError : the model has no classes.
        """
        self._check_classes("predict_proba")
        return self._ask(class_probabilities, X, base_margin, feature_names)

    def predict_raw(
        self, X: Any, *, base_margin: Any = None, feature_names: Sequence[str] | None = None
    ) -> Any:
        """Baseline plus the sum of the trees, before the link; arguments as in ``predict``."""
        return self._ask(raw_predictions, X, base_margin, feature_names)

    def staged_predict(
        self, X: Any, *, base_margin: Any = None, feature_names: Sequence[str] | None = None
    ) -> Iterator[Any]:
        """``predict`` after each round: ``n_rounds`` results, each one round's work."""
        return self._ask_stages(means_or_classes, X, base_margin, feature_names)

    def staged_predict_proba(
        self, X: Any, *, base_margin: Any = None, feature_names: Sequence[str] | None = None
    ) -> Iterator[Any]:
        """``predict_proba`` after each round."""
        self._check_classes("staged_predict_proba")
        return self._ask_stages(class_probabilities, X, base_margin, feature_names)

    def staged_predict_raw(
        self, X: Any, *, base_margin: Any = None, feature_names: Sequence[str] | None = None
    ) -> Iterator[Any]:
        """``predict_raw`` after each round."""
        return self._ask_stages(raw_predictions, X, base_margin, feature_names)

    def predict_leaf(self, X: Any, *, feature_names: Sequence[str] | None = None) -> Any:
        """The leaf where each row ends, int32, (n_rows, n_trees): its breadth-first index.

        Rows that share a leaf of a tree share its index; indices of different trees are unrelated.
        """
        with ieee_arithmetic():
            features = self._read(X, feature_names)
            leaves = features.zeros((features.matrix.n_rows, self.n_trees), np.int32)
            _backend(features).predict_leaves(self._core.forest, features.matrix, leaves)
            return features.like_input(leaves)

    # --- files and identity ------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file; a crash at any moment leaves the old file or the new one."""
        with ieee_arithmetic():
            serialization.save_model(self._core, path)

    def digest(self) -> str:
        """Hex SHA-256 of everything that decides a prediction: equal digests, same model."""
        with ieee_arithmetic():
            return self._core.digest()

    def structure_digest(self) -> str:
        """Like ``digest`` without thresholds: equal where only the scale of features differs."""
        with ieee_arithmetic():
            return self._core.structure_digest()

    # --- facts -------------------------------------------------------------------------------

    def feature_importance(self, kind: str = "gain") -> Float64Array:
        """Importance of each feature, a float64 numpy array (n_features,), not normalised.

        Parameters
        ----------
        kind : "gain": loss removed by the splits on the feature; "split": how many there are;
            "cover": sum of the Hessians (for squared error: the weights) of the rows they split.
        """
        return self._core.feature_importance(kind)

    def truncate(self, n_rounds: int) -> "Model":
        """The model after its first rounds; InvalidParameterError unless 0 <= n_rounds <= all."""
        return Model(self._core.truncate(n_rounds))

    @property
    def n_rounds(self) -> int:
        """Boosting rounds."""
        return self._core.n_rounds

    @property
    def n_trees(self) -> int:
        """Trees: rounds times trees per round."""
        return self._core.n_trees

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self._core.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns, where the training data had them."""
        return self._core.feature_names

    @property
    def objective(self) -> str:
        """Name of the loss that training minimised."""
        return self._core.objective

    @property
    def settings(self) -> dict[str, Any]:
        """What the model was trained with, by name; a copy."""
        return dict(self._core.settings)

    @property
    def classes(self) -> AnyArray | None:
        """Class labels in code order; None for regression."""
        return None if self._core.classes is None else self._core.classes.copy()

    @property
    def best_iteration(self) -> int | None:
        """Zero-based round that early stopping kept; None without early stopping."""
        return self._core.best_iteration

    @property
    def baseline(self) -> float | Float64Array:
        """What the trees are added to: a float, or float64 (n_outputs,) where there are several."""
        baseline = self._core.baseline
        return float(baseline[0]) if baseline.size == 1 else baseline.copy()

    # --- inside ------------------------------------------------------------------------------

    def _read(self, X: Any, feature_names: Sequence[str] | None) -> Features:
        trained_on = self.feature_names
        features = read_features(
            X, "X", {}, may_be_empty=True, trained_on=trained_on, device=device_of(X)
        )
        if features.matrix.n_features != self.n_features:
            names = "" if self.feature_names is None else f": {', '.join(self.feature_names)}"
            raise InvalidDataError(
                f"X has {features.matrix.n_features} columns; the model was trained on "
                f"{self.n_features}{names}. Pass the same columns in the same order."
            )
        check_same_names(feature_names, self.n_features, trained_on, features.names)
        return features

    def _check_classes(self, method: str) -> None:
        if self._core.classes is None:
            raise StateError(
                f"{method} needs a classifier; this model was trained with objective="
                f"{self.objective!r}. Use predict."
            )

    def _ask(
        self, answer: _Answer, X: Any, base_margin: Any, feature_names: Sequence[str] | None
    ) -> Any:
        """The answer that all trees give for X."""
        with ieee_arithmetic():
            rows = self._read_rows(X, base_margin, feature_names)
            _backend(rows.features).predict(self._core.forest, rows.features.matrix, rows.sums)
            return answer(self._core, rows)

    def _ask_stages(
        self, answer: _Answer, X: Any, base_margin: Any, feature_names: Sequence[str] | None
    ) -> Iterator[Any]:
        """The answers after each round; X is checked now, and read as they are asked for."""
        with ieee_arithmetic():
            rows = self._read_rows(X, base_margin, feature_names)
        return self._stages(answer, rows)

    def _stages(self, answer: _Answer, rows: SummedRows) -> Iterator[Any]:
        backend = _backend(rows.features)
        for round_index in range(self.n_rounds):
            with ieee_arithmetic():
                trees = self._core.round_forest(round_index)
                backend.predict(trees, rows.features.matrix, rows.sums)
                stage = answer(self._core, rows)
            yield stage

    def _read_rows(
        self, X: Any, base_margin: Any, feature_names: Sequence[str] | None
    ) -> SummedRows:
        features = self._read(X, feature_names)
        n_rows, n_outputs = features.matrix.n_rows, self._core.n_outputs
        margins = None
        if base_margin is None and self._core.settings.get(core.TRAINED_WITH_MARGIN):
            warnings.warn(
                "this model was trained with base_margin and predicts without it; pass base_margin "
                "here as well, zeros if that is what you want.",
                UserWarning,
                stacklevel=4,
            )
        if base_margin is not None:
            margins = features.read_margins(base_margin, "base_margin", n_outputs)
        return SummedRows(features, features.zeros((n_rows, n_outputs), np.float32), margins)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model that ``Model.save`` wrote.

    Every array, index, flag and size is checked before anything is used; nothing in a file is run.

    Raises
    ------
    FileNotFoundError : there is no such file.
    ModelFormatError : it is no model file, is damaged, or was written by a newer torchgbdt.
    """
    with ieee_arithmetic():
        return Model(serialization.load_model(path))


def core_model(model: Model) -> core.Model:
    """What the core goes on from when training is continued."""
    return model._core


def _from_bytes(data: bytes) -> Model:
    """Unpickle: a pickled model holds the bytes of its file."""
    with ieee_arithmetic():
        return Model(serialization.model_from_bytes(data))


def _backend(features: Features) -> ComputeBackend:
    """The backend of the device where X is read."""
    resident = features.resident
    device = HOST if resident is None else str(resident.device)
    return make_backend(AUTO, device, torch.get_num_threads())
