"""Macros: calls that the parser replaces with other syntax.

An expander gets the call before anything is checked, and builds its replacement through a `MacroContext`, which numbers new
nodes and gives them the position of the call. It returns None to leave the call as it is, and raises `MacroError` to refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from drayman.cel import ast


class MacroError(Exception):
    """The arguments of a macro are not what it needs. `at` is the node that is wrong."""

    def __init__(self, message: str, at: ast.Expr) -> None:
        super().__init__(message)
        self.at = at


class MacroContext(Protocol):
    """Builds the nodes that a macro expands to."""

    def new_id(self) -> int:
        """A fresh node id at the position of the macro call."""

    def copy(self, expr: ast.Expr) -> ast.Expr:
        """The expression with fresh ids at the same positions: a node must not appear twice in a tree."""


Expander: TypeAlias = Callable[[MacroContext, ast.Expr | None, Sequence[ast.Expr]], ast.Expr | None]


class Macro(Struct, frozen=True):
    name: str
    arity: int
    member: bool
    expand: Expander


def call(context: MacroContext, function: str, *args: ast.Expr) -> ast.Call:
    return ast.Call(context.new_id(), function, None, args)


def member_call(
    context: MacroContext, target: ast.Expr, function: str, *args: ast.Expr
) -> ast.Call:
    return ast.Call(context.new_id(), function, target, args)


def literal(context: MacroContext, value: object) -> ast.Literal:
    return ast.Literal(context.new_id(), value)


def ident(context: MacroContext, name: str) -> ast.Ident:
    return ast.Ident(context.new_id(), name)
