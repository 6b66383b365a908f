"""The lint of Metal sources: what Metal, torch or a convention of ours refuses and C++ allows.

    msl_lint_tokens   words, numbers, preprocessor lines
    msl_lint_kernels  signatures of kernels
    msl_lint_types    pointers, atomics, threadgroup memory
    msl_lint_flow     barriers

What a C++ compiler finds by itself is left to address_spaces.py, the other pass.
"""

import re
from collections.abc import Iterator, Mapping
from importlib import resources

from metal.address_spaces import active_text, check_address_spaces, check_cpp14, parse
from metal.msl_lint_flow import check_barriers
from metal.msl_lint_kernels import check_kernel, find_kernels
from metal.msl_lint_text import Finding, assemble_with_places, code_tokens, tokens
from metal.msl_lint_tokens import check_ascii, check_directives, check_tokens
from metal.msl_lint_tree import read_tree
from metal.msl_lint_types import check_types

# The probe compares it with the host's; nothing else may call it.
_ALLOWED = {"conformance_probe": "fma() "}

_OURS = re.compile(r'#include "((?:shared|metal)/[a-z0-9_]+\.h)"')
_DEFINITION = re.compile(r"^#define (\w+) (\w+)", re.MULTILINE)
_TEMPLATE_PARAMETER = re.compile(r"(?:typename|class|uint|int|bool) ([A-Z][A-Z0-9_]*)\b")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]*")


def lint(text: str) -> list[Finding]:
    """What is wrong with an assembled text."""
    unit = parse(text)
    active = active_text(text, unit)
    kernels = find_kernels(code_tokens(active))
    found = [*check_ascii(text), *check_directives(active), *check_tokens(tokens(active))]
    for kernel in kernels:
        found += check_kernel(kernel, dict(_DEFINITION.findall(active)))
    tree = read_tree(unit)
    found += [*check_types(tree), *check_barriers(tree, kernels)]
    return sorted(set(found))


def check_file(file: str, source: str | None = None) -> list[Finding]:
    """What is wrong with csrc/metal/<file>.metal by itself. source: in place of what it holds."""
    text = _read(f"metal/{file}.metal") if source is None else source
    return sorted({*check_ascii(text), *_check_names(file, text), *_check_constants(text)})


def check_variant(file: str, constants: Mapping[str, int | str]) -> list[str]:
    """What lint and clang say of one variant of csrc/metal/<file>.metal, as ``file:line: why``."""
    assembled = assemble_with_places(file, constants)
    found = [*lint(assembled.text), *check_address_spaces(assembled.text)]
    found += check_cpp14(assembled.text)
    allowed = _ALLOWED.get(file)
    return [
        assembled.describe(one)
        for one in found
        if allowed is None or not one.message.startswith(allowed)
    ]


def _check_names(file: str, text: str) -> Iterator[Finding]:
    """Kernels are named as their file, or as its twin: with a word of its name."""
    kernels = find_kernels(code_tokens(text))
    if not kernels:
        yield Finding(1, f"{file}.metal has no kernel")
    for kernel in kernels:
        if not set(kernel.name.split("_")) & set(file.split("_")):
            yield Finding(kernel.line, f"{kernel.name} does not belong into {file}.metal")


def _check_constants(text: str) -> Iterator[Finding]:
    """Names in capitals that no comment at the top lists and no #define gives a meaning.

    The comment may be that of a header, and headers may use what the file's comment lists.
    """
    parts = list(_with_headers(text))
    known = {"__METAL_VERSION__"}
    for part in parts:
        known |= set(_CONSTANT.findall(_top_comment(part)))
        known |= set(re.findall(r"#\s*define\s+(\w+)", part))
        known |= set(_TEMPLATE_PARAMETER.findall(part))
    for number, line in enumerate(text.split("\n"), start=1):
        if not re.match(r"\s*#\s*include", line):
            for name in _constants(line) - known:
                yield Finding(number, f"{name} is not among the constants at the file's top")
        elif (found := _OURS.fullmatch(line)) is None or not _is_there(found[1]):
            yield Finding(number, f"unknown {line.strip()}")
    for name in {name for part in parts[1:] for name in _constants(part)} - known:
        yield Finding(1, f"{name}, of a header, is not among the constants at the file's top")


def _constants(text: str) -> set[str]:
    return {
        token.text
        for token in tokens(text)
        if _CONSTANT.fullmatch(token.text) and len(token.text) > 1
    }


def _with_headers(text: str) -> Iterator[str]:
    yield text
    for path in _OURS.findall(text):
        if _is_there(path):
            yield from _with_headers(_read(path))


def _top_comment(text: str) -> str:
    lines = text.split("\n")
    n_lines = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return "\n".join(lines[:n_lines])


def _is_there(path: str) -> bool:
    return (resources.files("torchgbdt") / "kernels" / path).is_file()


def _read(path: str) -> str:
    source = resources.files("torchgbdt") / "kernels" / path
    return source.read_bytes().decode("latin-1")  # every byte is something, to be found non-ASCII
