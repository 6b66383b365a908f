"""What callbacks see of a run, and what they may ask of it."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.settings import check_integer

History = dict[str, dict[str, list[float]]]
"""Data set name -> metric name -> one value per round."""


class TrainingContext:
    """One run, as its observers see it.

    Attributes
    ----------
    round : zero-based index of the round just begun or ended; ``first_round - 1`` before.
    n_estimators : rounds that were asked for.
    first_round : index of the first round of this run; > 0 where it continues a model.
    first_values : data set name -> metric name -> value of the model that is continued; else empty.
    history : metrics so far; the last entries belong to ``round`` once it has ended.
    higher_is_better : metric name -> whether larger values are better.
    stop_requested : whether any observer asked to stop after this round.
    best_iteration : the round that the model will be cut back to, or None.
    """

    def __init__(
        self,
        n_estimators: int,
        history: History,
        higher_is_better: Mapping[str, bool],
        read_predictions: Callable[[str], Any],
        first_round: int = 0,
        first_values: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
    ) -> None:
        self.round = first_round - 1
        self.first_round = first_round
        self.first_values = first_values
        self.n_estimators = n_estimators
        self.history = history
        self.higher_is_better = higher_is_better
        self.stop_requested = False
        self.best_iteration: int | None = None
        self._read_predictions = read_predictions

    def raw_predictions(self, dataset: str = "train") -> Any:
        """Raw predictions so far, of the rows that count (weight > 0) of a data set; a copy.

        Parameters
        ----------
        dataset : "train" or "valid_<i>".

        Returns
        -------
        float32, baseline or margin included; (n_rows,) for one output, else (n_rows, n_outputs).
        """
        return self._read_predictions(dataset)

    def request_stop(self) -> None:
        """End training after this round; the other observers still run."""
        self.stop_requested = True

    def keep_best(self, round_index: int) -> None:
        """Cut the model back to its first ``round_index + 1`` rounds when training ends.

        A continued model is not cut back beyond the rounds that it had: ``first_round - 1`` keeps
        just these.
        """
        if self.round < 0:
            raise InvalidParameterError("keep_best takes a finished round; there is none yet.")
        first = max(self.first_round - 1, 0)
        self.best_iteration = check_integer("round_index", round_index, first, self.round)


class TrainingObserver(Protocol):
    """A callback. All observers run, in the order given, even if one asks to stop."""

    def on_train_begin(self, context: TrainingContext) -> None:
        """Before the first round."""

    def on_round_begin(self, context: TrainingContext) -> None:
        """Before each round."""

    def on_round_end(self, context: TrainingContext) -> None:
        """After each round, when its metrics are in the history."""

    def on_train_end(self, context: TrainingContext) -> None:
        """After the last round, before the model is made."""


class ObserverGroup:
    """Several observers as one."""

    def __init__(self, observers: Sequence[TrainingObserver]) -> None:
        self._observers = tuple(observers)

    def on_train_begin(self, context: TrainingContext) -> None:
        """See TrainingObserver."""
        for observer in self._observers:
            observer.on_train_begin(context)

    def on_round_begin(self, context: TrainingContext) -> None:
        """See TrainingObserver."""
        for observer in self._observers:
            observer.on_round_begin(context)

    def on_round_end(self, context: TrainingContext) -> None:
        """See TrainingObserver."""
        for observer in self._observers:
            observer.on_round_end(context)

    def on_train_end(self, context: TrainingContext) -> None:
        """See TrainingObserver."""
        for observer in self._observers:
            observer.on_train_end(context)


def named_dataset(name: str, n_valids: int) -> int:
    """Index of a data set: 0 for "train", i + 1 for "valid_<i>"."""
    names = dataset_names(n_valids)
    if name not in names:
        raise InvalidParameterError(f"dataset must be one of {names}; found {name!r}.")
    return names.index(name)


def dataset_names(n_valids: int) -> list[str]:
    """Names in the history: "train", "valid_0", "valid_1" and so on."""
    return ["train", *(f"valid_{index}" for index in range(n_valids))]
