"""Every error torchgbdt raises on purpose.

A message names the argument, the value found, what is allowed, and what to do. Each class also
derives from the built-in exception a Python user would expect, so ``except ValueError`` works.
"""

__all__ = [
    "BackendError",
    "BackendUnavailableError",
    "DeviceMemoryError",
    "GBDTError",
    "InvalidDataError",
    "InvalidParameterError",
    "ModelFormatError",
    "StateError",
]


class GBDTError(Exception):
    """Base class of all torchgbdt errors."""


class InvalidParameterError(GBDTError, ValueError):
    """A setting has a value or type that is not allowed."""


class InvalidDataError(GBDTError, ValueError):
    """X, y, weights or margins cannot be trained or predicted on."""


class BackendUnavailableError(GBDTError, RuntimeError):
    """The requested backend or device cannot run here; the message says why."""


class BackendError(GBDTError, RuntimeError):
    """A backend failed during a run, or returned results that contradict each other."""


class DeviceMemoryError(BackendError):
    """The run would not fit into the device's memory; the message holds the estimate."""


class ModelFormatError(GBDTError, ValueError):
    """A model file or a tree's arrays are not valid."""


class StateError(GBDTError, RuntimeError):
    """An operation was asked for in a state that does not allow it."""
