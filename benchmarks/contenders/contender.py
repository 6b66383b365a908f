"""What every contender can do; the callers take the time."""

from abc import ABC, abstractmethod
from typing import Any

from synthetic import Float32Array

from contenders.settings import Settings


class Contender(ABC):
    """One library, set up as a user who knows it would, for these settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @abstractmethod
    def version(self) -> str:
        """Of the library."""

    @abstractmethod
    def load(self, X: Float32Array, y: Float32Array) -> Any:
        """What binning and training start from; no work that a clock should count."""

    @abstractmethod
    def bin(self, data: Any) -> Any:
        """Quantize the features; what ``train`` takes.

        Where that happens inside of training, this hands over the data, and ``bins_apart`` says so.
        """

    bins_apart = True

    def bin_alone(self, data: Any) -> None:
        """Quantize the features, for the time of that alone."""
        self.bin(data)

    @abstractmethod
    def train(self, binned: Any) -> None:
        """Train; the model is kept."""

    @abstractmethod
    def predict(self, X: Float32Array) -> Any:
        """Of rows in memory: means, (n_rows,); probabilities of class 1, or of each class."""

    def digest(self) -> str | None:
        """Of the model, where a library promises one that is the same for every run."""
        return None
