"""Clang's opinion of a Metal text: address spaces, types and overloads, and nothing of C++17.

No compiler but Apple's reads Metal. C++ for OpenCL comes close: based on C++17 as Metal 4 is, and
with address spaces that may not be mixed, casts included; threadgroup variables in kernels only,
program-scope variables in `constant` only; and atomics that are no ordinary variables. Metal's
library is declared in address_spaces_shim.h. Metal 3 is based on C++14, so plain C++14, without the
address spaces, must accept the text as well.

Both need the package libclang only. Nothing is compiled further or run.
"""

import ctypes
import re
import tempfile
from functools import cache, lru_cache
from pathlib import Path

from clang import cindex
from metal.msl_lint_text import Finding

SHIM = Path(__file__).with_name("address_spaces_shim.h")
FILE = "/kernel.metal"  # in memory, as is the empty <metal_stdlib>: the shim stands before the text

NO_SPACE, THREADGROUP, THREAD, GENERIC = 0, 2, 4, 5
"""Clang's numbers. GENERIC: of a pointer that says nothing; NO_SPACE: the same in a template."""

_DIALECTS = {
    # No extensions: no double, no variables of the program but constant ones. Without generic
    # pointers, `this` would not fit objects of all address spaces.
    "C++ for OpenCL": "-x cl -cl-std=clc++2021 -cl-no-stdinc -target spir64 "
    "-Xclang -cl-ext=-all,+__opencl_c_generic_address_space",
    "C++14": "-x c++ -std=c++14 -pedantic-errors -Wno-c11-extensions",
}
_COMMON = "-D__METAL_VERSION__=320 -nostdinc -I/ -Wno-unknown-attributes -ferror-limit=0"


def check_address_spaces(text: str) -> list[Finding]:
    """What clang refuses in an assembled text, read as C++ for OpenCL."""
    return _errors(parse(text))


def check_cpp14(text: str) -> list[Finding]:
    """What clang refuses in an assembled text, read as C++14 without address spaces."""
    return _errors(_parse(text, "C++14"))


@lru_cache(maxsize=1)  # the lint looks at what check_address_spaces has read
def parse(text: str) -> cindex.TranslationUnit:
    """An assembled text as C++ for OpenCL; where there are errors, as much as was understood."""
    unit = _parse(text, "C++ for OpenCL")
    for _ in range(text.count("?")):
        copied = _with_copies(text, unit)
        if copied == text:
            break
        text = copied
        unit = _parse(text, "C++ for OpenCL")
    return unit


def _with_copies(text: str, unit: cindex.TranslationUnit) -> str:
    """The text with ``c ? X(x) : X{}`` for ``c ? x : X{}``, where x is a variable of a struct X.

    C++ wants both of one type, and OpenCL's x is a `__private X`. Lines stay what they are.
    """
    for one in unit.diagnostics:
        types = re.fullmatch(r"incompatible operand types \('(.*)' and '(.*)'\)", one.spelling)
        if types is None or not text.isascii():  # clang counts bytes
            continue
        plain = [re.sub("__private |const ", "", type_) for type_ in types.groups()]
        for operand, type_ in zip(one.ranges, types.groups(), strict=True):
            start, end = operand.start.offset, operand.end.offset
            copy = f"{plain[0]}({text[start:end]})"
            if plain[0] == plain[1] and "__private" in type_:
                return text[:start] + copy + text[end:]
    return text


def active_text(text: str, unit: cindex.TranslationUnit) -> str:
    """The text with blank lines for what #if leaves out."""
    lines = text.split("\n")
    for first, last in _skipped_lines(unit):
        lines[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(lines)


def address_space(of: cindex.Type) -> int:
    """Its number; clang.cindex would crash on what is no type because of an error in the text."""
    return NO_SPACE if of.kind == cindex.TypeKind.INVALID else int(of.get_address_space())


def _parse(text: str, dialect: str) -> cindex.TranslationUnit:
    return cindex.Index.create().parse(
        FILE,
        args=[*_arguments(dialect), "-include-pch", str(_precompiled_shim(dialect))],
        unsaved_files=[(FILE, text), ("/metal_stdlib", "")],
        options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD,
    )


def _arguments(dialect: str) -> list[str]:
    return f"{_DIALECTS[dialect]} {_COMMON}".split()


@cache
def _shim_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()  # removed when the process ends


@cache
def _precompiled_shim(dialect: str) -> Path:
    """The shim, read once per process instead of once per text."""
    unit = cindex.Index.create().parse(
        str(SHIM),
        args=_arguments(dialect),
        options=cindex.TranslationUnit.PARSE_INCOMPLETE,
    )
    if problems := [str(one) for one in unit.diagnostics if "pragma once" not in one.spelling]:
        raise RuntimeError(f"{SHIM.name} as {dialect}: {problems}")
    file = Path(_shim_folder().name) / f"{len(dialect)}.pch"
    unit.save(str(file))
    return file


def _errors(unit: cindex.TranslationUnit) -> list[Finding]:
    found = []
    for one in unit.diagnostics:
        if one.severity >= cindex.Diagnostic.Error:
            found.append(Finding(_line_in_text(one), one.spelling))
    return found


def _line_in_text(diagnostic: cindex.Diagnostic) -> int:
    """Where the text asked for what is wrong; the place itself may lie in the shim's templates."""
    for one in [diagnostic, *diagnostic.children]:
        if one.location.file is not None and one.location.file.name == FILE:
            return int(one.location.line)
    return 1


class _SourceRangeList(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_uint),
        ("ranges", ctypes.POINTER(cindex.SourceRange)),
    )


def _skipped_lines(unit: cindex.TranslationUnit) -> list[tuple[int, int]]:
    """First and last line of each part that #if leaves out; clang.cindex has no name for this."""
    library = cindex.conf.lib
    library.clang_getSkippedRanges.restype = ctypes.POINTER(_SourceRangeList)
    found = library.clang_getSkippedRanges(unit, unit.get_file(FILE))
    try:
        ranges = [found.contents.ranges[i] for i in range(found.contents.count)]
        return [(one.start.line, one.end.line) for one in ranges]
    finally:
        library.clang_disposeSourceRangeList(found)
