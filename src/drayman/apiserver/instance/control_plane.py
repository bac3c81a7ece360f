"""What turns an API server into a cluster: the controllers, the scheduler and the simulated nodes, in the process of the server.

They are clients like any other, but in-process: one set of informers for all of them, and transactions where Kubernetes needs several
requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from drayman.apiserver.instance.acceptance import wait_accepted
from drayman.apiserver.instance.visibility import Visibility
from drayman.apiserver.kinds.queued_work import QueuedWork
from drayman.apiserver.served.acting import Part
from drayman.apiserver.serving.backend import ServerBackend
from drayman.apiserver.verbs.core import Core
from drayman.cluster.informers import Informers
from drayman.cluster.inprocess import InProcessClient
from drayman.cluster.turns import Turns
from drayman.controllers.certificates.signing import Authority
from drayman.controllers.features import ControllerFeatures
from drayman.controllers.quota.charged import ChargeGuard
from drayman.controllers.quota.source import ConfigurationSource
from drayman.controllers.quota.tally import QueueTally
from drayman.controllers.running import all_controllers, start_controllers
from drayman.drivers.profiles import HardwareCluster
from drayman.node.simulated import Report, SimulatedNode, SimulatedNodes
from drayman.scheduler.leading import Candidate
from drayman.scheduler.leading import Report as SchedulerReport
from drayman.scheduler.options import SchedulerOptions
from drayman.scheduler.running import Scheduler
from drayman.scheduler.tally import Tally

_log: Final = logging.getLogger(__name__)

SCHEDULER: Final = "drayman-up"
"""Under which the scheduler of an instance holds its leases. A store has one instance at a time, so the next one is its successor and need
not wait for the leases of one that was killed."""


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Which parts run alongside the API server."""

    scheduler: SchedulerOptions | None = field(default_factory=SchedulerOptions)
    """None: an external scheduler is used."""
    hardware: HardwareCluster | None = None
    """Nodes to simulate, in addition to those simulated before."""
    features: ControllerFeatures = field(default_factory=ControllerFeatures)
    queues: ConfigurationSource | None = field(default_factory=ConfigurationSource)
    """How work waits in Kueue's queues; None: they are left to Kueue itself."""

    @property
    def running(self) -> frozenset[Part]:
        always = frozenset({Part.CONTROLLERS, Part.NODES})
        return always if self.scheduler is None else always | {Part.SCHEDULER}


@asynccontextmanager
async def running(
    core: Core,
    parts: ControlPlane,
    report: Report | None = None,
    scheduled_by: SchedulerReport = lambda _: None,
    tally: Tally | None = None,
    queue_tally: QueueTally | None = None,
    authority: Authority | None = None,
) -> AsyncIterator[Informers]:
    """Runs the parts until the context is left. The context is entered when the hardware is published and the scheduler has seen it.

    Its value is how all of them follow the cluster.

    `scheduled_by` is called with who serves each `schedulerName` whenever that changes: `SCHEDULER` or another holder of its lease.
    `authority` signs certificates.
    """
    client = InProcessClient(ServerBackend(core))
    async with AsyncExitStack() as end:
        core.running = parts.running
        end.callback(_nothing_runs, core)
        if parts.scheduler is not None:
            parts = replace(parts, scheduler=replace(parts.scheduler, alone=True))
        informers = Informers(client)
        end.push_async_callback(informers.stop)
        turns = Turns() if parts.scheduler is not None else None
        if parts.queues is not None:
            source = parts.queues
            waiting = QueuedWork(lambda: source.current.intake)
            core.admission.plugins.append(waiting)
            end.callback(core.admission.plugins.remove, waiting)
            queue_tally = queue_tally or QueueTally()
            _show_queues(core, queue_tally, end)
        guard = ChargeGuard()
        constructors = all_controllers(
            turns, parts.features, parts.queues, queue_tally, authority, guard
        )
        controllers = await start_controllers(client, informers, constructors)
        end.push_async_callback(controllers.stop)
        if parts.scheduler is not None:
            options = parts.scheduler

            def make(names: frozenset[str]) -> Scheduler:
                return Scheduler(
                    client,
                    informers,
                    options.limited_to(names),
                    turns=turns,
                    tally=tally,
                    charging=guard,
                )

            candidate = Candidate(client, options.names, SCHEDULER, make, scheduled_by)
            scheduling = asyncio.create_task(candidate.run(), name="scheduler")
            scheduling.add_done_callback(_report)
            end.push_async_callback(_cancel, scheduling)
            # Before the nodes are made: they are ready once the scheduler's handlers have been notified of them.
            await candidate.decided()
        nodes = _simulated(client, informers, parts.hardware)
        await _start_nodes(nodes, informers, report, end)
        core.nodes.simulated = nodes.containers
        yield informers


def _show_queues(core: Core, tally: QueueTally, end: AsyncExitStack) -> None:
    """Serve who waits in queues, as long as they are at work."""
    for resource in Visibility(tally.state_now).resources():
        core.resources.add(resource)
        end.callback(core.resources.remove, resource.group, resource.plural)


async def _start_nodes(
    nodes: SimulatedNodes, informers: Informers, report: Report | None, end: AsyncExitStack
) -> None:
    """Returns when pods can be placed on the nodes. The report counts what is published, and then each node that is accepted."""
    advance = report or (lambda done, total: None)
    published = 0

    def count_published(done: int, total: int) -> None:
        nonlocal published
        published = done
        advance(done, total + nodes.count)

    end.push_async_callback(nodes.stop)
    await nodes.start(count_published)
    living = nodes.living
    total = published + len(living)
    await wait_accepted(informers, living, lambda number: advance(published + number, total))


def _simulated(
    client: InProcessClient, informers: Informers, hardware: HardwareCluster | None
) -> SimulatedNodes:
    """Also without new hardware: nodes that were simulated before continue to run."""
    if hardware is None:
        return SimulatedNodes(client, informers, ())
    return SimulatedNodes(
        client,
        informers,
        [SimulatedNode(item.node, item.slices) for item in hardware.nodes],
        classes=hardware.classes,
        definitions=hardware.definitions,
    )


def _nothing_runs(core: Core) -> None:
    core.running = frozenset()
    core.nodes.simulated = None


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait((task,))


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.error("the scheduler has ended", exc_info=task.exception())
