"""Test metrics: RMSE of means, log loss of probabilities; and whether an answer is one at all."""

import numpy as np
from numpy.typing import NDArray
from workloads import Workload

METRICS = {"squared_error": "RMSE", "logistic": "log loss", "softmax": "log loss"}


def metric_of(workload: Workload, predicted: NDArray[np.floating], y: NDArray[np.float32]) -> float:
    """The metric of the workload's objective, in float64; lower is better.

    Parameters
    ----------
    predicted : as ``Contender.predict``.
    """
    predictions, labels = np.asarray(predicted, np.float64), np.asarray(y, np.float64)
    if workload.objective == "squared_error":
        return float(np.sqrt(np.mean((predictions - labels) ** 2)))
    if workload.objective == "logistic":
        predictions = np.stack((1 - predictions, predictions), axis=1)
    chosen = predictions[np.arange(labels.size), labels.astype(np.int64)]
    # float32 may round a probability to 0
    return float(-np.mean(np.log(np.maximum(chosen, np.finfo(np.float32).tiny))))


def metric_of_constant(workload: Workload, y: NDArray[np.float32]) -> float:
    """The metric of the best prediction that is the same for all rows."""
    labels = np.asarray(y, np.float64)
    if workload.objective == "squared_error":
        return float(labels.std())
    shares = np.bincount(labels.astype(np.int64), minlength=workload.n_classes) / labels.size
    return float(-np.sum(shares * np.log(np.maximum(shares, np.finfo(np.float32).tiny))))


def checked_metric(
    workload: Workload, predicted: NDArray[np.floating], y: NDArray[np.float32]
) -> float:
    """The test metric, or WrongAnswerError where no model that was trained gives these predictions.

    A benchmark of a wrong answer is worth nothing, however fast it was.
    """
    shape = (y.size, workload.n_classes) if workload.objective == "softmax" else (y.size,)
    if predicted.shape != shape:
        raise WrongAnswerError(f"predictions have shape {predicted.shape}, not {shape}.")
    if not np.isfinite(predicted).all():
        raise WrongAnswerError("predictions are not finite.")
    metric = metric_of(workload, predicted, y)
    limit = workload.must_beat * metric_of_constant(workload, y)
    if not metric < limit:
        raise WrongAnswerError(
            f"{METRICS[workload.objective]} {metric:.6g} on the test rows of {workload.name} is "
            f"not below {limit:.6g}."
        )
    return metric


class WrongAnswerError(Exception):
    """A contender did not learn the workload."""
