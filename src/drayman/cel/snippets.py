"""Pieces of Python source with what is known about their values, and comparisons written without a call."""

from __future__ import annotations

from msgspec import Struct

from drayman.cel import ast
from drayman.cel.values import MapValue

_EXACT_DOUBLE = 2**53  # integers up to here compare with doubles as Python compares them


class Unsupported(Exception):
    """The tree has something that is left to the interpreter."""


class Code(Struct, frozen=True):
    """An expression in Python. `of` is the class of its value where that is certain."""

    text: str
    of: type | None = None
    constant: object = Unsupported  # the value itself, if it is known

    @property
    def is_constant(self) -> bool:
        return self.constant is not Unsupported


def is_map(code: Code) -> bool:
    return code.of is not None and issubclass(code.of, MapValue)


def mentions(expr: ast.Expr, name: str) -> bool:
    """Whether a variable is read; comprehensions inside may have one of the same name."""
    pending = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Ident) and node.name == name:
            return True
        if isinstance(node, ast.Comprehension) and node.accu_var == name:
            pending += (node.iter_range, node.accu_init)
        else:
            pending.extend(ast.children(node))
    return False


def direct_equality(left: Code, right: Code, name: str) -> str | None:
    """`==` without a call, where one side is known to be a string, a bool or a small integer."""
    if left.of is str:
        return f"({left.text} == {right.text})"
    if right.of is str and left.of is not None:
        return None
    if right.of is str:
        test = f"({name} := {left.text}) == {right.text}"
    elif (
        right.of is int and isinstance(right.constant, int) and abs(right.constant) < _EXACT_DOUBLE
    ):
        if left.of is int:
            return f"({left.text} == {right.text})"
        test = f"(({name} := {left.text}) == {right.text} and {name}.__class__ is not bool)"
    elif right.of is bool:
        if left.of is bool:
            return f"({left.text} is {right.text})"
        test = f"({name} := {left.text}) is {right.text}"
    else:
        return None
    return f"({test} or (is_opaque({name}) and bail()))"


def ordering(operator: str, left: Code, right: Code, name: str) -> str:
    if left.of is right.of and left.of in (int, str):
        return f"({left.text} {operator} {right.text})"
    if left.of is None and right.of in (int, str) and right.is_constant:
        kind = right.of.__name__
        check = f"({name} := {left.text}).__class__ is {kind}"
        direct = f"{name} {operator} {right.text}"
        return f"({direct} if {check} else ordered({name}, {right.text}) {operator} 0)"
    return f"(ordered({left.text}, {right.text}) {operator} 0)"
