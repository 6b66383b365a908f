"""Errors: one family, and the built-in exceptions that users already catch."""

import pytest

from torchgbdt.core import errors


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("InvalidParameterError", ValueError),
        ("InvalidDataError", ValueError),
        ("BackendUnavailableError", RuntimeError),
        ("BackendError", RuntimeError),
        ("DeviceMemoryError", RuntimeError),
        ("ModelFormatError", ValueError),
        ("StateError", RuntimeError),
    ],
)
def test_error_is_caught_by_its_family_and_by_a_builtin(
    name: str, builtin: type[Exception]
) -> None:
    error = getattr(errors, name)
    assert issubclass(error, errors.GBDTError)
    assert issubclass(error, builtin)


def test_running_out_of_device_memory_is_a_backend_error() -> None:
    assert issubclass(errors.DeviceMemoryError, errors.BackendError)


def test_the_family_catches_no_foreign_error() -> None:
    assert errors.GBDTError.__bases__ == (Exception,)


def test_all_names_every_error() -> None:
    defined = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert set(errors.__all__) == defined
