"""The shape of every built-in API object, and what follows from it.

`model` has the vocabulary, `tables` the facts. Bodies are recognised by `identify`, decoded by `decode_strict` (JSON, and YAML
after `parse_yaml_tree`) or `decode_protobuf`, and `normalise` gives an object the form in which it is stored and served.
"""

from drayman.api.schema.body import Identity, excerpt, identify, identify_tree, parse_tree
from drayman.api.schema.decoding import Decoded, decode_strict, strict_error
from drayman.api.schema.errors import BodyError, MalformedError, UnrecognizedError
from drayman.api.schema.model import (
    Contents,
    Field,
    Kind,
    ListOf,
    MapOf,
    Message,
    Omit,
    Scalar,
    Type,
)
from drayman.api.schema.normal import normalise
from drayman.api.schema.protobuf import Envelope, decode_protobuf, read_envelope
from drayman.api.schema.tables import message_named, schema_for
from drayman.api.schema.yaml_body import YamlBody, parse_yaml_tree, warning_texts

__all__ = [
    "BodyError",
    "Contents",
    "Decoded",
    "Envelope",
    "Field",
    "Identity",
    "Kind",
    "ListOf",
    "MalformedError",
    "MapOf",
    "Message",
    "Omit",
    "Scalar",
    "Type",
    "UnrecognizedError",
    "YamlBody",
    "decode_protobuf",
    "decode_strict",
    "excerpt",
    "identify",
    "identify_tree",
    "message_named",
    "normalise",
    "parse_tree",
    "parse_yaml_tree",
    "read_envelope",
    "schema_for",
    "strict_error",
    "warning_texts",
]
