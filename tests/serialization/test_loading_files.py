"""What a path may name, and how little of a wrong file is read."""

import os
import tracemalloc
from pathlib import Path

import pytest
from serialization.model_files import VALID

from torchgbdt.core.errors import ModelFormatError
from torchgbdt.serialization import load_model


def test_missing_file_is_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "nothing")


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="is not a file"):
        load_model(tmp_path)


def test_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFormatError, match="is not a file"):
        load_model(tmp_path / "pipe")


def test_endless_device_is_refused() -> None:
    with pytest.raises(ModelFormatError, match="is not a file"):
        load_model("/dev/zero")


def test_error_says_which_file(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(VALID[:100])
    with pytest.raises(ModelFormatError) as error:
        load_model(tmp_path / "m")
    assert str(error.value).startswith(f"{tmp_path / 'm'}: invalid model file")


def test_large_file_of_another_kind_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.write(VALID)
        file.truncate(1 << 40)  # a terabyte of holes
    tracemalloc.start()
    with pytest.raises(ModelFormatError, match="its arrays need"):
        load_model(tmp_path / "large")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
