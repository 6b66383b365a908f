"""What no file of this repository may contain."""

import re
from pathlib import Path

from architecture.repository import ROOT, source_files, text_files

# A path of the machine somebody worked on. Tests use tmp_path, code gets its paths as arguments.
MACHINE_PATH = re.compile(r"(?<![\w.}/])/(?:home|root|tmp|Users|work|private/var)/\w")


def lines_with(pattern: re.Pattern[str], path: Path) -> list[str]:
    text = path.read_text("utf-8")
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    assert MACHINE_PATH.search("see " + "/home" + "/me/x.py")
    assert [hit for path in text_files() for hit in lines_with(MACHINE_PATH, path)] == []


def test_native_sources_are_ascii() -> None:
    # Metal's compiler and some C++ ones read other bytes by the locale of the machine.
    native = [path for path in source_files() if path.is_relative_to(ROOT / "csrc")]
    assert native
    assert [str(path) for path in native if not path.read_bytes().isascii()] == []
