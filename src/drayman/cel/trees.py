"""Numbers, positions and heights of the nodes of a tree under construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from drayman.cel import ast


@dataclass(slots=True)
class TreeBuilder:
    """Hands out node ids. The height of a node is the largest number of counted nodes on a path down from it."""

    offsets: dict[int, int] = field(default_factory=dict)
    _heights: dict[int, int] = field(default_factory=dict)

    def new_id(self, offset: int) -> int:
        node_id = len(self.offsets) + 1
        self.offsets[node_id] = offset
        return node_id

    def height(self, expr: ast.Expr) -> int:
        return self._heights.get(expr.id, 0)

    def set_height(
        self, expr: ast.Expr, parts: Sequence[ast.Expr], *, counted: bool = False
    ) -> None:
        height = max((self.height(part) for part in parts), default=0)
        self._heights[expr.id] = height + counted

    def context(self, call_id: int) -> ExpansionContext:
        return ExpansionContext(self, self.offsets[call_id])


@dataclass(frozen=True, slots=True)
class ExpansionContext:
    """Builds what a macro call expands to: new nodes are where the call is."""

    builder: TreeBuilder
    offset: int

    def new_id(self) -> int:
        return self.builder.new_id(self.offset)

    def copy(self, expr: ast.Expr) -> ast.Expr:
        """The expression with new ids at the old positions."""
        node_id = self.builder.new_id(self.builder.offsets[expr.id])
        match expr:
            case ast.Literal() | ast.Ident():
                return replace(expr, id=node_id)
            case ast.Select():
                return replace(expr, id=node_id, operand=self.copy(expr.operand))
            case ast.Call():
                target = None if expr.target is None else self.copy(expr.target)
                return replace(expr, id=node_id, target=target, args=self._copies(expr.args))
            case ast.ListExpr():
                return replace(expr, id=node_id, elements=self._copies(expr.elements))
            case ast.MapExpr():
                entries = tuple(
                    replace(
                        entry,
                        id=self.new_id(),
                        key=self.copy(entry.key),
                        value=self.copy(entry.value),
                    )
                    for entry in expr.entries
                )
                return replace(expr, id=node_id, entries=entries)
            case ast.StructExpr():
                fields = tuple(
                    replace(entry, id=self.new_id(), value=self.copy(entry.value))
                    for entry in expr.fields
                )
                return replace(expr, id=node_id, fields=fields)
            case ast.Comprehension():
                return replace(
                    expr,
                    id=node_id,
                    iter_range=self.copy(expr.iter_range),
                    accu_init=self.copy(expr.accu_init),
                    loop_condition=self.copy(expr.loop_condition),
                    loop_step=self.copy(expr.loop_step),
                    result=self.copy(expr.result),
                )

    def _copies(self, exprs: Sequence[ast.Expr]) -> tuple[ast.Expr, ...]:
        return tuple([self.copy(expr) for expr in exprs])
