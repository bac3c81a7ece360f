"""Questions to a cluster from Python: what `from drayman import Cluster, explain, plan, capacity` gives.

They are plain blocking calls. A notebook or a script asks one question after another, and most of the time goes into a search, for which an
event loop would have to wait as well. A notebook already runs an event loop in its thread, in which nothing else can be run to completion,
so a Cluster has its own thread with a loop. Asynchronous code asks with `asyncio.to_thread`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Protocol, TypeVar
from weakref import finalize

from drayman.api.errors import DocumentError
from drayman.cluster import HttpClient
from drayman.explain.answer import Explanation
from drayman.placement.price_table import read_price_table
from drayman.placement.prices import NO_PRICES, PriceTable
from drayman.placement.world import World
from drayman.questions import capacity as capacity_question
from drayman.questions import plan as plan_question
from drayman.questions.arguments import checked_manifests, checked_text, checked_times
from drayman.questions.errors import QuestionError
from drayman.questions.explaining import explanation_of, read_for
from drayman.questions.prices import prices_in_use
from drayman.questions.subjects import Target, everything, parse_subject
from drayman.questions.which_cluster import connection_to, interactive_client
from drayman.questions.worlds import DEFAULT_NAMESPACE, read_file, read_with_rules
from drayman.simulate.capacity import Capacity

T = TypeVar("T")

_TEXT = "<text>"
"""What errors call manifests that do not come from a file."""


class Cluster:
    """A cluster to ask questions of: one that runs (`connect`), or one that was saved in a file (`from_snapshot`).

    A running cluster is read again for every question, with the permissions of the kubeconfig's user. Close it when done, or use it in a
    `with` block; one that is forgotten is closed when the program ends.
    """

    def __init__(self, source: _Source) -> None:
        self._source = source
        self._loop = asyncio.new_event_loop()
        thread = Thread(target=self._loop.run_forever, name="drayman-cluster", daemon=True)
        thread.start()
        self._end = finalize(self, _shut_down, source, self._loop, thread)

    @classmethod
    def connect(
        cls,
        kubeconfig: str | Path | None = None,
        *,
        context: str = "",
        data_dir: str | Path | None = None,
        prices: str | bytes | None = None,
    ) -> Cluster:
        """The cluster that is named, or the one that every command would talk to: `questions.which_cluster` has the rule.

        `prices` is the table that its scheduler has, as text; that of `drayman up` is known. Nothing is sent before the first question.
        Raises QuestionError where nothing names a cluster, what is named does not exist, or the table is wrong.
        """
        named = None if kubeconfig is None else Path(kubeconfig)
        folder = None if data_dir is None else Path(data_dir)
        given = None if prices is None else _price_table(prices)
        connection = connection_to(named, folder, context)
        table = prices_in_use(connection, folder) if given is None else given
        return cls(_Running(interactive_client(connection), table))

    @classmethod
    def from_snapshot(cls, path: str | Path, *, prices: str | bytes | None = None) -> Cluster:
        """The cluster that `drayman snapshot` has saved in a file. Raises QuestionError."""
        table = NO_PRICES if prices is None else _price_table(prices)
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise QuestionError(f"{path}: cannot be read: {why}") from error
        return cls(_Saved(str(path), read_file(str(path), data).with_prices(table)))

    @property
    def namespace(self) -> str:
        """The namespace for anything that names none: that of the kubeconfig's context."""
        return self._source.namespace

    def __repr__(self) -> str:
        return f"<Cluster: {self._source}>"

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. A closed cluster answers no more questions."""
        self._end()

    def _answer(self, question: Coroutine[Any, Any, T]) -> T:
        """Wait for the answer. An interrupt ends the question too, so that the next one need not wait for it."""
        if not self._end.alive:
            question.close()
            raise ValueError("this cluster is closed; connect to it again")
        future = asyncio.run_coroutine_threadsafe(question, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()


def explain(
    cluster: Cluster, what: str | None = None, *, namespace: str | None = None
) -> Explanation:
    """Why something waits and what would help, or why it is where it is: what `drayman explain` says, as data.

    `what` is named as kubectl names it: `pod/trainer`, `job sweep`, `node/example-0`. Without it, the answer is about everything that waits
    in the namespace, or in the whole cluster where none is given. Raises QuestionError and ClusterError.
    """
    what = checked_text("what", what)
    where = _namespace(cluster, namespace)
    subject = everything(namespace) if what is None else parse_subject(what)
    where = subject.scope(where)
    return cluster._answer(_explained(cluster._source, subject, where))


def plan(
    cluster: Cluster,
    manifests: str | bytes,
    *,
    namespace: str | None = None,
    times: int = 1,
    ignore_pending: bool = False,
    with_explanations: bool = False,
) -> plan_question.PlanAnswer:
    """Where the pods of manifests would go, with which devices, or why they would wait: what `drayman plan` says, as data.

    Manifests are YAML or JSON text, and none of it is submitted. `times` plans that many copies; `ignore_pending` plans as if no pods
    waited in the cluster; `with_explanations` adds full explanations of what would wait. Raises QuestionError and ClusterError.
    """
    where = _namespace(cluster, namespace)
    ask = partial(
        plan_question.plan,
        inputs=[(_TEXT, checked_manifests(manifests))],
        namespace=where,
        times=checked_times(times),
        pending_first=not ignore_pending,
        with_explanations=with_explanations,
    )
    return cluster._answer(_of_world(cluster._source, where, ask))


def capacity(cluster: Cluster, claim: str | bytes, *, namespace: str | None = None) -> Capacity:
    """How many copies of a claim fit now and with nothing in use, and what runs out first: what `drayman capacity` says, as data.

    The claim is YAML or JSON text: one ResourceClaim or ResourceClaimTemplate, and the device classes it needs that the cluster does not
    have. Raises QuestionError and ClusterError.
    """
    where, data = _namespace(cluster, namespace), checked_manifests(claim)
    ask = partial(capacity_question.capacity, name=_TEXT, data=data, namespace=where)
    return cluster._answer(_of_world(cluster._source, where, ask))


# Coroutines refer only to the source: a forgotten cluster can then be closed, and not from its own thread, which closing has to join.


async def _explained(source: _Source, subject: Target, namespace: str) -> Explanation:
    return explanation_of(await source.read_for(subject, namespace), subject, namespace)


async def _of_world(source: _Source, namespace: str, ask: Callable[[World], Awaitable[T]]) -> T:
    return await ask(await source.read_with_rules(namespace))


def _price_table(text: str | bytes) -> PriceTable:
    """Raises TypeError and QuestionError."""
    try:
        return read_price_table("<prices>", checked_manifests(text, "prices"))
    except DocumentError as error:
        raise QuestionError(str(error)) from error


def _shut_down(source: _Source, loop: asyncio.AbstractEventLoop, thread: Thread) -> None:
    asyncio.run_coroutine_threadsafe(source.close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def _namespace(cluster: Cluster, namespace: str | None) -> str:
    """The namespace for anything that names none. Raises TypeError."""
    if not isinstance(cluster, Cluster):
        raise TypeError("cluster must be a Cluster; Cluster.connect() gives one")
    return checked_text("namespace", namespace) or cluster.namespace


class _Source(Protocol):
    """Where the objects of a cluster come from."""

    @property
    def namespace(self) -> str: ...

    async def read_for(self, subject: Target, namespace: str) -> World: ...

    async def read_with_rules(self, namespace: str) -> World: ...

    async def close(self) -> None: ...


class _Running:
    """A cluster that is read again for every question."""

    def __init__(self, client: HttpClient, prices: PriceTable) -> None:
        self._client = client
        self._prices = prices

    def __str__(self) -> str:
        return str(self._client.connection)

    @property
    def namespace(self) -> str:
        return self._client.default_namespace

    async def read_for(self, subject: Target, namespace: str) -> World:
        return await read_for(self._client, subject, namespace, self._prices)

    async def read_with_rules(self, namespace: str) -> World:
        return (await read_with_rules(self._client, namespace)).with_prices(self._prices)

    async def close(self) -> None:
        await self._client.close()


class _Saved:
    """A cluster that was read from a file, once."""

    namespace = DEFAULT_NAMESPACE

    def __init__(self, name: str, world: World) -> None:
        self._name = name
        self._world = world

    def __str__(self) -> str:
        return self._name

    async def read_for(self, subject: Target, namespace: str) -> World:
        return self._world

    async def read_with_rules(self, namespace: str) -> World:
        return self._world

    async def close(self) -> None: ...
