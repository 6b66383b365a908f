"""Gradient-boosted decision trees on PyTorch tensors, the same model bit for bit on every backend.

Public names load on first use (PEP 562), so that ``import torchgbdt.core`` works without torch and
``import torchgbdt`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchgbdt import backends as backends
    from torchgbdt.core import errors as errors
    from torchgbdt.core.states import TrainerState as TrainerState
    from torchgbdt.sklearn_api.classifier import GBDTClassifier as GBDTClassifier
    from torchgbdt.sklearn_api.regressor import GBDTRegressor as GBDTRegressor
    from torchgbdt.torch_api import callbacks as callbacks
    from torchgbdt.torch_api.dataset import Dataset as Dataset
    from torchgbdt.torch_api.model import Model as Model
    from torchgbdt.torch_api.model import load as load
    from torchgbdt.torch_api.trainer import Trainer as Trainer
    from torchgbdt.torch_api.trainer import train as train

    __version__: str

# Public name -> the module it comes from and its name there; None where the module itself is meant.
_EXPORTS: dict[str, tuple[str, str | None]] = {
    "Dataset": ("torchgbdt.torch_api.dataset", "Dataset"),
    "GBDTClassifier": ("torchgbdt.sklearn_api.classifier", "GBDTClassifier"),
    "GBDTRegressor": ("torchgbdt.sklearn_api.regressor", "GBDTRegressor"),
    "Model": ("torchgbdt.torch_api.model", "Model"),
    "Trainer": ("torchgbdt.torch_api.trainer", "Trainer"),
    "TrainerState": ("torchgbdt.core.states", "TrainerState"),
    "backends": ("torchgbdt.backends", None),
    "callbacks": ("torchgbdt.torch_api.callbacks", None),
    "errors": ("torchgbdt.core.errors", None),
    "load": ("torchgbdt.torch_api.model", "load"),
    "train": ("torchgbdt.torch_api.trainer", "train"),
}

__all__ = [
    "Dataset",
    "GBDTClassifier",
    "GBDTRegressor",
    "Model",
    "Trainer",
    "TrainerState",
    "__version__",
    "backends",
    "callbacks",
    "errors",
    "load",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("torchgbdt")
    elif name in _EXPORTS:
        module_name, attribute = _EXPORTS[name]
        module = import_module(module_name)
        value = module if attribute is None else getattr(module, attribute)
    else:
        raise AttributeError(f"module 'torchgbdt' has no attribute {name!r}")
    globals()[name] = value  # found once; the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
