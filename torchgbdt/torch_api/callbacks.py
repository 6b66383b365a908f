"""Callbacks: what may watch a run, and end it.

Every callback of a run is called at every event, in the order given. One instance may be used in
one ``fit`` after another; for two fits at the same time use two instances.
"""

import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.observer import TrainingContext, TrainingObserver
from torchgbdt.core.settings import check_float, check_integer

__all__ = ["Callback", "EarlyStopping", "ProgressBar", "TrainingContext"]

EVENTS = ("on_train_begin", "on_round_begin", "on_round_end", "on_train_end")


class Callback:
    """Base class: overwrite what you need. Each event gets the run's ``TrainingContext``."""

    def on_train_begin(self, context: TrainingContext) -> None:
        """Before the first round. Forget what an earlier run left here."""

    def on_round_begin(self, context: TrainingContext) -> None:
        """Before each round."""

    def on_round_end(self, context: TrainingContext) -> None:
        """After each round, when its metrics are in ``context.history``."""

    def on_train_end(self, context: TrainingContext) -> None:
        """After the last round; not called when training fails."""

    def close(self) -> None:
        """Give back what the callback holds: called at the end of every ``fit``, failed or not."""


class EarlyStopping(Callback):
    """Stops when a metric has not improved for some rounds, and keeps the best round's model.

    The model is cut back to the best round also when training ends by itself. A tie keeps the
    earlier round. A metric that is nan counts as the worst value there is.

    Parameters
    ----------
    patience : >= 1, rounds without improvement after which training stops.
    metric : name; None for the first metric of the run.
    dataset : "valid_0", "valid_1", ... or "train"; None for the last evaluation set.
    min_delta : >= 0, in units of the metric; an improvement must be larger than this.

    Attributes
    ----------
    best_round : zero-based, of the last run; None before the first round.
    best_value : the metric there.

    Raises
    ------
    InvalidParameterError : at construction, or when training begins without what is monitored.
    """

    def __init__(
        self,
        patience: int = 20,
        metric: str | None = None,
        dataset: str | None = None,
        min_delta: float = 0.0,
    ) -> None:
        self.patience = check_integer("patience", patience, 1)
        self.metric = _check_name("metric", metric)
        self.dataset = _check_name("dataset", dataset)
        self.min_delta = check_float("min_delta", min_delta, 0.0)
        self._forget()

    def _forget(self) -> None:
        self.best_round: int | None = None
        self.best_value = math.nan
        self._best_loss = math.inf
        self._monitored = ("", "")

    def on_train_begin(self, context: TrainingContext) -> None:
        """Forget the last run and find what to monitor in this one."""
        self._forget()
        dataset = self._find_dataset(context)
        metrics = list(context.history[dataset])
        metric = metrics[0] if self.metric is None else self.metric
        if metric not in metrics:
            raise InvalidParameterError(
                f"EarlyStopping monitors metric={metric!r}, which this run does not evaluate; it "
                f"has {metrics}. Name it in eval_metric."
            )
        self._monitored = (dataset, metric)
        if context.first_values:  # a continued model may be better than all that comes
            self._compare(context, context.first_values[dataset][metric])

    def _find_dataset(self, context: TrainingContext) -> str:
        names = list(context.history)
        valids = [name for name in names if name != "train"]
        if self.dataset is None and not valids:
            raise InvalidParameterError(
                "EarlyStopping needs data that is not trained on; pass eval_set=[(X, y)] to fit, "
                "or name dataset='train' and an eval_metric."
            )
        dataset = valids[-1] if self.dataset is None else self.dataset
        if dataset not in names:
            raise InvalidParameterError(
                f"EarlyStopping monitors dataset={dataset!r}, which this run does not evaluate; it "
                f"has {names}. 'train' is evaluated where eval_metric is named."
            )
        return dataset

    def on_round_end(self, context: TrainingContext) -> None:
        """Compare the round with the best one; ask to stop when patience runs out."""
        dataset, metric = self._monitored
        best_round = self._compare(context, context.history[dataset][metric][-1])
        if context.round - best_round >= self.patience:
            context.request_stop()

    def _compare(self, context: TrainingContext, value: float) -> int:
        """The best round so far, the one that ``value`` belongs to included."""
        metric = self._monitored[1]
        loss = -value if context.higher_is_better[metric] else value
        loss = math.inf if math.isnan(loss) else loss
        if self.best_round is None or loss < self._best_loss - self.min_delta:
            self.best_round, self.best_value, self._best_loss = context.round, value, loss
        context.keep_best(self.best_round)
        return self.best_round


