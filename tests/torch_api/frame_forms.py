"""One table of numbers as the frames of several libraries, however they store it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa


@dataclass(frozen=True)
class Table:
    """Columns of different dtypes: name -> (values, bool mask of what is missing)."""

    columns: Mapping[str, tuple[np.ndarray, np.ndarray]]

    @property
    def n_rows(self) -> int:
        return next(iter(self.columns.values()))[0].size

    def as_float64(self) -> np.ndarray:
        """What every form of the table stands for: (n_rows, n_features), nan is missing."""
        values = [np.where(gaps, np.nan, column) for column, gaps in self.columns.values()]
        return np.stack(values, axis=1).astype(np.float64)

    def rows(self, chosen: Any) -> "Table":
        return Table({name: (v[chosen], gaps[chosen]) for name, (v, gaps) in self.columns.items()})

    def map(self, make_column: Callable[[np.ndarray, np.ndarray], Any]) -> dict[str, Any]:
        return {name: make_column(*column) for name, column in self.columns.items()}


def mixed_table(n_rows: int = 300, seed: int = 0) -> Table:
    """Floats, integers and bools, some of them missing."""
    generator = np.random.default_rng(seed)
    numbers = generator.normal(size=(7, n_rows)) * 20
    columns = [
        numbers[0].astype(np.float32),
        numbers[1],
        numbers[2].astype(np.int64),
        numbers[3].astype(np.int8),
        np.abs(numbers[4]).astype(np.uint16),
        numbers[5] > 0,
        numbers[6].astype(np.float32),
    ]
    gaps = generator.random((7, n_rows)) < 0.1
    gaps[4:] = False
    return Table({f"x{i}": pair for i, pair in enumerate(zip(columns, gaps, strict=True))})


# --- columns -----------------------------------------------------------------------------------


def _numpy(values: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    if not gaps.any():
        return values
    width = np.float32 if values.dtype == np.float32 else np.float64
    return np.where(gaps, np.nan, values).astype(width)


def _nullable(values: np.ndarray, gaps: np.ndarray) -> Any:
    kinds = {"f": pd.arrays.FloatingArray, "b": pd.arrays.BooleanArray}
    return kinds.get(values.dtype.kind, pd.arrays.IntegerArray)(values.copy(), gaps.copy())


def _arrow(values: np.ndarray, gaps: np.ndarray) -> pa.Array:
    return pa.array(values, mask=gaps)


def _pandas_arrow(values: np.ndarray, gaps: np.ndarray) -> Any:
    return pd.arrays.ArrowExtensionArray(_arrow(values, gaps))


def _foreign(values: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    plain = _numpy(values, gaps)
    return plain.astype(plain.dtype.newbyteorder(">"))


# --- frames ------------------------------------------------------------------------------------


def pandas_numpy(table: Table) -> pd.DataFrame:
    return pd.DataFrame(table.map(_numpy))


def pandas_nullable(table: Table) -> pd.DataFrame:
    return pd.DataFrame(table.map(_nullable))


def pandas_arrow(table: Table) -> pd.DataFrame:
    return pd.DataFrame(table.map(_pandas_arrow))


def polars(table: Table) -> pl.DataFrame:
    return pl.DataFrame({name: pl.Series(column) for name, column in table.map(_arrow).items()})


def arrow(table: Table) -> pa.Table:
    return pa.table(table.map(_arrow))


LIBRARIES: dict[str, Callable[[Table], Any]] = {
    "pandas numpy": pandas_numpy,
    "pandas nullable": pandas_nullable,
    "pandas arrow": pandas_arrow,
    "polars": polars,
    "arrow": arrow,
}


def _chunks(table: Table) -> list[Table]:
    """Three parts, the second without rows."""
    cut = table.n_rows // 3
    return [table.rows(slice(None, cut)), table.rows([]), table.rows(slice(cut, None))]


def _index(table: Table) -> pd.DataFrame:
    frame = pandas_nullable(table)
    frame.index = pd.Index(np.arange(table.n_rows)[::-1] // 2, name="twice")
    return frame


def _padded(table: Table) -> Table:
    """Three more rows before the table's own and two behind, with gaps where it has none."""
    last = table.n_rows - 1
    more = table.rows([last, 0, last, *range(last + 1), 0, last])
    for _, gaps in more.columns.values():
        gaps[[0, 1, -1]] = ~gaps[[0, 1, -1]]
    return more


def _sliced(make: Callable[[Table], Any]) -> Callable[[Table], Any]:
    return lambda table: nw.from_native(make(_padded(table)))[3 : 3 + table.n_rows].to_native()


def _filtered(make: Callable[[Table], Any]) -> Callable[[Table], Any]:
    def made(table: Table) -> Any:
        keep = [False] * 3 + [True] * table.n_rows + [False] * 2
        return nw.from_native(make(_padded(table))).filter(keep).to_native()

    return made


def _reversed(make: Callable[[Table], Any]) -> Callable[[Table], Any]:
    def made(table: Table) -> Any:
        frame = nw.from_native(make(table.rows(slice(None, None, -1))))
        return frame[list(range(table.n_rows))[::-1]].to_native()

    return made


def _one_array(table: Table, values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(values, columns=list(table.columns), copy=False)


def _unaligned(table: Table) -> pd.DataFrame:
    numbers = table.as_float64()
    values = np.frombuffer(bytearray(numbers.nbytes + 1), np.float64, offset=1)
    values = values.reshape(numbers.shape)
    values[...] = numbers
    return _one_array(table, values)


FORMS: dict[str, Callable[[Table], Any]] = {
    **LIBRARIES,
    **{f"{name}, sliced": _sliced(make) for name, make in LIBRARIES.items()},
    **{f"{name}, filtered": _filtered(make) for name, make in LIBRARIES.items()},
    **{f"{name}, reversed": _reversed(make) for name, make in LIBRARIES.items()},
    "pandas, negative strides": lambda t: pandas_numpy(t.rows(slice(None, None, -1)))[::-1],
    "pandas, foreign byte order": lambda t: pd.DataFrame(t.map(_foreign)),
    "pandas, one array": lambda t: _one_array(t, t.as_float64()),
    "pandas, one foreign array": lambda t: _one_array(t, t.as_float64().astype(">f8")),
    "pandas, not aligned": _unaligned,
    "pandas, index": _index,
    "pandas, chunks": lambda t: pd.concat([pandas_arrow(part) for part in _chunks(t)]),
    "polars, chunks": lambda t: pl.concat([polars(part) for part in _chunks(t)], rechunk=False),
    "arrow, chunks": lambda t: pa.concat_tables([arrow(part) for part in _chunks(t)]),
    "narwhals": lambda t: nw.from_native(polars(t)),
}
