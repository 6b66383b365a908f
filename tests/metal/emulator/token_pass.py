"""What C++ cannot say by macros: threadgroup variables and kernel signatures.

    preprocessed MSL --rewrite--> C++, on the same lines, with an entry per kernel

A threadgroup variable becomes a reference into the arena that the threads of a group share; a
kernel gets an entry that hands it its buffers and the attributes of the running thread.
"""

import re
from dataclasses import dataclass

from .tokens import MetalSyntaxError, Tokens

# Attributes of kernel parameters that may be vectors; the runtime has them by the same names.
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
    "thread_index_in_threadgroup": "emu_now->thread_index_in_threadgroup",
    "thread_index_in_simdgroup": "emu_now->thread_index_in_simdgroup",
    "simdgroup_index_in_threadgroup": "emu_now->simdgroup_index_in_threadgroup",
    "simdgroups_per_threadgroup": "emu_now->simdgroups_per_threadgroup",
    "threads_per_simdgroup": "unsigned(emu_simd_width)",
    "thread_execution_width": "unsigned(emu_simd_width)",
}

ADDRESS_SPACES = ("device", "constant", "threadgroup", "thread")
MAX_BUFFERS = 31


@dataclass(frozen=True)
class Parameter:
    """A buffer that a kernel takes."""

    name: str
    index: int
    space: str  # device or constant
    is_written: bool  # its type lets the kernel write


@dataclass(frozen=True)
class KernelSignature:
    name: str  # with its namespaces
    buffers: tuple[Parameter, ...]


@dataclass(frozen=True)
class _Array:
    """A threadgroup variable: its name in the kernel, and as a field of the arena."""

    name: str
    field: str
    declaration: str


def rewrite(preprocessed: str) -> tuple[str, list[KernelSignature]]:
    """C++ for the emulator's header, and the kernels it holds.

    Parameters
    ----------
    preprocessed : MSL without macros; may hold line markers (``# 12 "file"``).

    Raises
    ------
    MetalSyntaxError : something that Metal or the emulator does not take.
    """
    return _Rewriter(Tokens(preprocessed)).run()


