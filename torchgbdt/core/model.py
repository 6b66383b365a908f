"""A trained model: a forest, a baseline and what is needed to read its predictions; immutable.

Raw predictions are ``baseline + sum of leaf values``; see ``raw_predictions``.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from torchgbdt.core.arrays import AnyArray, Float64Array
from torchgbdt.core.errors import InvalidParameterError, ModelFormatError
from torchgbdt.core.fixed_point import flush_subnormals
from torchgbdt.core.tree import Forest, check_forest

DIGEST_SCHEMA = 1
"""Version of the byte order below; not the version of any file format."""

TRAINED_WITH_MARGIN = "base_margin"
"""Among a model's settings, and True, if its predictions need margins like those of training."""

IMPORTANCE_KINDS = ("gain", "split", "cover")


@dataclass(frozen=True)
class Model:
    """Trees and their frame.

    Attributes
    ----------
    baseline : float64, (n_outputs,).
    trees_per_round : trees that one boosting round adds.
    objective, link : names; the link is part of the digest.
    classes : class labels in code order; None for regression.
    best_iteration : zero-based round that early stopping kept; None without early stopping.
    settings : what the model was trained with, for reading only.
    """

    forest: Forest
    baseline: Float64Array
    trees_per_round: int
    n_features: int
    objective: str
    link: str
    feature_names: tuple[str, ...] | None = None
    classes: AnyArray | None = None
    best_iteration: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_outputs(self) -> int:
        """Columns of the raw prediction."""
        return int(self.baseline.size)

    @property
    def n_trees(self) -> int:
        """Trees of all rounds."""
        return self.forest.n_trees

    @property
    def n_rounds(self) -> int:
        """Boosting rounds."""
        return self.n_trees // self.trees_per_round

    def round_forest(self, round_index: int) -> Forest:
        """The trees that one round added."""
        start = round_index * self.trees_per_round
        return self.forest.slice(start, start + self.trees_per_round)

    def truncate(self, n_rounds: int) -> "Model":
        """The model after its first n_rounds rounds; InvalidParameterError if it has fewer."""
        if isinstance(n_rounds, bool) or not isinstance(n_rounds, int | np.integer):
            raise InvalidParameterError(f"n_rounds must be an integer; found {n_rounds!r}.")
        if not 0 <= n_rounds <= self.n_rounds:
            raise InvalidParameterError(
                f"n_rounds must lie in 0..{self.n_rounds}, the model's rounds; found {n_rounds}."
            )
        best = self.best_iteration
        return replace(
            self,
            forest=self.forest.slice(0, int(n_rounds) * self.trees_per_round),
            best_iteration=best if best is not None and best < n_rounds else None,
        )

    def feature_importance(self, kind: object) -> Float64Array:
        """Importance of each feature, float64, (n_features,): sums over all splits on it.

        Parameters
        ----------
        kind : "gain" (loss units), "split" (number of splits) or "cover" (Hessian units).
        """
        if not isinstance(kind, str) or kind not in IMPORTANCE_KINDS:
            allowed = ", ".join(repr(known) for known in IMPORTANCE_KINDS)
            raise InvalidParameterError(f"kind must be one of {allowed}; found {kind!r}.")
        nodes = self.forest.nodes
        split = ~nodes.is_leaf
        weights = {"gain": nodes.gain, "split": np.ones(nodes.n_nodes), "cover": nodes.cover}
        importance = np.zeros(self.n_features, np.float64)
        np.add.at(importance, nodes.feature[split], weights[kind][split])
        return importance

    def digest(self) -> str:
        """Hex SHA-256 over everything that decides a prediction. Equal digest = same model."""
        return _hash(self._digest_parts(with_thresholds=True))

    def structure_digest(self) -> str:
        """Like ``digest`` without thresholds: equal when only a feature's scale differs."""
        return _hash(self._digest_parts(with_thresholds=False))

    def _digest_parts(self, *, with_thresholds: bool) -> Iterator[bytes]:
        """Canonical bytes: each part little-endian, C order, preceded by its length when hashed.

        The number of features is not among them: a column that no split uses changes nothing.
        Models with categorical splits will append their category values in code order; the others
        keep this schema's digest.
        """
        nodes = self.forest.nodes
        yield f"torchgbdt digest {DIGEST_SCHEMA}".encode()
        yield self.link.encode()
        yield _integers(self.n_outputs, self.trees_per_round, nodes.value.shape[1])
        yield (self.baseline + 0.0).astype("<f8").tobytes()
        yield from _class_labels(self.classes)
        yield self.forest.offsets.astype("<i8").tobytes()
        for name in ("feature", "left", "right"):
            yield getattr(nodes, name).astype("<i4").tobytes()
        yield nodes.flags.tobytes()
        yield nodes.category_set.astype("<i4").tobytes()
        yield self.forest.category_sets.astype("<u8").tobytes()
        yield (nodes.value + np.float32(0)).astype("<f4").tobytes()
        if with_thresholds:
            yield (nodes.threshold + 0.0).astype("<f8").tobytes()


def check_model(model: Model) -> Model:
    """Return the model, or raise ModelFormatError that names what does not fit together."""

    def require(condition: object, what: str) -> None:
        if not condition:
            raise ModelFormatError(f"invalid model: {what}.")

    require(model.n_features >= 1, "it has no features")
    require(model.baseline.ndim == 1 and model.n_outputs >= 1, "the baseline has no outputs")
    require(model.baseline.dtype == np.float64, "the baseline is not float64")
    require(np.isfinite(flush_subnormals(model.baseline)).all(), "the baseline is not finite")
    require(model.trees_per_round in (1, model.n_outputs), "trees_per_round does not fit")
    if model.classes is not None:
        require(model.classes.ndim == 1 and model.classes.size >= 2, "there are not two classes")
        require(model.n_outputs in (1, model.classes.size), "the outputs do not fit the classes")
        require(model.n_outputs > 1 or model.classes.size == 2, "one output needs two classes")
    check_forest(model.forest, model.n_features)
    require(model.n_trees % model.trees_per_round == 0, "the last round is incomplete")
    require(
        model.forest.n_outputs * model.trees_per_round == model.n_outputs,
        "leaf values do not match the outputs",
    )
    names = model.feature_names
    require(names is None or len(names) == model.n_features, "feature_names has a wrong length")
    require(names is None or len(set(names)) == len(names), "feature_names repeats a name")
    best = model.best_iteration
    require(best is None or 0 <= best < model.n_rounds, "best_iteration is not a round")
    return model


def _hash(parts: Iterator[bytes]) -> str:
    sha = hashlib.sha256()
    for part in parts:
        sha.update(_integers(len(part)))
        sha.update(part)
    return sha.hexdigest()


def _integers(*values: int) -> bytes:
    return np.array(values, "<i8").tobytes()


def _class_labels(classes: AnyArray | None) -> Iterator[bytes]:
    """Labels with their type, so that 1 and "1" differ.

    In ASCII: which characters ``repr`` escapes besides depends on Python's version of Unicode.
    """
    if classes is None:
        yield b"no classes"
        return
    for label in classes.tolist():
        yield f"{type(label).__name__} {label!a}".encode()
