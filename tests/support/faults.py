"""Backends that are watched, and backends that fail at a chosen call."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torchgbdt.core.backend import ComputeBackend

METHODS = [
    name
    for name, member in inspect.getmembers(ComputeBackend, inspect.isfunction)
    if not name.startswith("_")
]
"""Every call that the interface has."""


def watch(backend: ComputeBackend, around: Callable[[str, Callable[[], Any]], Any]) -> None:
    """Let every call of this instance go through ``around(name, call)``; also calls among them."""
    for name in METHODS:
        setattr(backend, name, _watched(name, getattr(backend, name), around))


def stop_watching(backend: ComputeBackend) -> None:
    for name in METHODS:
        delattr(backend, name)


def _watched(name: str, method: Callable[..., Any], around: Callable[..., Any]) -> Any:
    return lambda *args, **kwargs: around(name, lambda: method(*args, **kwargs))


def record_calls(backend: ComputeBackend, run: Callable[[], Any]) -> list[str]:
    """Names of the calls that ``run`` makes, in order."""
    calls: list[str] = []

    def note(name: str, call: Callable[[], Any]) -> Any:
        calls.append(name)
        return call()

    watch(backend, note)
    run()
    stop_watching(backend)
    return calls


@dataclass
class Fault:
    """Raises once, at one call of a watched backend.

    Attributes
    ----------
    position : 0 for the first call of the run.
    does_its_work : whether the call does what it should before it raises.
    calls : names of the calls so far.
    """

    position: int
    error: BaseException
    does_its_work: bool

    def __post_init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:
        self.calls.append(name)
        strikes = len(self.calls) == self.position + 1
        if strikes and not self.does_its_work:
            raise self.error
        result = call()
        if strikes:
            raise self.error
        return result
