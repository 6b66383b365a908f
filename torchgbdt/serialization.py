"""Models as safetensors files: core.Model <-> bytes <-> file.

    header (JSON)   __metadata__ {"torchgbdt": "<JSON, see _metadata>"}, and of each tensor its
                    name, dtype, shape and place
    data            little-endian: baseline, tree_offsets, category_sets, and all nodes' arrays

The JSON has sorted keys and the settings that only say where training ran are left out, so equal
models have equal files, whichever backend made them. A file is taken apart only after its header
has been compared with its size, and every array is validated before a model is made of it.
"""

import contextlib
import json
import math
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_from_bytes
from safetensors.numpy import save as tensors_to_bytes

from torchgbdt.core.arrays import AnyArray
from torchgbdt.core.errors import InvalidParameterError, ModelFormatError
from torchgbdt.core.model import DIGEST_SCHEMA, Model, check_model
from torchgbdt.core.objectives import OBJECTIVES
from torchgbdt.core.tree import NODE_ARRAYS, Forest, Tree

FORMAT_VERSION = 1
"""Raised whenever an older reader would misread a file; every older version stays readable."""

MAX_HEADER_BYTES = 16 << 20
"""Longest header that is read: room for about 100,000 feature names."""

_METADATA_KEY = "torchgbdt"
_LENGTH_BYTES = 8
_EXECUTION_SETTINGS = {"device", "backend", "n_threads", "histogram_budget_mb"}
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


# --- model <-> bytes ---------------------------------------------------------------------------


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
    text = json.dumps(_metadata(model), sort_keys=True, separators=(",", ":"), allow_nan=False)
    data = tensors_to_bytes(contiguous, metadata={_METADATA_KEY: text})
    if _header_length(data) > MAX_HEADER_BYTES:
        _fail(f"its names need a header of more than {MAX_HEADER_BYTES} bytes; shorten them")
    return data


def model_from_bytes(data: bytes) -> Model:
    """The model that these bytes of a file describe.

    Raises
    ------
    ModelFormatError : anything about them is not valid; the message says what.
    """
    return _model_from(_check_header(data, len(data)), data)


def _model_from(metadata: Mapping[str, Any], data: bytes) -> Model:
    """The validated model of a file whose header has been checked."""
    try:
        arrays = tensors_from_bytes(data)
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        _fail(f"safetensors cannot read it: {error}")
    return _build(metadata, arrays)


def _metadata(model: Model) -> dict[str, Any]:
    """What a file says besides arrays: numbers, texts, lists and null only."""
    if model.classes is not None:
        raise ModelFormatError("models with classes cannot be saved yet.")
    return {
        "format_version": FORMAT_VERSION,
        "digest_schema": DIGEST_SCHEMA,
        "digest": model.digest(),
        "objective": model.objective,
        "link": model.link,
        "n_features": model.n_features,
        "trees_per_round": model.trees_per_round,
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "classes": None,
        "best_iteration": model.best_iteration,
        "settings": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in model.settings.items()
            if name not in _EXECUTION_SETTINGS
        },
    }


def _build(metadata: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Model:
    """A validated model of validated metadata."""
    native = {name: np.array(array, dtype=_ARRAYS[name]) for name, array in arrays.items()}
    nodes = Tree(**{name: native[f"nodes.{name}"] for name in NODE_ARRAYS})
    forest = Forest(native["tree_offsets"], nodes, native["category_sets"])
    n_outputs = OBJECTIVES[metadata["objective"]].n_outputs
    _require(
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
            best_iteration=metadata["best_iteration"],
            settings={
                name: tuple(value) if isinstance(value, list) else value
                for name, value in metadata["settings"].items()
            },
        )
    )
    if metadata["digest_schema"] == DIGEST_SCHEMA and metadata["digest"] != model.digest():
        _fail("its arrays do not have the digest that it states; it is damaged")
    return model


# --- header and metadata, before anything is used ----------------------------------------------


def _fail(what: str) -> NoReturn:
    raise ModelFormatError(f"invalid model file: {what}.")


def _require(condition: object, what: str) -> None:
    if not condition:
        _fail(what)


def _header_length(start: bytes) -> int:
    return int.from_bytes(start[:_LENGTH_BYTES], "little")


def _check_header(start: bytes, file_size: int) -> dict[str, Any]:
    """The metadata, once all that the header says has been checked against the file's size.

    Parameters
    ----------
    start : at least the header of the file. IN.
    """
    _check_length(start, file_size)
    end = _LENGTH_BYTES + _header_length(start)
    header = _read_json(start[_LENGTH_BYTES:end], "its header")
    _require(isinstance(header, dict), "its header is not a JSON object")
    metadata = _read_metadata(header)
    _check_arrays(header, file_size - end)
    return metadata


def _check_length(start: bytes, file_size: int) -> None:
    _require(file_size > _LENGTH_BYTES, f"it has {file_size} bytes, too few for a header")
    _require(
        2 <= _header_length(start) <= min(file_size - _LENGTH_BYTES, MAX_HEADER_BYTES),
        "it does not begin like a safetensors file, or was cut off",
    )


def _read_json(text: str | bytes, what: str) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not allowed")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        _fail(f"{what} is not JSON ({type(error).__name__})")