class ProgressBar(Callback):
    """A progress bar of rounds, with their rate, the time left and the last set's first metric.

    Parameters
    ----------
    show : None shows it in terminals and notebooks only; True always; False never.
    """

    def __init__(self, show: bool | None = None) -> None:
        if not (show is None or isinstance(show, bool)):
            raise InvalidParameterError(f"show must be None, True or False; found {show!r}.")
        self.show = show
        self._bar: Any = None

    def on_train_begin(self, context: TrainingContext) -> None:
        """Open the bar."""
        self.close()
        if self.show is False or sys.stderr is None:
            return
        from tqdm.auto import tqdm  # here, because in some notebooks the import itself warns

        in_notebook = any(base.__module__ == "tqdm.notebook" for base in tqdm.__mro__)
        if self.show or in_notebook or _is_terminal(sys.stderr):
            self._bar = tqdm(total=context.n_estimators, desc="training", unit="round")

    def on_round_end(self, context: TrainingContext) -> None:
        """Advance by one round."""
        if self._bar is None:
            return
        if context.history:
            dataset, metrics = list(context.history.items())[-1]
            metric, values = next(iter(metrics.items()))
            self._bar.set_postfix_str(f"{dataset} {metric}={values[-1]:.6g}", refresh=False)
        self._bar.update()

    def on_train_end(self, context: TrainingContext) -> None:
        """Close the bar."""
        self.close()

    def close(self) -> None:
        """Close the bar, if one is open; also called when training fails."""
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close()


@contextmanager
def close_all(callbacks: Sequence[TrainingObserver]) -> Iterator[None]:
    """Close every ``Callback`` after the block, however it ends.

    One that cannot be closed costs nobody the model, nor hides the error that ended the run: it is
    a RuntimeWarning after a good run, a note on the error after a bad one.
    """
    failure: BaseException | None = None
    try:
        yield
    except BaseException as error:
        failure = error
        raise
    finally:
        for callback in reversed(callbacks):
            if isinstance(callback, Callback):
                _close(callback, failure)


def _close(callback: Callback, failure: BaseException | None) -> None:
    try:
        callback.close()
    except Exception as error:
        message = f"closing the callback {callback!r} failed: {error!r}"
        if failure is None:
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        else:
            failure.add_note(message)


def check_callbacks(callbacks: Any) -> tuple[TrainingObserver, ...]:
    """The callbacks as a tuple; InvalidParameterError unless each has all four events."""
    if not isinstance(callbacks, list | tuple):
        raise InvalidParameterError(
            f"callbacks must be a list of callbacks; found {callbacks!r}. Write callbacks=[...]."
        )
    for index, callback in enumerate(callbacks):
        missing = [event for event in EVENTS if not callable(getattr(callback, event, None))]
        if isinstance(callback, type):
            problem = f"the class {callback.__name__}; write {callback.__name__}()"
        elif missing:
            problem = (
                f"{callback!r}, which lacks {missing[0]}; derive it from tg.callbacks.Callback"
            )
        else:
            continue
        raise InvalidParameterError(
            f"callbacks[{index}] must be an object with {', '.join(EVENTS)}; found {problem}."
        )
    return tuple(callbacks)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # a stand-in for a stream, or a closed one
        return False


def _check_name(argument: str, value: Any) -> str | None:
    if not (value is None or isinstance(value, str)):
        raise InvalidParameterError(f"{argument} must be None or a name; found {value!r}.")
    return value
