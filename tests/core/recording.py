"""The oracle with a diary: which calls came, in which order, with which nodes."""

from functools import partial
from typing import Any

from torchgbdt.backends.oracle import OracleBackend

CALLS = (
    *("prepare", "release", "sample_rows", "compute_gradients", "round_gradients"),
    *("build_histograms", "exchange_histograms", "subtract_histograms", "find_splits"),
    *("route_rows", "update_predictions", "compute_losses", "sum_losses", "bin_features"),
    "diagnostics",
)


class RecordingBackend(OracleBackend):
    """Notes (name, arguments) of each call, then does what the oracle does.

    Attributes
    ----------
    answers : name of a call -> a function of (arguments, oracle) that answers instead; ``oracle()``
        is what the oracle would do.
    """

    name = "recording"

    def __init__(self, **answers: Any) -> None:
        super().__init__()
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.answers = answers

    @property
    def names(self) -> list[str]:
        """Names of the calls so far."""
        return [name for name, _ in self.calls]

    def arguments(self, name: str) -> list[tuple[Any, ...]]:
        """Arguments of each call of that name."""
        return [arguments for called, arguments in self.calls if called == name]


def _recorded(name: str) -> Any:
    def call(self: RecordingBackend, *arguments: Any) -> Any:
        self.calls.append((name, arguments))
        oracle = partial(getattr(OracleBackend, name), self, *arguments)
        answer = self.answers.get(name)
        return oracle() if answer is None else answer(arguments, oracle)

    return call


for _name in CALLS:
    setattr(RecordingBackend, _name, _recorded(_name))
