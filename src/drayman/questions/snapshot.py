"""What explain, plan and capacity need of a cluster, as a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from drayman.placement.world import World
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
        yield b"---\n%b\n" % text


def _yaml(texts: Iterable[bytes]) -> Iterator[bytes]:
    import json

    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    for text in texts:
        value = json.loads(text)
        shown = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True)
        yield b"---\n" + shown.encode()


def _json(texts: Iterable[bytes]) -> Iterator[bytes]:
    yield b'{"apiVersion":"v1","kind":"List","items":[\n'
    separator = b""
    for text in texts:
        yield separator + text
        separator = b",\n"
    yield b"\n]}\n"
