"""Rules of the lint for kernel signatures: buffers first, then attributes of the right types."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from metal.msl_lint_text import Finding, Token

MAX_BUFFERS = 31
GROUP_SIZE = 256

# Metal Shading Language Specification 5.2.3.6. What may be a vector must have the same number of
# components all through a kernel; ushort is allowed there, and not here: one type for each.
VECTOR_ATTRIBUTES = {
    "thread_position_in_grid",
    "threads_per_grid",
    "thread_position_in_threadgroup",
    "threads_per_threadgroup",
    "dispatch_threads_per_threadgroup",
    "threadgroup_position_in_grid",
    "threadgroups_per_grid",
}
SCALAR_ATTRIBUTES = {
    "thread_index_in_threadgroup",
    "thread_index_in_simdgroup",
    "simdgroup_index_in_threadgroup",
    "simdgroups_per_threadgroup",
    "threads_per_simdgroup",
    "thread_execution_width",
}
_COMPONENTS = {"uint": 1, "uint2": 2, "uint3": 3}


@dataclass(frozen=True)
class Attribute:
    """``[[name(argument)]]``; argument: None without parentheses."""

    name: str
    argument: str | None


@dataclass(frozen=True)
class Parameter:
    """declaration: all words and marks but the name and the attributes."""

    line: int
    name: str
    declaration: list[str]
    attributes: list[Attribute]

    @property
    def is_buffer(self) -> bool:
        return bool({"*", "&"} & set(self.declaration)) or self.binding is not None

    @property
    def binding(self) -> str | None:
        """N of ``[[buffer(N)]]``."""
        return next((one.argument for one in self.attributes if one.name == "buffer"), None)


@dataclass(frozen=True)
class Kernel:
    """body: its tokens, without the outer braces."""

    name: str
    line: int
    attributes: list[Attribute]
    parameters: list[Parameter]
    body: list[str] = field(repr=False)


def find_kernels(found: list[Token]) -> list[Kernel]:
    """All kernel functions. found: tokens without preprocessor lines."""
    kernels = []
    for index, token in enumerate(found):
        if token.text == "kernel" and "(" in (one.text for one in found[index:]):
            start = index
            while start > 0 and found[start - 1].text not in (";", "}", "{"):
                start -= 1
            opening = next(i for i in range(index, len(found)) if found[i].text == "(")
            closing = _closing(found, opening)
            body_end = _closing(found, closing + 1) if found[closing + 1].text == "{" else closing
            kernels.append(
                Kernel(
                    name=found[opening - 1].text,
                    line=token.line,
                    attributes=_split_attributes(found[start : opening - 1])[1],
                    parameters=_parameters(found[opening + 1 : closing]),
                    body=[one.text for one in found[closing + 2 : body_end]],
                )
            )
    return kernels


def check_kernel(kernel: Kernel, macros: Mapping[str, str]) -> Iterator[Finding]:
    """One signature. macros: what names of the text stand for."""
    buffers = [one for one in kernel.parameters if one.is_buffer]
    if kernel.parameters[: len(buffers)] != buffers:
        yield Finding(kernel.line, f"{kernel.name}: buffers come first, then attributes")
    if len(buffers) > MAX_BUFFERS:
        yield Finding(kernel.line, f"{kernel.name}: Metal has {MAX_BUFFERS} buffers at most")
    for expected, one in enumerate(buffers):
        yield from _check_buffer(one, expected)
    yield from _check_attributes([one for one in kernel.parameters if not one.is_buffer])
    yield from _check_group_size(kernel, macros)


def _check_buffer(one: Parameter, expected: int) -> Iterator[Finding]:
    declared = set(one.declaration)
    if "threadgroup" in declared or any(a.name == "threadgroup" for a in one.attributes):
        yield Finding(one.line, f"{one.name}: torch gives no dynamic threadgroup memory")
    elif one.binding != str(expected):
        found = "without [[buffer(..)]]" if one.binding is None else f"[[buffer({one.binding})]]"
        yield Finding(one.line, f"{one.name}: {found}; buffers count from 0: {expected} here")
    elif not {"*", "&"} & declared:
        yield Finding(one.line, f"{one.name}: a buffer is a pointer or a reference")
    elif "&" in declared and "constant" not in declared:
        yield Finding(one.line, f"{one.name}: a tensor is a pointer; numbers are constant")
    elif {"constant", "const"} <= declared:
        yield Finding(one.line, f"{one.name}: constant is const already")
    elif "constant" in declared:
        element = set(one.declaration) - {"constant", "const", "*", "&"}
        if not (element <= {"int", "uint"} or (element == {"float"} and "&" in declared)):
            yield Finding(
                one.line,
                f"{one.name}: constant is for numbers of the host, which come as int words or "
                "float32; tensors are device",
            )


def _check_attributes(parameters: list[Parameter]) -> Iterator[Finding]:
    n_components = 0
    for one in parameters:
        names = [attribute.name for attribute in one.attributes]
        name = names[0] if len(names) == 1 else ""
        if name not in VECTOR_ATTRIBUTES | SCALAR_ATTRIBUTES:
            listed = ", ".join(names) or "nothing"
            yield Finding(one.line, f"{one.name}: needs one attribute that Metal has, not {listed}")
            continue
        declared = " ".join(word for word in one.declaration if word != "const")
        components = _COMPONENTS.get(declared, 0)
        if components == 0 or (name in SCALAR_ATTRIBUTES and components > 1):
            allowed = "uint" if name in SCALAR_ATTRIBUTES else "uint, uint2 or uint3"
            yield Finding(one.line, f"{one.name}: {name} is {allowed}, not {declared}")
        elif name in VECTOR_ATTRIBUTES:
            n_components = n_components or components
            if components != n_components:
                yield Finding(
                    one.line, f"{one.name}: {name} needs as many components as those before"
                )


def _check_group_size(kernel: Kernel, macros: Mapping[str, str]) -> Iterator[Finding]:
    sizes = [a for a in kernel.attributes if a.name == "max_total_threads_per_threadgroup"]
    if {"threadgroup", "threadgroup_barrier"} & set(kernel.body) and not sizes:
        yield Finding(
            kernel.line,
            f"{kernel.name}: threadgroup memory needs "
            f"[[max_total_threads_per_threadgroup({GROUP_SIZE})]]",
        )
    for size in sizes:
        argument = size.argument or ""
        for _ in macros:
            argument = macros.get(argument, argument)
        if argument != str(GROUP_SIZE):
            yield Finding(kernel.line, f"{kernel.name}: groups have {GROUP_SIZE} threads")


# --- parsing ------------------------------------------------------------------------------------


def _closing(found: list[Token], opening: int) -> int:
    """The place of the bracket that closes the one at `opening`."""
    depth = 0
    for index in range(opening, len(found)):
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(found[index].text, 0)
        if depth == 0:
            return index
    return len(found) - 1


def _parameters(found: list[Token]) -> list[Parameter]:
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in found:
        depth += {"(": 1, "[": 1, "<": 1, ")": -1, "]": -1, ">": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [_parameter(part) for part in parts if part]


def _parameter(part: list[Token]) -> Parameter:
    rest, attributes = _split_attributes(part)
    declaration = [one.text for one in rest]
    return Parameter(part[0].line, declaration[-1], declaration[:-1], attributes)


def _split_attributes(part: list[Token]) -> tuple[list[Token], list[Attribute]]:
    """What stands outside of ``[[..]]``, and the attributes inside."""
    rest = []
    attributes = []
    index = 0
    while index < len(part):
        if [one.text for one in part[index : index + 2]] != ["[", "["]:
            rest.append(part[index])
            index += 1
            continue
        end = _closing(part, index)
        inside = [one.text for one in part[index + 2 : end - 1]]
        argument = "".join(inside[2:-1]) if inside[1:2] == ["("] else None
        attributes.append(Attribute(inside[0] if inside else "", argument))
        index = end + 1
    return rest, attributes
