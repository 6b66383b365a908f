"""Rules of the lint that need types: clang reads the text, as C++ for OpenCL."""

from collections.abc import Iterator

from clang.cindex import CursorKind, StorageClass, Type, TypeKind
from metal.address_spaces import GENERIC, NO_SPACE, THREAD, THREADGROUP, address_space
from metal.msl_lint_text import Finding
from metal.msl_lint_tokens import ADDRESS_SPACES
from metal.msl_lint_tree import FUNCTIONS, Node, functions

THREADGROUP_BYTES = 16 * 1024
"""Two groups then fit into a core."""

THREADGROUP_BYTES_OF_METAL = 32 * 1024

_VARIABLES = {CursorKind.VAR_DECL, CursorKind.PARM_DECL, CursorKind.FIELD_DECL}
_TYPE_NAMES = {CursorKind.TYPEDEF_DECL, CursorKind.TYPE_ALIAS_DECL}
_FREE_CASTS = {CursorKind.CSTYLE_CAST_EXPR, CursorKind.CXX_REINTERPRET_CAST_EXPR}
_CASTS = _FREE_CASTS | {CursorKind.CXX_STATIC_CAST_EXPR, CursorKind.CXX_CONST_CAST_EXPR}
_REFUSED = {
    CursorKind.LAMBDA_EXPR: "lambdas are not in Metal before version 3.2",
    CursorKind.CXX_BASE_SPECIFIER: "inheritance is not in Metal",
}
_REFERENCES = {TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE}
_ARRAYS = {TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY, TypeKind.DEPENDENTSIZEDARRAY}


def check_types(tree: list[Node]) -> Iterator[Finding]:
    """All rules of this file."""
    for outermost in tree:
        for one in outermost.walk():
            for message in _wrong_with(one):
                yield Finding(one.line, message)
    for function in functions(tree):
        yield from _check_threadgroup_bytes(function)


def _wrong_with(one: Node) -> Iterator[str]:
    if one.kind in _REFUSED:
        yield _REFUSED[one.kind]
    elif one.kind in _VARIABLES | _TYPE_NAMES | FUNCTIONS:
        if _lacks_address_space(_declared_type(one)) or _is_bare_array(one):
            yield f"{one.name}: pointer or reference without address space"
        if one.kind == CursorKind.VAR_DECL and one.cursor.storage_class == StorageClass.STATIC:
            yield f"{one.name}: static variables are not in Metal"
    elif one.kind in _CASTS:
        if _lacks_address_space(one.type):
            yield "cast to a pointer or reference without address space"
        if one.kind in _FREE_CASTS and _hides_address_space(one):
            yield "a cast between a pointer and a number hides its address space"
    elif one.kind == CursorKind.UNEXPOSED_EXPR and _reads_atomic(one):
        yield "an atomic is read by atomic_load_explicit only"
    elif one.kind == CursorKind.MEMBER_REF_EXPR and _is_method_elsewhere(one):
        yield f"{one.name}: methods are for thread objects; copy the object first"


def _declared_type(one: Node) -> Type:
    if one.kind in FUNCTIONS:
        return one.cursor.result_type
    return one.cursor.underlying_typedef_type if one.kind in _TYPE_NAMES else one.type


def _lacks_address_space(declared: Type) -> bool:
    """Whether a pointer at any depth points nowhere in particular."""
    while declared.kind in _REFERENCES | {TypeKind.POINTER}:
        declared = declared.get_pointee()
        if address_space(declared) in (NO_SPACE, GENERIC):
            return True
    return False


def _is_bare_array(parameter: Node) -> bool:
    """Whether it is a pointer written as an array; clang takes the space of the pointer itself."""
    if parameter.kind != CursorKind.PARM_DECL or parameter.type.kind not in _ARRAYS:
        return False
    words = {token.spelling for token in parameter.cursor.get_tokens()}
    return not words & ADDRESS_SPACES


def _hides_address_space(cast: Node) -> bool:
    """Clang sees to address spaces, unless a pointer becomes a number in between."""
    operands = [child for child in cast.children if child.kind.is_expression()]
    return any(_is_pointer(one.type) != _is_pointer(cast.type) for one in operands)


def _is_pointer(one: Type) -> bool:
    return one.get_canonical().kind in _ARRAYS | {TypeKind.POINTER}


def _reads_atomic(conversion: Node) -> bool:
    """Clang refuses only the writing."""
    found = conversion.type.get_canonical().kind
    return found not in (TypeKind.ATOMIC, TypeKind.POINTER) and any(
        child.type.get_canonical().kind == TypeKind.ATOMIC for child in conversion.children
    )


def _is_method_elsewhere(member: Node) -> bool:
    """Clang lets `this` point anywhere; Metal's points to thread, unless the method says more."""
    method = member.cursor.referenced
    if method is None or method.kind != CursorKind.CXX_METHOD or method.is_static_method():
        return False
    return any(
        _space_of_object(child) not in (NO_SPACE, THREAD, GENERIC)
        for child in member.children
        if child.kind.is_expression()
    )


def _space_of_object(one: Node) -> int:
    """Where an object lies, or what a pointer points to, before conversions."""
    while one.kind == CursorKind.UNEXPOSED_EXPR and one.children:
        one = one.children[0]
    found = one.type.get_canonical()
    return address_space(found.get_pointee() if found.kind == TypeKind.POINTER else found)


def _check_threadgroup_bytes(function: Node) -> Iterator[Finding]:
    total = 0
    for one in function.walk():
        if one.kind == CursorKind.VAR_DECL and address_space(one.type) == THREADGROUP:
            total += max(one.type.get_size(), 0)
    if total > THREADGROUP_BYTES_OF_METAL:
        limit = f"Metal has {THREADGROUP_BYTES_OF_METAL}"
    elif total > THREADGROUP_BYTES:
        limit = f"{THREADGROUP_BYTES} let two groups share a core"
    else:
        return
    yield Finding(function.line, f"{function.name}: {total} bytes of threadgroup memory; {limit}")
