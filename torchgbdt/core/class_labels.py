"""Class labels: the distinct values of y in ascending order, and the code of each row.

    y: text, integers, bools or whole floats --> classes (n_classes,), codes int32 (n_rows,)

Classes come from the rows that count, on all ranks. A code is a position in ``classes``.
"""

import json

import numpy as np

from torchgbdt.core.arrays import AnyArray, BinArray, Int32Array, Int64Array
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.errors import InvalidDataError

MAX_CLASSES = 4096
"""More distinct labels than this are a mistake far more often than classes; each costs a tree per
round and a column of predictions."""

MAX_LABEL_LENGTH = 1000
"""Characters. numpy gives every text the room of the longest, so one long one costs all of them."""

_KIND_NAMES = {"b": "bools", "i": "integers", "u": "integers", "f": "floats", "U": "texts"}


def check_class_labels(labels: AnyArray, name: str, kept_rows: Int64Array | None = None) -> None:
    """Raise InvalidDataError if labels are fractions, or texts too long to be labels.

    Parameters
    ----------
    labels : checked by ``row_values.check_labels``, (n_rows,), of the rows that count. IN.
    kept_rows : int64, (n_rows,), the input row of each label for messages; None for all rows. IN.
    """
    if _is_text(labels):
        longest = int(np.strings.str_len(labels).max(initial=0))
        if longest > MAX_LABEL_LENGTH:
            raise InvalidDataError(
                f"{name} has a text of {longest} characters; class labels have at most "
                f"{MAX_LABEL_LENGTH}. Shorten them."
            )
    if labels.dtype.kind != "f":
        return
    fractional = labels != np.floor(labels)
    if fractional.any():
        first = int(np.flatnonzero(fractional)[0])
        row = first if kept_rows is None else int(kept_rows[first])
        raise InvalidDataError(
            f"{name} has {labels[first]} in row {row}; class labels must be texts, integers, bools "
            f"or whole numbers. For a real target use objective='squared_error'."
        )


def find_classes(labels: AnyArray, name: str, communicator: Communicator) -> AnyArray:
    """The distinct labels over all ranks, ascending, each rank's rows being those that count.

    Parameters
    ----------
    labels : checked by ``check_class_labels``, (n_rows,); none on a rank without rows. IN.

    Returns
    -------
    (n_classes,); bool, int64 (uint64 where int64 is too small), float64 or text.

    Raises
    ------
    InvalidDataError : fewer than two classes, more than MAX_CLASSES, or ranks whose labels are of
        different kinds.
    """
    own = _distinct(labels)[: MAX_CLASSES + 1]  # one too many is enough to say so
    everywhere = [_from_bytes(part) for part in communicator.gather(_to_bytes(own))]
    classes = _union([part for part in everywhere if part.size] or [own], name)
    if classes.size < 2:
        raise InvalidDataError(
            f"{name} has one class only, {classes.tolist()}, among the rows that count; a "
            f"classifier needs at least two."
        )
    if classes.size > MAX_CLASSES:
        raise InvalidDataError(
            f"{name} has more than {MAX_CLASSES} classes, the most that are allowed. For a real "
            f"target use objective='squared_error'."
        )
    return classes


def encode_labels(
    labels: AnyArray, classes: AnyArray, name: str, kept_rows: Int64Array | None = None
) -> Int32Array:
    """The code of each label.

    Parameters
    ----------
    labels : (n_rows,), of any kind. IN.
    classes : from ``find_classes``. IN.
    kept_rows : int64, (n_rows,), the input row of each label for messages; None for all rows. IN.

    Returns
    -------
    int32, (n_rows,); ``classes[code]`` equals the label.

    Raises
    ------
    InvalidDataError : a label that is no class, or of another kind.
    """
    if _is_text(labels) != _is_text(classes) and labels.size:
        raise InvalidDataError(
            f"{name} holds {_KIND_NAMES[labels.dtype.kind]}; the classes are "
            f"{_KIND_NAMES[classes.dtype.kind]}: {_some(classes)}. Pass labels of that kind."
        )
    if _is_text(labels):
        codes = _codes_of(labels, classes)
    else:
        distinct = np.unique(labels)
        codes = _codes_of(distinct, classes)[np.searchsorted(distinct, labels)]
    unknown = np.flatnonzero(codes < 0)
    if unknown.size:
        row = int(unknown[0] if kept_rows is None else kept_rows[unknown[0]])
        raise InvalidDataError(
            f"{name} has the label {labels[unknown[0]].item()!r} in row {row}, which is no class "
            f"of the training data: {_some(classes)}. Leave such rows out."
        )
    return codes


def _distinct(labels: AnyArray) -> AnyArray:
    """Distinct labels in ascending order, in the one dtype of their kind."""
    if _is_text(labels):
        return np.array(sorted(set(labels.tolist())), np.str_)  # faster than sorting all rows
    distinct = np.unique(labels)
    if distinct.dtype.kind == "b":
        return distinct
    if distinct.dtype.kind == "f":
        return distinct.astype(np.float64) + 0.0  # no -0
    fits = distinct.size == 0 or distinct[-1] <= np.iinfo(np.int64).max
    return distinct.astype(np.int64 if fits else np.uint64)


def _to_bytes(labels: AnyArray) -> BinArray:
    """Labels as bytes: ranks exchange arrays of one dtype, whatever the labels are."""
    dtype = "U" if _is_text(labels) else labels.dtype.name
    return np.frombuffer(json.dumps([dtype, labels.tolist()]).encode(), np.uint8)


def _from_bytes(data: BinArray) -> AnyArray:
    dtype, labels = json.loads(data.tobytes())
    return np.array(labels, dtype)


def _union(parts: list[AnyArray], name: str) -> AnyArray:
    """Distinct labels of all ranks from those of each; a uint64 meets an int64 without floats."""
    kinds = sorted({_KIND_NAMES[part.dtype.kind] for part in parts})
    if len(kinds) > 1:
        raise InvalidDataError(
            f"{name} holds {' on one rank and '.join(kinds)} on another; use one kind of label."
        )
    if len(parts) == 1:
        return parts[0]
    if any(part.dtype.kind == "u" for part in parts):
        if min(int(part[0]) for part in parts) < 0:
            raise InvalidDataError(
                f"{name} holds integers below 0 on one rank and beyond 2^63 - 1 on another; use "
                f"labels that fit into int64."
            )
        parts = [part.astype(np.uint64) for part in parts]
    return _distinct(np.concatenate(parts))


def _codes_of(labels: AnyArray, classes: AnyArray) -> Int32Array:
    """The code of each label, -1 without one; Python compares exactly, numpy rounds to float64."""
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    found = (code_of.get(label, -1) for label in labels.tolist())
    return np.fromiter(found, np.int32, labels.size)


def _is_text(labels: AnyArray) -> bool:
    return labels.dtype.kind == "U"


def _some(classes: AnyArray) -> str:
    shown = ", ".join(repr(label) for label in classes[:5].tolist())
    return shown if classes.size <= 5 else f"{shown}, ... ({classes.size} in all)"
