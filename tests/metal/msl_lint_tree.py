"""Clang's tree of a text, read once: asking clang again for each rule took most of the time."""

from collections.abc import Iterator
from dataclasses import dataclass

from clang.cindex import Cursor, CursorKind, TranslationUnit, Type
from metal.address_spaces import FILE

FUNCTIONS = {CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD, CursorKind.FUNCTION_TEMPLATE}


@dataclass(frozen=True, slots=True)
class Node:
    """A cursor of clang.cindex and what lies below it."""

    cursor: Cursor
    kind: CursorKind
    children: list["Node"]

    @property
    def name(self) -> str:
        return str(self.cursor.spelling)

    @property
    def type(self) -> Type:
        return self.cursor.type

    @property
    def place(self) -> tuple[int, int]:
        """Line and column."""
        return self.cursor.location.line, self.cursor.location.column

    @property
    def line(self) -> int:
        return self.place[0]

    def walk(self) -> Iterator["Node"]:
        """This node and all below, in the order of the text."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


def read_tree(unit: TranslationUnit) -> list[Node]:
    """What the text itself declares at its outermost level."""
    return [
        _node(one)
        for one in unit.cursor.get_children()
        if one.location.file is not None and one.location.file.name == FILE
    ]


def functions(tree: list[Node]) -> Iterator[Node]:
    """Functions of the text that have bodies, wherever they are declared."""
    for outermost in tree:
        for one in outermost.walk():
            if one.kind in FUNCTIONS and one.cursor.is_definition():
                yield one


def _node(cursor: Cursor) -> Node:
    return Node(cursor, cursor.kind, [_node(child) for child in cursor.get_children()])