def _check_arrays(header: Mapping[str, Any], data_size: int) -> None:
    """Exactly the arrays of this format, with their dtypes, and as many bytes as the file has."""
    names = {name for name in header if name != "__metadata__"}
    _require(
        names == _ARRAYS.keys(),
        f"its arrays are not those of format {FORMAT_VERSION}; missing or unknown: "
        f"{sorted(names ^ _ARRAYS.keys())[:3]}",
    )
    n_bytes = 0
    for name, dtype in _ARRAYS.items():
        entry, expected = header[name], _SAFETENSORS_NAMES[np.dtype(dtype).name]
        _require(isinstance(entry, dict), f"the header of {name} is not an object")
        _require(entry.get("dtype") == expected, f"{name} does not have dtype {expected}")
        shape = entry.get("shape")
        _require(
            isinstance(shape, list)
            and len(shape) == (2 if name in _MATRICES else 1)
            and all(_is_integer(size, 0, data_size) for size in shape),
            f"{name} has no valid shape",
        )
        n_bytes += math.prod(shape) * np.dtype(dtype).itemsize
    _require(
        n_bytes == data_size,
        f"its arrays need {n_bytes} bytes and it has {data_size}; it was cut off or damaged",
    )


def _read_metadata(header: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata with every type and name checked."""
    outer = header.get("__metadata__")
    text = outer.get(_METADATA_KEY) if isinstance(outer, dict) else None
    _require(isinstance(text, str), "it was not written by torchgbdt")
    metadata = _read_json(str(text), "its metadata")
    _require(isinstance(metadata, dict), "its metadata is not a JSON object")
    version = metadata.get("format_version")
    _require(_is_integer(version, 1), f"its format_version is {version!r}")
    _require(
        version <= FORMAT_VERSION,
        f"it was written by a newer torchgbdt (format {version}; this one reads up to "
        f"{FORMAT_VERSION}); upgrade torchgbdt",
    )
    _require(metadata.keys() == _METADATA_CHECKS.keys(), "its metadata has other entries")
    for name, check in _METADATA_CHECKS.items():
        _require(check(metadata[name]), f"its {name} is not valid")
    objective = OBJECTIVES[metadata["objective"]]
    _require(metadata["link"] == objective.link, "its link is not that of its objective")
    same_rounds = metadata["trees_per_round"] == objective.trees_per_round
    _require(same_rounds, "its trees_per_round is not that of its objective")
    return dict(metadata)


def _is_integer(value: Any, low: int, high: int = 2**31 - 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_setting(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str) or _are_texts(value)


_METADATA_CHECKS: dict[str, Callable[[Any], bool]] = {
    "format_version": lambda value: _is_integer(value, 1),
    "digest_schema": lambda value: _is_integer(value, 1),
    "digest": lambda value: isinstance(value, str),
    "objective": lambda value: isinstance(value, str) and value in OBJECTIVES,
    "link": lambda value: isinstance(value, str),
    "n_features": lambda value: _is_integer(value, 1),
    "trees_per_round": lambda value: _is_integer(value, 1),
    "feature_names": lambda value: value is None or _are_texts(value),
    "classes": lambda value: value is None,
    "best_iteration": lambda value: value is None or _is_integer(value, 0),
    "settings": lambda value: isinstance(value, dict) and all(map(_is_setting, value.values())),
}


# --- files ---------------------------------------------------------------------------------------


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read and validate a model file.

    Raises
    ------
    FileNotFoundError : there is no such file.
    ModelFormatError : it is not a regular file, or not a valid model.
    """
    file = _as_path(path)
    if not stat.S_ISREG(file.stat().st_mode):  # before it is opened: a pipe would wait for ever
        raise ModelFormatError(f"{file} is not a file; name the file that Model.save wrote.")
    try:
        with file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            start = stream.read(_LENGTH_BYTES)
            _check_length(start, size)
            start += stream.read(_header_length(start))
            metadata = _check_header(start, size)
            return _model_from(metadata, start + stream.read(size))
    except ModelFormatError as error:
        error.add_note(f"while loading {file}")
        raise


def save_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model file so that a crash at any moment leaves the old file or the new one.

    The bytes go to a new file in the same folder, reach the disk, and take the name by a rename.
    A new file gets the usual permissions (0666 less the umask), a replaced one keeps its own.

    Raises
    ------
    FileNotFoundError : the folder does not exist.
    InvalidParameterError : the path names something that is not a file.
    """
    target = Path(os.path.realpath(_as_path(path)))  # a link stays a link
    if target.exists() and not target.is_file():
        raise InvalidParameterError(f"path must name a file; {target} is something else.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it first.")
    data = model_to_bytes(model)
    temporary = target.parent / f".torchgbdt-{secrets.token_hex(8)}.tmp"
    try:
        _write_new_file(temporary, data, target)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _write_new_file(temporary: Path, data: bytes, target: Path) -> None:
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with os.fdopen(descriptor, "wb") as stream:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    """Bring the rename to the disk; some file systems cannot, and the file is whole anyway."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _as_path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise InvalidParameterError(f"path must be a text or a Path; found {path!r}.")
    return Path(os.fsdecode(path))
