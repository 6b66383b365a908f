"""Metal source text for the lint: findings, tokens, and where an assembled line comes from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from unittest import mock

from torchgbdt.backends import metal_library


@dataclass(frozen=True, order=True)
class Finding:
    """What Metal, or a convention of csrc/metal, refuses.

    line : of the text, from 1.
    """

    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.line}: {self.message}"


@dataclass(frozen=True)
class Token:
    """A word, a number or a mark; comments, strings and white space are none."""

    text: str
    line: int

    @property
    def is_number(self) -> bool:
        return self.text[0].isdigit() or (self.text[0] == "." and len(self.text) > 1)


_TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\\\n)"
    r'|(?P<string>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|(?P<token>\.?\d(?:[eEpP][+-]|[\w.])*|\w+|::|->|.)",
    re.DOTALL,
)


@lru_cache(maxsize=1)  # several rules look at one text
def tokens(text: str) -> list[Token]:
    """All tokens; those of preprocessor lines, too."""
    found = []
    line = 1
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "token":
            found.append(Token(match["token"], line))
        line += match[0].count("\n")
    return found


def code_tokens(text: str) -> list[Token]:
    """Tokens without those of preprocessor lines."""
    directives = set()
    continues = False
    for number, line in enumerate(text.split("\n"), start=1):
        if continues or line.lstrip().startswith("#"):
            directives.add(number)
            continues = line.endswith("\\")
    return [token for token in tokens(text) if token.line not in directives]


@dataclass(frozen=True)
class Assembled:
    """A text as it is compiled, and the place that each of its lines comes from."""

    text: str
    places: list[str]

    def describe(self, finding: Finding) -> str:
        return f"{self.places[finding.line - 1]}: {finding.message}"


def assemble_with_places(file: str, constants: Mapping[str, int | str]) -> Assembled:
    """``metal_library.assemble``, whose lines are told apart by marks in what it reads."""
    read = metal_library._read

    def read_marked(path: str) -> str:
        # Preprocessor lines stay as they are, so that #include is found.
        lines = read(path).splitlines(keepends=True)
        numbered = enumerate(lines, start=1)
        return "".join(
            line if line.startswith("#") else f"\0{path}:{number}\0{line}"
            for number, line in numbered
        )

    with mock.patch.object(metal_library, "_read", read_marked):
        marked = metal_library.assemble(file, constants)
    places: list[str] = []
    path, number = "prelude", 0
    for line in marked.splitlines():
        found = re.match("\0(.*):(.*)\0", line)
        path, number = (found[1], int(found[2])) if found else (path, number + 1)
        places.append(f"{path}:{number}")
    return Assembled(re.sub("\0.*?\0", "", marked), places)
