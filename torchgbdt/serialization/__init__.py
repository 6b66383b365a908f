"""Models as safetensors files: core.Model <-> bytes <-> file."""

from torchgbdt.serialization.metadata import FORMAT_VERSION
from torchgbdt.serialization.model_bytes import (
    MAX_HEADER_BYTES,
    model_from_bytes,
    model_to_bytes,
)
from torchgbdt.serialization.model_files import load_model, save_model

__all__ = [
    "FORMAT_VERSION",
    "MAX_HEADER_BYTES",
    "load_model",
    "model_from_bytes",
    "model_to_bytes",
    "save_model",
]
