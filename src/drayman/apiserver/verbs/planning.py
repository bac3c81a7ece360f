"""Large and costly writes are planned outside the event loop, so that other requests are answered meanwhile.

Planning a write is everything between its body and its commit: defaults, admission, ownership of fields, validation, encoding. For an
object of a hundred thousand values, or one with costly rules in CEL, this takes seconds. It happens in another thread then, and whatever
it needs of the server is asked of the event loop: the store and the rights are never looked at from two threads at once. The outcome is
written only if the object is still as it was; otherwise the write is planned again. So that this happens rarely, large writes of one object
wait for each other.

Whether rules are costly shows when they are evaluated (`served/quick_rules.py`): most are not, and two threads that take turns are far
slower than one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Final, NoReturn, TypeVar

from drayman.apiserver.protocol.access import AccessDecision, Attributes, Authorizer, Grant, User
from drayman.apiserver.protocol.limits import LARGE_WORK
from drayman.apiserver.requests.beside import beside
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.served.quick_rules import TooLongError, quickly
from drayman.apiserver.verbs.core import ObjectStore
from drayman.cluster.embedded.model import Key, Operation, Stored

T = TypeVar("T")

ATTEMPTS: Final = 5
"""How often a large write is planned if others keep changing the object."""
_PATIENCE_S: Final = 60.0
"""How long the other thread waits for the event loop. It is never that busy, but it may have ended."""


def is_large(call: Call, size: int) -> bool:
    """Whether a write that looks at so many bytes is planned in another thread."""
    return size >= call.strategy.large_from


async def planned(call: Call, size: int, plan: Callable[[Call], T]) -> T:
    """The outcome of a plan. `size` is that of all the bytes it looks at. It may be made twice, and must not use up what it is given."""
    here = planned_here(call, size, plan)
    return await planned_beside(call, size, plan) if here is None else here


def planned_here(call: Call, size: int, plan: Callable[[Call], T]) -> T | None:
    """The outcome of a plan that is made in the event loop; None if that would take too long."""
    if is_large(call, size):
        return None
    if not call.strategy.has_costly_rules:
        return plan(call)
    try:
        with quickly():
            return plan(call)
    except TooLongError:
        return None


async def planned_beside(call: Call, size: int, plan: Callable[[Call], T]) -> T:
    """The outcome of a plan that is made in another thread."""
    loop = _Loop(asyncio.get_running_loop())
    core = replace(
        call.core,
        store=_StoreOfLoop(loop, call.core.store),
        authorizer=_AuthorizerOfLoop(loop, call.core.authorizer),
    )
    elsewhere = replace(call, core=core)
    return await beside(lambda: plan(elsewhere), is_small=size < LARGE_WORK)


def line_of(call: Call) -> asyncio.Lock:
    """Held by one large write of an object at a time."""
    lines, key = call.core.lines, call.key
    line = lines.get(key)
    if line is None:
        line = lines[key] = asyncio.Lock()
    return line


class _Loop:
    """The event loop, as seen from another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def ask(self, question: Callable[[], T]) -> T:
        """The answer of the event loop to a question. What it raises is raised here."""
        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(question())
            except BaseException as error:
                answer.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return answer.result(_PATIENCE_S)


class _StoreOfLoop:
    """Reads a store from another thread. Nothing is written or watched from there."""

    def __init__(self, loop: _Loop, store: ObjectStore) -> None:
        self._loop = loop
        self._store = store

    @property
    def revision(self) -> int:
        return self._loop.ask(lambda: self._store.revision)

    def get(self, key: Key) -> Stored | None:
        return self._loop.ask(lambda: self._store.get(key))

    def latest(self, key: Key) -> Stored | None:
        return self._loop.ask(lambda: self._store.latest(key))

    def list(self, resource: str, namespace: str | None = None) -> tuple[Stored, ...]:
        return self._loop.ask(lambda: self._store.list(resource, namespace))

    def list_at(self, resource: str, namespace: str | None, revision: int) -> NoReturn:
        raise _not_planned("a list of the past")

    def remember_list(self, resource: str, namespace: str | None) -> NoReturn:
        raise _not_planned("a list")

    def watch(self, resource: str, namespace: str | None = None, *, since: int) -> NoReturn:
        raise _not_planned("a watch")

    async def write(self, operations: Sequence[Operation]) -> NoReturn:
        raise _not_planned("a write")


class _AuthorizerOfLoop:
    """Asks for rights from another thread."""

    def __init__(self, loop: _Loop, authorizer: Authorizer) -> None:
        self._loop = loop
        self._authorizer = authorizer

    def authorize(self, user: User, attributes: Attributes) -> AccessDecision:
        return self._loop.ask(lambda: self._authorizer.authorize(user, attributes))

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        return iter(self._loop.ask(lambda: list(self._authorizer.grants(user, namespace))))


def _not_planned(what: str) -> RuntimeError:
    return RuntimeError(f"{what} is not part of planning")
