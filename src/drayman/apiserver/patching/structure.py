"""The structure of a value: all that decides which fields somebody owns who sets it.

Ownership goes by the names of fields, by the keys of list items and by whether there is something at all, not by what texts and
numbers say. So most objects of a kind have one of a few structures, and what was worked out for one holds for all of the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b

import msgspec

from drayman.api.struct import Json

_LARGE = 4096
_encode = msgspec.json.Encoder().encode


def structure_of(value: Json) -> Hashable:
    """Equal for values in which the same fields are owned. Lists count with all they contain, for items may be known by that."""
    if isinstance(value, dict):
        # Most members are texts, so they do without a call.
        return tuple(
            [
                (name, True if type(member) is str and len(member) > 1 else structure_of(member))
                for name, member in value.items()
            ]
        )
    if isinstance(value, list):
        content = _encode(value)
        return content if len(content) <= _LARGE else blake2b(content).digest()
    # Zero and empty are as good as absent for many fields, also where the zero of an amount is written as a text.
    return value if not value or value == "0" else True
