"""Model files: read with every check first, written so that no crash leaves half of one."""

import contextlib
import os
import secrets
import stat
from pathlib import Path

from torchgbdt.core.errors import InvalidParameterError, ModelFormatError
from torchgbdt.core.model import Model
from torchgbdt.serialization.model_bytes import (
    LENGTH_BYTES,
    check_header,
    check_length,
    header_length,
    model_from,
    model_to_bytes,
)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read and validate a model file.

    Raises
    ------
    FileNotFoundError : there is no such file.
    ModelFormatError : it is not a regular file, or not a valid model.
    """
    file = _as_path(path)
    if not stat.S_ISREG(file.stat().st_mode):  # before it is opened: a pipe would wait for ever
        raise ModelFormatError(f"{file} is not a file; name the file that Model.save wrote.")
    try:
        with file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            start = stream.read(LENGTH_BYTES)
            check_length(start, size)
            start += stream.read(header_length(start))
            metadata = check_header(start, size)
            return model_from(metadata, start + stream.read(size))
    except ModelFormatError as error:
        raise ModelFormatError(f"{file}: {error}") from error


def save_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model file so that a crash at any moment leaves the old file or the new one.

    The bytes go to a new file in the same folder, reach the disk, and take the name by a rename.
    A new file gets the usual permissions (0666 less the umask), a replaced one keeps its own.

    Raises
    ------
    FileNotFoundError : the folder does not exist.
    InvalidParameterError : the path names something that is not a file.
    """
    target = Path(os.path.realpath(_as_path(path)))  # a link stays a link
    if target.exists() and not target.is_file():
        raise InvalidParameterError(f"path must name a file; {target} is something else.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it first.")
    data = model_to_bytes(model)
    temporary = target.parent / f".torchgbdt-{secrets.token_hex(8)}.tmp"
    try:
        _write_new_file(temporary, data, target)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _write_new_file(temporary: Path, data: bytes, target: Path) -> None:
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with os.fdopen(descriptor, "wb") as stream:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    """Bring the rename to the disk; some file systems cannot, and the file is whole anyway."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _as_path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise InvalidParameterError(f"path must be a text or a Path; found {path!r}.")
    return Path(os.fsdecode(path))
