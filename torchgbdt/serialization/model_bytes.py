"""Models as the bytes of a safetensors file.

    header (JSON)   __metadata__ {"torchgbdt": "<JSON, see metadata>"}, and of each tensor its
                    name, dtype, shape and place
    data            little-endian: baseline, tree_offsets, category_sets, and all nodes' arrays

A file is taken apart only after its header has been compared with its size, and every array is
validated before a model is made of it.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_from_bytes
from safetensors.numpy import save as tensors_to_bytes

from torchgbdt.core.arrays import AnyArray
from torchgbdt.core.model import DIGEST_SCHEMA, Model, check_model
from torchgbdt.core.tree import NODE_ARRAYS, Forest, Tree
from torchgbdt.serialization.metadata import (
    FORMAT_VERSION,
    fail,
    header_entry,
    is_integer,
    objective_of,
    read_json,
    read_metadata,
    require,
)

MAX_HEADER_BYTES = 16 << 20
"""Longest header that is read: room for about 100,000 feature names."""

LENGTH_BYTES = 8
"""At the start of a file: the length of its header, little-endian."""

_SAFETENSORS_NAMES = {
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint64": "U64",
    "float32": "F32",
    "float64": "F64",
}
_FRAME_ARRAYS: dict[str, type[np.generic]] = {
    "baseline": np.float64,
    "tree_offsets": np.int64,
    "category_sets": np.uint64,
}
_MATRICES = {"category_sets", "nodes.value"}
_ARRAYS = {**_FRAME_ARRAYS, **{f"nodes.{name}": dtype for name, dtype in NODE_ARRAYS.items()}}


def model_to_bytes(model: Model) -> bytes:
    """The file of a model; equal models give equal bytes.

    Raises
    ------
    ModelFormatError : the header would be longer than a reader accepts.
    """
    nodes = {f"nodes.{name}": getattr(model.forest.nodes, name) for name in NODE_ARRAYS}
    arrays = {
        "baseline": model.baseline,
        "tree_offsets": model.forest.offsets,
        "category_sets": model.forest.category_sets,
        **nodes,
    }
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    data = tensors_to_bytes(contiguous, metadata=header_entry(model))
    if header_length(data) > MAX_HEADER_BYTES:
        fail(f"its names need a header of more than {MAX_HEADER_BYTES} bytes; shorten them")
    return data


def model_from_bytes(data: bytes) -> Model:
    """The model that these bytes of a file describe.

    Raises
    ------
    ModelFormatError : anything about them is not valid; the message says what.
    """
    return model_from(check_header(data, len(data)), data)


def model_from(metadata: Mapping[str, Any], data: bytes) -> Model:
    """The validated model of a file whose header has been checked."""
    try:
        arrays = tensors_from_bytes(data)
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        fail(f"safetensors cannot read it: {error}")
    return _build(metadata, arrays)


def _build(metadata: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Model:
    """A validated model of validated metadata."""
    native = {name: np.array(array, dtype=_ARRAYS[name]) for name, array in arrays.items()}
    nodes = Tree(**{name: native[f"nodes.{name}"] for name in NODE_ARRAYS})
    forest = Forest(native["tree_offsets"], nodes, native["category_sets"])
    classes = metadata["classes"]
    n_outputs = objective_of(metadata).n_outputs
    require(
        native["baseline"].size == n_outputs, f"it needs {n_outputs} baseline(s) for its objective"
    )
    names = metadata["feature_names"]
    model = check_model(
        Model(
            forest=forest,
            baseline=native["baseline"],
            trees_per_round=metadata["trees_per_round"],
            n_features=metadata["n_features"],
            objective=metadata["objective"],
            link=metadata["link"],
            feature_names=None if names is None else tuple(names),
            classes=None if classes is None else np.array(classes["values"], classes["dtype"]),
            best_iteration=metadata["best_iteration"],
            settings={
                name: tuple(value) if isinstance(value, list) else value
                for name, value in metadata["settings"].items()
            },
        )
    )
    if metadata["digest_schema"] == DIGEST_SCHEMA and metadata["digest"] != model.digest():
        fail("its arrays do not have the digest that it states; it is damaged")
    return model


def header_length(start: bytes) -> int:
    """Bytes of the header after the first LENGTH_BYTES."""
    return int.from_bytes(start[:LENGTH_BYTES], "little")


def check_header(start: bytes, file_size: int) -> dict[str, Any]:
    """The metadata, once all that the header says has been checked against the file's size.

    Parameters
    ----------
    start : at least the header of the file. IN.
    """
    check_length(start, file_size)
    end = LENGTH_BYTES + header_length(start)
    header = read_json(start[LENGTH_BYTES:end], "its header")
    require(isinstance(header, dict), "its header is not a JSON object")
    metadata = read_metadata(header)
    _check_arrays(header, file_size - end)
    return metadata


def check_length(start: bytes, file_size: int) -> None:
    """Fail unless a header of the length that the file states can be in it."""
    require(file_size > LENGTH_BYTES, f"it has {file_size} bytes, too few for a header")
    require(
        2 <= header_length(start) <= min(file_size - LENGTH_BYTES, MAX_HEADER_BYTES),
        "it does not begin like a safetensors file, or was cut off",
    )


def _check_arrays(header: Mapping[str, Any], data_size: int) -> None:
    """Exactly the arrays of this format, with their dtypes, and as many bytes as the file has."""
    names = {name for name in header if name != "__metadata__"}
    require(
        names == _ARRAYS.keys(),
        f"its arrays are not those of format {FORMAT_VERSION}; missing or unknown: "
        f"{sorted(names ^ _ARRAYS.keys())[:3]}",
    )
    n_bytes = 0
    for name, dtype in _ARRAYS.items():
        entry, expected = header[name], _SAFETENSORS_NAMES[np.dtype(dtype).name]
        require(isinstance(entry, dict), f"the header of {name} is not an object")
        require(entry.get("dtype") == expected, f"{name} does not have dtype {expected}")
        shape = entry.get("shape")
        require(
            isinstance(shape, list)
            and len(shape) == (2 if name in _MATRICES else 1)
            and all(is_integer(size, 0, data_size) for size in shape),
            f"{name} has no valid shape",
        )
        n_bytes += math.prod(shape) * np.dtype(dtype).itemsize
    require(
        n_bytes == data_size,
        f"its arrays need {n_bytes} bytes and it has {data_size}; it was cut off or damaged",
    )
