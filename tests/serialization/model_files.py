"""Models to save without training them, and files taken apart and put together again by hand."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from support.forests import random_tree

from torchgbdt.core.model import Model, check_model
from torchgbdt.core.tree import Forest
from torchgbdt.serialization import model_to_bytes

THRESHOLDS = [[-1.5, 0.0, 2.25], [1e-310, 3e300], []]


def small_model(seed: int = 0, n_trees: int = 4, **frame: Any) -> Model:
    """A valid model of random trees on three features."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, THRESHOLDS) for _ in range(n_trees)]
    facts: dict[str, Any] = {
        "baseline": np.array([1e9 + 0.1]),
        "trees_per_round": 1,
        "objective": "squared_error",
        "link": "identity",
        "feature_names": ("a", "größe", "c"),
        "best_iteration": n_trees - 1 if n_trees else None,
        "settings": {"n_estimators": n_trees, "eval_metric": ("rmse",), "baseline": None},
        **frame,
    }
    return check_model(Model(Forest.from_trees(trees, 1), n_features=3, **facts))


def take_apart(data: bytes) -> tuple[dict[str, Any], dict[str, Any], dict[str, bytes]]:
    """(header without metadata, metadata, bytes of each array) of a file."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    metadata = json.loads(header.pop("__metadata__")["torchgbdt"])
    arrays = {
        name: data[end + entry["data_offsets"][0] : end + entry["data_offsets"][1]]
        for name, entry in header.items()
    }
    return header, metadata, arrays


def put_together(
    header: Mapping[str, Any], metadata: Any, arrays: Mapping[str, bytes], **raw: Any
) -> bytes:
    """A file of these parts, lies included; ``raw`` replaces top-level entries of the header."""
    full = {"__metadata__": {"torchgbdt": json.dumps(metadata)}, **header, **raw}
    text = json.dumps(full).encode()
    text += b" " * (-len(text) % 8)
    ordered = sorted(header, key=lambda name: header[name]["data_offsets"][0])
    return len(text).to_bytes(8, "little") + text + b"".join(arrays[name] for name in ordered)


def with_array(data: bytes, name: str, array: np.ndarray) -> bytes:
    """The file with one array replaced, in a header that tells the truth about it."""
    header, metadata, arrays = take_apart(data)
    kinds = {"f4": "F32", "f8": "F64", "i4": "I32", "i8": "I64", "u1": "U8", "u8": "U64"}
    header[name] = {"dtype": kinds[array.dtype.str[1:]], "shape": list(array.shape)}
    arrays[name] = array.tobytes()
    start = 0
    # widest first, as safetensors writes: all arrays stay aligned
    width = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U8": 1}
    for one in sorted(header, key=lambda key: (-width[header[key]["dtype"]], key)):
        header[one] = {
            "dtype": header[one]["dtype"],
            "shape": header[one]["shape"],
            "data_offsets": [start, start + len(arrays[one])],
        }
        start += len(arrays[one])
    return put_together(header, metadata, arrays)


def array_of(data: bytes, name: str) -> np.ndarray:
    """A writable copy of one array of a file."""
    header, _, arrays = take_apart(data)
    kinds = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1", "U64": "<u8"}
    flat = np.frombuffer(arrays[name], kinds[header[name]["dtype"]])
    assert math.prod(header[name]["shape"]) == flat.size
    return flat.reshape(header[name]["shape"]).copy()


VALID = model_to_bytes(small_model())


def lie(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """VALID with a header whose account of the arrays was changed."""
    header, metadata, _ = take_apart(VALID)
    entries = {name: dict(entry) for name, entry in header.items()}
    change(entries)
    text = {"__metadata__": {"torchgbdt": json.dumps(metadata)}, **entries}
    raw = json.dumps(text).encode()
    raw += b" " * (-len(raw) % 8)
    end = 8 + int.from_bytes(VALID[:8], "little")
    return len(raw).to_bytes(8, "little") + raw + VALID[end:]
