"""The form of a custom resource in each of its versions: how bodies are read, kept and shown.

Objects are stored in the storage version of their definition, pruned by its schema and with its defaults, so that reads pass
on the bytes. Conversion between versions changes only the apiVersion and removes what the other version's schema does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Final

from drayman.api.errors import MalformedError
from drayman.api.struct import Json
from drayman.api.syntax.json_text import parse_tree
from drayman.api.syntax.values import (
    TOO_DEEP,
    Number,
    Pairs,
    depth_exceeds,
    duplicate_paths,
    plain,
)
from drayman.apiserver.extensions.defaulting import set_defaults
from drayman.apiserver.extensions.embedded import (
    coerce_embedded,
    decode_metadata,
    normalised_metadata,
)
from drayman.apiserver.extensions.pruning import prune
from drayman.apiserver.extensions.schemas import Schema
from drayman.apiserver.patching.custom_shapes import custom_resource_shape
from drayman.apiserver.patching.shapes import Shape
from drayman.apiserver.served.resources import Conversion
from drayman.apiserver.served.strategy import Object

MAX_DEPTH: Final = 128
"""Maximum nesting of a custom resource: nothing else limits it, and everything here is recursive."""


@dataclass(frozen=True, slots=True)
class CustomCodec:
    """Reads bodies according to the schemas of a definition, by version."""

    schemas: Mapping[str, Schema]

    def decode(self, body: bytes | Json, version: str) -> tuple[Object, Sequence[str]]:
        """A body in a version, pruned, and its unknown or duplicate fields. Raises BodyError."""
        tree = parse_tree(body) if isinstance(body, bytes) else body
        if depth_exceeds(tree, MAX_DEPTH):
            raise MalformedError(TOO_DEEP)
        problems = [f'duplicate field "{path}"' for path in dict.fromkeys(duplicate_paths(tree))]
        metadata = _last(tree, "metadata")
        value = _kept(tree) if tree is not None else {}
        if not isinstance(value, dict):
            value = {}
        schema = self.schemas[version]
        if metadata is not None:
            value["metadata"], found = decode_metadata(metadata)
            problems += [problem for problem in found if problem not in problems]
        embedded: list[str] = []
        unknown = prune(value, schema, is_root=True)
        coerce_embedded(value, schema, embedded)
        problems += [f'unknown field "{path}"' for path in unknown]
        problems += embedded
        return value, sorted(problems, key=lambda text: not text.startswith("duplicate"))

    def normalise(self, obj: Object) -> Object:
        return {**obj, "metadata": normalised_metadata(obj["metadata"])}

    def shape(self, version: str) -> Shape:
        return custom_resource_shape(self.schemas[version])

    def openapi(self, version: str) -> Json:
        return dict(self.schemas[version])


def _last(tree: Json, name: str) -> Json:
    if isinstance(tree, Pairs):
        return next((value for found, value in reversed(tree) if found == name), None)
    return tree.get(name) if isinstance(tree, dict) else None


def _kept(tree: Json) -> Json:
    """The value a tree stands for (`plain`). Numbers such as 1.0 are kept as 1, which is how they would be written."""
    if isinstance(tree, str) and not isinstance(tree, Number):
        return tree
    if isinstance(tree, dict):
        return {name: _kept(inner) for name, inner in tree.items()}
    if isinstance(tree, Pairs):
        return {name: _kept(inner) for name, inner in tree}
    if isinstance(tree, list):
        return [_kept(item) for item in tree]
    value = plain(tree)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


@dataclass(frozen=True, slots=True)
class CustomConversion(Conversion):
    """Between versions whose objects differ only in what a schema omits."""

    schemas: Mapping[str, Schema]

    def to_hub(self, obj: Object, version: str) -> Object:
        """Keeps everything in the request: the strategy prunes after validation in the request's version."""
        return obj

    def from_hub(self, obj: Object, version: str) -> Object:
        shown: Object = deepcopy(obj)
        prune(shown, self.schemas[version], is_root=True)
        return shown


def as_stored(obj: Object, schema: Schema) -> None:
    """Give an object, in place, the form of the storage version."""
    prune(obj, schema, is_root=True)
    set_defaults(obj, schema)
