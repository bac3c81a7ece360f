"""Large bodies are read outside the event loop, so that other requests are answered meanwhile.

What takes long is a body of very many very small values: three megabytes of them take seconds in JSON and more in YAML. The results are
bounded as well, since everything done to an object afterwards may be done in the event loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar

from drayman.api.struct import Json
from drayman.api.syntax.values import MAX_MANAGED_VALUES, MAX_VALUES, values_exceed
from drayman.apiserver.protocol.errors import StatusError, Subject
from drayman.apiserver.protocol.limits import LARGE_WORK
from drayman.apiserver.requests.beside import beside

T = TypeVar("T")

_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


async def read_beside(body: bytes, read: Callable[[], T]) -> T:
    """The result of reading a body; `read` runs in another thread if the body is large."""
    if len(body) < LARGE_WORK:
        return read()
    return await beside(read)


def check_json(body: bytes) -> None:
    """Refuse JSON of far too many values before decoding it, which cannot be interrupted. Raises StatusError 429."""
    may_be = body.count(b",") > MAX_MANAGED_VALUES
    if may_be and _TEXT.sub(b"", body).count(b",") > MAX_MANAGED_VALUES:
        raise _too_many()


def bounded(body: bytes, value: T) -> T:
    """The value that was read from a body. Raises StatusError 429 if it has more parts than any object of the API."""
    if len(body) >= LARGE_WORK and (
        values_exceed(value, MAX_MANAGED_VALUES) or values_exceed(_unmanaged(value), MAX_VALUES)
    ):
        raise _too_many()
    return value


def _too_many() -> StatusError:
    """Without a time to wait: the same body is refused at any time."""
    message = (
        f"too many values in the body of the request: it has more than {MAX_VALUES}"
        " texts, numbers, lists and objects, which is the most that one body may have"
    )
    return StatusError(429, "TooManyRequests", message, Subject())


def _unmanaged(value: Json) -> Json:
    """An object without its managed fields: a reader gets more of them than any client wrote."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict):
        return value
    rest = {name: member for name, member in metadata.items() if name != "managedFields"}
    return {**value, "metadata": rest}
