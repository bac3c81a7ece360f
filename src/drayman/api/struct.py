"""The base class of every API object, and the field types they share.

Objects are frozen so that they can be shared between caches, searches and watchers without copies, and `gc=False` because they
never form cycles: on a cluster of 200,000 devices a collection would otherwise walk millions of them.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, dataclass_transform

import msgspec
from msgspec import Meta

Json = Any
"""A decoded JSON value that is opaque here."""

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

Timestamp = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
        r"([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])\Z"
    ),
]
"""RFC 3339 text, kept as it came."""


def always(value: str) -> Any:
    """A default that is always written out: an object without its apiVersion and kind would mean nothing."""
    return msgspec.field(default_factory=lambda: value)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field, always)
)
class _ApiStructMeta(msgspec.StructMeta):
    """Makes the fields of every subclass keyword-only, which msgspec does not inherit, and tells type checkers so."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        merge_key: tuple[str, ...] = (),
        **config: Any,
    ) -> _ApiStructMeta:
        """`merge_key`: see `ApiStruct.merge_key`."""
        if merge_key:
            namespace["merge_key"] = merge_key
        return super().__new__(mcls, name, bases, namespace, **{"kw_only": True, **config})


class ApiStruct(
    msgspec.Struct,
    metaclass=_ApiStructMeta,
    frozen=True,
    omit_defaults=True,
    gc=False,
    rename="camel",
):
    """A part of an API object: frozen, keyword-only, camelCase on the wire, defaults left out."""

    merge_key: ClassVar[tuple[str, ...]] = ()
    """The wire names of the fields that identify an item in a list of these. Without any, its position does.
    Given in the head of the class: `class Device(ApiStruct, merge_key=("name",))`."""
