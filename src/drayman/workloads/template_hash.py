"""Names for templates: the same template always has the same name, another one almost certainly another.

As with Kubernetes' own hashes, the value has no meaning; kubectl and people use it as a label. Kubernetes hashes how Go prints the struct,
so its values differ from these.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec

from drayman.api.struct import Json

LABEL: Final = "pod-template-hash"
"""Of the pods of a Deployment. The name of their ReplicaSet is that of the Deployment and this."""
_OFFSET: Final = 0x811C9DC5
_PRIME: Final = 0x01000193
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no look-alikes, so that no words arise."""
_LONG: Final = 1 << 16
"""Bytes of a template above which a digest stands for it: going over megabytes byte by byte takes a good part of a second."""
_encoder: Final = msgspec.json.Encoder(order="deterministic")


def template_hash(template: Json, collisions: int | None) -> str:
    """A short text for a template. A collision, once noticed, leads to another one."""
    value = _OFFSET
    data = _encoder.encode(template)
    if len(data) > _LONG:
        data = blake2b(data).digest()
    data += b"" if collisions is None else str(collisions).encode()
    for byte in data:
        value = ((value ^ byte) * _PRIME) & 0xFFFFFFFF
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(value))


def without_hash(template: Json) -> Json:
    """A template without the label that its hash is kept in."""
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != LABEL}
    rest = {key: value for key, value in metadata.items() if key != "labels" and value is not None}
    if labels:
        rest["labels"] = labels
    return {**template, "metadata": rest}
