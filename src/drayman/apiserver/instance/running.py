"""Starting and stopping an instance: folder, store, certificates, rights, first objects, then the socket."""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from drayman.api.pod_security import PodSecuritySettings
from drayman.api.times import timestamp
from drayman.apiserver.extensions.serving import end_extensions
from drayman.apiserver.holdings.exclusive import ExclusiveDevices
from drayman.apiserver.holdings.in_use import ClaimsInUse
from drayman.apiserver.instance.access import Access, arrange_access
from drayman.apiserver.instance.control_plane import ControlPlane, running
from drayman.apiserver.instance.errors import AddressTakenError, InstanceError
from drayman.apiserver.instance.first_objects import (
    create_builtin_definitions,
    create_first_objects,
    create_standard_class,
)
from drayman.apiserver.instance.folder import Folder, FolderError, Record, reason
from drayman.apiserver.instance.kubeconfig import kubeconfig
from drayman.apiserver.instance.queue_metrics import QueueMetrics
from drayman.apiserver.instance.scheduler_metrics import SchedulerMetrics
from drayman.apiserver.instance.starting import CHECK, SCHEDULER_CHECK, Start
from drayman.apiserver.instance.store_metrics import StoreMetrics
from drayman.apiserver.instance.use_metrics import UseMetrics
from drayman.apiserver.lifecycle.running import Lifecycle
from drayman.apiserver.protocol.limits import ServerLimits
from drayman.apiserver.reaching.nodes import NodeApis
from drayman.apiserver.security.admission_records import AdmissionRecords
from drayman.apiserver.security.aggregation import RoleAggregation
from drayman.apiserver.security.authority import SigningAuthority
from drayman.apiserver.security.kubelets import KubeletTrust
from drayman.apiserver.security.owner_references import OwnerPermissions
from drayman.apiserver.security.private_files import write_private
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.http import Listener, RunningServer
from drayman.apiserver.serving.http import start as listen
from drayman.apiserver.serving.server import ApiServer
from drayman.cluster.background import in_background
from drayman.cluster.embedded import Store, StoreError
from drayman.cluster.errors import ConfigurationError
from drayman.cluster.informers import Informers
from drayman.cluster.kube.entries import read_members
from drayman.controllers.quota.tally import QueueTally
from drayman.node.simulated import Report
from drayman.node.streams.kubelet import Kubelets
from drayman.placement.price_table import written
from drayman.reasons.wording import counted
from drayman.scheduler.tally import Tally

LOOPBACK: Final = "127.0.0.1"
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """How to run an instance."""

    folder: Folder
    durable: bool = True
    host: str = LOOPBACK
    port: int = 0
    kubeconfig: Path | None = None
    """Where to write the kubeconfig; by default into the folder."""
    audit_log: Path | None = None
    enforce_owner_permissions: bool = False
    """Whether naming an owner needs rights to it (OwnerReferencesPermissionEnforcement)."""
    pod_security: PodSecuritySettings = field(default_factory=PodSecuritySettings)
    """Pod Security Standards of namespaces without labels, and what is exempt from them."""
    guard_devices: bool = True
    """Whether allocations of devices that others hold, and changes of claims in use, are refused."""
    limits: ServerLimits = field(default_factory=ServerLimits)
    """What all users together may hold at a time."""
    control_plane: ControlPlane | None = field(default_factory=ControlPlane)
    """Scheduler, controllers and simulated nodes; None: only the API."""
    beside: Callable[[NodeApis], AbstractAsyncContextManager[None]] | None = None
    """What else has to run for it to be ready, such as a real node. Entered when the cluster works, left before it ends."""

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@dataclass(slots=True)
class Instance:
    """A running API server."""

    options: Options
    store: Store
    server: ApiServer
    http: RunningServer
    kubeconfig: Path
    started: Start
    found: str = ""
    """The nodes and pods that an earlier run left, in words; empty if there were none."""
    informers: Informers | None = None
    """How controllers and scheduler follow the cluster; None where there are none."""
    _end: AsyncExitStack = field(default_factory=AsyncExitStack)
    """Undoes every step of the start, the last one first."""

    @property
    def url(self) -> str:
        return self.http.url

    async def stop(self) -> None:
        await self._end.aclose()


async def start(options: Options, report: Report | None = None) -> Instance:
    """Start serving, and return when the cluster is ready. Raises InstanceError, and what `beside` raises; then nothing is left open."""
    async with AsyncExitStack() as end:
        instance = await _start(options, end, report)
        instance._end = end.pop_all()
    return instance


