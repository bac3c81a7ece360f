"""The structure of a value: everything that decides which fields a manager that sets it owns.

Ownership depends on the names of fields, on the keys of list items and on whether there is a value at all, not on the content of
strings and numbers. So most objects of a kind have one of a few structures, and a result for one holds for all of the same structure.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b

import msgspec

from drayman.api.struct import Json

_LARGE = 4096
_encode = msgspec.json.Encoder().encode


def structure_of(value: Json) -> Hashable:
    """Equal for values in which the same fields are owned. Lists count with all their content, since items may be identified by it."""
    if isinstance(value, dict):
        # Most members are strings, so they avoid a call.
        return tuple(
            [
                (name, True if type(member) is str and len(member) > 1 else structure_of(member))
                for name, member in value.items()
            ]
        )
    if isinstance(value, list):
        content = _encode(value)
        return content if len(content) <= _LARGE else blake2b(content).digest()
    # Zero and empty equal absent for many fields, including a zero amount that is written as a string.
    return value if not value or value == "0" else True
