"""One run of a workload: set up, create pods, watch them being bound."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

import msgspec

from drayman.api.meta import ObjectMeta
from drayman.api.struct import ApiStruct
from drayman.cli.bench.measuring import Measured
from drayman.cli.bench.wire import Address, Connection, ConnectionPool, RequestError
from drayman.cli.bench.workloads import NAMESPACE, Object, Workload
from drayman.cli.errors import UserError
from drayman.cluster import Client, Informer, ListOptions, Notice, Selection
from drayman.cluster.resources import Resource, StructCodec

_NAMESPACES: Final = "/api/v1/namespaces"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_CLAIMS: Final = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
PATHS: Final = {
    "nodes": "/api/v1/nodes",
    "device classes": "/apis/resource.k8s.io/v1/deviceclasses",
    "slices": "/apis/resource.k8s.io/v1/resourceslices",
    "taint rules": "/apis/resource.k8s.io/v1beta2/devicetaintrules",
}
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404
_POLL_S: Final = 0.2
_STALLED_S: Final = 60.0
"""If no pod is bound for this long, a run is aborted."""


class Progress(Protocol):
    """Progress reports during a run."""

    def begin(self, what: str, total: int) -> None: ...

    def advance(self) -> None: ...


class _Spec(ApiStruct):
    node_name: str = ""


class _Pod(ApiStruct):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()


_LEAN_PODS: Final[Resource[_Pod]] = Resource(
    "", "v1", "pods", "Pod", namespaced=True, codec=StructCodec(_Pod), complete=False
)
"""Pods, decoded only as far as needed for measuring."""


class Bindings:
    """Follows the pods and records which have been bound."""

    def __init__(self) -> None:
        self._unbound: set[str] = set()
        self._unnamed = 0
        self._counted: set[str] = set()
        self._progress = asyncio.Event()
        self._listener: Callable[[str, float], None] | None = None
        self.last = time.monotonic()

    def expect(self, names: Iterable[str], listener: Callable[[str, float], None]) -> None:
        self._unbound.update(names)
        self._listener = listener
        self.last = time.monotonic()

    def expect_number(self, pods: int) -> None:
        """Expect so many pods of which the names are not known."""
        self._unnamed = pods
        self.last = time.monotonic()

    def saw(self, notice: Notice[_Pod]) -> None:
        name = notice.object.metadata.name
        if self._unnamed and notice.object.spec.node_name and name not in self._counted:
            self._counted.add(name)
            self._unnamed -= 1
            self.last = time.monotonic()
            if not self._unnamed:
                self._progress.set()
            return
        if notice.object.spec.node_name and name in self._unbound:
            self._unbound.discard(name)
            self.last = time.monotonic()
            if self._listener is not None:
                self._listener(name, self.last)
            if not self._unbound:
                self._progress.set()

    async def all_bound(self) -> None:
        """Returns when all expected pods are bound. Raises UserError when nothing happens for too long."""
        while self._unbound or self._unnamed:
            self._progress.clear()
            try:
                async with asyncio.timeout(1.0):
                    await self._progress.wait()
            except TimeoutError:
                if time.monotonic() - self.last > _STALLED_S:
                    raise UserError(
                        f"{len(self._unbound) + self._unnamed} pods are still not bound,"
                        f" and none was for {_STALLED_S:g} s; does a scheduler run there?"
                    ) from None


async def run(
    workload: Workload,
    connections: ConnectionPool,
    client: Client,
    progress: Progress,
    *,
    clears: bool = False,
) -> Measured:
    """Sets the workload up with the connections, and measures what the client sees of it. Raises UserError and ClusterError.

    With `clears`, everything that was created is deleted at the end, including after an error or an interrupt.
    """
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    try:
        await connections.send("POST", _NAMESPACES, namespace)
    except RequestError as error:
        if error.status == _CONFLICT:
            raise UserError(
                f"there is a namespace {NAMESPACE} already, in which a run would create its pods;"
                f" delete it first: kubectl delete namespace {NAMESPACE}"
            ) from error
        raise UserError(str(error)) from error
    try:
        return await _measured(workload, connections, client, progress)
    finally:
        if clears:
            await clear(connections.address, connections.created, progress)


async def _measured(
    workload: Workload, connections: ConnectionPool, client: Client, progress: Progress
) -> Measured:
    try:
        await _set_up(workload, connections, progress)
        async with following(client) as bindings:
            if workload.pods_before:
                progress.begin("placing pods before the measurement", workload.pods_before)
                await _create(workload, connections, bindings, progress, 0, workload.pods_before)
            if workload.steady_s:
                return await _steady(workload, connections, bindings, progress)
            progress.begin("measuring", workload.pods)
            first = workload.pods_before
            return await _create(workload, connections, bindings, progress, first, workload.pods)
    except* (RequestError, OSError) as errors:
        raise UserError(str(errors.exceptions[0])) from errors


async def clear(address: Address, created: Collection[str], progress: Progress) -> None:
    """Delete the namespace of a run with all that is in it, and then what it created outside. Raises UserError.

    There is no kubelet that would end the pods, so they are deleted without a grace period.
    """
    progress.begin("deleting what was created", len(created))
    now = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    try:
        # New connections: an interrupt may have left requests on the others unanswered.
        async with ConnectionPool(address) as connections:
            for path in (_PODS, _CLAIMS):
                await connections.send("DELETE", path, now)
            await connections.delete_all([f"{_NAMESPACES}/{NAMESPACE}"], lambda: None)
            await connections.delete_all(created, progress.advance)
            await _ended(connections)
    except* (RequestError, OSError) as errors:
        left = f"namespace {NAMESPACE}, and {len(created):,} other objects or fewer, are left"
        raise UserError(f"{errors.exceptions[0]}; {left}") from errors


async def _ended(connections: ConnectionPool) -> None:
    """Returns once the namespace is gone. Raises UserError if it is still there after a while."""
    until = time.monotonic() + _STALLED_S
    while time.monotonic() < until:
        try:
            await connections.send("GET", f"{_NAMESPACES}/{NAMESPACE}")
        except RequestError as error:
            if error.status == _NOT_FOUND:
                return
            raise
        await asyncio.sleep(_POLL_S)
    raise UserError(f"namespace {NAMESPACE} is still being deleted after {_STALLED_S:g} s")


async def _set_up(workload: Workload, connections: ConnectionPool, progress: Progress) -> None:
    for what, objects in (
        ("nodes", workload.node_objects()),
        ("device classes", workload.class_objects()),
        ("slices", workload.slice_objects()),
        ("taint rules", workload.rule_objects()),
    ):
        found = list(objects)
        progress.begin(f"creating {what}", len(found))
        after = untaint if what == "nodes" else None
        await connections.create_all(PATHS[what], found, progress.advance, after)
    template = workload.template_object()
    if template is not None:
        path = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaimtemplates"
        await connections.send("POST", path, template)
    await _allocate_before(workload, connections, progress)


async def untaint(connection: Connection, node: Any) -> None:
    """New nodes are tainted until a controller finds them ready; no controller looks after these."""
    patch = msgspec.json.encode({"spec": {"taints": None}})
    path = f"{PATHS['nodes']}/{node['metadata']['name']}"
    await connection.send("PATCH", path, patch, "merge-patch+json")


async def _allocate_before(
    workload: Workload, connections: ConnectionPool, progress: Progress
) -> None:
    progress.begin("allocating claims before the measurement", workload.claims_before)
    statuses = {claim["metadata"]["name"]: status for claim, status in workload.allocated_claims()}

    async def allocate(connection: Connection, claim: Any) -> None:
        name = claim["metadata"]["name"]
        patch = msgspec.json.encode({"status": statuses[name]})
        await connection.send("PATCH", f"{_CLAIMS}/{name}/status", patch, "merge-patch+json")

    claims = (claim for claim, _ in workload.allocated_claims())
    await connections.create_all(_CLAIMS, claims, progress.advance, allocate)


@asynccontextmanager
async def following(client: Client) -> AsyncIterator[Bindings]:
    """A watch of the pods while the context lasts. Servers end watches at any time, so it is resumed."""
    bindings = Bindings()
    # An informer retries when it is forbidden to list; here the user is notified at once.
    await client.list(_LEAN_PODS, NAMESPACE, options=ListOptions(limit=1))
    informer = Informer(client, Selection(_LEAN_PODS, NAMESPACE))
    informer.add_handler(bindings.saw)
    async with informer:
        await informer.wait_synced()
        yield bindings


async def _create(
    workload: Workload,
    connections: ConnectionPool,
    bindings: Bindings,
    progress: Progress,
    first: int,
    count: int,
) -> Measured:
    """Create pods as fast as the server accepts them, and wait until all are bound."""
    pods = [workload.pod_object(index, f"pod-{index}") for index in range(first, first + count)]
    await connections.create_all(_CLAIMS, workload.shared_claims(first, count), lambda: None)
    measured = Measured(time.monotonic())

    def bound(name: str, now: float) -> None:
        measured.bind(name, now)
        progress.advance()

    bindings.expect((pod["metadata"]["name"] for pod in pods), bound)
    await connections.create_all(_PODS, _timed(pods, measured), lambda: None)
    await bindings.all_bound()
    return measured


def _timed(pods: Iterable[Object], measured: Measured) -> Iterable[Object]:
    """Each pod, noting when it was handed out to be created."""
    for pod in pods:
        measured.created[pod["metadata"]["name"]] = time.monotonic()
        yield pod


async def _steady(
    workload: Workload, connections: ConnectionPool, bindings: Bindings, progress: Progress
) -> Measured:
    """Repeatedly create pods, wait until all are bound, delete them."""
    total = round(workload.steady_s)
    progress.begin("measuring", total)
    measured = Measured(time.monotonic())
    ends = measured.started + workload.steady_s
    number = shown = 0
    while time.monotonic() < ends:
        names = [f"pod-{number + index}" for index in range(workload.pods)]
        number += workload.pods
        pods = [workload.pod_object(index, name) for index, name in enumerate(names)]
        bindings.expect(names, measured.bind)
        await connections.create_all(_PODS, _timed(pods, measured), lambda: None)
        await bindings.all_bound()
        options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        await connections.send("DELETE", _PODS, options)
        while shown < min(time.monotonic() - measured.started, total):
            progress.advance()
            shown += 1
    return measured