class _Rewriter:
    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._out: list[str] = []
        self._kernels: list[KernelSignature] = []

    def run(self) -> tuple[str, list[KernelSignature]]:
        tokens = self._tokens
        namespaces: list[tuple[int, str]] = []  # depth of the brace, name
        i = depth = 0
        while i < len(tokens):
            text = tokens[i].text
            if text == "{":
                depth += 1
                words = tokens.words(max(0, i - 8), i)
                if words[-2:-1] == ["namespace"]:
                    namespaces.append((depth, words[-1]))
            elif text == "}":
                if namespaces and namespaces[-1][0] == depth:
                    namespaces.pop()
                depth -= 1
            if text == "kernel" or self._is_kernel_attribute(i):
                i = self._kernel(i, "".join(f"{name}::" for _, name in namespaces))
            else:
                i = self._plain(i)
        return "".join(self._out), self._kernels

    # --- code outside kernels ---------------------------------------------------------------------

    def _plain(self, i: int) -> int:
        """Copy a token, but for what C++ has no word for; return where to go on."""
        token = self._tokens[i]
        if token.kind == "directive" and re.match(r"\s*#\s*pragma\s+METAL", token.text):
            return i + 1
        if token.text == "[[":
            end = self._tokens.closing(i) + 1
            self._out.append(_newlines(self._tokens.text(i, end)))
            return end
        if token.text == "threadgroup" and self._is_variable(i):
            raise MetalSyntaxError("threadgroup variables belong to kernel functions", token.line)
        if not self._is_doubled_const(i):
            self._out.append(token.text)
        return i + 1

    def _is_doubled_const(self, i: int) -> bool:
        """Whether this is the `const` of `constant const`; the shim makes `constant` const."""
        beside = (self._tokens.before(i), self._tokens.after(i))
        return self._tokens[i].text == "const" and "constant" in beside

    def _is_variable(self, i: int) -> bool:
        """Whether a statement begins here that declares threadgroup memory, not a pointer."""
        if self._tokens.before(i) not in ("{", "}", ";", ""):
            return False
        declared = self._tokens.words(i, self._tokens.find(i, ";"))
        return not {"*", "&", "=", "("} & set(declared)

    def _is_kernel_attribute(self, i: int) -> bool:
        words = ("kernel", "max_total_threads_per_threadgroup")
        return self._tokens[i].text == "[[" and self._tokens.after(i) in words

    # --- kernels ----------------------------------------------------------------------------------

    def _kernel(self, i: int, namespace: str) -> int:
        """Rewrite a kernel from its first token; return where to go on."""
        tokens = self._tokens
        if tokens.before(i) == ">":
            message = "the emulator has no kernel templates: variants are made by #define"
            raise MetalSyntaxError(message, tokens[i].line)
        opening, head, max_threads = self._head(i)
        name = re.findall(r"\w+", head)[-1]
        closing = tokens.closing(opening)
        body = tokens.skip_blank(closing + 1)
        parameters, buffers, arguments = self._parameters(opening, closing)
        if tokens[body].text != "{":  # a declaration
            self._out.append(f"static {head}({parameters})")
            return closing + 1
        end = tokens.closing(body)
        memory = f"emu_memory_{name}"
        arrays, body_text = self._body(body, end, memory)
        fields = " ".join(array.declaration for array in arrays)
        self._out += [
            f"struct {memory} {{{fields}}}; static {head}({parameters})",
            tokens.text(closing + 1, body),
            body_text,
            _entry(namespace + name, memory, arguments, max_threads, arrays),
        ]
        self._kernels.append(KernelSignature(namespace + name, tuple(buffers)))
        return end + 1

    def _head(self, i: int) -> tuple[int, str, str]:
        """Where the parameters begin, what stands before them, and the largest group (0: any)."""
        head = ""
        max_threads = "0"
        while self._tokens[i].text != "(":
            text = self._tokens[i].text
            if text == "[[":
                name, argument = self._tokens.attribute(i)
                if name == "max_total_threads_per_threadgroup":
                    max_threads = argument
                end = self._tokens.closing(i) + 1
                head += _newlines(self._tokens.text(i, end))
                i = end
            else:
                head += "" if text == "kernel" else text
                i += 1
        return i, head, max_threads

    def _parameters(self, opening: int, closing: int) -> tuple[str, list[Parameter], list[str]]:
        """Parameters without attributes, the buffers among them, and what the entry passes."""
        texts: list[str] = []
        buffers: list[Parameter] = []
        arguments: list[str] = []
        for begin, end in self._tokens.split(opening + 1, closing):
            attributes: dict[str, str] = {}
            text = ""
            i = begin
            while i < end:
                if self._tokens[i].text == "[[":
                    attribute, argument = self._tokens.attribute(i)
                    attributes[attribute] = argument
                    after = self._tokens.closing(i) + 1
                    text += _newlines(self._tokens.text(i, after))
                    i = after
                else:
                    text += "" if self._is_doubled_const(i) else self._tokens[i].text
                    i += 1
            texts.append(text)
            if text.strip():
                line = self._tokens[self._tokens.skip_blank(begin)].line
                arguments.append(_argument(" ".join(text.split()), attributes, buffers, line))
        return ",".join(texts), buffers, arguments

    def _body(self, opening: int, closing: int, memory: str) -> tuple[list[_Array], str]:
        """The threadgroup memory, and the body with references to it."""
        arrays: list[_Array] = []
        outside = self._out
        self._out = []
        i = opening
        while i <= closing:
            if self._tokens[i].text == "threadgroup" and self._is_variable(i):
                end = self._tokens.find(i, ";")
                self._variables(i + 1, end, memory, arrays)
                i = end + 1
            else:
                i = self._plain(i)
        body = "".join(self._out)
        self._out = outside
        return arrays, body

    def _variables(self, begin: int, end: int, memory: str, arrays: list[_Array]) -> None:
        element = ""
        for first, last in self._tokens.split(begin, end):
            declarator = " ".join(self._tokens.text(first, last).split())
            found = re.fullmatch(r"(.*?)(\w+)\s*((?:\[.*\])?)", declarator)
            element = element or (found[1].strip() if found else "")
            if not found or not element:
                raise MetalSyntaxError("cannot read this declaration", self._tokens[begin].line)
            field = f"{found[2]}_{len(arrays)}"
            declaration = f"alignas(16) {element} {field}{found[3]}; EMU_GAP(gap_{len(arrays)})"
            arrays.append(_Array(found[2], field, declaration))
            self._out.append(f"auto& {found[2]} = emu::memory<{memory}>().{field}; ")
        self._out.append(_newlines(self._tokens.text(begin, end)))


