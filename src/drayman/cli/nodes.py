"""`drayman node`: make simulated nodes fail and recover, and drain them; run a real one (`node_agent`).

The wanted state is written to the Node object, and the process that simulates the node obeys. So this works from any process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from drayman.cli.connecting import Where, announce, cluster_options, talk
from drayman.cli.errors import UserError
from drayman.cli.lazy import LazyGroup
from drayman.cli.options import SECONDS
from drayman.cli.output import say, to_stdout
from drayman.questions.errors import no_such_node

if TYPE_CHECKING:
    from drayman.api.core import Node, Pod
    from drayman.cluster import Client, HttpClient, Patch

_EPILOG: Final = """\b
Examples:
  drayman node add dgx-h100=2           more hardware, while the cluster runs
  drayman node remove dgx-h100-1        less
  drayman node fail example-0           no heartbeats, its pods stand still
  drayman node recover example-0        it answers again
  drayman node drain example-1          evict its pods, take no new ones
  drayman node recover example-1        take pods again
  drayman node run                      this machine as a real node
  drayman node kubeconfig node-1        with which another machine joins
"""
_EVICTION_PAUSE_S: Final = 0.5


@click.group(cls=LazyGroup, lazy={
    "add": "drayman.cli.simulated_nodes:add",
    "remove": "drayman.cli.simulated_nodes:remove",
    "fail": "drayman.cli.nodes:fail",
    "recover": "drayman.cli.nodes:recover",
    "drain": "drayman.cli.nodes:drain",
    "run": "drayman.cli.node_agent:run",
    "kubeconfig": "drayman.cli.node_agent:kubeconfig",
}, epilog=_EPILOG)  # fmt: skip
def node() -> None:
    """Run nodes; add, fail, drain, remove simulated ones."""


_NODES: Final = click.argument("names", metavar="NODE...", nargs=-1, required=True)


@click.command(
    short_help="Make nodes silent: no heartbeats, nothing starts or stops.",
    epilog="\b\nExamples:\n  drayman node fail example-0 example-1\n",
)
@_NODES
@cluster_options
def fail(names: tuple[str, ...], where: Where) -> None:
    """Make nodes silent: no heartbeats, and pods neither start nor stop there.

    After 40 s the node counts as lost and its pods are evicted; its devices stay held until it answers or is deleted.
    """
    from drayman.node.simulated.model import FAILED

    change = {"metadata": {"annotations": {FAILED: "true"}}}

    async def work(client: HttpClient) -> None:
        await _patch(client, names, change, "failed")

    talk(where, work)


@click.command(epilog="\b\nExamples:\n  drayman node recover example-0\n")
@_NODES
@cluster_options
def recover(names: tuple[str, ...], where: Where) -> None:
    """Undo fail and drain: the nodes answer and take pods again."""
    from drayman.node.simulated.model import FAILED

    change = {"metadata": {"annotations": {FAILED: None}}, "spec": {"unschedulable": None}}

    async def work(client: HttpClient) -> None:
        await _patch(client, names, change, "recovered")

    talk(where, work)


@click.command(
    short_help="Evict the pods of nodes and let no new ones in.",
    epilog="\b\nExamples:\n  drayman node drain example-0 --timeout 30\n",
)
@_NODES
@click.option(
    "--timeout",
    type=SECONDS,
    default=60.0,
    show_default=True,
    help="Seconds to wait for pods that a disruption budget protects.",
)
@cluster_options
def drain(names: tuple[str, ...], timeout: float, where: Where) -> None:
    """Evict the pods of nodes and let no new ones in, as `kubectl drain --ignore-daemonsets --force` does.

    A node that could not be drained stays cordoned; `drayman node recover` lets pods in again.
    """

    async def work(client: HttpClient) -> None:
        await _patch(client, names, {"spec": {"unschedulable": True}}, "cordoned")
        still = f"still cordoned: {', '.join(names)}; to undo it: drayman node recover {' '.join(names)}"
        try:
            for name in names:
                await _evict_all(client, name, timeout)
        except asyncio.CancelledError:  # Ctrl-C
            say(still)
            raise
        except UserError as error:
            raise UserError(f"{error.message}\n{still}") from error

    talk(where, work)


async def _patch(
    client: HttpClient, names: Sequence[str], change: dict[str, Any], done: str
) -> None:
    from drayman.cluster import merge_patch
    from drayman.cluster.resources import NODES

    for name in names:
        await simulated_node(client, name)
    announce(client)
    patch: Patch = merge_patch(change)
    for name in names:
        await client.patch(NODES, name, patch)
        to_stdout(f"node/{name} {done}")


async def simulated_node(client: Client, name: str) -> Node:
    """The node. Raises NoSuchObjectError for one that does not exist, and UserError for one that is not simulated."""
    from drayman.cluster.errors import NotFoundError
    from drayman.cluster.resources import NODES
    from drayman.node.reporting import SIMULATED

    try:
        found = await client.get(NODES, name)
    except NotFoundError as error:
        known = (await client.list_all(NODES)).items
        raise no_such_node(name, [each.metadata.name for each in known]) from error
    if found.metadata.labels.get(SIMULATED) != "true":
        raise UserError(
            f"node {name!r} is not simulated, and this command is for simulated nodes; to empty it:"
            f" kubectl drain {name} --ignore-daemonsets --force; to remove it: stop its agent, then kubectl delete node {name}"
        )
    return found


async def _evict_all(client: Client, node_name: str, timeout: float) -> None:
    from drayman.cluster import ListOptions
    from drayman.cluster.resources import PODS

    options = ListOptions(field_selector=f"spec.nodeName={node_name}")
    found = (await client.list_all(PODS, options=options)).items
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    for pod in found:
        if _stays(pod):
            continue
        await _evict(client, pod, lambda: loop.time() < deadline)
        to_stdout(f"pod/{pod.metadata.name} evicted")
    to_stdout(f"node/{node_name} drained")


def _stays(pod: Pod) -> bool:
    """A DaemonSet would recreate its pod at once; a pod that has ended does no harm."""
    from drayman.api.pods import is_finished

    is_daemon = any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references)
    return is_daemon or is_finished(pod)


async def _evict(client: Client, pod: Pod, may_wait: Callable[[], bool]) -> None:
    from drayman.cluster.errors import NotFoundError, TooManyRequestsError

    meta = pod.metadata
    has_said = False
    while True:
        try:
            await client.evict(meta.name, meta.namespace)
        except NotFoundError:
            return
        except TooManyRequestsError as error:
            if not may_wait():
                raise UserError(f"pod {meta.namespace}/{meta.name} stays: {error}") from error
            if not has_said:
                has_said = True
                say(f"waiting to evict pod {meta.namespace}/{meta.name}: {error}")
            await asyncio.sleep(_EVICTION_PAUSE_S)
        else:
            return
