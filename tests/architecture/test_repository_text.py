"""What no file of this repository may contain, and what its pages say about its files."""

import re
from pathlib import Path

import pytest
from architecture.repository import NOT_OURS, ROOT, TEXT_SUFFIXES, source_files, text_files

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


# Pages that name files, and the folders that their paths may start from.
PAGES = {
    "README.md": (ROOT, ROOT / "torchgbdt"),
    "csrc/README.md": (ROOT, ROOT / "csrc", ROOT / "torchgbdt"),
}
PATH = re.compile(r"(?<![\w:/@-])[\w.*-]+(?:/[\w.*-]+)*")


def paths_in(text: str, folders: tuple[Path, ...]) -> set[str]:
    """Words that begin in a folder of one of these, or end like a text file; dotted modules too."""
    tops = {item.name for folder in folders for item in folder.iterdir() if item.is_dir()}
    words = {word.rstrip(".") for word in PATH.findall(text)}
    modules = {word.replace(".", "/") for word in words if word.startswith("torchgbdt.")}
    files = {word for word in words if Path(word).suffix in TEXT_SUFFIXES - {""}}
    in_folders = {word for word in words if "/" in word and word.split("/")[0] in tops}
    return {word for word in modules | files | in_folders if not NOT_OURS & set(word.split("/"))}


def missing(paths: set[str], folders: tuple[Path, ...]) -> set[str]:
    """Those that none of the folders holds, with or without their suffix .py."""
    return {
        path
        for path in paths
        if not any(any(folder.glob(f"{path}{end}")) for folder in folders for end in ("", ".py"))
    }


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_exists(page: str) -> None:
    paths = paths_in((ROOT / page).read_text("utf-8"), PAGES[page])
    assert len(paths) >= 10
    assert missing(paths, PAGES[page]) == set()


def test_a_path_that_does_not_exist_is_seen() -> None:
    text = (
        "`tests/contract/test_whole_tree.py`, core/nothing -> core/splits; no.h. torchgbdt.core.no"
    )
    paths = paths_in(text, PAGES["README.md"])
    absent = {"tests/contract/test_whole_tree.py", "core/nothing", "no.h", "torchgbdt/core/no"}
    assert paths == absent | {"core/splits"}
    assert missing(paths, PAGES["README.md"]) == absent


@pytest.mark.parametrize(
    ("section", "file"), [("## Kernels", "cpu/{}.cpp"), ("## Metal", "metal/{}.metal")]
)
def test_every_kernel_of_the_native_page_is_a_file(section: str, file: str) -> None:
    page = (ROOT / "csrc" / "README.md").read_text("utf-8")
    text = page.partition(section)[2].partition("\n## ")[0]
    kernels = re.findall(r"^\| `(\w+)`", text, re.MULTILINE)
    assert len(kernels) >= 7
    assert [name for name in kernels if not (ROOT / "csrc" / file.format(name)).is_file()] == []


def test_every_make_command_of_the_readme_exists() -> None:
    readme, makefile = ((ROOT / name).read_text("utf-8") for name in ("README.md", "Makefile"))
    commands = set(re.findall(r"(?:`|^ {4})make ([a-z-]+)", readme, re.MULTILINE))
    assert commands >= {"demo", "test", "help"}
    assert commands - set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)) == set()
