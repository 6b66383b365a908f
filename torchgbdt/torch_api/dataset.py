"""``tg.Dataset``: features quantized into bins once, used often (folds, seeds, searches)."""

from collections.abc import Sequence
from typing import Any

import torch

from torchgbdt.backends.registry import AUTO, make_backend
from torchgbdt.core import dataset as core
from torchgbdt.core.arrays import MAX_BINS, Float64Array
from torchgbdt.core.communicator import SINGLE_RANK
from torchgbdt.core.run_data import RawData
from torchgbdt.core.settings import BinningSettings, check_integer
from torchgbdt.torch_api.feature_names import read_feature_names
from torchgbdt.torch_api.features import read_features
from torchgbdt.torch_api.float_environment import ieee_arithmetic
from torchgbdt.torch_api.labels import read_labels
from torchgbdt.torch_api.tensors import device_of, read_rows, read_vector


class Dataset:
    """Binned rows with their labels and weights; owner of all binning settings.

    Parameters
    ----------
    X : torch tensor (any device, dtype and stride), numpy array or data frame (pandas, polars,
        pyarrow.Table) of real numbers, (n_rows, n_features); nan and nulls are missing. Read in
        place; not kept and never written to.
    y : targets or class labels, (n_rows,) or (n_rows, 1); None for data that nothing is trained on.
        Rows of a Series go with rows of X by position, whatever its index says.
    sample_weight : >= 0, (n_rows,), or None. Rows of weight 0 are dropped.
    max_bins : 3..256, codes per feature, the one for missing values included.
    random_state : keys the sample of rows that thresholds are fitted on where there are many.
    categorical_features : not built yet; only None.
    feature_names : one different text per column; None for the names of a frame's columns, where
        they are texts, and for no names otherwise.

    Raises
    ------
    InvalidDataError : X, y, sample_weight or feature_names cannot be used; the message says why.
    InvalidParameterError : a setting is out of range.

    Notes
    -----
    Binning needs one byte per value of X for the bins and no other full-size copy of X. The bins
    of a tensor lie on its device, and there a ``Trainer`` with device="auto" trains on them.
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        max_bins: int = MAX_BINS,
        random_state: int = 0,
        categorical_features: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        settings = BinningSettings(max_bins, random_state, categorical_features)
        self._copies: dict[str, str] = {}
        with ieee_arithmetic():
            self._device = device_of(X)
            features = read_features(X, "X", self._copies, may_be_empty=False, device=self._device)
            matrix = features.matrix
            names = read_feature_names(feature_names, matrix.n_features, features.names)
            labels = None if y is None else read_labels(y, "y", self._copies)
            weights = sample_weight
            if weights is not None:
                weights = read_vector(weights, "sample_weight", self._copies)
            backend = make_backend(AUTO, self._device, torch.get_num_threads())
            checked = RawData(matrix, labels, weights, names).check()
            self._data = checked.quantize(settings, backend, SINGLE_RANK)

    def subset(self, rows: Any) -> "Dataset":
        """Some rows, in the given order, sharing this data set's bins and thresholds.

        Parameters
        ----------
        rows : integers in 0..n_input_rows - 1, repeats allowed, or a bool mask of n_input_rows:
            tensor, array, list or range. They count the rows that were passed as X.

        Raises
        ------
        InvalidDataError : rows out of range, of another dtype, or none that counts.
        """
        result = object.__new__(Dataset)
        result._copies, result._device = dict(self._copies), self._device
        result._data = self._data.subset(read_rows(rows, "rows", self.n_input_rows))
        return result

    @property
    def n_rows(self) -> int:
        """Rows that count: those passed, without the ones of weight 0."""
        return self._data.n_rows

    @property
    def n_input_rows(self) -> int:
        """Rows that were passed as X, or selected by ``subset``."""
        return self._data.n_input_rows

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self._data.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns, or None."""
        return self._data.feature_names

    @property
    def device(self) -> str:
        """Where the bins lie: where X lay."""
        return self._device

    @property
    def max_bins(self) -> int:
        """Codes per feature that the thresholds were fitted for."""
        return self._data.settings.max_bins

    def thresholds(self, feature: int) -> Float64Array:
        """Where a feature is cut: float64, ascending; value bin b holds t[b-1] < x <= t[b].

        InvalidParameterError unless ``feature`` is a column of X.
        """
        column = check_integer("feature", feature, 0, self.n_features - 1)
        return self._data.thresholds.of_feature(column).copy()

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        with_labels = "with" if self._data.labels is not None else "without"
        return (
            f"Dataset({self.n_rows} rows, {self.n_features} features, max_bins={self.max_bins}, "
            f"{with_labels} targets)"
        )


def core_dataset(data: Dataset, copies: dict[str, str], device: str, name: str) -> core.Dataset:
    """What the core trains on; adds what was copied from elsewhere to ``copies`` (IN-OUT).

    ``name`` is how X is called, whose bins are copied where the run takes place elsewhere.
    """
    prefix = name.removesuffix("X")
    copies.update({prefix + argument: source for argument, source in data._copies.items()})
    if data.device != device:
        copies[name] = data.device
    return data._data
