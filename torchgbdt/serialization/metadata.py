"""What a model file says besides arrays: the JSON object in its header, written and checked.

Sorted keys, and no settings that only say where training ran: equal models have equal files,
whichever backend made them.
"""

import json
import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NoReturn

from torchgbdt.core.arrays import AnyArray
from torchgbdt.core.class_labels import MAX_CLASSES, MAX_LABEL_LENGTH
from torchgbdt.core.errors import InvalidDataError, ModelFormatError
from torchgbdt.core.model import DIGEST_SCHEMA, Model
from torchgbdt.core.objectives import OBJECTIVES, Objective

FORMAT_VERSION = 1
"""Raised whenever an older reader would misread a file; every older version stays readable."""

_METADATA_KEY = "torchgbdt"
_EXECUTION_SETTINGS = {"device", "backend", "n_threads", "histogram_budget_mb"}


def header_entry(model: Model) -> dict[str, str]:
    """The ``__metadata__`` of a model's safetensors header."""
    text = json.dumps(metadata_of(model), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return {_METADATA_KEY: text}


def metadata_of(model: Model) -> dict[str, Any]:
    """What a file says besides arrays: numbers, texts, lists and null only."""
    return {
        "format_version": FORMAT_VERSION,
        "digest_schema": DIGEST_SCHEMA,
        "digest": model.digest(),
        "objective": model.objective,
        "link": model.link,
        "n_features": model.n_features,
        "trees_per_round": model.trees_per_round,
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "classes": None if model.classes is None else _classes_to_json(model.classes),
        "best_iteration": model.best_iteration,
        "settings": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in model.settings.items()
            if name not in _EXECUTION_SETTINGS
        },
    }


def fail(what: str) -> NoReturn:
    """Raise ModelFormatError that says what is wrong with a file."""
    raise ModelFormatError(f"invalid model file: {what}.")


def require(condition: object, what: str) -> None:
    """Fail unless the condition holds."""
    if not condition:
        fail(what)


def read_json(text: str | bytes, what: str) -> Any:
    """Parse JSON without NaN or infinities; ``what`` names it in messages."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not allowed")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        fail(f"{what} is not JSON ({type(error).__name__})")


def read_metadata(header: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata with every type and name checked."""
    outer = header.get("__metadata__")
    text = outer.get(_METADATA_KEY) if isinstance(outer, dict) else None
    require(isinstance(text, str), "it was not written by torchgbdt")
    metadata = read_json(str(text), "its metadata")
    require(isinstance(metadata, dict), "its metadata is not a JSON object")
    version = metadata.get("format_version")
    require(is_integer(version, 1), f"its format_version is {version!r}")
    require(
        version <= FORMAT_VERSION,
        f"it was written by a newer torchgbdt (format {version}; this one reads up to "
        f"{FORMAT_VERSION}); upgrade torchgbdt",
    )
    require(metadata.keys() == _METADATA_CHECKS.keys(), "its metadata has other entries")
    for name, check in _METADATA_CHECKS.items():
        require(check(metadata[name]), f"its {name} is not valid")
    objective = objective_of(metadata)
    require(metadata["link"] == objective.link, "its link is not that of its objective")
    same_rounds = metadata["trees_per_round"] == objective.trees_per_round
    require(same_rounds, "its trees_per_round is not that of its objective")
    return dict(metadata)


def objective_of(metadata: Mapping[str, Any]) -> Objective:
    """The objective for the number of classes that the metadata has."""
    objective, classes = OBJECTIVES[metadata["objective"]], metadata["classes"]
    needed = "classes" if objective.takes_classes else "no classes"
    require((classes is not None) == objective.takes_classes, f"its objective has {needed}")
    try:
        return objective.for_classes(None if classes is None else len(classes["values"]))
    except InvalidDataError:
        fail("its number of classes is not that of its objective")


def _classes_to_json(classes: AnyArray) -> dict[str, Any]:
    dtype = "str" if classes.dtype.kind == "U" else classes.dtype.name
    return {"dtype": dtype, "values": classes.tolist()}


def _are_classes(value: Any) -> bool:
    """Whether these are distinct labels of one type in ascending order, as training finds them."""
    if not isinstance(value, dict) or value.keys() != {"dtype", "values"}:
        return False
    is_label = _LABEL_CHECKS.get(value["dtype"]) if isinstance(value["dtype"], str) else None
    labels = value["values"]
    if is_label is None or not isinstance(labels, list) or not 2 <= len(labels) <= MAX_CLASSES:
        return False
    return all(map(is_label, labels)) and all(a < b for a, b in pairwise(labels))


def is_integer(value: Any, low: int, high: int = 2**31 - 1) -> bool:
    """Whether a JSON value is an integer in low..high."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_setting(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str) or _are_texts(value)


_LABEL_CHECKS: dict[str, Callable[[Any], bool]] = {
    "bool": lambda label: isinstance(label, bool),
    "int64": lambda label: is_integer(label, -(2**63), 2**63 - 1),
    "uint64": lambda label: is_integer(label, 0, 2**64 - 1),
    "float64": lambda label: isinstance(label, float) and math.isfinite(label),
    "str": lambda label: (
        isinstance(label, str) and len(label) <= MAX_LABEL_LENGTH and not label.endswith("\0")
    ),
}
"""By the name of the dtype; numpy drops trailing NULs of texts, and pads all to the longest."""

_METADATA_CHECKS: dict[str, Callable[[Any], bool]] = {
    "format_version": lambda value: is_integer(value, 1),
    "digest_schema": lambda value: is_integer(value, 1),
    "digest": lambda value: isinstance(value, str),
    "objective": lambda value: isinstance(value, str) and value in OBJECTIVES,
    "link": lambda value: isinstance(value, str),
    "n_features": lambda value: is_integer(value, 1),
    "trees_per_round": lambda value: is_integer(value, 1),
    "feature_names": lambda value: value is None or _are_texts(value),
    "classes": lambda value: value is None or _are_classes(value),
    "best_iteration": lambda value: value is None or is_integer(value, 0),
    "settings": lambda value: isinstance(value, dict) and all(map(_is_setting, value.values())),
}
