"""Names of the columns of X: what users pass, checked."""

from typing import Any

import numpy as np

from torchgbdt.core.errors import InvalidDataError


def read_feature_names(names: Any, n_features: int) -> tuple[str, ...] | None:
    """The names as a tuple, one different text per column; None if none are given.

    Raises
    ------
    InvalidDataError : not a list of texts, another number of them, or one twice.
    """
    if names is None:
        return None
    is_list = isinstance(names, list | tuple) or (isinstance(names, np.ndarray) and names.ndim == 1)
    listed = list(names) if is_list else []
    if not is_list or not all(isinstance(name, str) for name in listed):
        raise InvalidDataError(
            f"feature_names must be a list of texts, one per column of X; found {names!r}."
        )
    if len(listed) != n_features:
        raise InvalidDataError(
            f"feature_names has {len(listed)} names; X has {n_features} columns. Name each once."
        )
    if len(set(listed)) != len(listed):
        repeated = next(name for name in listed if listed.count(name) > 1)
        raise InvalidDataError(f"feature_names has {repeated!r} twice; make the names different.")
    return tuple(str(name) for name in listed)


def check_same_names(names: Any, n_features: int, expected: tuple[str, ...] | None) -> None:
    """Raise InvalidDataError unless X's names, where given, are those the model was trained on."""
    given = read_feature_names(names, n_features)
    if given is None or given == expected:
        return
    if expected is None:
        raise InvalidDataError(
            "feature_names cannot be checked: the model was trained without names. Leave them out, "
            "or train on a Dataset that has them."
        )
    column = next(
        i for i, pair in enumerate(zip(given, expected, strict=True)) if pair[0] != pair[1]
    )
    order = " They are the same names in another order." if set(given) == set(expected) else ""
    raise InvalidDataError(
        f"feature_names has {given[column]!r} at column {column}, where the model was trained on "
        f"{expected[column]!r}.{order} Pass the columns in the order of model.feature_names."
    )
