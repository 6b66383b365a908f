"""``demo/flights.py`` as a person runs it: what it prints and what it leaves in its folder."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from architecture.repository import ROOT
from flights_data import FEATURES, Flights, Part, load_flights

import torchgbdt as tg

ROWS, TREES = 2000, 3


def run_script(folder: Path) -> str:
    options = ["--rows", str(ROWS), "--n-estimators", str(TREES), "--out", str(folder)]
    result = subprocess.run(
        [sys.executable, str(ROOT / "demo" / "flights.py"), *options],
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def row_of(test: Part, predicted: np.ndarray) -> str:
    """A row of the table of scores, computed in float64 by numpy."""
    y = test.y.numpy().astype(np.float64)
    error = predicted - y
    rmse, mae = np.sqrt((error**2).mean()), np.abs(error).mean()
    return f"{rmse:.2f} {mae:.2f} {1 - (error**2).mean() / y.var():.3f}"


def check_counts(printed: str, flights: Flights) -> None:
    numbers = [int(text.replace(",", "")) for text in re.findall(r"\d[\d,]*", printed)[:4]]
    parts = (flights.train, flights.valid, flights.test)
    assert numbers == [flights.n_read, *(len(part.y) for part in parts)]


def check_scores(printed: str, flights: Flights, model: tg.Model) -> None:
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    mean = np.full(len(flights.test.y), flights.train.y.numpy().astype(np.float64).mean())
    predicted = model.predict(flights.test.X).numpy().astype(np.float64)
    start = lines.index("test flights RMSE (min) MAE (min) R2")
    assert lines[start + 1] == f"mean of training {row_of(flights.test, mean)}"
    assert lines[start + 2] == f"torchgbdt {row_of(flights.test, predicted)}"


def check_seconds(printed: str) -> None:
    report = printed.partition("backend cpu on cpu, seconds per phase\n")[2].partition("\n\n")[0]
    seconds = {line[:24].strip(): float(line[24:]) for line in report.splitlines()}
    assert list(seconds)[-1] == "total"
    assert {"bin training data", "search level", "evaluate"} <= seconds.keys()


def check_digest(printed: str, model: tg.Model) -> None:
    (digest,) = re.findall(r"^digest +([0-9a-f]{64})$", printed, re.MULTILINE)
    assert digest == model.digest()


def check_files(printed: str, folder: Path) -> None:
    names = {"flights.safetensors", "flights.png"}
    assert {file.name for file in folder.iterdir()} == names
    assert all(str(folder / name) in printed for name in names)
    png = (folder / "flights.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n") and len(png) > 10_000


def test_the_script_prints_scores_and_digest_and_writes_model_and_plot(tmp_path: Path) -> None:
    # One test, as one run of several seconds serves all of it.
    printed = run_script(tmp_path / "out")
    model, flights = tg.load(tmp_path / "out" / "flights.safetensors"), load_flights(ROWS)
    check_counts(printed, flights)
    check_scores(printed, flights, model)
    check_seconds(printed)
    check_digest(printed, model)
    check_files(printed, tmp_path / "out")

    assert model.feature_names == tuple(FEATURES)
    again = tg.train(flights.train.X, flights.train.y, n_estimators=TREES)
    assert model.digest() == again.digest()
