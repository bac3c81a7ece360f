"""Counts the work of code, place by place, so that growth can be compared without a clock.

Modules of a package are compiled with counters: one for each function, loop, comprehension and operation that may look at many items at
once. Whatever the interpreter does inside one operation counts by its size: `x in items` by the items looked at, a copy, a slice or a
joined text by its length, encoding and comparison by the values inside. An operation that takes the same time whatever the size of its
operands counts once or not at all.

The compiled code increments the counters itself. They exist only in a process that called `meter_package` before it imported the package.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final, TypeGuard

import msgspec

MARK: Final = "__work__"
_VIEWS: Final = (type({}.keys()), type({}.values()), type({}.items()))
_SEQUENCES: Final = frozenset({list, tuple, str, bytes, bytearray, deque})
_SETS: Final = frozenset({set, frozenset, *_VIEWS})
_SIZED: Final = _SEQUENCES | _SETS | {dict, Counter}
_TEXTS: Final = frozenset({str, bytes})
_MAKERS: Final = frozenset(
    {list, tuple, set, frozenset, dict, str, bytes, bytearray, deque, Counter}
)
_NEVER_WRAPPED: Final = frozenset(
    "super locals globals vars eval exec isinstance issubclass len type cast getattr setattr hasattr id callable iter "
    "next enumerate zip range map filter reversed abs bool int float object hash chr ord round heappush heappop heapreplace "
    "bisect_left bisect_right insort".split()
)
_CONSTANT_TIME: Final = frozenset(
    "append add get setdefault items keys values startswith endswith discard popleft appendleft isdigit isascii "
    "isidentifier isprintable isalnum isalpha send cancel done result set_result heappush heappop heapreplace bisect_left "
    "bisect_right insort".split()
)
_AT_A_PLACE: Final = frozenset({"insert", "pop", "remove", "index"})
_ALL_OF_A_LIST: Final = frozenset({"copy", "reverse", "sort", "count", "clear"})
_MATCHES: Final = frozenset({"match", "search", "fullmatch"})
_SEARCHES: Final = frozenset({"find", "rfind", "index", "rindex"})
_INSIDE: Final = frozenset(
    "encode decode encode_into encode_lines convert to_builtins dumps deepcopy repr format".split()
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where work is done."""

    module: str
    line: int
    function: str
    what: str

    @property
    def name(self) -> str:
        return f"{self.module}.{self.function}"

    def __str__(self) -> str:
        return f"{self.module}:{self.line} in {self.function} ({self.what})"


