"""YAML in the two dialects in which it is read here.

Files are written by people: duplicate keys, keys that are not texts, and tags are refused with their line. Bodies of requests
are read as the API server reads them: keys become texts, the last of duplicate keys wins and the problem is reported, and
numbers are kept as JSON would have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from drayman.api.errors import DocumentError, UnrecognizedError
from drayman.api.struct import Json
from drayman.api.syntax.json_scanner import quoted
from drayman.api.syntax.values import MAX_DEPTH, MAX_MANAGED_VALUES, MAX_VALUES, TOO_DEEP, Number
from drayman.api.syntax.yaml_builder import (
    MAX_ALIASED_NODES,
    Dialect,
    Problem,
    YamlDocument,
    YamlProblemError,
    documents,
)

_FILES: Final = Dialect(
    {
        Problem.TOO_DEEP: f"nested more than {MAX_DEPTH} levels deep",
        Problem.TOO_MANY_ALIASED: f"aliases stand for more than {MAX_ALIASED_NODES} values",
        Problem.UNKNOWN_ALIAS: "the alias *{about} is unknown or contains itself",
        Problem.NOT_MERGEABLE: "only mappings can be merged with <<",
        Problem.NOT_JSON_NUMBER: "{about} is not a number in JSON",
        Problem.COLLECTION_AS_KEY: "a key must be a text",
        Problem.ALIAS_AS_KEY: "a key must be a text, not an alias",
        Problem.NOT_TEXT_AS_KEY: "the key {about} is not a text; put it in quotes",
        Problem.DUPLICATE_KEY: "the key {about} is there twice",
        Problem.TAG: "the tag {about} is not supported",
    }
)
_BODIES: Final = Dialect(
    {
        Problem.TOO_DEEP: f"yaml: {TOO_DEEP}",
        Problem.TOO_MANY_VALUES: f"yaml: document contains more than {MAX_VALUES} values",
        Problem.TOO_MANY_ALIASED: "yaml: document contains excessive aliasing",
        Problem.UNKNOWN_ALIAS: "yaml: unknown anchor '{about}' referenced",
        Problem.NOT_MERGEABLE: "yaml: map merge requires map or sequence of maps as the value",
        Problem.NOT_JSON_NUMBER: "json: unsupported value: {about}",
        Problem.COLLECTION_AS_KEY: "yaml: invalid map key at line {line}",
        Problem.NULL_AS_KEY: "yaml: line {line}: invalid map key: null",
    },
    number=Number,
    max_values=MAX_MANAGED_VALUES,
)
_HEADING: Final = "yaml: unmarshal errors:\n  "


def parse_yaml(file: str, text: str, *, with_lines: bool = False) -> Iterator[YamlDocument]:
    """The documents of a file, empty ones left out. Raises DocumentError."""
    import yaml  # Here, because it takes a while and JSON does not need it.

    try:
        for document in documents(text, _FILES, with_lines=with_lines):
            if document.value is not None:
                yield document
    except YamlProblemError as problem:
        raise DocumentError(file, problem.line, problem.message) from problem
    except yaml.YAMLError as error:
        raise DocumentError(file, *syntax_problem(text, error)) from error


def syntax_problem(text: str, error: Exception) -> tuple[int, str]:
    """The line in which YAML is wrong, or 0 if that is unknown, and a sentence."""
    mark = getattr(error, "problem_mark", None)
    position = getattr(error, "position", None)  # of a character that no YAML may have
    line = 0
    if mark is not None:
        # The parser may find what is missing only beyond the last line.
        line = min(mark.line, text.count("\n") - text.endswith("\n")) + 1
    elif isinstance(position, int):
        line = text.count("\n", 0, position) + 1
    message = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return line, f"not valid YAML: {message}"


class YamlBody(NamedTuple):
    """A tree like that of `parse_tree` for JSON, and what a strict server would refuse it for."""

    tree: Json
    problems: tuple[str, ...]


def parse_yaml_tree(body: bytes) -> YamlBody:
    """The first document of a body. Raises UnrecognizedError."""
    import yaml

    try:
        document = next(documents(body.decode(errors="replace"), _BODIES), None)
    except YamlProblemError as problem:
        raise UnrecognizedError(problem.message) from problem
    except yaml.YAMLError as error:
        raise UnrecognizedError(_syntax_error(error)) from error
    if document is None:
        return YamlBody(None, ())
    twice = [
        f"line {line}: key {quoted(key)} already set in map" for line, key in document.duplicates
    ]
    return YamlBody(document.value, (_HEADING + "\n  ".join(twice),) if twice else ())


def warning_texts(problems: tuple[str, ...]) -> tuple[str, ...]:
    """The problems of a body as warnings: those that YAML found, without the heading that errors have."""
    texts: list[str] = []
    for problem in problems:
        is_yaml = problem.startswith(_HEADING)
        texts.extend(problem.removeprefix(_HEADING).split("\n  ") if is_yaml else [problem])
    return tuple(texts)


def _syntax_error(error: Exception) -> str:
    """The parser's words. Its lines count from 0; only what the scanner finds is named by the line it is on."""
    reason = getattr(error, "problem", None) or getattr(error, "reason", None)
    line = 0
    for mark in (getattr(error, "context_mark", None), getattr(error, "problem_mark", None)):
        if mark is not None and mark.line:
            line = mark.line + (type(error).__name__ == "ScannerError")
            break
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{reason or 'unknown problem parsing YAML content'}"
