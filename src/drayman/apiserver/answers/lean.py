"""Objects without managedFields, for clients that only read a large cluster.

Field ownership is almost half of the text of a pod or a claim, and only matters to writers. A client sends
`omitManagedFields=true`; servers that do not know the option send managedFields all the same.
"""

from __future__ import annotations

from typing import Final

from drayman.apiserver.served.encoding import decode, encode

_MANAGED: Final = b',"managedFields":[{'
_METADATA: Final = b'"metadata":{'
_END: Final = b"}]"
_QUOTE, _ESCAPED_QUOTE, _ESCAPED_BACKSLASH = b'"', b'\\"', b"\\\\"


def without_managed_fields(data: bytes) -> bytes:
    """The stored text of an object without its metadata.managedFields.

    Quotes are escaped inside strings, so a name in quotes after a comma is a member name. Templates have metadata too, but after that
    of the object itself. Entries hold no lists, so the list ends with the first bracket that is not in a string.
    """
    start = data.find(_MANAGED)
    if start < 0 or data.count(_METADATA, 0, start) > 1:
        return data
    end = data.index(_END, start)
    while True:
        if data.find(_ESCAPED_BACKSLASH, start, end) >= 0:
            return _without_managed_fields(data)
        quotes = data.count(_QUOTE, start, end) - data.count(_ESCAPED_QUOTE, start, end)
        if quotes % 2 == 0:
            return data[:start] + data[end + len(_END) :]
        end = data.index(_END, end + 1)


def _without_managed_fields(data: bytes) -> bytes:
    """The same by parsing the text, for the few with escaped backslashes."""
    value = decode(data)
    value["metadata"].pop("managedFields", None)
    return encode(value)
