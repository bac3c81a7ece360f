"""What explain, plan and capacity need of a cluster, as a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from drayman.placement.world import World
from drayman.printable import printable_json, printable_yaml
from drayman.simulate.snapshot import snapshot

Form: TypeAlias = Literal["lines", "yaml", "json"]
"""YAML with one object a line, YAML with one field a line, or a JSON list."""


def written(world: World, form: Form) -> Iterator[bytes]:
    """The file, piece by piece."""
    write = {"lines": _lines, "yaml": _yaml, "json": _json}[form]
    return write(snapshot(world))


def _lines(texts: Iterable[bytes]) -> Iterator[bytes]:
    """JSON is also YAML, and is read many times faster than other YAML."""
    for text in texts:
        yield b"---\n%b\n" % _shown(text)


def _yaml(texts: Iterable[bytes]) -> Iterator[bytes]:
    import json

    for text in texts:
        yield f"---\n{printable_yaml(json.loads(text))}".encode()


def _json(texts: Iterable[bytes]) -> Iterator[bytes]:
    yield b'{"apiVersion":"v1","kind":"List","items":[\n'
    separator = b""
    for text in texts:
        yield separator + _shown(text)
        separator = b",\n"
    yield b"\n]}\n"


def _shown(text: bytes) -> bytes:
    """The same on any terminal: a snapshot is often looked at before it is sent to others."""
    return printable_json(text.decode()).encode()
