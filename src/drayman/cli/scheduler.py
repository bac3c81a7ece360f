"""`drayman scheduler`: the scheduler alone, against any Kubernetes API server."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import uuid
from typing import TYPE_CHECKING, Final

import click

from drayman.cli.connecting import (
    Where,
    client_of,
    cluster_options,
    in_words,
    lasting_client_of,
)
from drayman.cli.errors import UserError
from drayman.cli.options import prices_option, waiting_options
from drayman.cli.output import date_log_lines, print_verbatim, say, to_stderr
from drayman.cli.prices import load_prices
from drayman.placement.schedulers import OWN_SCHEDULER
from drayman.questions.which_cluster import folder_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drayman.cluster import HttpClient
    from drayman.cluster.kube.connection import Connection
    from drayman.scheduler.options import SchedulerOptions

_EPILOG: Final = """\b
Examples:
  drayman scheduler                      the cluster of KUBECONFIG
  drayman scheduler --kubeconfig prod.yaml --scheduler-name drayman
  drayman scheduler --scheduler-name other   pods that name it
  drayman scheduler --no-leader-elect    the only scheduler there is
  drayman scheduler --prices prices.yaml
  drayman scheduler --print-rbac | kubectl apply -f -
"""


@click.command(epilog=_EPILOG)
@cluster_options
@click.option(
    "--scheduler-name",
    "names",
    multiple=True,
    default=(OWN_SCHEDULER,),
    show_default=True,
    metavar="NAME",
    help="schedulerName of the pods to schedule; may be given several times.",
)
@click.option(
    "--policy",
    type=click.Choice(["best", "first-fit"]),
    default="best",
    show_default=True,
    help="How devices are chosen.",
)
@prices_option
@waiting_options
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Serve a name only while no other scheduler does, inside `drayman up` or elsewhere.",
)
@click.option(
    "--print-rbac",
    is_flag=True,
    help="Print a service account with all the rights that this needs, for `kubectl apply -f -`.",
)
def scheduler(
    where: Where,
    names: tuple[str, ...],
    policy: str,
    prices: str | None,
    binding_timeout: float,
    pod_max_backoff: float,
    leader_elect: bool,
    print_rbac: bool,
) -> None:
    """Schedule pods with devices on any Kubernetes cluster.

    Handles pods with the given schedulerName and leaves all others alone. Keeps no state: it can be stopped at any
    time. Exit status 1 if it lacks a permission that it needs.
    """
    if print_rbac:
        _print_rbac(names)
        return
    from drayman.allocator import Policy
    from drayman.api.formats import dns_subdomain_problems
    from drayman.placement.schedulers import lease_of
    from drayman.scheduler.options import SchedulerOptions

    for name in names if leader_elect else ():
        if list(dns_subdomain_problems(lease_of(name))):
            raise click.UsageError(
                f"--scheduler-name {name!r} cannot be part of the name of a lease;"
                " use lower case letters, digits, '-' and '.', or --no-leader-elect"
            )

    options = SchedulerOptions(
        names=frozenset(names),
        policy=Policy(policy),
        binding_timeout_s=binding_timeout,
        longest_backoff_s=pod_max_backoff,
        prices=load_prices(prices),
    )
    connection = where.connection()
    date_log_lines()
    with in_words(connection):
        warning = "" if leader_elect else _rival(where, connection, names)
        asyncio.run(_run(connection, options, leader_elect, warning))


def _print_rbac(names: tuple[str, ...]) -> None:
    import yaml

    from drayman.cli.scheduler_rights import manifest

    print_verbatim(yaml.safe_dump_all(manifest(names), sort_keys=False), nl=False)


def _rival(where: Where, connection: Connection, names: tuple[str, ...]) -> str:
    """A warning if the `drayman up` that serves this cluster schedules the same pods; otherwise empty."""
    record = folder_of(where.data_dir).running()
    if record is None or record.url != connection.server:
        return ""
    both = ", ".join(sorted({*names} & {*record.scheduler_names.split(",")}))
    if not both:
        return ""
    return (
        f"warning: `drayman up` (process {record.pid}) already schedules pods of {both} there;"
        " start it with --no-scheduler, give this one another --scheduler-name, or let it elect a leader"
    )


async def _run(
    connection: Connection, options: SchedulerOptions, leader_elect: bool, warning: str
) -> None:
    """Run until a signal arrives. Raises UserError and, where the cluster does not answer at the start, ClusterError."""
    from drayman.cli.scheduler_rights import require_rights
    from drayman.cluster.errors import LeadershipLostError
    from drayman.cluster.resources import NODES
    from drayman.reasons.wording import counted

    running = asyncio.current_task()
    assert running is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.cancel)
    try:
        async with client_of(connection) as client:
            await require_rights(client, options.names if leader_elect else ())
            nodes = counted(len((await client.list_all(NODES)).items), "node")
            names = ", ".join(sorted(options.names))
            to_stderr(f"scheduling pods of {names} on {nodes} of {connection}")
            if warning:
                to_stderr(warning)
        async with lasting_client_of(connection) as client:
            await _work(client, options, leader_elect)
    except asyncio.CancelledError:
        say("stopped")
    except LeadershipLostError as error:
        raise UserError(f"lost the lease: {error}") from error


async def _work(client: HttpClient, options: SchedulerOptions, leader_elect: bool) -> None:
    """Schedule until cancelled, for names whose lease is held if there are to be leases."""
    from drayman.placement.schedulers import LEASE_NAMESPACE, lease_of
    from drayman.scheduler.leading import Candidate

    if not leader_elect:
        await _Term(client, options).run()
        return
    identity = _identity()
    said: dict[str, str] = {}

    def report(leaders: Mapping[str, str]) -> None:
        for name, leader in leaders.items():
            before = said.get(name, "")
            if leader not in ("", before, identity):
                say(f"standing by: {leader} holds the lease {LEASE_NAMESPACE}/{lease_of(name)}")
            elif leader == identity and before not in ("", identity):
                say(f"at work for pods of {name}")
            said[name] = leader or before

    def make(names: frozenset[str]) -> _Term:
        return _Term(client, options.limited_to(names))

    await Candidate(client, options.names, identity, make, report).lead()


def _identity() -> str:
    """Of this process, unlike that of any other: containers may share a host name, and all have the process id 1."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"


class _Term:
    """A scheduler with informers of its own: it follows the cluster only while it is at work."""

    def __init__(self, client: HttpClient, options: SchedulerOptions) -> None:
        from drayman.cluster.informers import Informers
        from drayman.scheduler.running import Scheduler

        self._informers = Informers(client)
        self._scheduler = Scheduler(client, self._informers, options)

    def follow(self) -> None:
        self._scheduler.follow()

    async def run(self) -> None:
        try:
            await self._scheduler.run()
        finally:
            await self._informers.stop()
