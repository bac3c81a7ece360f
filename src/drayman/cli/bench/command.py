"""`drayman bench schedule`, `drayman bench gangs` and `drayman bench quota`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from drayman.api.near_names import did_you_mean
from drayman.cli.completing import completion_items
from drayman.cli.connecting import Where, client_of, cluster_options, in_words
from drayman.cli.errors import UserError
from drayman.cli.output import to_stderr, to_stdout
from drayman.cli.progress import is_watched

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from drayman.cli.bench.measuring import Measured
    from drayman.cli.bench.quota_load import Suite
    from drayman.cli.bench.scheduling import Progress
    from drayman.cli.bench.serving import Server
    from drayman.cli.bench.workloads import Workload
    from drayman.cluster.kube.connection import Connection

_PUBLISHED_NODES: Final = 500
_EPILOG: Final = """\b
Examples:
  drayman bench schedule --list
  drayman bench schedule --workload SchedulingWithResourceClaimTemplate/fast
  drayman bench schedule --workload FirstAvailable/fast --nodes 5 --json
  drayman bench gangs --scene gang
"""


_SUITES: Final = ("baseline", "large-scale")
_SCENES: Final = ("gang", "refusal", "jobs", "preemption", "defragmentation")


def _workload_names(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The names of workloads to measure."""
    from drayman.cli.bench.catalogue import WORKLOADS

    return completion_items(name for name in WORKLOADS if name.startswith(incomplete))


@click.group(epilog=_EPILOG)
def bench() -> None:
    """Measure a cluster from outside."""


@bench.command(short_help="Measure how many pods per second are bound.", epilog=_EPILOG)
@click.option(
    "--workload",
    "name",
    metavar="NAME",
    shell_complete=_workload_names,
    help="Which workload; see --list.",
)
@click.option("--list", "listing", is_flag=True, help="List the workloads and their sizes.")
@click.option(
    "--nodes",
    type=click.IntRange(1),
    metavar="N",
    help="Another number of nodes; what grows with them is scaled too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--backend",
    type=click.Choice(["embedded", "kubeconfig"]),
    default="embedded",
    show_default=True,
    help="A server of its own with a durable store, or the cluster that other commands would talk to.",
)
@cluster_options
def schedule(
    name: str | None, listing: bool, nodes: int | None, as_json: bool, backend: str, where: Where
) -> None:
    """Schedule one of Kubernetes' DRA workloads, and say how many pods per second were bound.

    Nodes, slices, claims and pods are created through the HTTP API by this process; the server is another one. The figures are taken as
    scheduler_perf takes them.
    """
    from drayman.cli.bench.catalogue import WORKLOADS

    if listing:
        _list(as_json)
        return
    if name is None:
        raise click.UsageError("--workload NAME is needed; --list shows the names")
    workload = WORKLOADS.get(name)
    if workload is None:
        meant = did_you_mean(name, WORKLOADS, "`drayman bench schedule --list`")
        raise UserError(f"there is no workload {name}{meant}")
    if nodes is not None:
        workload = workload.sized(nodes)
    if backend == "embedded":
        asyncio.run(_schedule(workload, as_json, None))
        return
    connection = where.connection()
    with in_words(connection):
        asyncio.run(_schedule(workload, as_json, connection))


@bench.command(
    short_help="Measure how fast gangs are placed and refused.",
    epilog="""\b
Examples:
  drayman bench gangs
  drayman bench gangs --scene gang --scene refusal --json
  drayman bench gangs --nodes 50
""",
)
@click.option(
    "--scene",
    "scenes",
    type=click.Choice(_SCENES),
    multiple=True,
    help="Only this; may be repeated. Default: all of them.",
)
@click.option(
    "--nodes",
    type=click.IntRange(1),
    default=_PUBLISHED_NODES,
    show_default=True,
    metavar="N",
    help="How many nodes of eight devices there are.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each figure.")
def gangs(scenes: tuple[str, ...], nodes: int, as_json: bool) -> None:
    """Place whole workloads on nodes of eight devices, and say how long each takes.

    Each scene has a server of its own with a durable store, in another process. Times are from the first request to the last pod bound, or
    to the reason why there is no room. Beside them is what the KAI Scheduler publishes for the same on 500 nodes.
    """
    for scene in scenes or _SCENES:
        with _Bar() as progress:
            figure = asyncio.run(_scene(scene, nodes, progress))
        if as_json:
            to_stdout(json.dumps(figure))
        else:
            to_stdout(scene_line(figure))


