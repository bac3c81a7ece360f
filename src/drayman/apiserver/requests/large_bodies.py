"""Large bodies are read outside the event loop, so that other requests are answered meanwhile.

What takes long is a body of very many very small values: three megabytes of them take seconds in JSON and more in YAML. One thread
does all of this. More would not be faster, and a single one bounds how many of these bodies are in memory in decoded form. It works for
users in turn, so that a large body waits for one body of each other user, not for all of them. Its results are bounded as well, since
everything done to an object afterwards is done in the event loop.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from drayman.api.struct import Json
from drayman.api.syntax.values import MAX_MANAGED_VALUES, MAX_VALUES, values_exceed
from drayman.apiserver.protocol.errors import StatusError, bad_request
from drayman.apiserver.protocol.round_robin import RoundRobin

T = TypeVar("T")

LARGE_BODY: Final = 32 * 1024
"""The shortest body, in bytes, that is worth another thread."""

_STACK_BYTES: Final = 64 * 1024 * 1024
"""Decoders recurse in C as deep as the interpreter's limit allows, which is raised for as long as a CEL expression is evaluated."""

_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_THREAD: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large-body")

ON_BEHALF_OF: Final[ContextVar[str]] = ContextVar("on_behalf_of", default="")
"""The name of the user who sent the request that the current task answers; empty for work of the server's own."""

_lock: Final = threading.Lock()
_waiting: Final[RoundRobin[tuple[Future[Any], Callable[[], Any]]]] = RoundRobin()
"""What the thread is going to do. Event loops of several threads may add to it."""


async def read_beside(body: bytes, read: Callable[[], T]) -> T:
    """The result of reading a body; `read` runs in another thread if the body is large."""
    if len(body) < LARGE_BODY:
        return read()
    return await beside(read)


async def beside(work: Callable[[], T]) -> T:
    """The result of work in another thread."""
    return await asyncio.wrap_future(_submit(work))


def _submit(work: Callable[[], T]) -> Future[T]:
    outcome: Future[T] = Future()
    with _lock:
        _waiting.put(ON_BEHALF_OF.get(), (outcome, work))
    usual = threading.stack_size(_STACK_BYTES)
    try:
        _THREAD.submit(_do_next)
    finally:
        threading.stack_size(usual)
    return outcome


def _do_next() -> None:
    """Do the work whose turn it is: not necessarily that with which this was submitted."""
    with _lock:
        outcome, work = _waiting.pop()
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        outcome.set_result(work())
    except BaseException as error:
        outcome.set_exception(error)


def check_json(body: bytes) -> None:
    """Refuse JSON of far too many values before decoding it, which cannot be interrupted. Raises StatusError 400."""
    may_be = body.count(b",") > MAX_MANAGED_VALUES
    if may_be and _TEXT.sub(b"", body).count(b",") > MAX_MANAGED_VALUES:
        raise _too_many()


def bounded(body: bytes, value: T) -> T:
    """The value that was read from a body. Raises StatusError 400 if it has more parts than any object of the API."""
    if len(body) >= LARGE_BODY and (
        values_exceed(value, MAX_MANAGED_VALUES) or values_exceed(_unmanaged(value), MAX_VALUES)
    ):
        raise _too_many()
    return value


def _too_many() -> StatusError:
    return bad_request(f"the body of the request has more than {MAX_VALUES} values")


def _unmanaged(value: Json) -> Json:
    """An object without its managed fields: a reader gets more of them than any client wrote."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict):
        return value
    rest = {name: member for name, member in metadata.items() if name != "managedFields"}
    return {**value, "metadata": rest}
