"""Which files make up this repository, for tests that read them as text."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

SOURCE_FOLDERS = ("torchgbdt", "csrc", "tests", "demo", "benchmarks")
SOURCE_SUFFIXES = {".py", ".pyi", ".cpp", ".h", ".metal"}
TEXT_SUFFIXES = SOURCE_SUFFIXES | {".md", ".toml", ".txt", ".json", ".yaml", ".yml", ".ipynb", ""}
NOT_OURS = {".git", ".venv", ".hypothesis", ".coverage", "build", "dist", "out"}


def source_files() -> Iterator[Path]:
    for folder in SOURCE_FOLDERS:
        yield from _files_below(ROOT / folder, SOURCE_SUFFIXES)


def text_files() -> Iterator[Path]:
    yield from _files_below(ROOT, TEXT_SUFFIXES)


def _files_below(folder: Path, suffixes: set[str]) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.name in NOT_OURS or path.name.endswith(("_cache", ".egg-info", "__pycache__")):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _files_below(path, suffixes)
        elif path.suffix in suffixes and path.is_file():
            yield path
