"""Predict how late a flight arrives, from what is known when it leaves the gate.

Run by ``make demo``. Trains on the flights out of New York City from January to October 2013, every
tenth day of them held back for validation; tests on those of November and December; and writes the
model and a plot. ``--help`` lists the options.
"""

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from flights_data import FEATURES, Part, load_flights
from flights_plot import plot_training

import torchgbdt as tg


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="auto", help="auto, cpu or oracle (default: auto)")
    parser.add_argument("--n-estimators", type=int, default=300, help="trees (default: 300)")
    parser.add_argument("--rows", type=int, help="use only so many flights of the whole year")
    parser.add_argument("--threads", type=int, help="threads (default: as many as torch uses)")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for model and plot"
    )
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()

    flights = load_flights(arguments.rows)
    train, valid, test = flights.train, flights.valid, flights.test
    print(
        f"{flights.n_read:,} flights read; {len(train.y):,} to train, {len(valid.y):,} to validate "
        f"(every tenth day until October), {len(test.y):,} to test (November, December)\n"
    )

    trainer = tg.Trainer(
        objective="squared_error",
        n_estimators=arguments.n_estimators,
        eval_metric="rmse",  # named, so the training flights are evaluated too
        backend=arguments.backend,
        n_threads=arguments.threads,
        callbacks=[tg.callbacks.ProgressBar()],
    )
    start = time.perf_counter()
    data = tg.Dataset(train.X, train.y, feature_names=list(FEATURES))
    seconds_to_bin = time.perf_counter() - start
    model = trainer.fit(data, eval_set=[(valid.X, valid.y)])

    mean = train.y.mean()
    baseline = scores(test, mean.expand_as(test.y))
    ours = scores(test, model.predict(test.X))
    print_scores({"mean of training": baseline, "torchgbdt": ours})
    print_diagnostics(trainer.diagnostics(), seconds_to_bin)
    print(f"digest   {model.digest()}")

    arguments.out.mkdir(parents=True, exist_ok=True)
    model_file = arguments.out / "flights.safetensors"
    plot_file = arguments.out / "flights.png"
    model.save(model_file)
    plot_training(
        plot_file,
        curves={
            "training": trainer.history["train"]["rmse"],
            "validation": trainer.history["valid_0"]["rmse"],
        },
        rmse_of_mean=scores(valid, mean.expand_as(valid.y))["RMSE"],
        test_rmse=ours["RMSE"],
        test_rmse_of_mean=baseline["RMSE"],
        importance=dict(
            zip(FEATURES.values(), model.feature_importance(kind="gain").tolist(), strict=True)
        ),
    )
    print(f"model    {model_file}\nplot     {plot_file}")


def scores(part: Part, predicted: torch.Tensor) -> dict[str, float]:
    """Errors in minutes, and the share of the variance explained, in float64."""
    y = part.y.double()
    error = predicted.double() - y
    return {
        "RMSE": error.square().mean().sqrt().item(),
        "MAE": error.abs().mean().item(),
        "R2": 1 - (error.square().sum() / (y - y.mean()).square().sum()).item(),
    }


def print_scores(rows: Mapping[str, Mapping[str, float]]) -> None:
    print(f"\n{'test flights':<18}{'RMSE (min)':>12}{'MAE (min)':>12}{'R2':>9}")
    for name, row in rows.items():
        print(f"{name:<18}{row['RMSE']:>12.2f}{row['MAE']:>12.2f}{row['R2']:>9.3f}")


def print_diagnostics(diagnostics: Mapping[str, Any], seconds_to_bin: float) -> None:
    seconds = {"bin training data": seconds_to_bin, **diagnostics["seconds"]}
    print(f"\nbackend {diagnostics['backend']} on {diagnostics['device']}, seconds per phase")
    for phase, value in [*seconds.items(), ("total", sum(seconds.values()))]:
        print(f"  {phase.replace('_', ' '):<22}{value:>8.2f}")
    print()


if __name__ == "__main__":
    main()
