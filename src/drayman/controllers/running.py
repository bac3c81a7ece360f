"""Starts the controllers and keeps them going.

Each controller is a class that is made with a client and the shared informers, and has one method, `run`, which works until it is cancelled
and may be called again after it raised. A controller that fails is reported and run again after a pause, longer each time it fails soon;
the others are not affected.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol

from drayman.cluster.backoff import Backoff
from drayman.cluster.client import Client
from drayman.cluster.informers import Informers
from drayman.cluster.turns import Turns
from drayman.controllers import nodes, volumes, workloads
from drayman.controllers.certificates.approving import NodeCertificateApprover
from drayman.controllers.certificates.cleaning import CertificateCleaner
from drayman.controllers.certificates.signing import Authority, CertificateSigner
from drayman.controllers.claims.controller import ClaimController
from drayman.controllers.features import ControllerFeatures
from drayman.controllers.multikueue.controller import DispatchController
from drayman.controllers.quota.charged import ChargeGuard
from drayman.controllers.quota.controller import QuotaController
from drayman.controllers.quota.protecting import Unprotecting
from drayman.controllers.quota.source import ConfigurationSource
from drayman.controllers.quota.tally import QueueTally
from drayman.controllers.taint_eviction.controller import TaintEvictionController
from drayman.controllers.workloads.jobs import JobController

_log: Final = logging.getLogger(__name__)

BETWEEN_FAILURES: Final = Backoff(initial=0.5, cap=30.0)
LASTING_SECONDS: Final = 60.0
"""A controller that ran for so long begins a new row of failures."""


class Controller(Protocol):
    async def run(self) -> None:
        """Works until cancelled. May be called again after it raised."""
        ...


Constructor = Callable[[Client, Informers], Controller]


def all_controllers(
    turns: Turns | None = None,
    features: ControllerFeatures | None = None,
    queues: ConfigurationSource | None = None,
    queue_tally: QueueTally | None = None,
    authority: Authority | None = None,
    guard: ChargeGuard | None = None,
) -> tuple[Constructor, ...]:
    """Every controller. With `turns`, beside a scheduler in the same process; with `queues`, those of Kueue's queues as well.

    With an `authority`, those of certificates. `guard` is what a scheduler in the same process asks which pods are charged.
    """
    features = features or ControllerFeatures()
    of_queues: tuple[Constructor, ...] = (Unprotecting,)
    if queues is not None:
        of_queues = (
            partial(QuotaController, source=queues, tally=queue_tally, guard=guard),
            partial(DispatchController, source=queues, tally=queue_tally),
        )
    of_certificates: tuple[Constructor, ...] = ()
    if authority is not None:
        of_certificates = (
            NodeCertificateApprover,
            partial(CertificateSigner, authority=authority),
            CertificateCleaner,
        )
    return (
        partial(ClaimController, turns=turns),
        TaintEvictionController,
        *(
            partial(JobController, makes_groups=features.groups_of_jobs)
            if make is JobController
            else make
            for make in workloads.CONTROLLERS
        ),
        *volumes.CONTROLLERS,
        *nodes.CONTROLLERS,
        *of_queues,
        *of_certificates,
    )


class RunningControllers:
    """Controllers at work. `stop` ends them and waits until they have ended."""

    def __init__(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        self._tasks = tasks

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


async def start_controllers(
    client: Client,
    informers: Informers,
    constructors: Sequence[Constructor],
    backoff: Backoff = BETWEEN_FAILURES,
) -> RunningControllers:
    """Makes the controllers, starts the informers that they follow, and lets them work.

    The caller has to stop the informers, after the controllers.
    """
    controllers = [make(client, informers) for make in constructors]
    await informers.start()
    return RunningControllers([_supervised(controller, backoff) for controller in controllers])


def _supervised(controller: Controller, backoff: Backoff) -> asyncio.Task[None]:
    name = type(controller).__name__
    return asyncio.create_task(_keep_running(name, controller.run, backoff), name=name)


async def _keep_running(name: str, run: Callable[[], Awaitable[None]], backoff: Backoff) -> None:
    """Runs something again and again, with a pause after each failure."""
    loop = asyncio.get_running_loop()
    failures = 0
    while True:
        began = loop.time()
        try:
            await run()
            _log.error("%s ended by itself", name)
        except Exception:
            # A bug in one of them must not end the others, nor the process.
            _log.exception("%s failed", name)
        failures = 1 if loop.time() - began > LASTING_SECONDS else failures + 1
        await asyncio.sleep(backoff.delay(failures))
