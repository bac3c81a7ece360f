"""Request bodies in YAML, as the tree that JSON would give, with the keys that are there twice told by line.

The API server reads YAML 1.1 and turns it into JSON: keys become texts, plain words booleans and numbers. A key that is there
twice is no reason to refuse a body, so unlike for files, which people write, the last one wins and the problem is reported.
Built from the parser's events, because a tree of nodes would be built by recursion.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from drayman.api.schema.body import MAX_DEPTH, MAX_MANAGED_VALUES, MAX_VALUES, Number, Pairs
from drayman.api.schema.errors import UnrecognizedError
from drayman.api.schema.json_syntax import quoted
from drayman.api.struct import Json
from drayman.api.yaml_events import MAX_ALIASED_NODES, plain_value

_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"


class YamlBody(NamedTuple):
    """A tree as of `body.parse_tree`, and what a strict server would refuse it for."""

    tree: Json
    problems: tuple[str, ...]


def parse_yaml_tree(body: bytes) -> YamlBody:
    """The first document of a YAML body. Raises UnrecognizedError."""
    import yaml  # Here, because it takes a while and most bodies are JSON.

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder()
    try:
        for event in yaml.parse(body.decode(errors="replace"), Loader=loader):
            if builder.feed(event):
                break
    except yaml.YAMLError as error:
        raise UnrecognizedError(_syntax_error(error)) from error
    problems: tuple[str, ...] = ()
    if builder.duplicates:
        problems = ("yaml: unmarshal errors:\n  " + "\n  ".join(builder.duplicates),)
    return YamlBody(builder.root, problems)


def warning_texts(problems: tuple[str, ...]) -> tuple[str, ...]:
    """The problems of a body as warnings: those that YAML found, without the heading that errors have."""
    heading = "yaml: unmarshal errors:\n  "
    texts: list[str] = []
    for problem in problems:
        is_yaml = problem.startswith(heading)
        texts.extend(problem.removeprefix(heading).split("\n  ") if is_yaml else [problem])
    return tuple(texts)


def _syntax_error(error: Exception) -> str:
    """The parser's words. Its lines count from 0; only what the scanner finds is told by the line it is on."""
    reason = getattr(error, "problem", None) or getattr(error, "reason", None)
    line = 0
    for mark in (getattr(error, "context_mark", None), getattr(error, "problem_mark", None)):
        if mark is not None and mark.line:
            line = mark.line + (type(error).__name__ == "ScannerError")
            break
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{reason or 'unknown problem parsing YAML content'}"


@dataclass(slots=True)
class _Frame:
    """A mapping or list under construction. `size` counts the values in it, aliases unfolded."""

    value: Pairs | list[Json]
    anchor: str | None
    size: int = 1
    key: str | None = None
    places: dict[str, int] = field(default_factory=dict)
    merged: list[Pairs] = field(default_factory=list)


class _Builder:
    """Takes events one by one. `feed` tells whether the document is complete."""

    def __init__(self) -> None:
        self.root: Json = None
        self.duplicates: list[str] = []
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Json, int]] = {}
        self._aliased = 0
        self._values = 0

    def feed(self, event: Any) -> bool:
        self._values += 1
        if self._values > MAX_MANAGED_VALUES:
            raise UnrecognizedError(f"yaml: document contains more than {MAX_VALUES} values")
        match type(event).__name__:
            case "ScalarEvent":
                self._scalar(event)
            case "MappingStartEvent":
                self._open(Pairs(), event)
            case "SequenceStartEvent":
                self._open([], event)
            case "MappingEndEvent" | "SequenceEndEvent":
                self._close()
            case "AliasEvent":
                self._alias(event)
            case "DocumentEndEvent":
                return True
        return False

    def _open(self, value: Pairs | list[Json], event: Any) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise UnrecognizedError("yaml: exceeded max depth")
        if self._expects_key():
            raise UnrecognizedError(f"yaml: invalid map key at line {event.start_mark.line + 1}")
        self._stack.append(_Frame(value, event.anchor))

    def _close(self) -> None:
        frame = self._stack.pop()
        value = frame.value
        for source in frame.merged:
            for name, merged in source:
                if name not in frame.places:
                    frame.places[name] = len(value)
                    value.append((name, merged))
        self._remember(frame.anchor, value, frame.size)
        self._attach(value, frame.size)

    def _scalar(self, event: Any) -> None:
        value = _resolve(event)
        if self._expects_key():
            self._key(_key_text(event, value), event.start_mark.line + 1)
            return
        self._remember(event.anchor, value, 1)
        self._attach(value, 1)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise UnrecognizedError(f"yaml: unknown anchor '{event.anchor}' referenced")
        value, size = self._anchors[event.anchor]
        self._aliased += size
        if self._aliased > MAX_ALIASED_NODES:
            raise UnrecognizedError("yaml: document contains excessive aliasing")
        if self._expects_key():
            self._key(str(value), event.start_mark.line + 1)
        else:
            self._attach(value, size)

    def _remember(self, anchor: str | None, value: Json, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size)

    def _expects_key(self) -> bool:
        top = self._stack[-1] if self._stack else None
        return top is not None and isinstance(top.value, Pairs) and top.key is None

    def _key(self, key: str, line: int) -> None:
        frame = self._stack[-1]
        if key in frame.places:
            self.duplicates.append(f"line {line}: key {quoted(key)} already set in map")
        frame.key = key

    def _attach(self, value: Json, size: int) -> None:
        if not self._stack:
            self.root = value
            return
        frame = self._stack[-1]
        frame.size += size
        if not isinstance(frame.value, Pairs):
            frame.value.append(value)
        elif frame.key == _MERGE:
            frame.merged.extend(_mergeable(value))
        else:
            _set(frame, str(frame.key), value)
        frame.key = None


def _set(frame: _Frame, key: str, value: Json) -> None:
    """Give a key of a mapping its value, the last one if it is there twice."""
    place = frame.places.setdefault(key, len(frame.value))
    if place == len(frame.value):
        frame.value.append((key, value))
    else:
        frame.value[place] = (key, value)


def _mergeable(value: Json) -> list[Pairs]:
    sources = [value] if isinstance(value, Pairs) else value
    if not isinstance(sources, list) or not all(isinstance(s, Pairs) for s in sources):
        raise UnrecognizedError("yaml: map merge requires map or sequence of maps as the value")
    return list(sources)


def _resolve(event: Any) -> Json:
    """What a scalar stands for, numbers as they would be written in JSON."""
    tag, text = event.tag, event.value
    if tag in (f"{_TAG}str", f"{_TAG}binary", "!") or (tag is None and not event.implicit[0]):
        return text
    try:
        value = plain_value(text)
    except ValueError as error:
        raise UnrecognizedError(f"json: unsupported value: {text}") from error
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Number(value)
    return value


def _key_text(event: Any, value: Json) -> str:
    """Keys that are no texts become some, as JSON has no others."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        line = event.start_mark.line + 1
        raise UnrecognizedError(f"yaml: line {line}: invalid map key: null")
    return str(value)