@dataclass(slots=True)
class Meter:
    """The counters of all metered modules."""

    work: list[int] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    def place(self, module: str, line: int, function: str, what: str) -> int:
        self.places.append(Place(module, line, function, what))
        self.work.append(0)
        return len(self.work) - 1

    def reset(self) -> None:
        self.work[:] = [0] * len(self.work)

    def counts(self) -> dict[int, int]:
        """What was counted since the last reset, by the number of the place."""
        return {number: count for number, count in enumerate(self.work) if count}

    def helpers(self) -> dict[str, Any]:
        """The names that compiled modules use."""
        return {
            MARK: self.work,
            "__work_call__": self.call,
            "__work_in__": self.contains,
            "__work_same__": self.same,
            "__work_op__": self.operate,
            "__work_made__": self.made,
            "__work_each__": self.each,
            "__work_lazy__": self.lazy,
            "__work_aug__": self.augmented,
        }

    def each(self, place: int, items: Iterable[Any]) -> Iterable[Any]:
        """What a comprehension goes through, all of it."""
        if type(items) in _SIZED:
            self.work[place] += len(items)  # type: ignore[arg-type]
            return items
        return self.lazy(place, items)

    def lazy(self, place: int, items: Iterable[Any]) -> Iterator[Any]:
        """What a generator goes through, as far as it is asked to."""
        work = self.work
        for item in items:
            work[place] += 1
            yield item

    def made(self, place: int, value: Any) -> Any:
        """A value that was just made: a slice, a text, a list of unpacked ones."""
        if type(value) in _SIZED:
            self.work[place] += len(value)
        return value

    def contains(self, place: int, item: Any, items: Any) -> bool:
        kind = type(items)
        if kind is list or kind is tuple or kind is deque:
            try:
                self.work[place] += items.index(item) + 1
            except ValueError:
                self.work[place] += len(items)
                return False
            return True
        if kind in _TEXTS or kind is _VIEWS[1]:
            self.work[place] += len(items)
        return item in items

    def same(self, place: int, left: Any, right: Any) -> bool:
        answer = left == right
        if answer is True and type(left) in _SIZED and left is not right:
            self.work[place] += inside(left)
        else:
            self.work[place] += 1
        return answer

    def operate(self, place: int, operator: str, left: Any, right: Any) -> Any:
        kind = type(left)
        if operator == "+":
            value = left + right
            if kind in _SEQUENCES:
                self.work[place] += len(value)
            return value
        if kind in _SETS or kind is dict:
            self.work[place] += len(left)
            if operator == "|" and type(right) in _SIZED:
                self.work[place] += len(right)
        return _OPERATORS[operator](left, right)

    def augmented(self, place: int, value: Any, by: Any) -> None:
        """A value after it was added to in place. Texts and lists grow where they are; tuples and frozen sets are copied."""
        kind = type(value)
        if kind is tuple or kind is frozenset:
            self.work[place] += len(value)
        elif type(by) in _SIZED and kind in _SIZED:
            self.work[place] += len(by)

    def call(self, place: int, function: Any, /, *arguments: Any, **named: Any) -> Any:
        kind = type(function)
        if kind is FunctionType:
            if MARK in function.__globals__:
                return function(*arguments, **named)
        elif kind is MethodType:
            under = function.__func__
            if type(under) is not FunctionType or MARK in under.__globals__:
                return function(*arguments, **named)
        elif kind is not BuiltinFunctionType and not (kind is type and function in _MAKERS):
            return function(*arguments, **named)
        return self._opaque(place, function, arguments, named)

    def _opaque(
        self, place: int, function: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Any:
        """Call something that does not count by itself."""
        owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        measure = inside if name in _INSIDE else size
        if isinstance(owner, list) and name in _AT_A_PLACE:
            self.work[place] += _behind(owner, name, arguments)
            return function(*arguments, **named)
        work = 1
        if isinstance(owner, dict) and name == "pop":  # whatever the key, its hash is known
            self.work[place] += work
            return function(*arguments, **named)
        for argument in arguments:
            if type(argument) in _SIZED:
                work += measure(argument)
        if isinstance(owner, list | deque | dict) and name in _ALL_OF_A_LIST:
            work += len(owner)
        value = function(*arguments, **named)
        if isinstance(owner, str | bytes):
            work += _searched(owner, name, arguments, value)
        elif name in _MATCHES:
            work = 1 if value is None else value.end() - value.start() + 1
        elif type(value) in _TEXTS:
            work += len(value)
        self.work[place] += work
        return value


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "|": lambda left, right: left | right,
    "&": lambda left, right: left & right,
    "-": lambda left, right: left - right,
    "^": lambda left, right: left ^ right,
}
_NAMES: Final[Mapping[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.BitOr: "|",
    ast.BitAnd: "&",
    ast.Sub: "-",
    ast.BitXor: "^",
}


def size(value: Any) -> int:
    return len(value)


def inside(value: Any) -> int:
    """How many values there are in a value, at any depth; for texts, how long they are."""
    kind = type(value)
    if kind in _TEXTS:
        return len(value) + 1
    if kind is dict:
        return 1 + sum(inside(item) for item in value.values())
    if kind in _SIZED:
        return 1 + sum(inside(item) for item in value)
    if isinstance(value, msgspec.Struct):
        return 1 + sum(inside(getattr(value, name)) for name in value.__struct_fields__)
    return 1


def _behind(items: list[Any], name: str, arguments: tuple[Any, ...]) -> int:
    """How many items are looked at or moved."""
    if name in ("remove", "index"):
        return items.index(arguments[0]) + 1 if arguments[0] in items else len(items)
    index = arguments[0] if arguments else -1
    return 1 + (len(items) - index if index >= 0 else -index)


def _searched(text: str | bytes, name: str, arguments: tuple[Any, ...], value: Any) -> int:
    """How many characters a method of a text looks at or makes."""
    if name == "join":
        return len(value)
    if name in _SEARCHES:
        start = arguments[1] if len(arguments) > 1 else 0
        return (value if value >= 0 else len(text)) - start + 1
    return len(text) + (len(value) if type(value) in _TEXTS else 0)


_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS: Final = (*_FUNCTIONS, ast.ClassDef)


def _is_import_from(statement: ast.stmt, package: str) -> TypeGuard[ast.ImportFrom]:
    return isinstance(statement, ast.ImportFrom) and (
        (statement.module or "").partition(".")[0] == package
    )


class _Counting(ast.NodeTransformer):
    """Puts the counters into the functions of a module."""

    def __init__(self, meter: Meter, module: str) -> None:
        self._meter = meter
        self._module = module
        self._functions: list[str] = []
        self._known: set[str] = set(_NEVER_WRAPPED)
        """Functions and classes that count by themselves, and those that take the same time whatever they are given."""
        self._methods: set[str] = set()

    def _place(self, node: ast.AST, what: str) -> ast.Constant:
        function = ".".join(self._functions)
        line = getattr(node, "lineno", 0)
        return ast.Constant(self._meter.place(self._module, line, function, what))

    def _helped(self, name: str, node: ast.AST, what: str, *values: ast.expr) -> ast.expr:
        function = ast.Name(f"__work_{name}__", ast.Load())
        return ast.Call(function, [self._place(node, what), *values], [])

    def _counted(self, node: ast.AST, what: str) -> ast.stmt:
        target = ast.Subscript(ast.Name(MARK, ast.Load()), self._place(node, what), ast.Store())
        return ast.AugAssign(target, ast.Add(), ast.Constant(1))

    # Definitions. What stands outside of functions runs once, and annotations are read as text.

    def visit_FunctionDef(self, node: Any) -> ast.AST:
        outside = self._functions
        self._functions = [*outside, node.name]
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        body = [self._counted(node, "calls"), *self._all(node.body[start:])]
        node.body = [*node.body[:start], *body]
        self._functions = outside
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outside = self._functions
        self._functions = [*outside, node.name]
        for index, statement in enumerate(node.body):
            if isinstance(statement, _DEFINITIONS):
                node.body[index] = self.visit(statement)
        self._functions = outside
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        outside = self._functions
        self._functions = [*outside, "<lambda>"]
        node.body = self.visit(node.body)
        self._functions = outside
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_Module(self, node: ast.Module) -> ast.AST:
        package = self._module.partition(".")[0]
        for statement in node.body:
            if isinstance(statement, _DEFINITIONS):
                self._known.add(statement.name)
            if _is_import_from(statement, package):
                self._known |= {name.asname or name.name for name in statement.names}
            if isinstance(statement, ast.ClassDef):
                self._methods |= {one.name for one in statement.body if isinstance(one, _FUNCTIONS)}
        node.body = self._all(node.body)
        return node

    def _all(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            seen = self.visit(statement)
            found += seen if isinstance(seen, list) else [seen]
        return found

    @property
    def _is_inside(self) -> bool:
        return bool(self._functions)

    # Loops.

    def visit_For(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        if self._is_inside:
            node.body.insert(0, self._counted(node, "rounds of a loop"))
        return node

    visit_AsyncFor = visit_For
    visit_While = visit_For

    def _comprehension(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        for generator in node.generators:
            if self._is_inside and not generator.is_async:
                name = "lazy" if isinstance(node, ast.GeneratorExp) else "each"
                generator.iter = self._helped(name, node, "items", generator.iter)
        return node

    visit_ListComp = _comprehension
    visit_SetComp = _comprehension
    visit_DictComp = _comprehension
    visit_GeneratorExp = _comprehension

    # Operations.

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not self._is_inside:
            return node
        function = node.func
        if isinstance(function, ast.Name) and function.id in self._known:
            return node
        if isinstance(function, ast.Attribute) and (
            function.attr in _CONSTANT_TIME or self._is_own_method(function)
        ):
            return node
        called = self._helped("call", node, "work in a call", function, *node.args)
        assert isinstance(called, ast.Call)
        called.keywords = node.keywords
        return called

    def _is_own_method(self, function: ast.Attribute) -> bool:
        owner = function.value
        return isinstance(owner, ast.Name) and owner.id == "self" and function.attr in self._methods

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if not self._is_inside or len(node.ops) != 1:
            return node
        operator, left, right = node.ops[0], node.left, node.comparators[0]
        if isinstance(operator, ast.In | ast.NotIn) and not isinstance(right, ast.Set | ast.Tuple):
            found = self._helped("in", node, "items looked at for one", left, right)
            return found if isinstance(operator, ast.In) else ast.UnaryOp(ast.Not(), found)
        is_plain = isinstance(left, ast.Constant) or isinstance(right, ast.Constant)
        if isinstance(operator, ast.Eq | ast.NotEq) and not is_plain:
            found = self._helped("same", node, "values compared", left, right)
            return found if isinstance(operator, ast.Eq) else ast.UnaryOp(ast.Not(), found)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = _NAMES.get(type(node.op))
        numbers = [
            isinstance(side, ast.Constant) and isinstance(side.value, int | float)
            for side in (node.left, node.right)
        ]
        if not self._is_inside or name is None or any(numbers):
            return node
        operator = ast.Constant(name)
        return self._helped("op", node, "items copied", operator, node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if (
            not self._is_inside
            or not isinstance(node.target, ast.Name)
            or isinstance(node.value, ast.Constant | ast.Await | ast.Yield)
            or type(node.op) not in _NAMES
        ):
            return node
        by = "__work_by__"
        name = node.target.id
        taken = ast.Assign([ast.Name(by, ast.Store())], node.value)
        node.value = ast.Name(by, ast.Load())
        loaded = (ast.Name(name, ast.Load()), ast.Name(by, ast.Load()))
        after = ast.Expr(self._helped("aug", node, "items added", *loaded))
        return [taken, node, after]

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if self._is_inside and isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load):
            return self._helped("made", node, "items of a slice", node)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        if not self._is_inside:
            return node
        return self._helped("made", node, "characters of a text", node)

    def _display(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        if not self._is_inside or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return node
        if isinstance(node, ast.Dict):
            is_copy = None in node.keys
        else:
            is_copy = any(isinstance(item, ast.Starred) for item in node.elts)
        return self._helped("made", node, "items copied", node) if is_copy else node

    visit_List = _display
    visit_Tuple = _display
    visit_Set = _display
    visit_Dict = _display

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        node.body = self._all(node.body)
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            if isinstance(value, list):
                found: list[Any] = []
                for item in value:
                    seen = self.visit(item) if isinstance(item, ast.AST) else item
                    found += seen if isinstance(seen, list) else [seen]
                value[:] = found
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node


def compiled(meter: Meter, source: str, module: str, filename: str) -> Any:
    """The code of a module, with counters."""
    tree = _Counting(meter, module).visit(ast.parse(source, filename))
    return compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True)


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, meter: Meter, name: str, path: str) -> None:
        super().__init__(name, path)
        self._meter = meter

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        source = importlib.util.decode_source(self.get_data(path))
        return compiled(self._meter, source, fullname, path)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(self._meter.helpers())
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, meter: Meter, package: str) -> None:
        self._meter = meter
        self._package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._package and not fullname.startswith(f"{self._package}."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return spec
        spec.loader = _Loader(self._meter, fullname, spec.loader.path)
        return spec


def meter_package(package: str) -> Meter:
    """Count the work of a package from here on. None of it may have been imported."""
    if any(name == package or name.startswith(f"{package}.") for name in sys.modules):
        raise RuntimeError(f"{package} is imported already")
    meter = Meter()
    sys.meta_path.insert(0, _Finder(meter, package))
    return meter
