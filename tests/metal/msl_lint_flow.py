"""Rules of the lint for barriers: every thread of a group must reach them, or none.

What can be told from the text: conditions that mention a thread's own numbers, directly or by way
of local variables that were computed from them. What a function of ours returns counts as the same
for all threads, as a sum over the group is; the emulator finds out where that is wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from clang.cindex import CursorKind
from metal.msl_lint_kernels import Kernel
from metal.msl_lint_text import Finding
from metal.msl_lint_tree import Node, functions

# The same for a whole group are the group's position and all sizes.
OWN_ATTRIBUTES = {
    "thread_position_in_grid",
    "thread_position_in_threadgroup",
    "thread_index_in_threadgroup",
    "thread_index_in_simdgroup",
    "simdgroup_index_in_threadgroup",
}

_BARRIERS = {"threadgroup_barrier", "simdgroup_barrier"}
_LOOPS = {CursorKind.FOR_STMT, CursorKind.WHILE_STMT, CursorKind.DO_STMT}
_CHOICES = {CursorKind.IF_STMT, CursorKind.SWITCH_STMT, CursorKind.CONDITIONAL_OPERATOR}
_LEAVES = {CursorKind.BREAK_STMT, CursorKind.CONTINUE_STMT}
_ASSIGNMENTS = {CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR}


def check_barriers(tree: list[Node], kernels: list[Kernel]) -> Iterator[Finding]:
    """Barriers behind a return, or under a condition of a kernel's thread."""
    bodies = list(functions(tree))
    waiting = _waiting_functions(bodies)
    own = _own_names([one for one in bodies if one.name in waiting], kernels)
    for function in bodies:
        if function.name in waiting:
            last = max(one.place for one in function.walk() if _waits(one, waiting))
            for one in function.walk():
                if one.kind == CursorKind.RETURN_STMT and one.place < last:
                    yield Finding(one.line, f"{function.name}: return before a barrier")
            yield from _check_conditions(function, own[function.name], waiting)


def _waits(one: Node, waiting: set[str]) -> bool:
    return one.kind == CursorKind.CALL_EXPR and one.name in waiting


def _waiting_functions(bodies: list[Node]) -> set[str]:
    """Names of the functions that a barrier is in, or that call one of these."""
    calls = {
        body.name: {one.name for one in body.walk() if one.kind == CursorKind.CALL_EXPR}
        for body in bodies
    }
    waiting = set(_BARRIERS)
    while more := {name for name, called in calls.items() if called & waiting} - waiting:
        waiting |= more
    return waiting


def _own_names(bodies: list[Node], kernels: list[Kernel]) -> dict[str, set[str]]:
    """Of each function: parameters and local variables that differ between threads of a group.

    Starts from the attributes of kernels and follows assignments and arguments.
    """
    own: dict[str, set[str]] = {body.name: set() for body in bodies}
    for kernel in kernels:
        own[kernel.name] = {
            one.name
            for one in kernel.parameters
            if any(attribute.name in OWN_ATTRIBUTES for attribute in one.attributes)
        }
    set_to = [one for body in bodies for one in (*_assigned(body), *_passed(body, bodies))]
    while True:
        more = [one for one in set_to if _mentions(one.value, own[one.source])]
        if all(one.name in own[one.function] for one in more):
            return own
        for one in more:
            own[one.function].add(one.name)


@dataclass(frozen=True, slots=True)
class _SetTo:
    """A variable of a function and what it is set to, an expression of the function `source`."""

    function: str
    name: str
    value: Node
    source: str


def _passed(body: Node, bodies: list[Node]) -> Iterator[_SetTo]:
    """Parameters of the functions that this one calls."""
    parameters = {
        one.name: [child.name for child in one.children if child.kind == CursorKind.PARM_DECL]
        for one in bodies
    }
    for call in body.walk():
        if call.kind == CursorKind.CALL_EXPR and call.name in parameters:
            for name, value in zip(parameters[call.name], call.children[1:], strict=False):
                yield _SetTo(call.name, name, value, body.name)


def _assigned(function: Node) -> Iterator[_SetTo]:
    """Local variables, wherever they are set."""
    for one in function.walk():
        if one.kind == CursorKind.VAR_DECL:
            for child in one.children:
                yield _SetTo(function.name, one.name, child, function.name)
        elif one.kind in _ASSIGNMENTS:
            target, value = one.children
            if target.kind == CursorKind.DECL_REF_EXPR and _is_assignment(one, target, value):
                yield _SetTo(function.name, target.name, value, function.name)


def _is_assignment(one: Node, target: Node, value: Node) -> bool:
    """Whether a binary operator is `=`; clang.cindex does not say which it is."""
    if one.kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
        return True
    after, before = target.cursor.extent.end.offset, value.cursor.extent.start.offset
    return any(
        token.spelling == "=" and after <= token.location.offset < before
        for token in one.cursor.get_tokens()
    )


def _mentions(node: Node, names: set[str]) -> bool:
    """Whether a value depends on one of the names, calls left out."""
    if node.kind == CursorKind.CALL_EXPR and node.name not in ("min", "max", "abs", "select"):
        return False
    if node.kind == CursorKind.DECL_REF_EXPR and node.name in names:
        return True
    return any(_mentions(child, names) for child in node.children)


def _check_conditions(function: Node, own: set[str], waiting: set[str]) -> Iterator[Finding]:
    for one in function.walk():
        if one.kind not in _LOOPS | _CHOICES or not any(_waits(n, waiting) for n in one.walk()):
            continue
        if _mentions(_condition(one), own):
            message = "a barrier under a condition that differs between threads"
            yield Finding(one.line, f"{function.name}: {message}")
        elif one.kind in _LOOPS and (leave := _leaves_alone(one, own)) is not None:
            yield Finding(leave.line, f"{function.name}: a thread leaves a loop with barriers")


def _condition(one: Node) -> Node:
    """The condition of a choice or a loop."""
    if one.kind == CursorKind.DO_STMT:
        return one.children[-1]
    if one.kind == CursorKind.FOR_STMT:
        # Of the parts that are there, the one that compares; a step like `i = i + 1` comes after.
        head = one.children[:-1]
        operators = [child for child in head if child.kind == CursorKind.BINARY_OPERATOR]
        return operators[0] if operators else head[0]
    return one.children[0]


def _leaves_alone(loop: Node, own: set[str]) -> Node | None:
    """A break or continue of this loop under a condition of one thread."""
    for choice in loop.walk():
        if choice.kind == CursorKind.IF_STMT and _mentions(_condition(choice), own):
            for one in choice.walk():
                if one.kind in _LEAVES:
                    return one
    return None
