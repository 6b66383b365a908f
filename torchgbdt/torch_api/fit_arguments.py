"""The arguments of ``fit`` as the core's TrainingData: raw arrays or data sets that are binned."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torchgbdt.backends.registry import AUTO
from torchgbdt.backends.torch_transfers import find_device
from torchgbdt.core.arrays import AnyArray
from torchgbdt.core.dataset import Dataset as CoreDataset
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError
from torchgbdt.core.model import Model as CoreModel
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.torch_api.dataset import Dataset, core_dataset
from torchgbdt.torch_api.features import read_features
from torchgbdt.torch_api.labels import read_labels
from torchgbdt.torch_api.model import Model, core_model
from torchgbdt.torch_api.tensors import HOST, device_of, read_vector


@dataclass(frozen=True)
class FitArguments:
    """What a user may pass to ``fit``; see ``Trainer.fit``."""

    X: Any
    y: Any = None
    sample_weight: Any = None
    eval_set: Any = None
    eval_sample_weight: Any = None
    base_margin: Any = None
    eval_base_margin: Any = None
    init_model: Any = None


@dataclass(frozen=True)
class FitData:
    """What training needs of them.

    Attributes
    ----------
    device : name of the device where the run takes place.
    copies : argument name -> where a full copy of it was taken from.
    """

    data: TrainingData
    device: str
    copies: dict[str, str] = field(default_factory=dict)


def read_fit_arguments(given: FitArguments, device: str = AUTO) -> FitData:
    """Read every argument, in place where it lies: X on the device of the run, others on the host.

    Parameters
    ----------
    device : where the run takes place; "auto" for where X lies.

    Raises
    ------
    InvalidDataError : an argument is no array of real numbers, or arguments do not go together.
    """
    copies: dict[str, str] = {}
    if device == AUTO:
        device = given.X.device if isinstance(given.X, Dataset) else device_of(given.X)
    elif device != HOST:
        device = str(find_device(device))  # with its index, as tensors there have it
    train = _read_set("", given.X, given.y, given.sample_weight, copies, device)
    valids = _read_eval_set(given, copies, device)
    margins = None
    if given.base_margin is not None:
        margins = read_vector(given.base_margin, "base_margin", copies)
    valid_margins = [
        None if margin is None else read_vector(margin, f"eval_base_margin[{index}]", copies)
        for index, margin in enumerate(
            _one_per_eval_set(given.eval_base_margin, "eval_base_margin", len(valids))
        )
    ]
    initial = _read_init_model(given.init_model)
    return FitData(TrainingData(train, valids, margins, valid_margins, initial), device, copies)


def _read_init_model(init_model: Any) -> CoreModel | None:
    if init_model is None:
        return None
    if not isinstance(init_model, Model):
        raise InvalidParameterError(
            f"init_model must be a tg.Model, as fit and tg.load return it; found a "
            f"{type(init_model).__name__}."
        )
    return core_model(init_model)


def _read_set(
    name: str, X: Any, y: Any, sample_weight: Any, copies: dict[str, str], device: str
) -> RawData | CoreDataset:
    """One data set; ``name`` is "" or "eval_set[i]"."""
    prefix = f"{name} " if name else ""
    if isinstance(X, Dataset):
        for argument, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise InvalidDataError(
                    f"{prefix}X is a Dataset, which holds its own {argument}; found another "
                    f"{argument}. Leave it out, or build the Dataset with it."
                )
        return core_dataset(X, copies, device, f"{prefix}X")
    features = read_features(X, f"{prefix}X", copies, may_be_empty=False, device=device)
    labels: AnyArray | None = None
    weights: AnyArray | None = None
    if y is not None:
        labels = read_labels(y, f"{prefix}y", copies)
    if sample_weight is not None:
        weights = read_vector(sample_weight, f"{prefix}sample_weight", copies)
    return RawData(features.matrix, labels, weights, features.names, name=name)


def _read_eval_set(
    given: FitArguments, copies: dict[str, str], device: str
) -> list[RawData | CoreDataset]:
    if given.eval_set is None:
        items: Sequence[Any] = ()
    elif isinstance(given.eval_set, list | tuple):
        items = given.eval_set
    else:
        raise InvalidDataError(
            f"eval_set must be a list of (X, y) pairs or Datasets; found a "
            f"{type(given.eval_set).__name__}. Write eval_set=[...]."
        )
    weights = _one_per_eval_set(given.eval_sample_weight, "eval_sample_weight", len(items))
    result = []
    for index, (item, weight) in enumerate(zip(items, weights, strict=True)):
        X, y = (item, None) if isinstance(item, Dataset) else _pair(item, index)
        result.append(_read_set(f"eval_set[{index}]", X, y, weight, copies, device))
    return result


def _pair(item: Any, index: int) -> tuple[Any, Any]:
    if not isinstance(item, list | tuple) or len(item) != 2:
        what = type(item).__name__
        if isinstance(item, list | tuple):
            what += f" of {len(item)} entries"
        raise InvalidDataError(
            f"eval_set[{index}] must be a pair (X, y) or a Dataset; found a {what}. Write "
            f"eval_set=[(X_valid, y_valid)]."
        )
    return item[0], item[1]


def _one_per_eval_set(given: Any, name: str, n_valids: int) -> Sequence[Any]:
    """One entry per evaluation set, None where none was given."""
    if given is None:
        return [None] * n_valids
    if not isinstance(given, list | tuple) or len(given) != n_valids:
        found = f"a {type(given).__name__}"
        if isinstance(given, list | tuple):
            found += f" of {len(given)} entries"
        raise InvalidDataError(
            f"{name} must be a list with one entry per evaluation set, {n_valids} here; found "
            f"{found}. Use None for a set without."
        )
    return given
