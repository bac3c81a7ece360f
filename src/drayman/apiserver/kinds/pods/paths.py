"""Paths of files inside a container or a volume."""

from __future__ import annotations

from drayman.api.validation.field_errors import invalid
from drayman.apiserver.kinds.rules import Errors


def without_backsteps(value: str, path: str) -> Errors:
    """A path that stays below where it starts."""
    if ".." in value.split("/"):
        yield invalid(path, value, "must not contain '..'")


def descending(value: str, path: str) -> Errors:
    """A path relative to some directory that stays below it."""
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    yield from without_backsteps(value, path)


def unreserved(value: str, path: str) -> Errors:
    """A path of a file in a volume. Names that begin with two dots are reserved for the writer of the volume."""
    yield from descending(value, path)
    if value.startswith("..") and not value.startswith("../"):
        yield invalid(path, value, "must not start with '..'")
