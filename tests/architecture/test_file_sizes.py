"""One noun or step per file: a file that grew past 400 lines holds two."""

from architecture.repository import ROOT, source_files

MAX_LINES = 400


def test_no_source_file_is_longer_than_400_lines() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines())
        for path in source_files()
    }
    assert lengths
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}
