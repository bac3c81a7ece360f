"""`drayman scheduler`: the scheduler alone, against any Kubernetes API server."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from drayman.cli.cluster.options import waiting_options
from drayman.cli.errors import UserError
from drayman.cli.output import say

if TYPE_CHECKING:
    from drayman.cluster.client import Client
    from drayman.scheduler.running import SchedulerOptions

_EPILOG: Final = """\b
Examples:
  drayman scheduler                      the cluster that kubectl talks to
  drayman scheduler --kubeconfig prod.yaml --scheduler-name drayman
  drayman scheduler --no-leader-elect    the only scheduler there is
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Which cluster. Default: as kubectl finds it, or the one this pod runs in.",
)
@click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig.")
@click.option(
    "--scheduler-name",
    "names",
    multiple=True,
    default=("drayman",),
    show_default=True,
    metavar="NAME",
    help="schedulerName of the pods to care for; may be given several times.",
)
@click.option(
    "--policy",
    type=click.Choice(["best", "first-fit"]),
    default="best",
    show_default=True,
    help="How devices are chosen.",
)
@waiting_options
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Work only while holding the lease kube-system/drayman-scheduler.",
)
def scheduler(
    kubeconfig: Path | None,
    context: str,
    names: tuple[str, ...],
    policy: str,
    binding_timeout: float,
    pod_max_backoff: float,
    leader_elect: bool,
) -> None:
    """Schedule pods with devices on any Kubernetes cluster.

    Cares for pods whose schedulerName it is given and leaves all others alone. Keeps nothing: it can be ended at
    any moment.
    """
    from drayman.allocator import Policy
    from drayman.cluster.errors import ConfigurationError
    from drayman.cluster.kube.client import HttpClient
    from drayman.scheduler.running import SchedulerOptions

    options = SchedulerOptions(
        names=frozenset(names),
        policy=Policy(policy),
        transactions=False,
        binding_timeout_s=binding_timeout,
        longest_backoff_s=pod_max_backoff,
    )
    try:
        client = HttpClient.from_environment(kubeconfig, context)
    except ConfigurationError as error:
        raise UserError(str(error)) from error
    asyncio.run(_run(client, options, leader_elect))


async def _run(client: Client, options: SchedulerOptions, leader_elect: bool) -> None:
    from drayman.cluster.errors import ClusterError, LeadershipLostError
    from drayman.cluster.informers import Informers
    from drayman.cluster.leading import Election, LeaderElector
    from drayman.cluster.resources import NODES
    from drayman.scheduler.running import Scheduler

    running = asyncio.current_task()
    assert running is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.cancel)
    async with client:
        try:
            found = await client.list_all(NODES)
        except ClusterError as error:
            raise UserError(f"cannot talk to the cluster: {error}") from error
        names = ", ".join(sorted(options.names))
        click.echo(f"scheduling pods of {names} on {len(found.items)} nodes", err=True)

        async def work() -> None:
            informers = Informers(client)
            try:
                await Scheduler(client, informers, options).run()
            finally:
                await informers.stop()

        try:
            if leader_elect:
                identity = f"{socket.gethostname()}_{os.getpid()}"
                election = Election(
                    name="drayman-scheduler", namespace="kube-system", identity=identity
                )
                await LeaderElector(client, election).lead(work)
            else:
                await work()
        except asyncio.CancelledError:
            say("stopped")
        except LeadershipLostError as error:
            raise UserError(f"lost the lease: {error}") from error
