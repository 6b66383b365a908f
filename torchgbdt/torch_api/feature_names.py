"""Names of the columns of X: what users pass or their frames have, checked and compared."""

from collections.abc import KeysView, Mapping, Sequence
from typing import Any

from torchgbdt.core.errors import InvalidDataError

_SHOWN = 5


def read_feature_names(
    names: Any, n_features: int, of_frame: tuple[str, ...] | None = None
) -> tuple[str, ...] | None:
    """The names as a tuple, one different text per column; None if neither kind is there.

    Parameters
    ----------
    names : what the user passed: texts in any ordered container, or None.
    of_frame : those that X itself has.

    Raises
    ------
    InvalidDataError : not a list of texts, another number of them, one twice, or others than X has.
    """
    if names is None:
        return of_frame
    listed = _listed(names)
    if listed is None or not all(isinstance(name, str) for name in listed):
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
    if of_frame is not None and tuple(listed) != of_frame:
        column = _first_difference(listed, of_frame)
        raise InvalidDataError(
            f"feature_names has {listed[column]!r} at column {column}, where X itself has "
            f"{of_frame[column]!r}. Leave feature_names out, or rename the columns of X."
        )
    return tuple(str(name) for name in listed)


def column_names(names: Sequence[Any], where: str) -> tuple[str, ...] | None:
    """The names of a frame's columns, or None if none of them is a text (numbers, for example).

    Raises
    ------
    InvalidDataError : some are texts and some are not.
    """
    texts = [name for name in names if isinstance(name, str)]
    if not texts:
        return None
    if len(texts) < len(names):
        other = next(name for name in names if not isinstance(name, str))
        raise InvalidDataError(
            f"{where} has columns named by text and others: {texts[0]!r} is a str, {other!r} is of "
            f"type {type(other).__name__}. Make all names texts, for example by {where}.columns = "
            f"{where}.columns.astype(str)."
        )
    return tuple(str(name) for name in texts)


def check_same_names(
    names: Any,
    n_features: int,
    expected: tuple[str, ...] | None,
    of_frame: tuple[str, ...] | None = None,
) -> None:
    """Raise InvalidDataError unless the names a user passed are those the model was trained on."""
    given = read_feature_names(names, n_features, of_frame)
    if names is None or given == expected:
        return
    assert given is not None
    if expected is None:
        raise InvalidDataError(
            "feature_names cannot be checked: the model was trained without names. Leave them out, "
            "or train on a Dataset that has them."
        )
    column = _first_difference(given, expected)
    order = " They are the same names in another order." if set(given) == set(expected) else ""
    raise InvalidDataError(
        f"feature_names has {given[column]!r} at column {column}, where the model was trained on "
        f"{expected[column]!r}.{order} Pass the columns in the order of model.feature_names."
    )


def check_same_columns(
    found: tuple[str, ...] | None, expected: tuple[str, ...] | None, where: str
) -> None:
    """Raise InvalidDataError unless a frame has the columns a model was trained on, in their order.

    Where one of the two has no names, columns are matched by position.
    """
    if found is None or expected is None or found == expected:
        return
    missing = [name for name in expected if name not in set(found)]
    unexpected = [name for name in found if name not in set(expected)]
    problems = []
    if missing:
        problems.append(f"lacks {_some(missing)}")
    if unexpected:
        problems.append(f"has {_some(unexpected)}, unknown to the model")
    if not problems:
        column = _first_difference(found, expected)
        problems.append(
            f"has the columns of the model in another order: {found[column]!r} at column {column} "
            f"instead of {expected[column]!r}"
        )
    needed = "its missing columns, then X" if missing else "X"
    raise InvalidDataError(
        f"{where} {' and '.join(problems)}. Pass {needed}[list(model.feature_names)]: the columns "
        f"that the model was trained on, in their order."
    )


def _listed(names: Any) -> list[Any] | None:
    """What an ordered container of one axis holds; None for anything else."""
    is_ordered = hasattr(names, "__getitem__") and hasattr(names, "__len__")
    if isinstance(names, str | bytes | Mapping) or not (is_ordered or isinstance(names, KeysView)):
        return None
    return list(names) if getattr(names, "ndim", 1) == 1 else None


def _first_difference(names: Sequence[str], others: Sequence[str]) -> int:
    return next(i for i, pair in enumerate(zip(names, others, strict=True)) if pair[0] != pair[1])


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