async def _start(options: Options, end: AsyncExitStack, report: Report | None) -> Instance:
    store = _open_store(options)
    end.callback(store.close)
    found = _nodes_and_pods(store)
    server = make_server(store, pod_security=options.pod_security)
    server.limits = options.limits
    server.metrics.registry.register(StoreMetrics(store))
    end.push_async_callback(end_extensions, server.core)
    access = arrange_access(server, options.folder, options.host, options.audit_log, end)
    core = server.core
    core.admission.plugins.append(AdmissionRecords(core.authorizer))
    if options.enforce_owner_permissions:
        core.admission.plugins.append(OwnerPermissions(core.authorizer, core.resources))
    if options.guard_devices:
        store.constrain(ExclusiveDevices(store))
        core.admission.plugins.append(ClaimsInUse())
    kubelets = Kubelets(KubeletTrust(options.folder.certificates, core.clock).context)
    end.push_async_callback(kubelets.close)
    core.nodes.kubelets = kubelets
    for resource in UseMetrics().resources():
        core.resources.add(resource)
    await _fill(server, store, options)
    http = await _listen(server, options, access.trust.context)
    end.push_async_callback(http.stop)
    renewing = in_background(access.trust.keep(), "renewing the certificate of the server", _log)
    end.callback(renewing.cancel)
    path = options.kubeconfig or options.folder.kubeconfig
    _write_kubeconfig(path, http.url, access)
    started = timestamp(server.core.clock.now())
    end.callback(options.folder.retract)
    record = Record(
        os.getpid(),
        http.url,
        str(path),
        started,
        options.durable,
        found=found,
        scheduler_names=_scheduler_names(options.control_plane),
        prices=_prices(options.control_plane),
    )
    try:
        starting = Start(options.folder, record, report)
        informers = await _complete(server, options, starting, end)
    except FolderError as error:
        raise InstanceError(str(error)) from error
    return Instance(options, store, server, http, path, starting, found, informers)


async def _complete(
    server: ApiServer, options: Options, start: Start, end: AsyncExitStack
) -> Informers | None:
    """Turn a working API into a ready cluster. Raises FolderError."""
    informers = None
    if options.control_plane is not None:
        checks = {CHECK: start.problem, SCHEDULER_CHECK: start.scheduler_problem}
        server.health.readiness = {**server.health.readiness, **checks}
        lifecycle = Lifecycle(server.core)
        lifecycle.start()
        end.push_async_callback(lifecycle.stop)
        aggregation = RoleAggregation(server.core)
        aggregation.start()
        end.push_async_callback(aggregation.stop)
        tally, parts = Tally(), options.control_plane
        if parts.scheduler is not None:
            server.metrics.registry.register(SchedulerMetrics(tally, lambda: start.leaders))
            scheduler = replace(parts.scheduler, is_guarded=options.guard_devices)
            parts = replace(parts, scheduler=scheduler)
        queue_tally = QueueTally()
        if parts.queues is not None:
            server.metrics.registry.register(QueueMetrics(queue_tally))
        authority = SigningAuthority(options.folder.certificates, server.core.clock.now)
        informers = await end.enter_async_context(
            running(
                server.core,
                parts,
                start.advance,
                start.scheduled_by,
                tally,
                queue_tally,
                authority,
            )
        )
    if options.beside is not None:
        await end.enter_async_context(options.beside(server.core.nodes))
    start.finish()
    return informers


def _open_store(options: Options) -> Store:
    try:
        options.folder.prepare()
        return Store.open(options.folder.store if options.durable else None)
    except (FolderError, StoreError) as error:
        raise InstanceError(str(error)) from error


def _write_kubeconfig(path: Path, url: str, access: Access) -> None:
    """Enter this cluster in a kubeconfig, which may have entries of others. Raises InstanceError."""
    try:
        before = read_members(path) if path.exists() else {}
        write_private(path, kubeconfig(url, access.trust.authority_pem, access.token, before))
    except ConfigurationError as error:
        text = f"{error}; it was left alone: name another file with --kubeconfig, or move it away"
        raise InstanceError(text) from error
    except OSError as error:
        raise InstanceError(f"cannot write {path}: {reason(error)}") from error


def _prices(parts: ControlPlane | None) -> str:
    scheduler = None if parts is None else parts.scheduler
    return "" if scheduler is None or not scheduler.prices.types else written(scheduler.prices)


def _scheduler_names(parts: ControlPlane | None) -> str:
    scheduler = None if parts is None else parts.scheduler
    return "" if scheduler is None else ",".join(sorted(scheduler.names))


def _nodes_and_pods(store: Store) -> str:
    counts = [(store.count(f"{noun}s"), noun) for noun in ("node", "pod")]
    return " and ".join(counted(number, noun) for number, noun in counts if number)


async def _fill(server: ApiServer, store: Store, options: Options) -> None:
    """Create what every cluster has."""
    is_new = store.revision == 0
    try:
        await create_first_objects(server.core)
        if is_new and options.control_plane is not None:
            await create_standard_class(server.core)
        await create_builtin_definitions(server.core)
    except StoreError as error:
        raise InstanceError(str(error)) from error
    if is_new:
        # As with any other server, no client has seen the first versions, and a watch from one of them has to start over.
        store.compact(store.revision)


async def _listen(server: ApiServer, options: Options, tls: ssl.SSLContext) -> RunningServer:
    try:
        return await listen(server, Listener(options.host, options.port, tls))
    except OSError as error:
        # The event loop wraps the system's message in a longer one; the error number is kept.
        number = None if isinstance(error, socket.gaierror) else error.errno
        why = reason(error) if number is None else os.strerror(number).lower()
        kind = AddressTakenError if number == errno.EADDRINUSE else InstanceError
        raise kind(f"cannot listen on {options.host}:{options.port}: {why}") from error
