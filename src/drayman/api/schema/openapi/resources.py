"""What is served, as far as OpenAPI needs to know it."""

from __future__ import annotations

from dataclasses import dataclass

from drayman.api.struct import Json


@dataclass(frozen=True, slots=True)
class ServedSubresource:
    """A part of an object with a path of its own, such as `status` or `scale`, and the kind it takes and gives."""

    name: str
    group: str
    version: str
    kind: str
    verbs: frozenset[str]


@dataclass(frozen=True, slots=True)
class ServedResource:
    """A kind of object in one group version. Custom ones bring their schema along."""

    name: str
    kind: str
    namespaced: bool
    verbs: frozenset[str]
    subresources: tuple[ServedSubresource, ...] = ()
    schema: Json = None
    """Of a custom resource: its schema, in OpenAPI 3."""

    @property
    def is_custom(self) -> bool:
        return self.schema is not None
