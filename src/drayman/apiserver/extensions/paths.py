"""Paths in definitions: those of rules and selectable fields, and the JSONPath of printer columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.extensions.schemas import Schema, additional, properties

_TOKEN: Final = re.compile(r"'(?:\\.|[^'\\])*'|[.\[\]]|[^.\[\]']+")
_STEP: Final = re.compile(
    r"""\.\.?(?P<name>(?:\\.|[^.\[\]{}\s])+)|\[(?P<bracket>(?:'[^']*'|"[^"]*"|[^\]'"])*)\]"""
)
_FILTER: Final = re.compile(
    r"""\?\(\s*@(?P<path>[^=!<>]*?)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<value>.+?))?\s*\)"""
)
_OPERATORS: Final[dict[str, Callable[[float], bool]]] = {
    "<": lambda order: order < 0,
    ">": lambda order: order > 0,
    "<=": lambda order: order <= 0,
    ">=": lambda order: order >= 0,
}

Step = Callable[[Json], Iterator[Json]]


class FieldPathError(Exception):
    """A path leads nowhere; the message says why."""


class JsonPathError(Exception):
    """A text is not a JSONPath."""


def valid_field_path(
    path: str, schema: Schema, *, allow_brackets: bool = True
) -> tuple[str, Schema | None]:
    """A path as written in errors, and the schema of what it leads to. Raises FieldPathError."""
    tokens = iter(_tokens(path))
    shown, current = "", schema
    for token in tokens:
        if token == "[":
            if not allow_brackets:
                raise FieldPathError("array notation is not allowed")
            name = _quoted(_next(tokens))
            shown, current = _descend(shown, current, name)
            closing = _next(tokens)
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
        elif token == ".":
            shown, current = _descend(shown, current, _next(tokens))
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
    return shown, current


def _tokens(path: str) -> list[str]:
    return _TOKEN.findall(path)


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise FieldPathError("unexpected end of JSON path")
    return token


def _quoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")
    return re.sub(r"\\(.)", r"\1", token[1:-1])


def _descend(shown: str, schema: Schema, name: str) -> tuple[str, Schema]:
    declared, others = properties(schema), additional(schema)
    if declared:
        if name not in declared:
            raise FieldPathError("does not refer to a valid field")
        return (f"{shown}.{name}" if shown else name), declared[name]
    if others is None:
        raise FieldPathError("does not refer to a valid field")
    return f"{shown}[{name}]", others


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path to any number of values. Missing members on the way are not an error."""

    steps: tuple[Step, ...]

    def find(self, value: Json) -> list[Json]:
        found = [value]
        for step in self.steps:
            found = [result for one in found for result in step(one)]
        return found


def parse_json_path(text: str) -> JsonPath:
    """A JSONPath in the dialect of kubectl, without the braces. Raises JsonPathError."""
    if text in (".", ""):
        return JsonPath(())
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise JsonPathError(f"cannot understand {text[position:]!r}")
        if match["name"] is not None:
            deep = match[0].startswith("..")
            steps.append(_name_step(re.sub(r"\\(.)", r"\1", match["name"]), deep=deep))
        else:
            steps.append(_bracket_step(match["bracket"].strip()))
        position = match.end()
    return JsonPath(tuple(steps))


def _name_step(name: str, *, deep: bool = False) -> Step:
    if deep:
        inner = _name_step(name)
        return lambda value: (found for one in _everything(value) for found in inner(one))
    if name == "*":
        return _children

    def step(value: Json) -> Iterator[Json]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _children(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _everything(value: Json) -> Iterator[Json]:
    yield value
    for inner in _children(value):
        yield from _everything(inner)


def _bracket_step(text: str) -> Step:
    if text == "*":
        return _children
    if text[:1] in ("'", '"'):
        return _name_step(text[1:-1])
    if text.startswith("?"):
        return _filter_step(text)
    if re.fullmatch(r"-?\d+", text):
        return _slice_step(slice(int(text), int(text) + 1 or None))
    if re.fullmatch(r"(-?\d*):(-?\d*)(?::(-?\d*))?", text):
        return _slice_step(slice(*(int(part) if part else None for part in text.split(":"))))
    raise JsonPathError(f"cannot understand [{text}]")


def _slice_step(part: slice) -> Step:
    def step(value: Json) -> Iterator[Json]:
        if isinstance(value, list):
            yield from value[part]

    return step


def _filter_step(text: str) -> Step:
    match = _FILTER.fullmatch(text)
    if match is None:
        raise JsonPathError(f"cannot understand [{text}]")
    inner, operator = parse_json_path(match["path"]), match["operator"]
    wanted = _literal(match["value"]) if operator else None

    def step(value: Json) -> Iterator[Json]:
        for item in value if isinstance(value, list) else ():
            found = inner.find(item)
            if found and (not operator or _compare(found[0], operator, wanted)):
                yield item

    return step


def _literal(text: str) -> Json:
    if text[:1] in ("'", '"'):
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if "." in text else int(text)
    except ValueError as error:
        raise JsonPathError(f"cannot understand {text!r}") from error


def _compare(value: Json, operator: str, wanted: Json) -> bool:
    if operator in ("==", "!="):
        return (value == wanted) is (operator == "==")
    if isinstance(value, str) is not isinstance(wanted, str) or value is None:
        return False
    return _OPERATORS[operator]((value > wanted) - (value < wanted))
