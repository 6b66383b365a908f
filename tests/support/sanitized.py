"""A sanitized build of the native module, in place of the installed one; see `make sanitize`."""

import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

NAME = "torchgbdt._native"

CALLS = {"address": b"__asan_report_", "undefined": b"__ubsan_handle_", "thread": b"__tsan_read"}
"""Of each sanitizer: calls that the compiler puts into code, whose names stand in the file."""


def load_sanitized(path: Path, sanitizers: str) -> None:
    """Let ``torchgbdt._native`` be the module in this file from now on.

    Raises
    ------
    ValueError : it was not built with each of these sanitizers, as for ``-fsanitize=``.
    RuntimeError : another module of that name has been imported already.
    """
    import torchgbdt

    content = path.read_bytes()
    for sanitizer in sanitizers.split(","):
        if CALLS[sanitizer] not in content:
            raise ValueError(f"{path} was not built with -fsanitize={sanitizer}.")
    if NAME in sys.modules:
        raise RuntimeError(f"{NAME} is loaded already, from {sys.modules[NAME].__file__}.")
    spec = spec_from_file_location(NAME, path, loader=ExtensionFileLoader(NAME, str(path)))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    torchgbdt._native = module  # type: ignore[attr-defined]  # as an import would
