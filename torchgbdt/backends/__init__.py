"""Backends: where and how the work on rows is done. ``available()`` says which can run here."""

from torchgbdt.backends.registry import available as available

__all__ = ["available"]