def _argument(
    declared: str, attributes: dict[str, str], buffers: list[Parameter], line: int
) -> str:
    """What the entry passes for a parameter; a buffer is added to ``buffers``."""
    found = re.fullmatch(r"(.+?)(\w+)", declared)
    if not found or found[2] in ADDRESS_SPACES:
        raise MetalSyntaxError(f"cannot read the kernel parameter {declared!r}", line)
    kind, name = found[1].strip(), found[2]
    if kind.endswith(("*", "&")):
        buffers.append(_buffer(kind, name, attributes, {one.index for one in buffers}, line))
        pointer = f"static_cast<{kind[:-1].strip()}*>(emu_buffers[{buffers[-1].index}])"
        return pointer if kind.endswith("*") else f"*{pointer}"
    for attribute in attributes:
        if attribute in VECTOR_ATTRIBUTES:
            return f"emu::Attribute<{kind}>::of(emu_now->{attribute})"
        if attribute in SCALAR_ATTRIBUTES:
            return f"emu::Attribute<{kind}>::of({SCALAR_ATTRIBUTES[attribute]})"
    names = ", ".join(attributes) or "none"
    raise MetalSyntaxError(f"kernel parameter {name!r} has no known attribute: {names}", line)


def _buffer(
    kind: str, name: str, attributes: dict[str, str], used: set[int], line: int
) -> Parameter:
    words = re.findall(r"\w+", kind)
    if "threadgroup" in words:
        message = f"kernel parameter {name!r}: torch cannot set dynamic threadgroup memory"
        raise MetalSyntaxError(message, line)
    if "device" not in words and "constant" not in words:
        raise MetalSyntaxError(f"kernel parameter {name!r} needs device or constant", line)
    if "buffer" in attributes:
        index = int(attributes["buffer"])
    else:
        index = next(i for i in range(len(used) + 1) if i not in used)
    if index in used or index >= MAX_BUFFERS:
        raise MetalSyntaxError(f"kernel parameter {name!r}: buffer({index}) is not free", line)
    space = "device" if "device" in words else "constant"
    return Parameter(name, index, space, space == "device" and "const" not in words)


def _entry(
    qualified: str, memory: str, arguments: list[str], max_threads: str, arrays: list[_Array]
) -> str:
    """What the runtime calls per thread, and what it must know of the kernel; see runtime.h."""
    name = qualified.rpartition("::")[2]
    symbol = qualified.replace("::", "__")
    size = f"sizeof({memory})" if arrays else "0"
    without_gaps = f"{size} - {len(arrays)} * emu_array_gap"
    rows = "".join(
        f'{{"{one.name}", __builtin_offsetof({memory}, {one.field}), '
        f"sizeof({memory}::{one.field})}}, "
        for one in arrays
    )
    return (
        f' static_assert({without_gaps} <= emu_threadgroup_limit, "{name}: threadgroup memory '
        f'exceeds 32768 bytes");'
        f' extern "C" EMU_ENTRY void emu_run_{symbol}(void* const* emu_buffers) '
        f"{{ (void)emu_buffers; {name}({', '.join(arguments)}); }}"
        f" static const emu_array emu_arrays_{symbol}[] = {{{rows}{{nullptr, 0, 0}}}};"
        f' extern "C" const emu_kernel emu_kernel_{symbol} = {{emu_run_{symbol}, {size}, '
        f"{max_threads}, {len(arrays)}, emu_arrays_{symbol}}};"
    )


def _newlines(text: str) -> str:
    """Nothing but the line breaks, so that lines keep their numbers."""
    return "\n" * text.count("\n")
