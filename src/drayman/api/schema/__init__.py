"""The shape of every built-in API object, and what follows from it.

`model` has the vocabulary, `tables` the facts. Bodies are recognised by `identify`, decoded by `decode_strict` (JSON, and YAML
as `drayman.api.syntax` reads it) or `decode_protobuf`, and `normalise` gives an object the form in which it is stored and served.
"""

from drayman.api.schema.body import Identity, excerpt, identify, identify_tree
from drayman.api.schema.decoding import decode_strict, strict_error
from drayman.api.schema.model import Field, ListOf, MapOf, Message, Omit, Scalar, ScalarKind, Type
from drayman.api.schema.normal import normalise
from drayman.api.schema.tables import message_named, schema_for

__all__ = [
    "Field",
    "Identity",
    "ListOf",
    "MapOf",
    "Message",
    "Omit",
    "Scalar",
    "ScalarKind",
    "Type",
    "decode_strict",
    "excerpt",
    "identify",
    "identify_tree",
    "message_named",
    "normalise",
    "schema_for",
    "strict_error",
]
