"""The extension brings no OpenMP runtime: a second one beside torch's crashes, or spins."""

import platform
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchgbdt import _native

LIBRARY = Path(_native.__file__)
ENTRY_POINTS = (b"GOMP_", b"__kmpc_", b"omp_get_", b"omp_set_")
"""How the names begin that code compiled for OpenMP calls: GNU's, LLVM's, and the standard's."""


def elf_libraries(content: bytes) -> Iterator[str]:
    """The DT_NEEDED entries of a 64-bit ELF file; see elf(5)."""
    assert content[:5] == b"\x7fELF\x02"
    order = {1: "<", 2: ">"}[content[5]]

    def read(form: str, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(order + form, content, offset)

    (section_table,) = read("Q", 0x28)
    entry_size, n_sections = read("HH", 0x3A)
    # (type, offset, size, index of the section with the names) of each section
    sections = [
        (kind, offset, size, link)
        for _, kind, _, _, offset, size, link in (
            read("IIQQQQI", section_table + i * entry_size) for i in range(n_sections)
        )
    ]
    dynamic, needed = 6, 1  # SHT_DYNAMIC, DT_NEEDED
    for kind, offset, size, link in sections:
        if kind == dynamic:
            names = sections[link][1]
            for entry in range(offset, offset + size, 16):
                tag, value = read("QQ", entry)
                if tag == needed:
                    start = names + value
                    yield content[start : content.index(b"\0", start)].decode()


def linked_libraries() -> list[str]:
    if sys.platform == "linux":
        return list(elf_libraries(LIBRARY.read_bytes()))
    if sys.platform == "darwin":
        command = ["otool", "-L", str(LIBRARY)]
        listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return [line.split()[0] for line in listing.splitlines()[1:]]
    pytest.skip(f"no way is known to list what a library links on {platform.system()}")


def test_no_openmp_library_is_linked() -> None:
    libraries = [Path(name).name for name in linked_libraries()]
    # That this one is found shows that the list is one.
    assert any(name.startswith(("libc.", "libSystem.")) for name in libraries)
    assert not [name for name in libraries if "omp" in name.lower()]


def test_no_openmp_function_is_called() -> None:
    content = LIBRARY.read_bytes()
    assert b"PyEval_RestoreThread" in content  # names of foreign functions are there to be found
    assert not [name for name in ENTRY_POINTS if name in content]
