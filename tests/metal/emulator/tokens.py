"""The tokens of a C++-like text, with their lines, and how brackets match."""

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

_LINE_MARKER = re.compile(r'\s*#\s*(?:line\s+)?(\d+)(?:\s+"[^"]*")?')

_CLOSING = {"(": ")", "[": "]", "{": "}"}


class MetalSyntaxError(Exception):
    """What is wrong with a text, and in which line; the first is 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True)
class Token:
    text: str
    kind: str
    line: int

    @property
    def is_blank(self) -> bool:
        return self.kind in ("space", "comment", "directive")


class Tokens:
    """All tokens of a text, by index; joined they are the text.

    ``[[``, which opens an attribute, is one token; its end is two.
    """

    def __init__(self, text: str) -> None:
        self._tokens: list[Token] = []
        line = 1
        for found in _TOKEN.finditer(text):
            kind = found.lastgroup or ""
            value = found[0]
            if kind == "directive":
                marker = _LINE_MARKER.match(value)
                if marker:
                    line = int(marker[1]) - 1  # of the line that follows
            self._tokens.append(Token(value, kind, line))
            line += value.count("\n")

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, i: int) -> Token:
        return self._tokens[i]

    def text(self, begin: int, end: int) -> str:
        return "".join(token.text for token in self._tokens[begin:end])

    def words(self, begin: int, end: int) -> list[str]:
        """Without what is blank."""
        return [token.text for token in self._tokens[begin:end] if not token.is_blank]

    def skip_blank(self, i: int) -> int:
        """The first token from i on that is not blank."""
        while i < len(self._tokens) - 1 and self._tokens[i].is_blank:
            i += 1
        return i

    def after(self, i: int) -> str:
        """The token behind i that is not blank."""
        return self._tokens[self.skip_blank(i + 1)].text if i + 1 < len(self._tokens) else ""

    def before(self, i: int) -> str:
        """The token before i that is not blank; "" at the beginning."""
        i -= 1
        while i >= 0 and self._tokens[i].is_blank:
            i -= 1
        return self._tokens[i].text if i >= 0 else ""

    def find(self, i: int, text: str) -> int:
        for j in range(i, len(self._tokens)):
            if self._tokens[j].text == text:
                return j
        raise MetalSyntaxError(f"{text!r} is missing", self._tokens[i].line)

    def closing(self, opening: int) -> int:
        """The bracket that closes this one; of ``[[``, the second."""
        first = self._tokens[opening].text
        if first == "[[":
            return self.find(opening, "]") + 1
        depth = 0
        for i in range(opening, len(self._tokens)):
            text = self._tokens[i].text
            depth += (text == first) - (text == _CLOSING[first])
            if depth == 0:
                return i
        raise MetalSyntaxError(f"{first!r} is not closed", self._tokens[opening].line)

    def attribute(self, opening: int) -> tuple[str, str]:
        """Name and argument of the attribute that ``[[`` at this place opens."""
        inside = self.text(opening + 1, self.closing(opening) - 1)
        found = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", inside, re.DOTALL)
        if not found:
            raise MetalSyntaxError(f"unknown attribute {inside!r}", self._tokens[opening].line)
        return found[1], (found[2] or "").strip()

    def split(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Stretches between the commas that are in no bracket."""
        parts = []
        depth = 0
        first = begin
        for i in range(begin, end):
            text = self._tokens[i].text
            depth += {"(": 1, "[": 1, "{": 1, "<": 1, "[[": 2}.get(text, 0)
            depth -= text in (")", "]", "}", ">")
            if text == "," and depth == 0:
                parts.append((first, i))
                first = i + 1
        parts.append((first, end))
        return parts
