"""Typed objects from the text of manifests, for users of Drayman as a library.

They are as the API server would store them: of the current version and with defaults. `checking` says whether they follow the
rules of the API. A field that does not exist is an error here, because a warning would not be seen.
"""

from __future__ import annotations

from drayman.api.checking import defaulted
from drayman.api.errors import DocumentError
from drayman.api.loading import LoadFinding, load_files
from drayman.api.struct import ApiStruct


def load(text: str | bytes, name: str = "<text>") -> tuple[ApiStruct, ...]:
    """The objects in a text of YAML or JSON, in its order. `name` is what errors call the text; raises DocumentError."""
    data = text.encode() if isinstance(text, str) else text
    found = []
    for result in load_files([(name, data)]):
        if isinstance(result, LoadFinding):
            subject = ": ".join(part for part in (result.object, result.path) if part)
            message = f"{subject}: {result.message}" if subject else result.message
            raise DocumentError(name, result.line, message)
        if result.carried is None:
            place = result.document.line
            raise DocumentError(name, place, f"{result.title}: there is no type for this kind")
        found.append(defaulted(result.carried, result.version).object)
    return tuple(found)
