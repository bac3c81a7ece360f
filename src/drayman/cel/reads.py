"""Which parts of a device an expression can look at.

Two devices that agree on these give the same result, so the answer has to cover every access; where a key is computed or a whole map is
used, it names the whole domain or everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from drayman.cel import ast

QualifiedKey = tuple[str, str]  # domain, name


@dataclass(frozen=True, slots=True)
class Group:
    """Reads of attributes, or of capacities."""

    keys: frozenset[QualifiedKey] = frozenset()
    domains: frozenset[str] = frozenset()  # read as a whole
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Reads:
    driver: bool = False
    allow_multiple_allocations: bool = False
    attributes: Group = Group()
    capacity: Group = Group()


_COMPUTED = object()  # a key that is not known before run time
_Path = tuple[object, ...]


def reads_of(checked: ast.Checked, variable: str = "device") -> Reads:
    """What an expression reads of the variable. Needs `room_for_recursion`."""
    collector = _Collector()
    collector.visit(checked.expr, {variable: ()})
    return collector.reads()


@dataclass(slots=True)
class _Keys:
    keys: set[QualifiedKey] = field(default_factory=set)
    domains: set[str] = field(default_factory=set)
    everything: bool = False

    def group(self) -> Group:
        if self.everything:
            return Group(everything=True)
        keys = {key for key in self.keys if key[0] not in self.domains}
        return Group(frozenset(keys), frozenset(self.domains))


class _Collector:
    def __init__(self) -> None:
        self._fields: set[str] = set()
        self._groups = {"attributes": _Keys(), "capacity": _Keys()}

    def reads(self) -> Reads:
        return Reads(
            "driver" in self._fields,
            "allowMultipleAllocations" in self._fields,
            self._groups["attributes"].group(),
            self._groups["capacity"].group(),
        )

    def visit(self, expr: ast.Expr, paths: dict[str, _Path]) -> None:
        """Records what an expression reads, given the variables that stand for parts of the device."""
        path = self._path(expr, paths)
        if path is not None:
            self._record(path)
            return
        match expr:
            case ast.Call(function="@in", args=(ast.Literal(value=key), container)):
                path = self._path(container, paths)
                if path is not None:
                    self._record((*path, key))
                    return
            case ast.Comprehension():
                self._comprehension(expr, paths)
                return
        for child in ast.children(expr):
            self.visit(child, paths)

    def _comprehension(self, expr: ast.Comprehension, paths: dict[str, _Path]) -> None:
        self.visit(expr.iter_range, paths)
        bound = self._path(expr.accu_init, paths) if not _iterates(expr) else None
        if bound is None:
            self.visit(expr.accu_init, paths)
        inside = dict(paths)
        for name in (expr.accu_var, expr.iter_var, expr.iter_var2):
            inside.pop(name, None)
        with_accu = {name: path for name, path in paths.items() if name != expr.accu_var}
        if bound is not None:
            with_accu[expr.accu_var] = bound
            self.visit(expr.result, with_accu)
            return
        self.visit(expr.loop_condition, inside)
        self.visit(expr.loop_step, inside)
        self.visit(expr.result, with_accu)

    def _path(self, expr: ast.Expr, paths: dict[str, _Path]) -> _Path | None:
        """The keys from the device to an expression, if it is such a path; reads within computed keys are recorded."""
        match expr:
            case ast.Ident(name=name):
                return paths.get(name)
            case ast.Select(operand=operand, field=key):
                path = self._path(operand, paths)
                return None if path is None else (*path, key)
            case ast.Call(function="_[_]" | "_[?_]" | "_?._", args=(operand, index)):
                path = self._path(operand, paths)
                if path is None:
                    return None
                if isinstance(index, ast.Literal):
                    return (*path, index.value)
                self.visit(index, paths)
                return (*path, _COMPUTED)
        return None

    def _record(self, path: _Path) -> None:
        match path:
            case ():
                self._fields |= {"driver", "allowMultipleAllocations"}
                for group in self._groups.values():
                    group.everything = True
            case ("attributes" | "capacity" as kind, str(domain), str(name), *_):
                self._groups[kind].keys.add((domain, name))
            case ("attributes" | "capacity" as kind, str(domain), *_):
                self._groups[kind].domains.add(domain)
            case ("attributes" | "capacity" as kind, *_):
                self._groups[kind].everything = True
            case (str(name), *_):
                self._fields.add(name)


def _iterates(expr: ast.Comprehension) -> bool:
    """Whether a comprehension loops; `cel.bind` is one over nothing."""
    return not (isinstance(expr.iter_range, ast.ListExpr) and not expr.iter_range.elements)
