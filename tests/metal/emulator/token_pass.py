"""What C++ cannot say by macros: threadgroup variables and kernel signatures.

    preprocessed MSL --rewrite--> C++, on the same lines, with an entry per kernel

A threadgroup variable becomes a reference into the arena that the threads of a group share; a
kernel gets an entry that hands it its buffers and the attributes of the running thread.
"""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<directive>(?<![^\n])[ \t]*\#[^\n]*)
    |(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
    |(?P<mark>\[\[|::|.)""",
    re.VERBOSE | re.DOTALL,
)

_CLOSING = {"(": ")", "[": "]", "{": "}", "[[": "]"}

# Attributes of kernel parameters; what the runtime calls them is their name.
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


class MetalSyntaxError(Exception):
    """What the token pass finds; line counts from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True)
class Parameter:
    """A buffer that a kernel takes."""

    name: str
    index: int
    space: str  # device or constant
    is_written: bool  # its type lets the kernel write


@dataclass(frozen=True)
class KernelSignature:
    name: str
    buffers: tuple[Parameter, ...]


@dataclass
class _Token:
    text: str
    kind: str
    line: int

    @property
    def is_blank(self) -> bool:
        return self.kind in ("space", "comment", "directive")


def rewrite(preprocessed: str) -> tuple[str, list[KernelSignature]]:
    """C++ for the emulator's header, and the kernels it holds.

    Parameters
    ----------
    preprocessed : MSL without macros; may hold line markers (``# 12 "file"``).
    """
    return _Rewriter(_tokens(preprocessed)).run()


def _tokens(text: str) -> list[_Token]:
    tokens = []
    line = 1
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or ""
        value = found[0]
        if kind == "directive":
            marker = re.match(r'\s*#\s*(?:line\s+)?(\d+)(?:\s+"[^"]*")?', value)
            if marker:
                line = int(marker[1]) - 1  # of the line that follows
        tokens.append(_Token(value, kind, line))
        line += value.count("\n")
    return tokens


@dataclass
class _Array:
    """A threadgroup variable: its name in the kernel, and as a field of the arena."""

    name: str
    field: str
    declaration: str


class _Rewriter:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._out: list[str] = []
        self._kernels: list[KernelSignature] = []
        self._namespaces: list[tuple[int, str]] = []  # depth of its brace, name

    def run(self) -> tuple[str, list[KernelSignature]]:
        i = 0
        depth = 0
        while i < len(self._tokens):
            token = self._tokens[i]
            if token.text == "{":
                depth += 1
                name = self._namespace_before(i)
                if name is not None:
                    self._namespaces.append((depth, name))
            elif token.text == "}":
                if self._namespaces and self._namespaces[-1][0] == depth:
                    self._namespaces.pop()
                depth -= 1
            if token.text == "kernel" or self._is_kernel_attribute(i):
                i = self._kernel(i)
            else:
                i = self._plain(i)
        return "".join(self._out), self._kernels

    # --- code outside kernels --------------------------------------------------------------------

    def _plain(self, i: int) -> int:
        """Copy a token, but for what C++ has no word for."""
        token = self._tokens[i]
        if token.kind == "directive" and re.match(r"\s*#\s*pragma\s+METAL", token.text):
            return i + 1
        if token.text == "[[":
            return self._skip_attribute(i)
        if token.text == "threadgroup" and self._is_variable(i):
            raise MetalSyntaxError("threadgroup variables belong to kernel functions", token.line)
        if token.text == "const" and "constant" in (self._before(i), self._word_after(i)):
            return i + 1  # constant is const already
        self._out.append(token.text)
        return i + 1

    def _is_kernel_attribute(self, i: int) -> bool:
        words = ("kernel", "max_total_threads_per_threadgroup")
        return self._tokens[i].text == "[[" and self._word_after(i) in words

    def _skip_attribute(self, i: int) -> int:
        end = self._closing(i)
        self._out.append(_newlines(self._text(i, end + 1)))
        return end + 1

    def _is_variable(self, i: int) -> bool:
        """Whether a statement begins here that declares threadgroup memory."""
        if self._before(i) not in ("{", "}", ";", ""):
            return False
        end = self._find(i, ";")
        declared = [t.text for t in self._tokens[i:end] if not t.is_blank]
        return not {"*", "&", "=", "("} & set(declared)

    # --- kernels ---------------------------------------------------------------------------------

    def _kernel(self, i: int) -> int:
        """Rewrite a kernel from its first token; return where to go on."""
        line = self._tokens[i].line
        if self._before(i) == ">":
            raise MetalSyntaxError(
                "the emulator has no kernel templates: use #define for variants", line
            )
        opening = i
        head = ""
        max_threads = "0"
        while self._tokens[opening].text != "(":
            if self._tokens[opening].text == "[[":
                end = self._closing(opening)
                attribute = self._text(opening + 1, end - 1)
                found = re.fullmatch(
                    r"\s*max_total_threads_per_threadgroup\s*\((.*)\)\s*", attribute, re.DOTALL
                )
                if found:
                    max_threads = found[1]
                head += _newlines(self._text(opening, end + 1))
                opening = end + 1
            else:
                text = self._tokens[opening].text
                head += "static" if text == "kernel" else text
                opening += 1
        if "static" not in head:
            head = "static " + head
        name = re.findall(r"\w+", head)[-1]
        closing = self._closing(opening)
        parameters, buffers, arguments = self._parameters(opening, closing)
        body = self._next(closing + 1)
        if self._tokens[body].text != "{":  # a declaration
            self._out.append(f"{head}({parameters})")
            return closing + 1
        end = self._closing(body)
        arrays, body_text = self._body(body, end)
        memory = f"emu_memory_{name}"
        body_text = body_text.replace("EMU_MEMORY", memory)
        fields = " ".join(one.declaration for one in arrays)
        qualified = "::".join([*(part for _, part in self._namespaces), name])
        self._out.append(f"struct {memory} {{{fields}}}; {head}({parameters})")
        self._out.append(self._text(closing + 1, body))
        self._out.append(body_text)
        self._out.append(_entry(name, qualified, arguments, max_threads, arrays))
        self._kernels.append(KernelSignature(qualified, tuple(buffers)))
        return end + 1

    def _parameters(self, opening: int, closing: int) -> tuple[str, list[Parameter], list[str]]:
        """Parameters without attributes, the buffers among them, and what the entry passes."""
        texts: list[str] = []
        buffers: list[Parameter] = []
        arguments: list[str] = []
        for begin, end in self._split(opening + 1, closing):
            attributes: dict[str, str] = {}
            text = ""
            i = begin
            while i < end:
                if self._tokens[i].text == "[[":
                    close = self._closing(i)
                    found = re.fullmatch(
                        r"\s*(\w+)\s*(?:\((.*)\))?\s*", self._text(i + 1, close - 1), re.DOTALL
                    )
                    if not found:
                        raise MetalSyntaxError("unknown attribute", self._tokens[i].line)
                    attributes[found[1]] = (found[2] or "").strip()
                    text += _newlines(self._text(i, close + 1))
                    i = close + 1
                else:
                    token = self._tokens[i]
                    drop = token.text == "const" and "constant" in (
                        self._before(i),
                        self._word_after(i),
                    )
                    text += "" if drop else token.text
                    i += 1
            texts.append(text)
            if not text.strip():
                continue
            line = self._tokens[self._next(begin)].line
            arguments.append(self._argument(text, attributes, buffers, line))
        return ",".join(texts), buffers, arguments

    def _argument(
        self, text: str, attributes: dict[str, str], buffers: list[Parameter], line: int
    ) -> str:
        declared = " ".join(text.split())
        found = re.fullmatch(r"(.+?)(\w+)", declared)
        if not found or found[2] in ("thread", "device", "constant", "threadgroup"):
            raise MetalSyntaxError(f"cannot read the kernel parameter {declared!r}", line)
        kind, name = found[1].strip(), found[2]
        if kind.endswith(("*", "&")):
            return self._buffer(kind, name, attributes, buffers, line)
        for attribute in attributes:
            if attribute in VECTOR_ATTRIBUTES:
                return f"emu::Attribute<{kind}>::of(emu_now->{attribute})"
            if attribute in SCALAR_ATTRIBUTES:
                return f"emu::Attribute<{kind}>::of({SCALAR_ATTRIBUTES[attribute]})"
        names = ", ".join(attributes) or "none"
        raise MetalSyntaxError(
            f"kernel parameter {name!r} needs an attribute that is known (found: {names})", line
        )

    def _buffer(
        self, kind: str, name: str, attributes: dict[str, str], buffers: list[Parameter], line: int
    ) -> str:
        words = re.findall(r"\w+", kind)
        if "threadgroup" in words:
            raise MetalSyntaxError(
                f"kernel parameter {name!r}: torch cannot set dynamic threadgroup memory", line
            )
        if "device" not in words and "constant" not in words:
            raise MetalSyntaxError(f"kernel parameter {name!r} needs device or constant", line)
        used = {one.index for one in buffers}
        if "buffer" in attributes:
            index = int(attributes["buffer"])
        else:
            index = next(i for i in range(len(used) + 1) if i not in used)
        if index in used or index > 30:
            raise MetalSyntaxError(f"kernel parameter {name!r}: buffer({index}) is not free", line)
        is_written = "device" in words and "const" not in words
        space = "device" if "device" in words else "constant"
        buffers.append(Parameter(name, index, space, is_written))
        target = kind[:-1].strip()
        pointer = f"static_cast<{target}*>(emu_buffers[{index}])"
        return pointer if kind.endswith("*") else f"*{pointer}"

    def _body(self, opening: int, closing: int) -> tuple[list[_Array], str]:
        """The threadgroup memory, and the body with references to it."""
        fields: list[_Array] = []
        outer = self._out
        self._out = []
        i = opening
        while i <= closing:
            if self._tokens[i].text == "threadgroup" and self._is_variable(i):
                end = self._find(i, ";")
                self._out.append(self._variables(i + 1, end, fields))
                i = end + 1
            else:
                i = self._plain(i)
        body = "".join(self._out)
        self._out = outer
        return fields, body

    def _variables(self, begin: int, end: int, fields: list[_Array]) -> str:
        references = []
        element = ""
        for first, last in self._split(begin, end):
            declarator = " ".join(self._text(first, last).split())
            found = re.fullmatch(r"(.*?)(\w+)\s*((?:\[.*\])?)", declarator)
            if not found or not (element or found[1].strip()):
                raise MetalSyntaxError("cannot read this declaration", self._tokens[begin].line)
            element = element or found[1].strip()
            name, size = found[2], found[3]
            field = f"{name}_{len(fields)}"
            fields.append(_Array(name, field, f"alignas(16) {element} {field}{size};"))
            references.append(f"auto& {name} = emu::memory<EMU_MEMORY>().{field};")
        return " ".join(references) + _newlines(self._text(begin, end))

    # --- tokens ----------------------------------------------------------------------------------

    def _text(self, begin: int, end: int) -> str:
        return "".join(token.text for token in self._tokens[begin:end])

    def _next(self, i: int) -> int:
        while i < len(self._tokens) - 1 and self._tokens[i].is_blank:
            i += 1
        return i

    def _word_after(self, i: int) -> str:
        return self._tokens[self._next(i + 1)].text if i + 1 < len(self._tokens) else ""

    def _before(self, i: int) -> str:
        i -= 1
        while i >= 0 and self._tokens[i].is_blank:
            i -= 1
        return self._tokens[i].text if i >= 0 else ""

    def _find(self, i: int, text: str) -> int:
        for j in range(i, len(self._tokens)):
            if self._tokens[j].text == text:
                return j
        raise MetalSyntaxError(f"{text!r} is missing", self._tokens[i].line)

    def _closing(self, opening: int) -> int:
        """The closing bracket; of ``[[``, the second one."""
        first = self._tokens[opening].text
        if first == "[[":
            return self._find(opening, "]") + 1
        depth = 0
        for i in range(opening, len(self._tokens)):
            text = self._tokens[i].text
            if text == first:
                depth += 1
            elif text == _CLOSING[first]:
                depth -= 1
                if depth == 0:
                    return i
        raise MetalSyntaxError(f"{first!r} is not closed", self._tokens[opening].line)

    def _split(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Stretches between commas that are in no bracket."""
        parts = []
        depth = 0
        first = begin
        for i in range(begin, end):
            text = self._tokens[i].text
            if text == "[[":
                depth += 2
            depth += text in ("(", "[", "{", "<")
            depth -= text in (")", "]", "}", ">")
            if text == "," and depth == 0:
                parts.append((first, i))
                first = i + 1
        parts.append((first, end))
        return parts

    def _namespace_before(self, i: int) -> str | None:
        words = [t.text for t in self._tokens[max(0, i - 8) : i] if not t.is_blank][-2:]
        return words[1] if len(words) == 2 and words[0] == "namespace" else None


def _newlines(text: str) -> str:
    """Nothing but the line breaks, so that lines keep their numbers."""
    return "\n" * text.count("\n")


def _entry(
    name: str, qualified: str, arguments: list[str], max_threads: str, arrays: list[_Array]
) -> str:
    """What the runtime calls per thread, and what it must know of the kernel; see runtime.h."""
    symbol = qualified.replace("::", "__")
    memory = f"emu_memory_{name}"
    size = f"sizeof({memory})" if arrays else "0"
    rows = "".join(
        f'{{"{one.name}", __builtin_offsetof({memory}, {one.field}), '
        f"sizeof({memory}::{one.field})}}, "
        for one in arrays
    )
    return (
        f' static_assert({size} <= emu_threadgroup_limit, "kernel {name}: threadgroup memory '
        f'exceeds 32768 bytes");'
        f' extern "C" void emu_run_{symbol}(void* const* emu_buffers) '
        f"{{ (void)emu_buffers; {name}({', '.join(arguments)}); }}"
        f" static const emu_array emu_arrays_{symbol}[] = {{{rows}{{nullptr, 0, 0}}}};"
        f' extern "C" const emu_kernel emu_kernel_{symbol} = {{emu_run_{symbol}, {size}, '
        f"{max_threads}, {len(arrays)}, emu_arrays_{symbol}}};"
    )