@bench.command(
    short_help="Measure how many workloads per second are admitted.",
    epilog="""\b
Examples:
  drayman bench quota
  drayman bench quota --suite baseline --json
  drayman bench quota --suite baseline --served
""",
)
@click.option(
    "--suite",
    "suites",
    type=click.Choice(_SUITES),
    multiple=True,
    help="Only this; may be repeated. Default: both.",
)
@click.option("--devices", is_flag=True, help="Workloads ask for devices by claim templates.")
@click.option(
    "--served",
    is_flag=True,
    help="Through the API of a server of its own, with everything written.",
)
@click.option(
    "--part",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Only one in so many of the workloads of each queue.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each figure.")
def quota(suites: tuple[str, ...], devices: bool, served: bool, part: int, as_json: bool) -> None:
    """Admit workloads as in Kueue's own load tests, and say how many a second.

    Workloads end as soon as they are admitted. Without --served nothing is written anywhere: this is the time that decisions take, with
    the objects read. With it, the Workloads are created and finished through the HTTP API of a server with a durable store.
    """
    from dataclasses import replace

    from drayman.cli.bench.quota_load import SUITES

    for name in suites or _SUITES:
        suite = SUITES[name]
        suite = replace(suite, workloads=max(1, suite.workloads // part))
        with _Bar() as progress:
            if served:
                figure = asyncio.run(_served_quota(name, suite, devices, progress))
            else:
                figure = _decided_quota(name, suite, devices, progress)
        to_stdout(json.dumps(figure) if as_json else quota_line(figure))


def _decided_quota(name: str, suite: Suite, devices: bool, progress: Progress) -> dict[str, Any]:
    from dataclasses import asdict

    from drayman.cli.bench.quota import measure

    figure = measure(name, suite, progress, devices=devices)
    found = {**asdict(figure), "per_second": round(figure.per_second, 1)}
    return {**found, "seconds": round(figure.seconds, 3)}


async def _served_quota(
    name: str, suite: Suite, devices: bool, progress: Progress
) -> dict[str, Any]:
    from drayman.cli.bench.quota_load import configuration
    from drayman.cli.bench.quota_served import Ground
    from drayman.cli.bench.serving import configured
    from drayman.cli.bench.wire import ConnectionPool, RequestError

    figure: dict[str, Any] = {}
    async with (
        configured(configuration() if devices else None) as server,
        client_of(server.connection) as client,
    ):
        try:
            async with ConnectionPool(server.address) as connections:
                ground = Ground(server, connections, client, progress)
                figure = await ground.measure(name, suite, devices=devices)
        except* (RequestError, UserError) as errors:
            raise UserError(str(errors.exceptions[0])) from errors
    return figure


def quota_line(figure: Mapping[str, Any]) -> str:
    """A suite with its admissions a second, and what Kueue publishes for the same."""
    told = f"{figure['workloads']:>6} workloads {figure['queues']:>5} queues"
    kueue = f", Kueue {figure['published']:g}/s" if figure["published"] else ""
    return f"{figure['suite']:<24} {told} {figure['per_second']:>6.0f}/s{kueue}"


def scene_line(figure: Mapping[str, Any]) -> str:
    """A scene with its time, and the times to compare it with, which are for so many nodes."""
    took = f"{figure['scene']:<15} {figure['pods']:>5} pods  {figure['seconds']:>8.3f} s"
    times = f"goal {figure['bar']:g} s, KAI publishes {figure['published']:g} s"
    usual = figure["nodes"] == _PUBLISHED_NODES
    return f"{took}  ({times})" if usual else f"{took}  (on {_PUBLISHED_NODES}: {times})"


async def _scene(name: str, nodes: int, progress: Progress) -> dict[str, Any]:
    from dataclasses import asdict

    from drayman.cli.bench.gangs import SCENES, Ground
    from drayman.cli.bench.wire import ConnectionPool, RequestError

    async with _server(None) as server, client_of(server.connection) as client:
        try:
            async with ConnectionPool(server.address) as connections:
                ground = Ground(nodes, connections, client, progress)
                await ground.prepare()
                figure = await SCENES[name](ground)
        except RequestError as error:
            raise UserError(str(error)) from error
        found = {**asdict(figure), "seconds": round(figure.seconds, 3)}
        return {**found, "peak_memory_bytes": server.peak_memory()}


def _list(as_json: bool) -> None:
    from dataclasses import asdict

    from drayman.cli.bench.catalogue import WORKLOADS
    from drayman.reasons.wording import counted

    if as_json:
        to_stdout(json.dumps([asdict(workload) for workload in WORKLOADS.values()]))
        return
    width = max(map(len, WORKLOADS))
    for workload in WORKLOADS.values():
        nodes = "node " if workload.nodes == 1 else "nodes"
        pods = counted(workload.pods, "pod")
        to_stdout(f"{workload.name:<{width}} {workload.nodes:>5} {nodes}  {pods}")
    to_stderr("Pods that are measured; a name also counts those that are placed before.")


@asynccontextmanager
async def _server(connection: Connection | None) -> AsyncIterator[Server]:
    """The named server, or one of our own."""
    from drayman.cli.bench.serving import Server, address_of, embedded

    if connection is None:
        async with embedded() as server:
            yield server
    else:
        yield Server(connection, await address_of(connection))


async def _measured(
    workload: Workload, connection: Connection | None, progress: Progress
) -> tuple[Measured, int | None]:
    """The figures, and the server's peak memory."""
    from drayman.cli.bench.scheduling import run
    from drayman.cli.bench.wire import ConnectionPool, RequestError
    from drayman.cluster import ListOptions
    from drayman.cluster.resources import NODES

    async with _server(connection) as server, client_of(server.connection) as client:
        # The first request uses the client that explains in words why there is no answer.
        await client.list(NODES, options=ListOptions(limit=1))
        try:
            async with ConnectionPool(server.address) as connections:
                measured = await run(
                    workload, connections, client, progress, clears=connection is not None
                )
        except RequestError as error:
            raise UserError(str(error)) from error
        return measured, server.peak_memory()


async def _schedule(workload: Workload, as_json: bool, connection: Connection | None) -> None:
    from drayman.reasons.wording import counted

    with _Bar() as progress:
        measured, memory = await _measured(workload, connection, progress)
    figures = measured.summary()
    if as_json:
        to_stdout(
            json.dumps(
                {
                    "workload": workload.name,
                    **_named(connection),
                    "nodes": workload.nodes,
                    "unit": "pods/s",
                    **figures,
                    "target": workload.target,
                    "peak_memory_bytes": memory,
                }
            )
        )
        return
    if connection is not None:
        to_stdout(f"cluster: {connection}")
    nodes, pods = counted(workload.nodes, "node"), counted(int(figures["pods"]), "pod")
    to_stdout(f"{workload.name}, {nodes}: {pods} bound")
    to_stdout(f"throughput  {figures['average']} pods/s on average (wanted: {workload.target:g})")
    if figures["samples"]:
        to_stdout(
            f"by second   p50 {figures['p50']}  p90 {figures['p90']}  p95 {figures['p95']}  p99 {figures['p99']}"
        )
    else:
        to_stdout("by second   too short for samples by the second, as scheduler_perf takes them")
    to_stdout(
        f"latency     p50 {figures['latency_p50']} s  p99 {figures['latency_p99']} s from creation to binding"
    )
    if memory is not None:
        to_stdout(f"memory      {memory / 2**20:.0f} MiB at most")


def _named(connection: Connection | None) -> dict[str, object]:
    if connection is None:
        return {}
    return {"cluster": {"name": connection.name, "server": connection.server}}


class _Bar:
    """A progress bar on a terminal; nothing elsewhere."""

    def __enter__(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=console,
            transient=True,
            disable=not is_watched(),
        )
        self._progress.start()
        self._task = self._progress.add_task("starting the server", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, what: str, total: int) -> None:
        self._progress.reset(self._task, description=what, total=total)

    def advance(self) -> None:
        self._progress.advance(self._task)
