"""What `make sanitize` tests is the module that it built, or nothing."""

from pathlib import Path

import pytest
from support.sanitized import CALLS, load_sanitized

from torchgbdt import _native


@pytest.mark.parametrize("missing", CALLS)
def test_a_module_without_one_of_the_sanitizers_is_refused(tmp_path: Path, missing: str) -> None:
    module = tmp_path / "_native.so"
    module.write_bytes(b"\0".join(call for name, call in CALLS.items() if name != missing))
    with pytest.raises(ValueError, match=f"not built with -fsanitize={missing}"):
        load_sanitized(module, ",".join(CALLS))


def test_a_module_comes_too_late_once_another_is_loaded(tmp_path: Path) -> None:
    module = tmp_path / "_native.so"
    module.write_bytes(b"\0".join(CALLS.values()))
    with pytest.raises(RuntimeError, match="loaded already"):
        load_sanitized(module, "thread")
    assert _native.version()
