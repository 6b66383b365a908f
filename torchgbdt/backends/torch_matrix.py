"""Matrices on a torch device: X as it comes, X as integer keys, and its bins.

    X  --keys in the order of its numbers--> DeviceKeys  --search among threshold keys--> DeviceBins

Devices flush subnormal numbers, and some have no float64, so features are never compared as floats
there: see ``threshold_keys``, which this is the torch side of.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchgbdt.backends.threshold_keys import KEY_FORMS, float64_keys
from torchgbdt.backends.torch_transfers import Transfers, to_device, to_host
from torchgbdt.core.arrays import (
    MAX_EXACT_INTEGER,
    AnyArray,
    BinArray,
    Float64Array,
    Int64Array,
)
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.errors import BackendError, InvalidDataError
from torchgbdt.core.feature_source import FeatureSource, HostMatrix, integer_message, row_blocks

WORD_FEATURES = 8
"""Features per word of 8 bytes: rows of bins are padded to whole words."""

_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""By bytes: devices hold unsigned integers, but compute with few of them."""


@dataclass(frozen=True)
class DeviceBins:
    """A ``BinMatrix`` on a device.

    Attributes
    ----------
    tensor : uint8, (n_rows, n_padded), contiguous; n_features rounded up to whole words, padding 0.
    """

    tensor: torch.Tensor
    n_features: int

    @property
    def shape(self) -> tuple[int, int]:
        """(n_rows, n_features)."""
        return self.tensor.shape[0], self.n_features

    def __getitem__(self, rows: Any) -> "DeviceBins":
        """A copy of some rows: int64 positions, or a slice. IN."""
        if isinstance(rows, slice):
            return DeviceBins(self.tensor[rows].clone(), self.n_features)
        index = to_device(np.asarray(rows, np.int64), self.tensor.device)
        return DeviceBins(self.tensor.index_select(0, index), self.n_features)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """The codes on the host, always a copy, in C order."""
        codes = np.ascontiguousarray(to_host(self.tensor)[:, : self.n_features])
        return codes if dtype is None else codes.astype(dtype)

    @classmethod
    def empty(cls, n_rows: int, n_features: int, device: torch.device) -> "DeviceBins":
        """Codes that are still to be written; the padding is 0."""
        n_padded = -(-n_features // WORD_FEATURES) * WORD_FEATURES
        tensor = torch.empty((n_rows, n_padded), dtype=torch.uint8, device=device)
        tensor[:, n_features:] = 0
        return cls(tensor, n_features)

    @classmethod
    def on(cls, bins: Any, transfers: Transfers) -> "DeviceBins":
        """These bins where they are, if that is the device, or a copy of them there."""
        if isinstance(bins, DeviceBins) and bins.tensor.device == transfers.device:
            return bins
        codes: BinArray = np.asarray(bins)
        result = cls.empty(codes.shape[0], codes.shape[1], transfers.device)
        result.tensor[:, : result.n_features] = transfers.to_device(codes)
        return result

    def check(self, thresholds: BinThresholds, transfers: Transfers) -> None:
        """Raise BackendError if a code is beyond its feature's missing code."""
        if self.n_features != thresholds.n_features:
            raise BackendError(
                f"bins of {self.n_features} features do not fit thresholds of "
                f"{thresholds.n_features}."
            )
        if self.tensor.numel() == 0:
            return
        # By blocks: MPS makes float32 of what it reduces, and refuses 4 GB of it.
        blocks = row_blocks(self.tensor.shape[0], 4 * self.tensor.shape[1])
        of_blocks = torch.stack([self.tensor[rows].amax(dim=0) for rows in blocks])
        largest = transfers.to_host(of_blocks.amax(dim=0))[: self.n_features]
        if (largest > thresholds.n_value_bins).any():
            feature = int(np.argmax(largest > thresholds.n_value_bins))
            raise BackendError(
                f"feature {feature} has the bin code {largest[feature]}; its missing code is "
                f"{thresholds.n_value_bins[feature]}."
            )


@dataclass(frozen=True)
class TensorMatrix:
    """A FeatureSource over a tensor on any device; what is asked for comes to the host.

    Attributes
    ----------
    tensor : (n_rows, n_features), any strides; bool, (u)int8..64, float16, bfloat16, float32 or
        float64, neither conjugated nor a negative view.
    """

    tensor: torch.Tensor

    @property
    def n_rows(self) -> int:
        """Rows of X."""
        return self.tensor.shape[0]

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self.tensor.shape[1]

    def column(self, feature: int, start: int, stop: int) -> Float64Array:
        """Rows start..stop of one feature as float64; made on the host."""
        return self._to_float64(_signed_view(self.tensor)[start:stop, feature : feature + 1])[:, 0]

    def sample(self, rows: AnyArray, features: slice) -> Float64Array:
        """Chosen rows of a few features as float64, (n_chosen, n_features)."""
        chosen = to_device(np.asarray(rows, np.int64), self.tensor.device)
        return self._to_float64(_signed_view(self.tensor)[:, features].index_select(0, chosen))

    def check_exact_integers(self, name: str) -> None:
        """As ``feature_source.check_exact_integers``, on the device.

        Raises
        ------
        InvalidDataError : a 64-bit integer beyond 2^53 has no float64 of its own.
        """
        if self.tensor.dtype not in (torch.int64, torch.uint64) or self.tensor.numel() == 0:
            return
        values = _signed_view(self.tensor)
        is_signed = self.tensor.dtype == torch.int64
        least = -MAX_EXACT_INTEGER if is_signed else 0  # unsigned ones beyond 2^63 are negative
        blocks = list(row_blocks(self.n_rows, self.n_features))
        ends = [end for rows in blocks for end in (values[rows].amin(), values[rows].amax())]
        for rows, (lowest, highest) in zip(
            blocks, to_host(torch.stack(ends)).reshape(-1, 2).tolist(), strict=True
        ):
            if lowest < least or highest > MAX_EXACT_INTEGER:
                block = to_host(values[rows])
                row, feature = np.argwhere((block < least) | (block > MAX_EXACT_INTEGER))[0]
                number = int(block[row, feature])
                number += 0 if is_signed or number >= 0 else 2**64
                message = integer_message(name, number, rows.start + int(row), int(feature))
                raise InvalidDataError(message)

    def _to_float64(self, bits: torch.Tensor) -> Float64Array:
        name = _dtype_name(self.tensor)
        is_bfloat16 = name == "bfloat16"
        values = to_host(bits).view("uint16" if is_bfloat16 else name)
        everything = np.arange(values.shape[0])
        return HostMatrix(values, is_bfloat16).sample(everything, slice(None))


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _signed_view(tensor: torch.Tensor) -> torch.Tensor:
    """The same bits as signed integers of the same width, which every device can pick from."""
    return tensor.view(_SIGNED[tensor.element_size()])


class DeviceKeys:
    """X on a device as integers in the order of its numbers; a block of rows at a time.

    Parameters
    ----------
    source : a TensorMatrix on the device is read where it lies; others are moved block by block,
        in their own dtype, but for float64, which some devices lack: of it the keys are moved.

    Attributes
    ----------
    dtype : of the keys; int32 or int64.
    missing : the key of NaN.
    """

    def __init__(self, source: FeatureSource, transfers: Transfers) -> None:
        self._source = source
        self._transfers = transfers
        name = "float64"
        if isinstance(source, HostMatrix):
            name = "bfloat16" if source.is_bfloat16 else source.values.dtype.name
        elif isinstance(source, TensorMatrix) and source.tensor.device == transfers.device:
            name = _dtype_name(source.tensor)
        self._name = name
        self._form = KEY_FORMS[name]
        self.dtype = torch.int32 if self._form.key == "int" else torch.int64
        self.missing: int = torch.iinfo(self.dtype).max

    def threshold_keys(self, thresholds: Float64Array) -> AnyArray:
        """Keys of the largest numbers of X's dtype that are <= the thresholds; int32 or int64."""
        return self._form.threshold_keys(thresholds)

    def blocks(
        self, kept_rows: Int64Array | None, row_bytes: int
    ) -> Iterator[tuple[slice, torch.Tensor]]:
        """(positions, keys) of all (kept) rows in order; keys (n_block, n_features), contiguous.

        ``row_bytes`` : of what is done with a row at a time, besides its keys.
        """
        n_rows = self._source.n_rows if kept_rows is None else kept_rows.size
        for block in row_blocks(n_rows, max(8 * self._source.n_features, row_bytes)):
            yield block, self._keys(block if kept_rows is None else kept_rows[block])

    def _keys(self, rows: slice | Int64Array) -> torch.Tensor:
        source = self._source
        if isinstance(source, TensorMatrix) and source.tensor.device == self._transfers.device:
            bits = _signed_view(source.tensor)
            if isinstance(rows, slice):
                return self._keys_of(bits[rows])
            return self._keys_of(bits.index_select(0, self._transfers.to_device(rows)))
        if isinstance(source, HostMatrix) and self._name != "float64":
            values = source.values[rows]
            signed = values.view(f"i{values.itemsize}")
            return self._keys_of(self._transfers.to_device(signed))
        if isinstance(rows, slice):
            rows = np.arange(rows.start, rows.stop)
        values = source.sample(rows, slice(0, source.n_features))
        return self._transfers.to_device(float64_keys(values))

    def _keys_of(self, bits: torch.Tensor) -> torch.Tensor:
        """Keys of numbers of X's dtype, given as their bits in signed integers."""
        if "float" not in self._name:
            return self._widened(bits).contiguous()
        largest = torch.iinfo(bits.dtype).max
        infinity = self._form.bits_of_infinity or _FLOAT64_INFINITY
        wide = bits.to(self.dtype).contiguous()
        magnitude = wide & largest
        keys = torch.where(wide < 0, -magnitude, magnitude)
        return keys.masked_fill(magnitude > infinity, self.missing)

    def _widened(self, bits: torch.Tensor) -> torch.Tensor:
        """Integers as themselves, whatever sign their bits had on the way; bools as 0 and 1."""
        if self._name == "bool":
            return (bits != 0).to(self.dtype)
        wide = bits.to(self.dtype)
        n_bits = 8 * bits.element_size()
        if self._name.startswith("uint") and n_bits < 64:  # larger ones than 2^53 are refused
            wide &= (1 << n_bits) - 1
        return wide


_FLOAT64_INFINITY = 0x7FF0000000000000


def bin_features(
    source: FeatureSource,
    kept_rows: Int64Array | None,
    thresholds: BinThresholds,
    transfers: Transfers,
) -> DeviceBins:
    """See ``ComputeBackend.bin_features``; all features of a block of rows at once."""
    keys = DeviceKeys(source, transfers)
    n_rows = source.n_rows if kept_rows is None else int(kept_rows.size)
    bins = DeviceBins.empty(n_rows, source.n_features, transfers.device)
    borders = transfers.to_device(_padded(keys.threshold_keys(thresholds.values), thresholds))
    missing_codes = transfers.to_device(thresholds.n_value_bins)[:, None]
    for rows, block in keys.blocks(kept_rows, 0):
        columns = block.t().contiguous()  # (n_features, n_block)
        codes = torch.searchsorted(borders, columns, out_int32=True)
        codes = torch.where(columns == keys.missing, missing_codes, codes)
        bins.tensor[rows, : bins.n_features] = codes.t().to(torch.uint8)
    return bins


def _padded(keys: AnyArray, thresholds: BinThresholds) -> AnyArray:
    """Threshold keys, (n_features, at least 1), ascending; no number lies above the padding."""
    sizes = np.diff(thresholds.offsets)
    width = max(1, int(sizes.max(initial=0)))
    padded = np.full((sizes.size, width), np.iinfo(keys.dtype).max, keys.dtype)
    padded[np.arange(width) < sizes[:, None]] = keys
    return padded
